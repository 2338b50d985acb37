/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domain: which infos can be opened, references, threading, event queue, and open domains in
 * fi_getinfo.
 */
#include "fixture.h"

#include <arpa/inet.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <stdlib.h>
#include <string.h>

#include "api/domain.h"
#include "net/device.h"

static struct fixture fix;

static void setup(void)
{
	fixture_init(&fix, FI_VERSION(1, 17));
}

static void teardown(void)
{
	fixture_fini(&fix);
}

TestSuite(domain, .init = setup, .fini = teardown);

static struct verve_domain *opened(void)
{
	fixture_open_domain(&fix);
	return verve_domain_from_fid(&fix.domain->fid);
}

/* Calls fi_domain with the fixture's info, which must fail. Returns the error. */
static int refused(void)
{
	struct fid_domain *domain;

	return fi_domain(fix.fabric, fix.info, &domain, NULL);
}

Test(domain, keeps_what_it_was_opened_with)
{
	struct verve_domain *domain;
	int context;

	cr_assert_eq(fi_domain(fix.fabric, fix.info, &fix.domain, &context), 0);
	domain = verve_domain_from_fid(&fix.domain->fid);
	cr_expect_eq(fix.domain->fid.fclass, FI_CLASS_DOMAIN);
	cr_expect_eq(fix.domain->fid.context, &context);
	cr_expect_eq(verve_domain_api_version(domain), FI_VERSION(1, 17));
	cr_expect_eq(domain->addr_format, FI_SOCKADDR_IN);
	cr_expect_not_null(verve_net_device_port(domain->dev));
}

Test(domain, unknown_name_is_refused)
{
	free(fix.info->domain_attr->name);
	fix.info->domain_attr->name = strdup("no such device");
	cr_expect_lt(refused(), 0);
}

Test(domain, missing_name_is_refused)
{
	free(fix.info->domain_attr->name);
	fix.info->domain_attr->name = NULL;
	cr_expect_eq(refused(), -FI_EINVAL);
}

Test(domain, address_that_is_not_the_ports_is_refused)
{
	struct sockaddr_in *addr = fix.info->src_addr;

	cr_assert_not_null(addr);
	addr->sin_addr.s_addr = htonl(0xc6336401); /* 198.51.100.1, an address for documentation */
	cr_expect_eq(refused(), -FI_ENODEV);
}

Test(domain, source_address_of_another_family_is_refused)
{
	((struct sockaddr *)fix.info->src_addr)->sa_family = AF_UNIX;
	cr_expect_eq(refused(), -FI_EINVAL);
}

Test(domain, failure_of_the_device_is_passed_on)
{
	fake_net_fail(FAKE_NET_DEVICE_OPEN, 1, -FI_ENOMEM);
	cr_expect_eq(refused(), -FI_ENOMEM);
}

Test(domain, other_address_formats_are_refused)
{
	fix.info->addr_format = FI_SOCKADDR_IB;
	cr_expect_eq(refused(), -FI_EINVAL);
}

Test(domain, other_endpoint_types_are_refused)
{
	fix.info->ep_attr->type = FI_EP_MSG;
	cr_expect_eq(refused(), -FI_EINVAL);
}

Test(domain, scalable_registration_is_spelled_out)
{
	fix.info->domain_attr->mr_mode = 1 << 1; /* FI_MR_SCALABLE */
	cr_expect_eq(opened()->mr_mode, 0);
}

Test(domain, registration_is_basic_or_scalable_or_spelled_out)
{
	fix.info->domain_attr->mr_mode = 1 << 1 | FI_MR_PROV_KEY;
	cr_expect_eq(refused(), -FI_EINVAL);
}

