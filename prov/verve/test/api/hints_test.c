/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints: an application gets what it asks for, and each hint that verve cannot fulfil.
 * consumers_test.c has the hints of real applications.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <criterion/redirect.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/attr.h"
#include "api/info.h"
#include "api/ports.h"
#include "api/prov.h"
#include "base/log.h"

/* libfabric 2.x deprecates these names, and using them breaks the build. */
enum {
	MR_BASIC = 1 << 0,
	MR_SCALABLE = 1 << 1,
};

static const int mr_needed = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
static const uint64_t rma_all = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
static const uint64_t atomic_order = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
				     FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

static uint32_t version = FI_VERSION(1, 17);
static struct verve_net_port *ports;
static size_t port_count;
static struct fi_info *hints;
static struct fi_info *info;

/*
 * struct fi_domain_attr with the members behind those of 1.17. Each is there from its version on.
 */
struct newer_domain_attr {
	struct fi_domain_attr attr;
	size_t max_ep_auth_key; /* 1.20 */
	uint32_t max_group_id;	/* 2.0 */
	char room[64];
};

/*
 * Gives domain_attr the length of the newest version, as the libfabric of any version may allocate
 * it.
 */
static void lengthen(struct fi_info *of)
{
	struct newer_domain_attr *attr = calloc(1, sizeof(*attr));

	cr_assert_not_null(attr);
	memcpy(attr, of->domain_attr, sizeof(*of->domain_attr));
	free(of->domain_attr);
	of->domain_attr = (struct fi_domain_attr *)attr;
}

static void setup(void)
{
	verve_log_provider = &verve_prov;
	ports_make(&ports, &port_count);
	hints = fi_allocinfo();
	cr_assert_not_null(hints);
	lengthen(hints);
}

static void teardown(void)
{
	fi_freeinfo(info);
	fi_freeinfo(hints);
	ports_free(ports, port_count);
}

TestSuite(hints, .init = setup, .fini = teardown);

static int get_with(const struct fi_info *with)
{
	fi_freeinfo(info);
	info = NULL;
	return verve_info_choose(ports, port_count, version, NULL, NULL, 0, with, &info);
}

static int get(void)
{
	return get_with(hints);
}

/* Asks again with the answer as hints, as applications do. The second answer must be the same. */
static void expect_match(void)
{
	struct fi_info *again = NULL;

	cr_assert_eq(get(), 0);
	lengthen(info);
	cr_expect_eq(hints->caps & ~info->caps, 0);
	cr_expect_eq(info->mode, 0);
	cr_expect_eq(info->tx_attr->caps & ~info->caps, 0);
	cr_expect_eq(info->rx_attr->caps & ~info->caps, 0);
	cr_expect_eq((info->tx_attr->caps | info->rx_attr->caps),
		     info->caps & ~(FI_LOCAL_COMM | FI_REMOTE_COMM));
	if (hints->domain_attr->mr_mode)
		cr_expect_eq(verve_info_choose(ports, port_count, version, NULL, NULL, 0, info,
					       &again), 0);
	if (again)
		cr_expect_eq(again->caps, info->caps);
	fi_freeinfo(again);
}

/* Hints of portable applications, which ask for many things at once. */

Test(hints, server_of_remote_procedures)
{
	hints->mode = FI_ASYNC_IOV | FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV;
	hints->tx_attr->op_flags = FI_INJECT_COMPLETE;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = mr_needed | FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_HMEM;
	expect_match();
	cr_expect_eq(info->src_addrlen, 16);
	cr_expect_eq(info->tx_attr->op_flags, FI_INJECT_COMPLETE);
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed | FI_MR_LOCAL);
	cr_expect_leq(info->domain_attr->mr_key_size, 8);
	cr_expect_geq(info->domain_attr->cq_data_size, 4);
	cr_expect_geq(info->domain_attr->mr_iov_limit, 1);
	cr_expect_not(info->caps & FI_SOURCE);
}

