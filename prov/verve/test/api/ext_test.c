/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma/fi_ext_verve.h, as an application uses it. */
#include "../support/fake_memory.h"
#include "fixture.h"

#include <rdma/fi_ext_verve.h>
#include <stddef.h>
#include <string.h>

#include "api/domain.h"
#include "base/config.h"

/*
 * The binary interface: what was published keeps its place, type and meaning, so that programs
 * built before still work. A new member comes at the end: the size changes, the member gets a row
 * behind the others, with the version that brings it, and NEWS.md names it. Rows never change.
 */
#define PUBLISHED(object, member, type, place) \
	_Static_assert(offsetof(object, member) == (place) && \
		       __builtin_types_compatible_p(__typeof__(((object *)0)->member), type), \
		       #object "." #member " is published: it cannot move or change")

/* 0.2 */
PUBLISHED(struct fi_verve_mr_cache_stats, hits, uint64_t, 0);
PUBLISHED(struct fi_verve_mr_cache_stats, misses, uint64_t, 8);
PUBLISHED(struct fi_verve_mr_cache_stats, failures, uint64_t, 16);
PUBLISHED(struct fi_verve_mr_cache_stats, unkept, uint64_t, 24);
PUBLISHED(struct fi_verve_mr_cache_stats, evictions, uint64_t, 32);
PUBLISHED(struct fi_verve_mr_cache_stats, invalidations, uint64_t, 40);
PUBLISHED(struct fi_verve_mr_cache_stats, regions, uint64_t, 48);
PUBLISHED(struct fi_verve_mr_cache_stats, bytes, uint64_t, 56);
_Static_assert(sizeof(struct fi_verve_mr_cache_stats) == 64, "a new member needs a row");

typedef void (*notify_0_2)(struct fid_domain *, const void *, size_t);
typedef void (*stats_0_2)(struct fid_domain *, struct fi_verve_mr_cache_stats *, size_t);
PUBLISHED(struct fi_verve_ops_mr_cache, size, size_t, 0);
PUBLISHED(struct fi_verve_ops_mr_cache, notify, notify_0_2, sizeof(size_t));
PUBLISHED(struct fi_verve_ops_mr_cache, stats, stats_0_2, 2 * sizeof(size_t));
_Static_assert(sizeof(struct fi_verve_ops_mr_cache) == 3 * sizeof(size_t),
	       "a new member needs a row");

static struct fixture fix;
static struct fi_verve_ops_mr_cache *ops;
static _Alignas(4096) char memory[4 * 4096];

static void setup(void)
{
	fake_net_watch_allow(true);
	fixture_init(&fix, FI_VERSION(1, 17));
	verve_config.mr_cache = "on";
	fixture_open_domain(&fix);
	cr_assert_eq(fi_open_ops(&fix.domain->fid, FI_VERVE_MR_CACHE_OPS, 0, (void **)&ops, NULL),
		     0);
}

static void teardown(void)
{
	fixture_fini(&fix);
}

TestSuite(ext, .init = setup, .fini = teardown);

/* Programs that were built before find the operations by this name and size. */
Test(ext, is_found_by_its_name_and_says_its_size)
{
	cr_expect_str_eq(FI_VERVE_MR_CACHE_OPS, "verve_mr_cache");
	cr_expect_eq(ops->size, sizeof(*ops));
	cr_expect_not_null(ops->notify);
	cr_expect_not_null(ops->stats);
}

static struct fi_verve_mr_cache_stats stats(void)
{
	struct fi_verve_mr_cache_stats now;

	ops->stats(fix.domain, &now, sizeof(now));
	return now;
}

static void use(void *addr, size_t len)
{
	struct verve_mr_cache *cache = &verve_domain_from_fid(&fix.domain->fid)->mr_cache;
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_cache_get(cache, addr, len, 0, &region), 0);
	verve_mr_cache_put(cache, region);
}

Test(ext, statistics_say_what_the_cache_did)
{
	use(memory, 4096);
	use(memory, 100);
	use(memory + 4096, 8192);
	fake_net_watch_gone(memory, 1);
	use(memory, 1);
	cr_expect_eq(stats().hits, 1);
	cr_expect_eq(stats().misses, 3);
	cr_expect_eq(stats().failures, 0);
	cr_expect_eq(stats().unkept, 0);
	cr_expect_eq(stats().evictions, 0);
	cr_expect_eq(stats().invalidations, 1);
	cr_expect_eq(stats().regions, 2);
	cr_expect_eq(stats().bytes, 3 * 4096);
}

