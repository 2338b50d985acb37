/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration cache: the contracts of get and put, what is found again, and the counts.
 * cache_gone_test.c has memory that goes and ranges that overlap, cache_limits_test.c the limits,
 * cache_reused_test.c the default kind of cache.
 */
#include <rdma/fi_errno.h>

#include "cache_fixture.h"

static char buffer[4096];

TestSuite(cache, .init = cache_open, .fini = cache_close);

Test(cache, region_contains_the_range_and_grants_the_access)
{
	struct verve_mr_region *region = cache_get(buffer + 100, 200, VERVE_NET_REMOTE_READ);
	char *start = region->addr;

	cr_expect(start <= buffer + 100 && start + region->len >= buffer + 300);
	cr_expect_eq(region->access & VERVE_NET_REMOTE_READ, VERVE_NET_REMOTE_READ);
	verve_mr_cache_put(&cache, region);
}

Test(cache, one_range_may_be_out_several_times)
{
	struct verve_mr_region *read = cache_get(buffer, 4096, 0);
	struct verve_mr_region *write = cache_get(buffer, 4096, VERVE_NET_LOCAL_WRITE);

	verve_mr_cache_put(&cache, read);
	cr_expect_eq(write->access & VERVE_NET_LOCAL_WRITE, VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(write->len, 4096);
	verve_mr_cache_put(&cache, write);
}

Test(cache, counts_what_is_registered)
{
	struct verve_mr_region *a = cache_get(buffer, 1000, 0), *b = cache_get(buffer, 24, 0);

	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().regions, 2);
	cr_expect_eq(cache_stats().bytes, 1024);
	verve_mr_cache_put(&cache, a);
	cr_expect_eq(cache_stats().regions, 1);
	cr_expect_eq(cache_stats().bytes, 24);
	verve_mr_cache_put(&cache, b);
	cr_expect_eq(cache_stats().bytes, 0);
	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().failures, 0);
}

/* The monitor does not open: no event would tell that a mapping went, so none is kept. */
Test(cache, keeps_nothing_pinned)
{
	for (int i = 0; i < 10; i++)
		verve_mr_cache_put(&cache, cache_get(buffer, sizeof(buffer), 0));
	cr_expect_eq(cache_stats().regions, 0);
	cr_expect_eq(cache_stats().misses, 10);
}

Test(cache, failure_is_passed_on_and_counted)
{
	struct verve_mr_region *region;

	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	cr_expect_eq(verve_mr_cache_get(&cache, buffer, 10, 0, &region), -FI_ENOMEM);
	cr_expect_eq(cache_stats().failures, 1);
	cr_expect_eq(cache_stats().regions, 0);
	verve_mr_cache_put(&cache, cache_get(buffer, 10, 0));
}

Test(kept, hits_ranges_inside_what_was_registered)
{
	struct verve_mr_region *all = cache_get(pages, 3 * PAGE, VERVE_NET_LOCAL_WRITE);

	cr_expect_eq(cache_get(pages + PAGE + 1, 5, 0), all);
	cr_expect_eq(cache_get(pages + 2 * PAGE, PAGE, VERVE_NET_LOCAL_WRITE), all);
	for (int i = 0; i < 3; i++)
		verve_mr_cache_put(&cache, all);
	cr_expect_eq(cache_stats().hits, 2);
	cr_expect_eq(cache_stats().misses, 1);
	cr_expect_eq(cache_stats().regions, 1);
	cr_expect_eq(cache_stats().bytes, 3 * PAGE);
	cache_use(pages, 3 * PAGE + 1, 0);
	cr_expect_eq(cache_stats().misses, 2);
}

/* The hint for a page may name an entry that is too short: the right one must be found. */
Test(kept, overlapping_ranges_from_the_same_page)
{
	struct verve_mr_region *one = cache_get(pages, PAGE, 0);
	struct verve_mr_region *four = cache_get(pages, 4 * PAGE, 0), *again;

	cr_expect_neq(one, four);
	cr_expect_eq(cache_get(pages, 4 * PAGE, 0), four);
	again = cache_get(pages, PAGE, 0);
	cr_expect_geq(again->len, PAGE);
	cache_use(pages + PAGE, 3 * PAGE, 0);
	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().hits, 3);
	fake_net_watch_gone(pages, 1);
	cr_expect_eq(cache_stats().invalidations, 1, "the longer one took the other's place");
	cr_expect_eq(cache_stats().regions, 2);
	verve_mr_cache_put(&cache, four);
	verve_mr_cache_put(&cache, four);
	verve_mr_cache_put(&cache, again);
	verve_mr_cache_put(&cache, one);
	cr_expect_eq(cache_stats().regions, 0);
}

Test(kept, more_access_replaces_less)
{
	cache_use(pages, PAGE, VERVE_NET_REMOTE_READ);
	cache_use(pages, PAGE, VERVE_NET_LOCAL_WRITE | VERVE_NET_REMOTE_READ);
	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().regions, 1);
	cache_use(pages, PAGE, VERVE_NET_LOCAL_WRITE);
	cache_use(pages, PAGE, VERVE_NET_REMOTE_READ);
	cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().hits, 3);
}