/*
 * First a query without hints; then hints with the capabilities of the answer, strict at first,
 * then less and less strict.
 */
Test(hints, mpich_4_2)
{
	version = FI_VERSION(0, 0);
	cr_assert_eq(get_with(NULL), 0);
	cr_expect(info->caps & FI_DIRECTED_RECV);
	cr_expect(info->caps & FI_TAGGED && info->caps & FI_MULTI_RECV && info->caps & FI_RMA);
	cr_expect_not(info->caps & (FI_SOURCE | FI_RMA_EVENT));
	cr_expect_eq(info->domain_attr->max_ep_tx_ctx, 1);
	hints->caps = info->caps;

	version = FI_VERSION(1, 17);
	hints->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	hints->tx_attr->msg_order = FI_ORDER_SAS | atomic_order;
	expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, FI_MR_ALLOCATED);
	hints->domain_attr->mr_mode = MR_BASIC;
	expect_match();
	cr_expect_eq(info->domain_attr->threading, FI_THREAD_DOMAIN);
	cr_expect_eq(info->domain_attr->av_type, FI_AV_TABLE);
	cr_expect_eq(info->domain_attr->mr_mode, MR_BASIC);
}

Test(hints, open_mpi_4_mtl)
{
	version = FI_VERSION(1, 5);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->cq_data_size = 4;
	hints->domain_attr->av_type = FI_AV_MAP;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, 0);
	cr_expect_eq(info->domain_attr->av_type, FI_AV_MAP);
	cr_expect_not(info->caps & FI_RMA);
	cr_expect_geq(info->ep_attr->max_msg_size, (size_t) 1 << 30);
}

Test(hints, open_mpi_5_mtl)
{
	version = FI_VERSION(1, 9);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->caps =
		FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV | FI_HMEM;
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_ALLOCATED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	cr_expect_eq(get(), -FI_ENODATA);
	hints->caps &= ~FI_HMEM;
	hints->domain_attr->mr_mode = 0;
	expect_match();
}

Test(hints, open_mpi_btl_two_sided)
{
	version = FI_VERSION(1, 5);
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->tx_attr->iov_limit = 1;
	hints->rx_attr->iov_limit = 1;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->mr_mode = mr_needed;
	expect_match();
}

Test(hints, gasnet_rma_endpoint_prefers_its_own_keys)
{
	version = FI_VERSION(1, 5);
	hints->caps = FI_RMA | FI_MSG | FI_MULTI_RECV;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = mr_needed | FI_MR_ENDPOINT;
	expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed);
	hints->domain_attr->mr_mode &= ~FI_MR_PROV_KEY;
	expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed & ~FI_MR_PROV_KEY);
}

Test(hints, nccl_plugin)
{
	version = FI_VERSION(1, 6);
	hints->caps = FI_TAGGED | FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | MR_BASIC;
	hints->domain_attr->mr_key_size = 2;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed | FI_MR_LOCAL);
	hints->caps |= FI_RMA | FI_READ;
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	expect_match();
	cr_expect_eq(info->caps & rma_all, FI_RMA | FI_READ);
}

Test(hints, fabtests_and_pingpong)
{
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_RAW | mr_needed;
	expect_match();
	cr_expect_eq(info->caps & rma_all, rma_all);
	cr_expect_eq(info->caps & (FI_SEND | FI_RECV), FI_SEND | FI_RECV);
}

Test(hints, fi_info_asks_for_all_modes)
{
	hints->mode = ~0;
	hints->domain_attr->mode = ~0;
	hints->domain_attr->mr_mode = ~(MR_BASIC | MR_SCALABLE);
	expect_match();
	cr_expect(info->caps & FI_RMA);
	cr_expect_not(info->domain_attr->mr_mode & (FI_MR_ENDPOINT | FI_MR_RAW | FI_MR_HMEM));
}

/* Registration modes. */

struct mr_case {
	uint32_t version;
	uint64_t caps;
	int asked;
	int got; /* mode in the answer; negative: refused */
};

