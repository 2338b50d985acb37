/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration cache: its limits, and the regions that it evicts to keep within them; memory that
 * cannot be registered.
 */
#include <rdma/fi_errno.h>

#include "cache_fixture.h"

Test(kept, evicts_what_was_not_used_lately_and_never_exceeds_the_count)
{
	for (int i = 0; i < 40; i++) {
		cache_use(pages + (i + 8) * PAGE, PAGE, 0);
		cache_use(pages, PAGE, 0);
		cr_expect_leq(cache_stats().regions, 8);
	}
	cr_expect_eq(cache_stats().hits, 39);
	cr_expect_eq(cache_stats().evictions, 41 - 8);
}

Test(kept, never_exceeds_the_bytes)
{
	for (int i = 0; i < 10; i++) {
		cache_use(pages + 5 * i * PAGE, 5 * PAGE, 0);
		cr_expect_leq(cache_stats().bytes, 16 * PAGE);
	}
	cache_use(pages, 17 * PAGE, 0); /* more than the cache may keep */
	cr_expect_leq(cache_stats().bytes, 16 * PAGE);
	cr_expect_eq(cache_stats().failures, 0);
}

Test(kept, what_is_in_use_is_never_evicted)
{
	struct verve_mr_region *region[12];

	for (int i = 0; i < 12; i++)
		region[i] = cache_get(pages + i * PAGE, PAGE, 0);
	cr_expect_eq(cache_stats().regions, 12);
	cr_expect_eq(cache_stats().evictions, 0);
	cr_expect_eq(cache_stats().unkept, 4);
	for (int i = 0; i < 12; i++)
		verve_mr_cache_put(&cache, region[i]);
	cr_expect_eq(cache_stats().regions, 8);
}

/* An application may keep more regions open than the cache has places. */
Test(kept, regions_of_the_application_leave_all_places_to_others)
{
	struct verve_mr_region *region[12];

	for (int i = 0; i < 12; i++)
		region[i] = cache_get_exact(pages + i * PAGE, PAGE, 0);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 8; i++)
			cache_use(pages + (20 + i) * PAGE, PAGE, 0);
	cr_expect_eq(cache_stats().hits, 8);
	cr_expect_eq(cache_stats().unkept, 0);
	cr_expect_eq(cache_stats().regions, 12 + 8);
	for (int i = 0; i < 12; i++)
		verve_mr_cache_put(&cache, region[i]);
	cr_expect_eq(cache_stats().regions, 8);
}

/* Without others, they are kept when they are given back, as far as there are places. */
Test(kept, regions_of_the_application_take_places_when_they_are_given_back)
{
	struct verve_mr_region *region[12];

	for (int i = 0; i < 12; i++)
		region[i] = cache_get_exact(pages + i * PAGE, PAGE, 0);
	cr_expect_eq(cache_stats().evictions, 0);
	for (int i = 0; i < 12; i++) {
		verve_mr_cache_put(&cache, region[i]);
		cr_expect_leq(cache_stats().regions, 12);
	}
	cr_expect_eq(cache_stats().regions, 8);
	cr_expect_eq(cache_stats().evictions, 4);
	verve_mr_cache_put(&cache, cache_get_exact(pages + 11 * PAGE, PAGE, 0));
	cr_expect_eq(cache_stats().hits, 1);
}

Test(kept, gives_idle_memory_back_when_there_is_none)
{
	for (int i = 0; i < 4; i++)
		cache_use(pages + i * PAGE, PAGE, 0);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	cache_use(pages + 10 * PAGE, PAGE, 0);
	cr_expect_eq(cache_stats().failures, 0);
	cr_expect_eq(cache_stats().evictions, 4);
	cr_expect_eq(cache_stats().regions, 1);
}

/* Pages that are not mapped any more stay pinned until their registration is closed. */
Test(kept, memory_that_went_is_given_back_when_there_is_none)
{
	struct verve_mr_region *region;

	cache_use(pages, 12 * PAGE, 0);
	fake_net_memlock(20 * PAGE);
	fake_net_watch_gone(pages, 12 * PAGE);
	cr_assert_eq(verve_mr_cache_get_once(&cache, pages + 20 * PAGE, 20 * PAGE, 0, &region), 0);
	cr_expect_eq(cache_stats().failures, 0);
	cr_expect_eq(cache_stats().evictions, 0);
	cr_expect_eq(cache_stats().bytes, 20 * PAGE);
	verve_mr_cache_put(&cache, region);
}