Test(domain, basic_registration_is_spelled_out)
{
	fix.info->domain_attr->mr_mode = 1 << 0; /* FI_MR_BASIC */
	cr_expect_eq(opened()->mr_mode, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
}

Test(domain, unspecified_registration_before_1_5_is_basic)
{
	fix.fabric->api_version = FI_VERSION(1, 4);
	fix.info->domain_attr->mr_mode = 0;
	cr_expect_eq(opened()->mr_mode, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
}

Test(domain, no_registration_mode_since_1_5_stays_none)
{
	fix.info->domain_attr->mr_mode = 0;
	cr_expect_eq(opened()->mr_mode, 0);
}

Test(domain, locks_are_kept_by_default)
{
	fix.info->domain_attr->threading = FI_THREAD_SAFE;
	cr_expect_not(verve_domain_elides_locks(opened()));
}

Test(domain, locks_are_elided_where_the_application_serializes_everything)
{
	struct verve_domain *domain;

	fix.info->domain_attr->threading = FI_THREAD_DOMAIN;
	domain = opened();
	cr_expect(verve_domain_elides_locks(domain));
	for (enum fi_threading weaker = FI_THREAD_UNSPEC; weaker <= FI_THREAD_ENDPOINT; weaker++) {
		domain->threading = weaker;
		cr_expect_eq(verve_domain_elides_locks(domain), weaker == FI_THREAD_DOMAIN);
	}
}

Test(domain, stays_open_while_referenced)
{
	struct verve_domain *domain = opened();

	verve_domain_get(domain);
	verve_domain_get(domain);
	cr_expect_eq(fi_close(&fix.domain->fid), -FI_EBUSY);
	verve_domain_put(domain);
	cr_expect_eq(fi_close(&fix.domain->fid), -FI_EBUSY);
	verve_domain_put(domain);
	cr_expect_eq(fi_close(&fix.domain->fid), 0);
	fix.domain = NULL;
}

Test(domain, keeps_the_fabric_open)
{
	fixture_open_domain(&fix);
	cr_expect_eq(fi_close(&fix.fabric->fid), -FI_EBUSY);
}

Test(domain, binds_one_event_queue_and_nothing_else)
{
	struct fid_eq *eq = fixture_open_eq(&fix);

	fixture_open_domain(&fix);
	cr_expect_eq(fi_domain_bind(fix.domain, &eq->fid, 1), -FI_EBADFLAGS);
	cr_expect_eq(fi_domain_bind(fix.domain, &fix.fabric->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_domain_bind(fix.domain, &eq->fid, 0), 0);
	cr_expect_eq(fi_domain_bind(fix.domain, &eq->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_close(&eq->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&fix.domain->fid), 0);
	fix.domain = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
}

Test(domain, says_what_it_has_not)
{
	struct fi_collective_attr collective = {.op = FI_SUM, .datatype = FI_INT32};
	struct fid_ep *ep;

	fixture_open_domain(&fix);
	cr_expect_eq(fi_query_collective(fix.domain, FI_BARRIER, &collective, 0), -FI_EOPNOTSUPP);
	cr_expect_eq(fi_control(&fix.domain->fid, FI_QUEUE_WORK, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_scalable_ep(fix.domain, fix.info, &ep, NULL), -FI_ENOSYS);
}

/*
 * FI_FLOAT16, FI_BFLOAT16, FI_FLOAT8_E4M3 and FI_FLOAT8_E5M2 of 2.0, by their numbers, and the
 * number behind them.
 */
Test(domain, small_floats_have_no_atomics)
{
	struct fi_atomic_attr attr;

	fix.info->fabric_attr->api_version = FI_VERSION(2, 1);
	fixture_open_domain(&fix);
	for (int type = FI_UINT128 + 1; type < FI_UINT128 + 8; type++)
		for (int op = FI_MIN; op <= FI_MSWAP + 1; op++) {
			cr_expect_eq(fi_query_atomic(fix.domain, (enum fi_datatype)type,
						     (enum fi_op)op, &attr, 0), -FI_EOPNOTSUPP);
			cr_expect_eq(fi_query_atomic(fix.domain, (enum fi_datatype)type,
						     (enum fi_op)op, &attr, FI_FETCH_ATOMIC),
				     -FI_EOPNOTSUPP);
		}
	cr_expect_eq(fi_query_atomic(fix.domain, FI_UINT128, FI_SUM, &attr, 0), 0);
}

/* Open fabrics and domains in the answers of fi_getinfo(3). */

static struct fi_info *answer;

/* Asks, and returns the part of the answer with the fixture's own address; NULL: there is none. */
static struct fi_info *ask(uint32_t version, const struct fi_info *hints)
{
	struct fi_info *one;

	fi_freeinfo(answer);
	answer = NULL;
	if (fi_prov_ini()->getinfo(version, NULL, NULL, 0, hints, &answer))
		return NULL;
	for (one = answer; one; one = one->next)
		if (one->src_addrlen == fix.info->src_addrlen &&
		    !memcmp(one->src_addr, fix.info->src_addr, one->src_addrlen))
			break;
	return one;
}

static struct fi_info *ask_again(const struct fi_info *hints)
{
	return ask(FI_VERSION(1, 17), hints);
}

Test(domain, answers_name_what_is_open)
{
	struct fi_info *one = ask_again(NULL);

	cr_assert_not_null(one);
	cr_expect_eq(one->fabric_attr->fabric, fix.fabric);
	cr_expect_null(one->domain_attr->domain);
	fixture_open_domain(&fix);
	one = ask_again(NULL);
	cr_expect_eq(one->fabric_attr->fabric, fix.fabric);
	cr_expect_eq(one->domain_attr->domain, fix.domain);
	/* An endpoint of another address cannot be opened on the domain. */
	for (struct fi_info *other = answer; other; other = other->next)
		cr_expect_eq(!other->domain_attr->domain, other != one);
	cr_expect_null(ask(FI_VERSION(1, 16), NULL)->fabric_attr->fabric);
	cr_expect_eq(fi_close(&fix.domain->fid), 0);
	fix.domain = NULL;
	cr_expect_null(ask_again(NULL)->domain_attr->domain);
	fi_freeinfo(answer);
}

Test(domain, the_first_opened_is_named)
{
	struct fid_domain *second;

	fixture_open_domain(&fix);
	cr_assert_eq(fi_domain(fix.fabric, fix.info, &second, NULL), 0);
	cr_expect_eq(ask_again(NULL)->domain_attr->domain, fix.domain);
	cr_expect_eq(fi_close(&fix.domain->fid), 0);
	fix.domain = second;
	cr_expect_eq(ask_again(NULL)->domain_attr->domain, second);
	fi_freeinfo(answer);
}

Test(domain, hints_name_an_open_one)
{
	struct fi_info *hints = fi_allocinfo(), *one;

	fixture_open_domain(&fix);
	hints->domain_attr->mr_mode = fix.info->domain_attr->mr_mode;
	hints->domain_attr->domain = fix.domain;
	hints->fabric_attr->fabric = fix.fabric;
	one = ask_again(hints);
	cr_assert_not_null(one);
	cr_expect_eq(answer, one);
	cr_expect_null(one->next);
	cr_expect_eq(one->domain_attr->domain, fix.domain);
	/* an object that verve does not know */
	hints->domain_attr->domain = (struct fid_domain *)hints;
	cr_expect_null(ask_again(hints));
	hints->domain_attr->domain = NULL;
	cr_expect_not_null(ask_again(hints));
	hints->fabric_attr->fabric = (struct fid_fabric *)hints;
	cr_expect_null(ask_again(hints));
	fi_freeinfo(hints);
	fi_freeinfo(answer);
}

/* Each step changes one thing in which an answer may differ from the open domain. */
Test(domain, what_does_not_fit_is_not_named)
{
	struct fi_info *hints = fi_allocinfo();
	static uint8_t key[16];

	fix.info->domain_attr->threading = FI_THREAD_DOMAIN;
	fixture_open_domain(&fix);
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = fix.info->domain_attr->mr_mode;
	cr_assert_eq(ask_again(hints)->domain_attr->domain, fix.domain);
	cr_expect_null(ask(FI_VERSION(1, 16), hints)->domain_attr->domain);

	hints->domain_attr->threading = FI_THREAD_SAFE;
	cr_expect_null(ask_again(hints)->domain_attr->domain);
	hints->domain_attr->domain = fix.domain;
	cr_expect_null(ask_again(hints));
	hints->domain_attr->domain = NULL;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;

	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	cr_expect_null(ask_again(hints)->domain_attr->domain);
	hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;

	hints->domain_attr->auth_key = key;
	hints->domain_attr->auth_key_size = sizeof(key);
	cr_expect_null(ask_again(hints)->domain_attr->domain);
	hints->domain_attr->auth_key = NULL;
	hints->domain_attr->auth_key_size = 0;

	/* The registration mode counts only with RMA. */
	hints->domain_attr->mr_mode = 0;
	cr_expect_null(ask_again(hints)->domain_attr->domain);
	hints->caps = FI_MSG;
	cr_expect_eq(ask_again(hints)->domain_attr->domain, fix.domain);
	fi_freeinfo(hints);
	fi_freeinfo(answer);
}

/*
 * As in Open MPI: its second component may grant more modes than the domain of its first component
 * needs.
 */
Test(domain, a_named_one_keeps_its_registration_mode)
{
	struct fi_info *hints = fi_allocinfo(), *one;
	int needed = fix.info->domain_attr->mr_mode;

	fix.info->domain_attr->mr_mode = 0;
	fixture_open_domain(&fix);
	hints->caps = FI_RMA;
	hints->domain_attr->mr_mode = needed;
	cr_expect_null(ask_again(hints)->domain_attr->domain);
	hints->domain_attr->domain = fix.domain;
	one = ask_again(hints);
	cr_assert_not_null(one);
	cr_expect_eq(one->domain_attr->domain, fix.domain);
	cr_expect_eq(one->domain_attr->mr_mode, 0);
	hints->domain_attr->mr_mode = 1 << 1; /* FI_MR_SCALABLE */
	cr_expect_eq(ask_again(hints)->domain_attr->mr_mode, 1 << 1);
	hints->domain_attr->mr_mode = 1 << 0; /* FI_MR_BASIC */
	cr_expect_null(ask_again(hints));
	fi_freeinfo(hints);
	fi_freeinfo(answer);
}