ParameterizedTestParameters(hints, mr_mode)
{
	static struct mr_case cases[] = {
		{FI_VERSION(1, 17), FI_MSG, 0, 0},
		{FI_VERSION(1, 17), 0, 0, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, 0, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_ATOMIC, 0, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, MR_BASIC, MR_BASIC},
		{FI_VERSION(1, 17), FI_MSG, MR_BASIC, MR_BASIC},
		{FI_VERSION(1, 17), FI_RMA, MR_SCALABLE, MR_SCALABLE},
		{FI_VERSION(1, 17), FI_MSG, MR_SCALABLE, MR_SCALABLE},
		{FI_VERSION(1, 17), FI_MSG, FI_MR_LOCAL, FI_MR_LOCAL | FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED,
		 FI_MR_VIRT_ADDR | FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, FI_MR_PROV_KEY | FI_MR_ALLOCATED,
		 FI_MR_PROV_KEY | FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR,
		 FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA | FI_WRITE, FI_MR_ALLOCATED, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA | FI_REMOTE_WRITE, FI_MR_ALLOCATED, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
		 FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY},
		/* SOS, with scalable regions. */
		{FI_VERSION(1, 5), FI_RMA | FI_ATOMIC, FI_MR_RMA_EVENT, FI_MR_ALLOCATED},
		/* MPICH 4.3 and 5.0, the first query. */
		{FI_VERSION(2, 1), FI_RMA | FI_ATOMIC | FI_MSG | FI_TAGGED, FI_MR_ENDPOINT,
		 FI_MR_ALLOCATED},
		{FI_VERSION(2, 1), FI_RMA, 0, FI_MR_ALLOCATED},
		{FI_VERSION(2, 1), FI_RMA, MR_BASIC, MR_BASIC},
		/*
		 * Since 1.22, a region without FI_MR_ALLOCATED would have to follow its memory,
		 * which verve cannot do.
		 */
		{FI_VERSION(1, 21), FI_RMA, FI_MR_PROV_KEY, FI_MR_PROV_KEY | FI_MR_ALLOCATED},
		{FI_VERSION(1, 22), FI_RMA, FI_MR_PROV_KEY, -1},
		{FI_VERSION(2, 1), FI_RMA, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR, -1},
		{FI_VERSION(2, 1), FI_ATOMIC, FI_MR_VIRT_ADDR | FI_MR_LOCAL, -1},
		{FI_VERSION(2, 1), FI_RMA, MR_SCALABLE, -1},
		{FI_VERSION(2, 1), FI_MSG, FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR},
		{FI_VERSION(2, 1), 0, FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED},
		{FI_VERSION(1, 4), FI_RMA, 0, MR_BASIC},
		{FI_VERSION(1, 4), FI_RMA, MR_BASIC, MR_BASIC},
		{FI_VERSION(1, 4), FI_RMA, MR_SCALABLE, MR_SCALABLE},
		{FI_VERSION(1, 4), FI_RMA, FI_MR_VIRT_ADDR, -1},
	};

	return cr_make_param_array(struct mr_case, cases, sizeof(cases) / sizeof(cases[0]));
}

ParameterizedTest(struct mr_case *param, hints, mr_mode)
{
	version = param->version;
	hints->caps = param->caps;
	hints->domain_attr->mr_mode = param->asked;
	cr_assert_eq(get(), param->got < 0 ? -FI_ENODATA : 0);
	if (param->got < 0)
		return;
	cr_expect_eq(info->domain_attr->mr_mode, param->got);
	/* Without hints for capabilities, RMA is offered even if no mode bit is granted. */
	if (!param->caps)
		cr_expect_eq(info->caps & rma_all, rma_all);
}

/*
 * Applications use everything they are offered. So nothing is offered that costs each write a
 * packet and an answer.
 */
