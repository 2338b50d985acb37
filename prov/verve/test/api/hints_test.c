/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints: an application gets the capabilities and attributes that it asks for, and nothing costly
 * that it did not ask for. hints_apps_test.c has the hints of applications, hints_mr_test.c the
 * modes of registration, hints_refused_test.c hints that verve cannot fulfil.
 */
#include <rdma/fi_errno.h>

#include "api/attr.h"
#include "base/config.h"
#include "hints_fixture.h"

/*
 * Applications use everything they are offered. So nothing is offered that costs each write a
 * packet and an answer.
 */
Test(hints, without_hints_nothing_that_costs)
{
	uint64_t caps;

	cr_assert_eq(hints_get_with(NULL), 0);
	caps = info->caps;
	cr_expect_not(caps & (FI_SOURCE | FI_RMA_EVENT));
	cr_expect_not((info->tx_attr->caps | info->rx_attr->caps) & (FI_SOURCE | FI_RMA_EVENT));
	cr_expect(caps & FI_DIRECTED_RECV);
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->caps, caps);
}

/* Attributes that hints may lack. */

Test(hints, attributes_may_be_missing)
{
	struct fi_info bare = {.caps = FI_MSG | FI_TAGGED};

	cr_assert_eq(hints_get_with(&bare), 0);
	cr_expect_eq(info->caps & bare.caps, bare.caps);
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed);
}

Test(hints, source_and_directed_receive_only_if_asked_for)
{
	hints->caps = FI_MSG;
	hints_expect_match();
	cr_expect_not(info->caps & (FI_SOURCE | FI_DIRECTED_RECV | FI_TAGGED));
	cr_expect(info->caps & FI_MULTI_RECV);
	hints->caps = FI_MSG | FI_SOURCE | FI_DIRECTED_RECV;
	hints_expect_match();
	cr_expect(info->rx_attr->caps & FI_SOURCE);
	cr_expect_not(info->tx_attr->caps & FI_SOURCE);
}

Test(hints, tagged_directed_receive_is_of_libfabric_2)
{
	hints->caps = FI_MSG | FI_TAGGED | VERVE_TAGGED_DIRECTED_RECV;
	cr_expect_eq(hints_get(), -FI_ENODATA);
	version = FI_VERSION(2, 0);
	hints_expect_match();
	cr_expect_eq(info->caps & (VERVE_TAGGED_DIRECTED_RECV | FI_DIRECTED_RECV),
		     VERVE_TAGGED_DIRECTED_RECV);
	cr_expect(info->rx_attr->caps & VERVE_TAGGED_DIRECTED_RECV);
	cr_expect_not(info->tx_attr->caps & VERVE_TAGGED_DIRECTED_RECV);
	hints->rx_attr->caps = hints->tx_attr->caps = hints->caps;
	hints_expect_match();
	fi_freeinfo(hints);
	hints = fi_allocinfo();
	hints_lengthen(hints);
	cr_assert_eq(hints_get(), 0);
	cr_expect_not(info->caps & VERVE_TAGGED_DIRECTED_RECV);
	cr_assert_eq(hints_get_with(NULL), 0);
	cr_expect_not(info->caps & VERVE_TAGGED_DIRECTED_RECV);
}

Test(hints, fences_are_what_a_sender_does)
{
	hints->caps = FI_RMA | FI_FENCE;
	hints->domain_attr->mr_mode = mr_needed;
	hints_expect_match();
	cr_expect(info->caps & FI_FENCE);
	cr_expect(info->tx_attr->caps & FI_FENCE);
	cr_expect_not(info->rx_attr->caps & FI_FENCE);
	hints->rx_attr->caps = hints->caps;
	hints_expect_match();
}

/* An application that is offered one type may rely on it more than on the other: fi_domain(3). */
Test(hints, no_type_of_address_vector_is_preferred)
{
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->domain_attr->av_type, FI_AV_UNSPEC);
	hints->domain_attr->av_type = FI_AV_UNSPEC;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->av_type, FI_AV_UNSPEC);
}