/* An entry is widened to whole pages, but never for remote access. */
Test(kept, peers_reach_no_more_than_was_asked_for)
{
	struct verve_mr_region *local, *remote;

	remote = cache_get(pages + 100, 200, VERVE_NET_REMOTE_READ);
	cr_expect_eq(remote->addr, pages + 100);
	cr_expect_eq(remote->len, 200);
	local = cache_get(pages, PAGE, VERVE_NET_LOCAL_WRITE);
	cr_expect_not(local->access & VERVE_NET_REMOTE_READ);
	cr_expect_eq(cache_get(pages + 150, 150, VERVE_NET_REMOTE_READ), remote);
	cr_expect_eq(cache_get(pages + 99, 201, VERVE_NET_LOCAL_WRITE), local);
	cr_expect_eq(cache_stats().hits, 2);
	for (int i = 0; i < 2; i++) {
		verve_mr_cache_put(&cache, local);
		verve_mr_cache_put(&cache, remote);
	}
}

static const unsigned readable = VERVE_NET_REMOTE_READ;

Test(kept, exactly_what_was_closed_is_opened_again)
{
	struct verve_mr_region *region = cache_get_exact(pages + 1, 2 * PAGE, readable);

	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_get_exact(pages + 1, 2 * PAGE, readable), region);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().hits, 1);
	verve_mr_cache_put(&cache, cache_get_exact(pages + 1, 2 * PAGE, 0));
	verve_mr_cache_put(&cache, cache_get_exact(pages + 1, 2 * PAGE - 1, readable));
	verve_mr_cache_put(&cache, cache_get_exact(pages + 2, 2 * PAGE - 1, readable));
	cr_expect_eq(cache_stats().misses, 4);
	cr_expect_eq(cache_stats().regions, 4);
	cr_expect_eq(cache_get_exact(pages + 1, 2 * PAGE, readable), region);
	fake_net_watch_gone(pages + PAGE, 1);
	cr_expect_eq(cache_stats().invalidations, 4);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().regions, 0);
}

/* The application's regions have keys of their own: an exact region has one user. */
Test(kept, exact_ones_are_nobody_elses)
{
	struct verve_mr_region *a = cache_get_exact(pages, PAGE, readable), *b, *shared;

	b = cache_get_exact(pages, PAGE, readable);
	cr_expect_neq(a, b);
	cr_expect_neq(a->rkey, b->rkey);
	shared = cache_get(pages, PAGE, readable);
	cr_expect(shared != a && shared != b);
	verve_mr_cache_put(&cache, a);
	verve_mr_cache_put(&cache, b);
	cr_expect_eq(cache_get(pages, PAGE, readable), shared);
	verve_mr_cache_put(&cache, shared);
	verve_mr_cache_put(&cache, shared);
	cr_expect_eq(cache_stats().regions, 2, "of two that are equal, one is enough");
	cr_expect_eq(cache_get_exact(pages, PAGE, readable), b);
	verve_mr_cache_put(&cache, b);
}

Test(kept, nothing_and_what_is_addressed_by_offset_are_not_kept)
{
	struct verve_mr_region *region;
	uint32_t base;

	cr_assert_eq(verve_mr_cache_get_exact(&cache, pages + 5, PAGE, readable, &base, &region),
		     0);
	cr_expect_eq(base, 5);
	verve_mr_cache_put(&cache, region);
	verve_mr_cache_put(&cache, cache_get_exact(pages, 0, 0));
	cr_expect_eq(cache_stats().regions, 0);
	cr_expect_eq(cache_stats().bytes, 0);
	cr_expect_eq(cache_stats().misses, 2);
}

static void setup_strict(void)
{
	verve_config.mr_cache = "strict";
	cache_open_kept();
}

TestSuite(strict, .init = setup_strict, .fini = cache_close);

Test(strict, keeps_nothing_that_peers_can_reach)
{
	cache_use(pages, PAGE, VERVE_NET_REMOTE_READ);
	cr_expect_eq(cache_stats().regions, 0);
	cache_use(pages, PAGE, VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(cache_stats().regions, 1);
	cache_use(pages, PAGE, VERVE_NET_REMOTE_READ);
	cr_expect_eq(cache_stats().regions, 1);
	cr_expect_eq(cache_stats().misses, 3);
	verve_mr_cache_put(&cache, cache_get_exact(pages, PAGE, readable));
	cr_expect_eq(cache_stats().regions, 1);
	verve_mr_cache_put(&cache, cache_get_exact(pages, PAGE, VERVE_NET_LOCAL_WRITE));
	cr_expect_eq(cache_stats().regions, 2);
}

Test(strict, off_keeps_nothing_at_all)
{
	struct verve_mr_cache off;

	verve_config.mr_cache = "off";
	verve_mr_cache_init(&off, dev);
	cr_expect_null(off.store);
	verve_mr_cache_fini(&off);
}