Test(hints, without_hints_nothing_that_costs)
{
	uint64_t caps;

	cr_assert_eq(get_with(NULL), 0);
	caps = info->caps;
	cr_expect_not(caps & (FI_SOURCE | FI_RMA_EVENT));
	cr_expect_not((info->tx_attr->caps | info->rx_attr->caps) & (FI_SOURCE | FI_RMA_EVENT));
	cr_expect(caps & FI_DIRECTED_RECV);
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->caps, caps);
}

Test(hints, mr_mode_without_hints)
{
	cr_assert_eq(get_with(NULL), 0);
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed);
	version = FI_VERSION(1, 4);
	cr_assert_eq(get_with(NULL), 0);
	cr_expect_eq(info->domain_attr->mr_mode, MR_BASIC);
}

/* Attributes that hints may lack. */

Test(hints, attributes_may_be_missing)
{
	struct fi_info bare = {.caps = FI_MSG | FI_TAGGED};

	cr_assert_eq(get_with(&bare), 0);
	cr_expect_eq(info->caps & bare.caps, bare.caps);
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed);
}

Test(hints, source_and_directed_receive_only_if_asked_for)
{
	hints->caps = FI_MSG;
	expect_match();
	cr_expect_not(info->caps & (FI_SOURCE | FI_DIRECTED_RECV | FI_TAGGED));
	cr_expect(info->caps & FI_MULTI_RECV);
	hints->caps = FI_MSG | FI_SOURCE | FI_DIRECTED_RECV;
	expect_match();
	cr_expect(info->rx_attr->caps & FI_SOURCE);
	cr_expect_not(info->tx_attr->caps & FI_SOURCE);
}

Test(hints, tagged_directed_receive_is_of_libfabric_2)
{
	hints->caps = FI_MSG | FI_TAGGED | VERVE_TAGGED_DIRECTED_RECV;
	cr_expect_eq(get(), -FI_ENODATA);
	version = FI_VERSION(2, 0);
	expect_match();
	cr_expect_eq(info->caps & (VERVE_TAGGED_DIRECTED_RECV | FI_DIRECTED_RECV),
		     VERVE_TAGGED_DIRECTED_RECV);
	cr_expect(info->rx_attr->caps & VERVE_TAGGED_DIRECTED_RECV);
	cr_expect_not(info->tx_attr->caps & VERVE_TAGGED_DIRECTED_RECV);
	hints->rx_attr->caps = hints->tx_attr->caps = hints->caps;
	expect_match();
	fi_freeinfo(hints);
	hints = fi_allocinfo();
	lengthen(hints);
	cr_assert_eq(get(), 0);
	cr_expect_not(info->caps & VERVE_TAGGED_DIRECTED_RECV);
	cr_assert_eq(get_with(NULL), 0);
	cr_expect_not(info->caps & VERVE_TAGGED_DIRECTED_RECV);
}

Test(hints, fences_are_what_a_sender_does)
{
	hints->caps = FI_RMA | FI_FENCE;
	hints->domain_attr->mr_mode = mr_needed;
	expect_match();
	cr_expect(info->caps & FI_FENCE);
	cr_expect(info->tx_attr->caps & FI_FENCE);
	cr_expect_not(info->rx_attr->caps & FI_FENCE);
	hints->rx_attr->caps = hints->caps;
	expect_match();
}

/* An application that is offered one type may rely on it more than on the other: fi_domain(3). */
Test(hints, no_type_of_address_vector_is_preferred)
{
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->domain_attr->av_type, FI_AV_UNSPEC);
	hints->domain_attr->av_type = FI_AV_UNSPEC;
	expect_match();
	cr_expect_eq(info->domain_attr->av_type, FI_AV_UNSPEC);
}