Test(hints, shared_contexts_are_echoed)
{
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->ep_attr->rx_ctx_cnt, 1);
	cr_expect_gt(info->domain_attr->max_ep_srx_ctx, 0);
	cr_expect_gt(info->domain_attr->max_ep_stx_ctx, 0);
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints_expect_match();
	cr_expect_eq(info->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
	cr_expect_eq(info->ep_attr->tx_ctx_cnt, 1);
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	hints_expect_match();
	cr_expect_eq(info->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
}

Test(hints, rma_events_only_if_asked_for)
{
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode = mr_needed | FI_MR_RMA_EVENT;
	hints_expect_match();
	cr_expect_not(info->caps & FI_RMA_EVENT);
	hints->caps |= FI_RMA_EVENT;
	hints_expect_match();
	cr_expect(info->rx_attr->caps & FI_RMA_EVENT);
	cr_expect_not(info->tx_attr->caps & FI_RMA_EVENT);
	cr_expect_not(info->domain_attr->mr_mode & FI_MR_RMA_EVENT);
}

Test(hints, one_direction_stays_one)
{
	hints->caps = FI_MSG | FI_SEND;
	hints_expect_match();
	cr_expect_eq(info->caps & (FI_SEND | FI_RECV), FI_SEND);
}

Test(hints, every_threading_model_is_echoed)
{
	for (enum fi_threading threading = FI_THREAD_UNSPEC; threading <= FI_THREAD_ENDPOINT;
	     threading++) {
		hints->domain_attr->threading = threading;
		cr_assert_eq(hints_get(), 0);
		cr_expect_eq(info->domain_attr->threading,
			     threading == FI_THREAD_UNSPEC ? FI_THREAD_SAFE : threading);
	}
}

Test(hints, progress)
{
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	cr_expect_eq(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
	hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	cr_expect_eq(hints_get(), 0);
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
}

Test(hints, sizes_are_echoed_and_bounded)
{
	hints->tx_attr->size = VERVE_TX_SIZE_MAX;
	hints->rx_attr->size = VERVE_RX_SIZE_MAX;
	hints_expect_match();
	cr_expect_eq(info->tx_attr->size, VERVE_TX_SIZE_MAX);
	cr_expect_eq(info->rx_attr->size, VERVE_RX_SIZE_MAX);
	hints->tx_attr->size++;
	cr_expect_eq(hints_get(), -FI_ENODATA);
	hints->tx_attr->size = 1;
	hints->rx_attr->size++;
	cr_expect_eq(hints_get(), -FI_ENODATA);
}

Test(hints, inject_is_never_longer_than_eager)
{
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->tx_attr->inject_size, VERVE_INJECT_SIZE);
	verve_config.eager_size = 1000;
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->tx_attr->inject_size, 1000);
	hints->tx_attr->inject_size = 1001;
	cr_expect_eq(hints_get(), -FI_ENODATA);
}

Test(hints, orders_that_hold)
{
	hints->caps = FI_MSG | FI_RMA;
	hints->tx_attr->msg_order =
		FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAW;
	hints->rx_attr->msg_order = hints->tx_attr->msg_order;
	hints_expect_match();
	cr_expect_gt(info->ep_attr->max_order_waw_size, 0);
	cr_expect_gt(info->ep_attr->max_order_raw_size, 0);
	cr_expect_eq(info->ep_attr->max_order_war_size, 0);
}

Test(hints, atomics_are_like_rma)
{
	hints->caps = FI_ATOMIC;
	hints->tx_attr->msg_order = atomic_order;
	hints->rx_attr->msg_order = atomic_order;
	hints->ep_attr->max_order_war_size = verve_config.eager_size;
	hints_expect_match();
	cr_expect_eq(info->caps & (FI_ATOMIC | rma_all | FI_MSG), FI_ATOMIC | (rma_all & ~FI_RMA));
	cr_expect_eq(info->ep_attr->max_order_war_size, verve_config.eager_size);
	hints->ep_attr->max_order_war_size++;
	cr_expect_eq(hints_get(), -FI_ENODATA);
	hints->ep_attr->max_order_war_size = 0;
	hints->caps = FI_ATOMIC | FI_WRITE;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED;
	hints_expect_match();
	cr_expect_eq(info->caps & (FI_ATOMIC | rma_all), FI_ATOMIC | FI_WRITE);
}

/*
 * Memory alone limits the number of objects: as many as asked for are offered, and never fewer than
 * without hints.
 */
Test(hints, counts_of_objects_are_given)
{
	const size_t many = 1 << 20;
	struct fi_domain_attr *asked = hints->domain_attr, *got;

	asked->cq_cnt = asked->ep_cnt = asked->cntr_cnt = many;
	asked->tx_ctx_cnt = asked->rx_ctx_cnt = many;
	asked->max_ep_stx_ctx = asked->max_ep_srx_ctx = many;
	cr_assert_eq(hints_get(), 0);
	got = info->domain_attr;
	cr_expect_eq(got->cq_cnt, many);
	cr_expect_eq(got->ep_cnt, many);
	cr_expect_eq(got->cntr_cnt, many);
	cr_expect_eq(got->tx_ctx_cnt, many);
	cr_expect_eq(got->rx_ctx_cnt, many);
	cr_expect_eq(got->max_ep_stx_ctx, many);
	cr_expect_eq(got->max_ep_srx_ctx, many);
	asked->cq_cnt = asked->ep_cnt = 1;
	cr_assert_eq(hints_get(), 0);
	cr_expect_gt(info->domain_attr->cq_cnt, 1);
	cr_expect_gt(info->domain_attr->ep_cnt, 1);
}

