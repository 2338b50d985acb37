/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_profile(3), as an application uses it. Libfabric before 2.0 has no such calls. */
#include "ep_pair.h"

#include "api/profile.h"

static struct ep_pair pair;

static void setup(void)
{
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	ep_pair_open(&pair);
}

static void teardown(void)
{
	ep_pair_close(&pair);
}

TestSuite(profile, .init = setup, .fini = teardown);

Test(profile, other_operations_of_an_endpoint_are_none)
{
	void *ops = NULL;

	cr_expect_eq(fi_open_ops(&pair.a.ep->fid, "others", 0, &ops, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_open_ops(&pair.a.ep->fid, NULL, 0, &ops, NULL), -FI_ENOSYS);
	cr_expect_null(ops);
}

#if __has_include(<rdma/fi_profile.h>)
#include <stddef.h>

/* fi_profile_open of libfabric 2.1 uses it, and no header of libfabric defines it. */
#ifndef container_of
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#endif
#include <rdma/fi_profile.h>

enum { MAX = 64 };

static struct fid_profile *open_profile(struct fid *fid)
{
	struct fid_profile *profile = NULL;

	cr_assert_eq(fi_profile_open(fid, 0, &profile, NULL), 0);
	return profile;
}

/* The value of the variable with this name, by its id in the list of variables. */
static uint64_t value(struct fid_profile *profile, const char *name)
{
	struct fi_profile_desc list[MAX];
	size_t count = MAX;
	uint64_t number;

	cr_assert_eq(fi_profile_query_vars(profile, list, &count), (ssize_t)count);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].name, name))
			continue;
		cr_assert_eq(fi_profile_read_u64(profile, list[i].id, &number), 0);
		return number;
	}
	cr_assert_fail("no variable %s", name);
	return 0;
}

static void send_one(uint64_t tag)
{
	cr_assert_eq(fi_tinject(pair.a.ep, "x", 1, pair.a.peer, tag), 0);
	ep_pair_run(&pair, 50);
}

Test(profile, of_an_endpoint_counts_connections_and_unexpected_messages)
{
	struct fid_profile *profile = open_profile(&pair.b.ep->fid);
	char byte;
	uint64_t number;

	cr_expect_eq(fi_profile_read_u64(profile, FI_VAR_CONNECTION_CNT, &number), 0);
	cr_expect_eq(number, 0);
	send_one(7);
	cr_expect_eq(fi_profile_read_u64(profile, FI_VAR_CONNECTION_CNT, &number), 0);
	cr_expect_eq(number, 1);
	cr_expect_eq(value(profile, "links"), 1);
	cr_expect_eq(fi_profile_read_u64(profile, FI_VAR_UNEXP_MSG_CNT, &number), 0);
	cr_expect_eq(number, 1);
	cr_assert_eq(fi_trecv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 7, 0, NULL), 0);
	cr_expect_eq(value(profile, "unexpected_messages"), 0);
	cr_expect_eq(fi_profile_close(profile), 0);
}

Test(profile, between_start_and_end_numbers_are_of_one_moment)
{
	struct fid_profile *profile = open_profile(&pair.b.ep->fid);

	fi_profile_start_reads(profile, 0);
	send_one(7);
	cr_expect_eq(value(profile, "unexpected_messages"), 0);
	fi_profile_end_reads(profile, 0);
	cr_expect_eq(value(profile, "unexpected_messages"), 1);
	cr_expect_eq(fi_profile_close(profile), 0);
}

Test(profile, of_a_domain_counts_registrations_and_can_begin_anew)
{
	struct fid_profile *profile = open_profile(&pair.fix.domain->fid), *other;
	uint64_t before = value(profile, "cache_misses"), number;
	struct fid_mr *mr;
	static char memory[8192];

	other = open_profile(&pair.fix.domain->fid);
	cr_expect_eq(fi_profile_read_u64(profile, FI_VAR_CONNECTION_CNT, &number), -FI_EINVAL);
	cr_assert_eq(fi_mr_reg(pair.fix.domain, memory, sizeof(memory), FI_SEND, 0, 0, 0, &mr,
			       NULL), 0);
	cr_expect_gt(value(profile, "cache_misses"), before);
	fi_profile_reset(profile, 0);
	cr_expect_eq(value(profile, "cache_misses"), 0);
	cr_expect_gt(value(other, "cache_misses"), before);
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_expect_eq(fi_close(&pair.fix.domain->fid), -FI_EBUSY);
	cr_expect_eq(fi_profile_close(profile), 0);
	cr_expect_eq(fi_profile_close(other), 0);
}

/* A profile reads its endpoint's numbers. */
Test(profile, endpoint_stays_open_until_its_profiles_are_closed)
{
	struct fid_ep *alias = NULL;
	struct fid_profile *profile[2];

	cr_assert_eq(fi_ep_alias(pair.a.ep, &alias, 0), 0);
	profile[0] = open_profile(&pair.a.ep->fid);
	profile[1] = open_profile(&alias->fid);
	cr_expect_eq(fi_close(&alias->fid), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(fi_close(&pair.a.ep->fid), -FI_EBUSY);
		cr_expect_eq(value(profile[i], "links"), 0);
		cr_expect_eq(fi_profile_close(profile[i]), 0);
	}
}

Test(profile, lists_what_fits_and_says_how_many_there_are)
{
	struct fid_profile *profile = open_profile(&pair.a.ep->fid);
	struct fi_profile_desc list[2];
	size_t count = 0, all;

	cr_expect_eq(fi_profile_query_vars(profile, NULL, &count), 0);
	cr_expect_gt(count, 2);
	all = count;
	count = 2;
	memset(list, 0, sizeof(list));
	cr_expect_eq(fi_profile_query_vars(profile, list, &count), 2);
	cr_expect_eq(count, all);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(list[i].datatype_sel, fi_primitive_type);
		cr_expect_eq(list[i].datatype.primitive, FI_UINT64);
		cr_expect_eq(list[i].size, sizeof(uint64_t));
		cr_expect_not_null(list[i].name);
		cr_expect_not_null(list[i].desc);
	}
	count = 2;
	cr_expect_eq(fi_profile_query_events(profile, list, &count), 0);
	cr_expect_eq(count, 0);
	cr_expect_eq(fi_profile_register_callback(profile, FI_EVENT_UNEXP_MSG_RECVD, NULL, NULL),
		     -FI_EINVAL);
	cr_expect_eq(fi_profile_close(profile), 0);
}

Test(profile, refuses_unknown_variables_small_buffers_and_flags)
{
	struct fid_profile *profile = open_profile(&pair.a.ep->fid), *other;
	uint64_t number = 5;
	size_t size = 4;

	cr_expect_eq(fi_profile_read_u64(profile, 4711, &number), -FI_EINVAL);
	cr_expect_eq(profile->ops->read_var(profile, FI_VAR_CONNECTION_CNT, &number, &size),
		     -FI_ETOOSMALL);
	cr_expect_eq(size, sizeof(number));
	cr_expect_eq(number, 5);
	cr_expect_eq(fi_profile_open(&pair.a.ep->fid, 1, &other, NULL), -FI_EBADFLAGS);
	cr_expect_eq(fi_profile_close(profile), 0);
}
#else
Test(profile, are_none_without_the_header)
{
	void *ops = NULL;

	cr_expect_eq(fi_open_ops(&pair.a.ep->fid, VERVE_PROFILE_OPS, 0, &ops, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_open_ops(&pair.fix.domain->fid, VERVE_PROFILE_OPS, 0, &ops, NULL),
		     -FI_ENOSYS);
	cr_expect_null(ops);
}
#endif