Test(hints, shared_contexts_are_echoed)
{
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->ep_attr->rx_ctx_cnt, 1);
	cr_expect_gt(info->domain_attr->max_ep_srx_ctx, 0);
	cr_expect_gt(info->domain_attr->max_ep_stx_ctx, 0);
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	expect_match();
	cr_expect_eq(info->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
	cr_expect_eq(info->ep_attr->tx_ctx_cnt, 1);
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	expect_match();
	cr_expect_eq(info->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
}

Test(hints, rma_events_only_if_asked_for)
{
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode = mr_needed | FI_MR_RMA_EVENT;
	expect_match();
	cr_expect_not(info->caps & FI_RMA_EVENT);
	hints->caps |= FI_RMA_EVENT;
	expect_match();
	cr_expect(info->rx_attr->caps & FI_RMA_EVENT);
	cr_expect_not(info->tx_attr->caps & FI_RMA_EVENT);
	cr_expect_not(info->domain_attr->mr_mode & FI_MR_RMA_EVENT);
}

Test(hints, one_direction_stays_one)
{
	hints->caps = FI_MSG | FI_SEND;
	expect_match();
	cr_expect_eq(info->caps & (FI_SEND | FI_RECV), FI_SEND);
}

Test(hints, every_threading_model_is_echoed)
{
	for (enum fi_threading threading = FI_THREAD_UNSPEC; threading <= FI_THREAD_ENDPOINT;
	     threading++) {
		hints->domain_attr->threading = threading;
		cr_assert_eq(get(), 0);
		cr_expect_eq(info->domain_attr->threading,
			     threading == FI_THREAD_UNSPEC ? FI_THREAD_SAFE : threading);
	}
}

Test(hints, progress)
{
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	cr_expect_eq(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
	hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	cr_expect_eq(get(), 0);
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
}

Test(hints, sizes_are_echoed_and_bounded)
{
	hints->tx_attr->size = VERVE_TX_SIZE_MAX;
	hints->rx_attr->size = VERVE_RX_SIZE_MAX;
	expect_match();
	cr_expect_eq(info->tx_attr->size, VERVE_TX_SIZE_MAX);
	cr_expect_eq(info->rx_attr->size, VERVE_RX_SIZE_MAX);
	hints->tx_attr->size++;
	cr_expect_eq(get(), -FI_ENODATA);
	hints->tx_attr->size = 1;
	hints->rx_attr->size++;
	cr_expect_eq(get(), -FI_ENODATA);
}

Test(hints, inject_is_never_longer_than_eager)
{
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->tx_attr->inject_size, VERVE_INJECT_SIZE);
	verve_config.eager_size = 1000;
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->tx_attr->inject_size, 1000);
	hints->tx_attr->inject_size = 1001;
	cr_expect_eq(get(), -FI_ENODATA);
}

Test(hints, orders_that_hold)
{
	hints->caps = FI_MSG | FI_RMA;
	hints->tx_attr->msg_order =
		FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAW;
	hints->rx_attr->msg_order = hints->tx_attr->msg_order;
	expect_match();
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
	expect_match();
	cr_expect_eq(info->caps & (FI_ATOMIC | rma_all | FI_MSG), FI_ATOMIC | (rma_all & ~FI_RMA));
	cr_expect_eq(info->ep_attr->max_order_war_size, verve_config.eager_size);
	hints->ep_attr->max_order_war_size++;
	cr_expect_eq(get(), -FI_ENODATA);
	hints->ep_attr->max_order_war_size = 0;
	hints->caps = FI_ATOMIC | FI_WRITE;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED;
	expect_match();
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
	cr_assert_eq(get(), 0);
	got = info->domain_attr;
	cr_expect_eq(got->cq_cnt, many);
	cr_expect_eq(got->ep_cnt, many);
	cr_expect_eq(got->cntr_cnt, many);
	cr_expect_eq(got->tx_ctx_cnt, many);
	cr_expect_eq(got->rx_ctx_cnt, many);
	cr_expect_eq(got->max_ep_stx_ctx, many);
	cr_expect_eq(got->max_ep_srx_ctx, many);
	asked->cq_cnt = asked->ep_cnt = 1;
	cr_assert_eq(get(), 0);
	cr_expect_gt(info->domain_attr->cq_cnt, 1);
	cr_expect_gt(info->domain_attr->ep_cnt, 1);
}