/* The limit is the process's: each domain has a cache. */
Test(kept, another_cache_gives_idle_memory_back_when_there_is_none)
{
	struct verve_mr_cache other;
	struct verve_mr_region *used, *region;

	verve_mr_cache_init(&other, dev);
	cr_assert_eq(verve_mr_cache_get(&other, pages, 4 * PAGE, 0, &used), 0);
	cr_assert_eq(verve_mr_cache_get(&other, pages + 8 * PAGE, 8 * PAGE, 0, &region), 0);
	verve_mr_cache_put(&other, region);
	fake_net_memlock(14 * PAGE);
	cr_expect_eq(verve_mr_cache_get(&cache, pages + 40 * PAGE, 11 * PAGE, 0, &region),
		     -FI_ENOMEM, "what the other uses stays");
	cr_assert_eq(verve_mr_cache_get(&cache, pages + 40 * PAGE, 10 * PAGE, 0, &region), 0);
	verve_mr_cache_put(&cache, region);
	verve_mr_cache_put(&other, used);
	cr_assert_eq(verve_mr_cache_get(&other, pages, 4 * PAGE, 0, &region), 0);
	cr_expect_eq(region, used);
	verve_mr_cache_put(&other, region);
	verve_mr_cache_fini(&other);
}

Test(kept, what_cannot_be_registered_is_not_found_later)
{
	struct verve_mr_region *region;

	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(verve_mr_cache_get(&cache, NULL, 10, 0, &region), -FI_EFAULT);
		cr_expect_eq(cache_stats().failures, 1 + i);
	}
	cr_expect_eq(cache_stats().regions, 0);
	cr_expect_eq(cache_stats().hits, 0);
}

/* A transfer goes on without a region, as without memory; the application's region cannot. */
Test(kept, memory_that_no_device_may_use_is_like_memory_that_cannot_be_pinned)
{
	struct verve_mr_region *region;

	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EOPNOTSUPP);
	cr_expect_eq(verve_mr_cache_get(&cache, pages, 10, 0, &region), -FI_ENOMEM);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EOPNOTSUPP);
	cr_expect_eq(verve_mr_cache_get_once(&cache, pages, 10, 0, &region), -FI_ENOMEM);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EOPNOTSUPP);
	cr_expect_eq(verve_mr_cache_get_exact(&cache, pages, 10, 0, NULL, &region),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(cache_stats().regions, 0);
}

Test(kept, an_address_space_that_ends_is_no_range)
{
	struct verve_mr_region *region = cache_get((void *)(UINTPTR_MAX - 10), 10, 0);

	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().regions, 0);
}

/* The sum of the regions' bytes; a region that stands there twice counts once. */
static size_t bytes_of(struct verve_mr_region *const *regions, int count)
{
	size_t bytes = 0;

	for (int i = 0; i < count; i++) {
		int first = 0;

		while (regions[first] != regions[i])
			first++;
		if (regions[i] && first == i)
			bytes += regions[i]->len;
	}
	return bytes;
}

/* Random steps and events: no stale region, no lost region, no limit exceeded. */
Test(kept, random_steps)
{
	struct verve_mr_region *out[6] = {0};

	for (int step = 0; step < 200000; step++) {
		uint64_t random = fake_net_random();
		int i = random % 6;
		char *addr = pages + (random >> 8) % (40 * PAGE);
		size_t len = 1 + (random >> 32) % (10 * PAGE);

		if (random >> 60 == 0) {
			uint64_t hits = cache_stats().hits;

			fake_net_watch_gone(addr, len);
			cache_use(addr, len, 0);
			cr_assert_eq(cache_stats().hits, hits);
		} else if (out[i]) {
			verve_mr_cache_put(&cache, out[i]);
			out[i] = NULL;
		} else {
			unsigned access = random >> 56 & VERVE_NET_LOCAL_WRITE;
			bool exact = random >> 55 & 1;
			struct verve_mr_region *region;

			len = exact ? len % 3 + 1 : len;
			region = exact ? cache_get_exact(addr, len, access)
				       : cache_get(addr, len, access);
			cr_assert(
				fake_lkey_covers(dev, region->lkey, (uintptr_t)addr, len, access));
			out[i] = region;
		}
		fake_net_watch_pending(random >> 59 & 1);
		cr_assert_leq(cache_stats().regions, 8 + 6);
		/* Idle regions stay within the limit; regions in use come on top. */
		cr_assert_leq(cache_stats().bytes, 16 * PAGE + bytes_of(out, 6));
	}
	for (int i = 0; i < 6; i++)
		if (out[i])
			verve_mr_cache_put(&cache, out[i]);
	cr_expect_leq(cache_stats().bytes, 16 * PAGE);
	cr_expect_gt(cache_stats().hits, 1000);
	cr_expect_gt(cache_stats().evictions, 1000);
	cr_expect_gt(cache_stats().invalidations, 100);
}