/* FI_SOCKADDR_IP of 2.3 means either family, as FI_SOCKADDR does. */
Test(hints, either_ip_family_by_its_own_format)
{
	struct fi_info *one;
	bool in = false, in6 = false;

	hints->addr_format = 17;
	cr_assert_eq(hints_get(), 0);
	for (one = info; one; one = one->next) {
		in |= one->addr_format == FI_SOCKADDR_IN;
		in6 |= one->addr_format == FI_SOCKADDR_IN6;
	}
	cr_expect(in && in6);
	hints->addr_format = 18;
	cr_expect_eq(hints_get(), -FI_ENODATA);
}

static void expect_tclass(uint32_t tclass)
{
	version = FI_VERSION(1, 17);
	hints->domain_attr->tclass = hints->tx_attr->tclass = tclass;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->tclass, tclass);
	cr_expect_eq(info->tx_attr->tclass, tclass);
}

/* Benchmarks and portable applications ask for some label. */
Test(hints, every_traffic_class_is_granted)
{
	for (uint32_t label = FI_TC_BEST_EFFORT; label <= FI_TC_NETWORK_CTRL; label++)
		expect_tclass(label);
	for (uint8_t dscp = 0; dscp < 64; dscp++)
		expect_tclass(fi_tc_dscp_set(dscp));
	hints->domain_attr->tclass = fi_tc_dscp_set(64);
	cr_expect_eq(hints_get(), -FI_ENODATA);
	hints->domain_attr->tclass = FI_TC_NETWORK_CTRL + 1;
	cr_expect_eq(hints_get(), -FI_ENODATA);
}

Test(hints, best_effort_is_the_traffic_class)
{
	hints->domain_attr->tclass = FI_TC_BEST_EFFORT;
	hints->tx_attr->tclass = FI_TC_BEST_EFFORT;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->tclass, FI_TC_BEST_EFFORT);
	cr_expect_eq(info->tx_attr->tclass, FI_TC_BEST_EFFORT);
	/* Before 1.9 these bytes meant something else, or did not exist. */
	version = FI_VERSION(1, 8);
	hints->domain_attr->tclass = hints->tx_attr->tclass = FI_TC_LOW_LATENCY;
	cr_expect_eq(hints_get(), 0);
	cr_expect_eq(info->domain_attr->tclass, FI_TC_UNSPEC);
}

Test(hints, keys_of_one_endpoint_and_groups_of_peers)
{
	struct newer_domain_attr asked = {.max_ep_auth_key = 1};
	struct fi_info with = {.domain_attr = &asked.attr};

	version = FI_VERSION(1, 19);
	cr_expect_eq(hints_get_with(&with), 0);
	version = FI_VERSION(1, 20);
	cr_expect_eq(hints_get_with(&with), -FI_ENODATA);
	asked.max_ep_auth_key = 0;
	asked.max_group_id = 1;
	cr_expect_eq(hints_get_with(&with), 0);
	version = FI_VERSION(2, 0);
	cr_expect_eq(hints_get_with(&with), -FI_ENODATA);
	asked.max_group_id = 0;
	cr_expect_eq(hints_get_with(&with), 0);
}

/* Every entry of the answer has copies of the keys, so that objects opened with it have them. */
Test(hints, authorization_keys_are_handed_on)
{
	static uint8_t domain_key[16] = "domain's secret", ep_key[20] = "an endpoint's secret";

	hints->domain_attr->auth_key = domain_key;
	hints->domain_attr->auth_key_size = sizeof(domain_key);
	hints->ep_attr->auth_key = ep_key;
	hints->ep_attr->auth_key_size = sizeof(ep_key);
	hints_expect_match();
	for (struct fi_info *one = info; one; one = one->next) {
		cr_assert_eq(one->domain_attr->auth_key_size, sizeof(domain_key));
		cr_assert_neq(one->domain_attr->auth_key, domain_key);
		cr_expect_arr_eq(one->domain_attr->auth_key, domain_key, sizeof(domain_key));
		cr_assert_eq(one->ep_attr->auth_key_size, sizeof(ep_key));
		cr_assert_neq(one->ep_attr->auth_key, ep_key);
		cr_expect_arr_eq(one->ep_attr->auth_key, ep_key, sizeof(ep_key));
	}
	hints->domain_attr->auth_key = hints->ep_attr->auth_key = NULL;
}

Test(hints, without_keys_there_are_none)
{
	cr_assert_eq(hints_get(), 0);
	cr_expect_eq(info->domain_attr->auth_key_size, 0);
	cr_expect_null(info->domain_attr->auth_key);
	cr_expect_eq(info->ep_attr->auth_key_size, 0);
	cr_expect_null(info->ep_attr->auth_key);
}