/* The answer for each port has the number of regions that its device can have. */
Test(hints, ports_with_fewer_regions_are_left_out)
{
	ports[0].limits.mr = 1000;
	hints->domain_attr->mr_cnt = 1001;
	cr_assert_eq(get(), 0);
	for (const struct fi_info *one = info; one; one = one->next) {
		cr_expect_str_neq(one->domain_attr->name, "mlx5_0");
		cr_expect_geq(one->domain_attr->mr_cnt, 1001);
	}
	hints->domain_attr->mr_cnt = 1000;
	cr_assert_eq(get(), 0);
	cr_expect_str_eq(info->domain_attr->name, "mlx5_0");
	cr_expect_eq(info->domain_attr->mr_cnt, 1000);
}

/* FI_SOCKADDR_IP of 2.3 means either family, as FI_SOCKADDR does. */
Test(hints, either_ip_family_by_its_own_format)
{
	struct fi_info *one;
	bool in = false, in6 = false;

	hints->addr_format = 17;
	cr_assert_eq(get(), 0);
	for (one = info; one; one = one->next) {
		in |= one->addr_format == FI_SOCKADDR_IN;
		in6 |= one->addr_format == FI_SOCKADDR_IN6;
	}
	cr_expect(in && in6);
	hints->addr_format = 18;
	cr_expect_eq(get(), -FI_ENODATA);
}

static void expect_tclass(uint32_t tclass)
{
	version = FI_VERSION(1, 17);
	hints->domain_attr->tclass = hints->tx_attr->tclass = tclass;
	expect_match();
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
	cr_expect_eq(get(), -FI_ENODATA);
	hints->domain_attr->tclass = FI_TC_NETWORK_CTRL + 1;
	cr_expect_eq(get(), -FI_ENODATA);
}

Test(hints, best_effort_is_the_traffic_class)
{
	hints->domain_attr->tclass = FI_TC_BEST_EFFORT;
	hints->tx_attr->tclass = FI_TC_BEST_EFFORT;
	expect_match();
	cr_expect_eq(info->domain_attr->tclass, FI_TC_BEST_EFFORT);
	cr_expect_eq(info->tx_attr->tclass, FI_TC_BEST_EFFORT);
	/* Before 1.9 these bytes meant something else, or did not exist. */
	version = FI_VERSION(1, 8);
	hints->domain_attr->tclass = hints->tx_attr->tclass = FI_TC_LOW_LATENCY;
	cr_expect_eq(get(), 0);
	cr_expect_eq(info->domain_attr->tclass, FI_TC_UNSPEC);
}

Test(hints, keys_of_one_endpoint_and_groups_of_peers)
{
	struct newer_domain_attr asked = {.max_ep_auth_key = 1};
	struct fi_info with = {.domain_attr = &asked.attr};

	version = FI_VERSION(1, 19);
	cr_expect_eq(get_with(&with), 0);
	version = FI_VERSION(1, 20);
	cr_expect_eq(get_with(&with), -FI_ENODATA);
	asked.max_ep_auth_key = 0;
	asked.max_group_id = 1;
	cr_expect_eq(get_with(&with), 0);
	version = FI_VERSION(2, 0);
	cr_expect_eq(get_with(&with), -FI_ENODATA);
	asked.max_group_id = 0;
	cr_expect_eq(get_with(&with), 0);
}

/* Each function sets one hint that verve cannot fulfil. */

static void ask_caps(void)
{
	hints->caps = FI_MSG | FI_TRIGGER;
}

static void ask_tx_caps(void)
{
	hints->tx_attr->caps = FI_MULTICAST;
}

static void ask_rx_caps(void)
{
	hints->rx_attr->caps = FI_VARIABLE_MSG;
}

static void ask_domain_caps(void)
{
	hints->domain_attr->caps = FI_SHARED_AV;
}

static void ask_commit_complete(void)
{
	hints->tx_attr->op_flags = FI_COMMIT_COMPLETE;
}

static void ask_rx_op_flags(void)
{
	hints->rx_attr->op_flags = FI_DELIVERY_COMPLETE;
}