static struct fid_mr *reg(uint64_t access, uint64_t offset)
{
	struct fid_mr *mr;

	cr_assert_eq(fi_mr_reg(fix.domain, memory + offset, 4096, access, 0, 0, 0, &mr, NULL), 0);
	return mr;
}

static void close_mr(struct fid_mr *mr)
{
	cr_assert_eq(fi_close(&mr->fid), 0);
}

/* A registration that is in use is not shared, and only the same range and access will do. */
Test(ext, regions_are_kept_for_the_next_one_that_is_the_same)
{
	struct fid_mr *a = reg(FI_REMOTE_READ, 1), *b = reg(FI_REMOTE_READ, 1);
	uint64_t key = fi_mr_key(a);

	cr_expect_neq(key, fi_mr_key(b));
	cr_expect_eq(stats().misses, 2);
	close_mr(b);
	close_mr(a);
	cr_expect_eq(stats().hits, 0);
	cr_expect_eq(stats().regions, 1, "of two that are equal, one is enough");
	close_mr(reg(FI_REMOTE_READ, 1));
	cr_expect_eq(stats().hits, 1);
	close_mr(reg(FI_REMOTE_READ, 0));
	close_mr(reg(FI_REMOTE_WRITE, 1));
	close_mr(reg(FI_SEND, 1));
	cr_expect_eq(stats().hits, 1);
	cr_expect_eq(stats().misses, 5);
	fake_net_watch_gone(memory + 4096, 1);
	close_mr(reg(FI_REMOTE_READ, 1));
	cr_expect_eq(stats().hits, 1);
}

static void setup_strict(void)
{
	fake_net_watch_allow(true);
	fixture_init(&fix, FI_VERSION(1, 17));
	verve_config.mr_cache = "strict";
	fixture_open_domain(&fix);
	cr_assert_eq(fi_open_ops(&fix.domain->fid, FI_VERVE_MR_CACHE_OPS, 0, (void **)&ops, NULL),
		     0);
}

TestSuite(strict, .init = setup_strict, .fini = teardown);

Test(strict, closed_regions_are_kept_unless_peers_could_reach_them)
{
	close_mr(reg(FI_REMOTE_READ, 0));
	close_mr(reg(FI_REMOTE_WRITE, 0));
	cr_expect_eq(stats().regions, 0);
	close_mr(reg(FI_RECV, 0));
	cr_expect_eq(stats().regions, 1);
	close_mr(reg(FI_RECV, 0));
	cr_expect_eq(stats().hits, 1);
	cr_expect_eq(stats().misses, 3);
}

/* An application that was compiled with an older, shorter structure. */
Test(ext, statistics_stay_within_the_size)
{
	struct fi_verve_mr_cache_stats now;

	memset(&now, 0x55, sizeof(now));
	ops->stats(fix.domain, &now, offsetof(struct fi_verve_mr_cache_stats, misses));
	cr_expect_eq(now.hits, 0);
	cr_expect_eq(now.misses, 0x5555555555555555u);
}

Test(ext, notify_drops_what_shares_memory_with_the_range)
{
	use(memory, 4096);
	use(memory + 2 * 4096, 4096);
	ops->notify(fix.domain, memory, 0);
	ops->notify(fix.domain, memory + 4096, 4096);
	cr_expect_eq(stats().invalidations, 0);
	ops->notify(fix.domain, memory + 4095, 1);
	cr_expect_eq(stats().invalidations, 1);
	ops->notify(fix.domain, memory, SIZE_MAX);
	cr_expect_eq(stats().invalidations, 2);
}

Test(ext, other_names_and_flags_are_refused)
{
	void *other = NULL;

	cr_expect_eq(fi_open_ops(&fix.domain->fid, "other", 0, &other, NULL), -FI_EINVAL);
	cr_expect_eq(fi_open_ops(&fix.domain->fid, NULL, 0, &other, NULL), -FI_EINVAL);
	cr_expect_eq(fi_open_ops(&fix.domain->fid, FI_VERVE_MR_CACHE_OPS, 1, &other, NULL),
		     -FI_EBADFLAGS);
	cr_expect_null(other);
}