static void ask_msg_order(void)
{
	hints->tx_attr->msg_order = FI_ORDER_RMA_WAR;
}

static void ask_rx_msg_order(void)
{
	hints->rx_attr->msg_order = FI_ORDER_WAS;
}

static void ask_comp_order(void)
{
	hints->tx_attr->comp_order = FI_ORDER_DATA;
}

static void ask_protocol(void)
{
	hints->ep_attr->protocol = FI_PROTO_RXM;
}

static void ask_protocol_version(void)
{
	hints->ep_attr->protocol_version = 3;
}

static void ask_max_msg_size(void)
{
	hints->ep_attr->max_msg_size = SIZE_MAX;
}

static void ask_contexts(void)
{
	hints->ep_attr->tx_ctx_cnt = 2;
}

static void ask_auth_key(void)
{
	hints->ep_attr->auth_key_size = 16;
}

static void ask_domain_auth_key(void)
{
	hints->domain_attr->auth_key_size = 16;
}

static void ask_cq_data(void)
{
	hints->domain_attr->cq_data_size = 9;
}

static void ask_mr_iov(void)
{
	hints->domain_attr->mr_iov_limit = 65;
}

static void ask_err_data(void)
{
	hints->domain_attr->max_err_data = 4096;
}

static void ask_iov(void)
{
	hints->tx_attr->iov_limit = 5;
}

static void ask_rma_iov(void)
{
	hints->tx_attr->rma_iov_limit = 5;
}

static void ask_rx_iov(void)
{
	hints->rx_attr->iov_limit = 5;
}

static void ask_prov_version(void)
{
	hints->fabric_attr->prov_version = VERVE_PROV_VERSION + 1;
}

static void ask_mr_key(void)
{
	hints->domain_attr->mr_key_size = 9;
}

static void ask_ep_tx_ctx(void)
{
	hints->domain_attr->max_ep_tx_ctx = 2;
}

static void ask_ep_rx_ctx(void)
{
	hints->domain_attr->max_ep_rx_ctx = 2;
}

static void ask_tclass(void)
{
	hints->domain_attr->tclass = FI_TC_NETWORK_CTRL + 1;
}

static void ask_dscp(void)
{
	hints->domain_attr->tclass = fi_tc_dscp_set(64);
}

static void ask_tx_tclass(void)
{
	hints->tx_attr->tclass = fi_tc_dscp_set(255);
}

static void ask_mr_cnt(void)
{
	hints->domain_attr->mr_cnt = (1 << 16) + 1;
}

static void ask_raw_size(void)
{
	hints->ep_attr->max_order_raw_size = SIZE_MAX;
}

static void ask_war_size_of_messages(void)
{
	hints->caps = FI_MSG;
	hints->ep_attr->max_order_war_size = 8;
}

static void ask_resource_mgmt(void)
{
	hints->domain_attr->resource_mgmt = (enum fi_resource_mgmt)77;
}

static void ask_war_size(void)
{
	hints->caps = FI_RMA;
	hints->domain_attr->mr_mode = mr_needed;
	hints->ep_attr->max_order_war_size = 8;
}

/* Every entry of the answer has copies of the keys, so that objects opened with it have them. */
Test(hints, authorization_keys_are_handed_on)
{
	static uint8_t domain_key[16] = "domain's secret", ep_key[20] = "an endpoint's secret";

	hints->domain_attr->auth_key = domain_key;
	hints->domain_attr->auth_key_size = sizeof(domain_key);
	hints->ep_attr->auth_key = ep_key;
	hints->ep_attr->auth_key_size = sizeof(ep_key);
	expect_match();
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
	cr_assert_eq(get(), 0);
	cr_expect_eq(info->domain_attr->auth_key_size, 0);
	cr_expect_null(info->domain_attr->auth_key);
	cr_expect_eq(info->ep_attr->auth_key_size, 0);
	cr_expect_null(info->ep_attr->auth_key);
}

struct refusal {
	void (*ask)(void);
	const char *reason; /* text that the log must have */
};

static const struct refusal refusals[] = {
	{ask_caps, "caps asks for FI_TRIGGER"},
	{ask_tx_caps, "tx_attr->caps asks for FI_MULTICAST"},
	{ask_rx_caps, "rx_attr->caps asks for"},
	{ask_domain_caps, "domain_attr->caps asks for FI_SHARED_AV"},
	{ask_commit_complete, "tx_attr->op_flags asks for"},
	{ask_rx_op_flags, "rx_attr->op_flags asks for FI_DELIVERY_COMPLETE"},
	{ask_msg_order, "tx_attr->msg_order asks for"},
	{ask_rx_msg_order, "rx_attr->msg_order asks for FI_ORDER_WAS"},
	{ask_comp_order, "tx_attr->comp_order asks for"},
	{ask_protocol, "ep_attr->protocol is another"},
	{ask_protocol_version, "ep_attr->protocol_version is 3"},
	{ask_max_msg_size, "ep_attr->max_msg_size is"},
	{ask_contexts, "ep_attr->tx_ctx_cnt is 2"},
	{ask_auth_key, "ep_attr->auth_key_size"},
	{ask_domain_auth_key, "domain_attr->auth_key_size"},
	{ask_cq_data, "domain_attr->cq_data_size is 9"},
	{ask_mr_iov, "domain_attr->mr_iov_limit is 65"},
	{ask_err_data, "domain_attr->max_err_data is 4096"},
	{ask_iov, "tx_attr->iov_limit is 5"},
	{ask_rma_iov, "tx_attr->rma_iov_limit is 5"},
	{ask_rx_iov, "rx_attr->iov_limit is 5"},
	{ask_prov_version, "fabric_attr->prov_version is"},
	{ask_war_size, "ep_attr->max_order_war_size is 8"},
	{ask_war_size_of_messages, "ep_attr->max_order_war_size is 8"},
	{ask_raw_size, "ep_attr->max_order_raw_size is"},
	{ask_mr_key, "domain_attr->mr_key_size is 9, the most is 8"},
	{ask_ep_tx_ctx, "domain_attr->max_ep_tx_ctx is 2, the most is 1"},
	{ask_ep_rx_ctx, "domain_attr->max_ep_rx_ctx is 2, the most is 1"},
	{ask_mr_cnt, "domain_attr->mr_cnt is 65537"},
	{ask_tclass, "domain_attr->tclass is 0x206"},
	{ask_dscp, "domain_attr->tclass is 0x140"},
	{ask_tx_tclass, "tx_attr->tclass is 0x1ff"},
	{ask_resource_mgmt, "domain_attr->resource_mgmt is unknown"},
};

enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

/*
 * The parameters are numbers, because they travel to another process, where pointers mean nothing.
 */
ParameterizedTestParameters(hints, refused)
{
	static size_t numbers[REFUSALS];

	for (size_t i = 0; i < REFUSALS; i++)
		numbers[i] = i;
	return cr_make_param_array(size_t, numbers, REFUSALS);
}

/* libfabric reads FI_LOG_LEVEL at the first call. */
static void start_log(void)
{
	struct fi_param *params;
	int count;

	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "verve", 1);
	cr_redirect_stderr();
	cr_assert_eq(fi_getparams(&params, &count), 0);
	fi_freeparams(params);
}

/* Exactly the one hint is wrong: without it there is an answer. */
ParameterizedTest(size_t *number, hints, refused)
{
	const struct refusal *refusal = &refusals[*number];
	static char text[65536];
	size_t len;

	cr_assert_eq(get(), 0);
	start_log();
	refusal->ask();
	cr_expect_eq(get(), -FI_ENODATA);
	fflush(stderr);
	len = fread(text, 1, sizeof(text) - 1, cr_get_redirected_stderr());
	text[len] = '\0';
	cr_expect_not_null(strstr(text, refusal->reason), "%s: %s", refusal->reason, text);
}
