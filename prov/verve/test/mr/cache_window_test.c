/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration cache on a device with memory windows: kept registrations that peers may reach. */
#include "cache_fixture.h"

#include <rdma/fi_errno.h>
#include <string.h>

enum {
	READ = VERVE_NET_REMOTE_READ,
	WRITE = VERVE_NET_REMOTE_WRITE | VERVE_NET_LOCAL_WRITE,
	AT = PAGE + 100, /* of most ranges, in pages */
	LEN = 2000,
};

static void setup_windows(void)
{
	fake_world.config.limits.mw = 100;
	fake_net_watch_allow(true);
	cache_open();
	cr_assert_not_null(cache.store);
}

static void setup_strict(void)
{
	verve_config.mr_cache = "strict";
	setup_windows();
}

/* Of a device that compares addresses with the bounds of the window's region alone. */
static void setup_loose(void)
{
	fake_world.config.limits.mw_bounds = false;
	setup_strict();
}

/* The default configuration. */
TestSuite(windows, .init = setup_windows, .fini = cache_close);
TestSuite(windows_strict, .init = setup_strict, .fini = cache_close);
TestSuite(windows_loose, .init = setup_loose, .fini = cache_close);

static bool opens(uint32_t rkey, const char *at, uint32_t len, unsigned access)
{
	return fake_rkey_covers(dev, rkey, (uintptr_t)at, len, access);
}

/* A key opens what was asked for, as long as the region is open. */
static void use_exact(char *at, size_t len, unsigned access)
{
	struct verve_mr_region *region = cache_get_exact(at, len, access);
	uint32_t rkey = region->rkey;

	cr_expect(opens(rkey, at, (uint32_t)len, access & ~VERVE_NET_LOCAL_WRITE));
	cr_expect_not(opens(rkey, at - 1, 1, 0), "the byte before");
	cr_expect_not(opens(rkey, at + len, 1, 0), "the byte behind");
	cr_expect_not(opens(rkey, at, 1, access & READ ? VERVE_NET_REMOTE_WRITE : READ));
	cr_expect(fake_lkey_covers(dev, region->lkey, (uintptr_t)at, (uint32_t)len, 0));
	verve_mr_cache_put(&cache, region);
	cr_expect_not(opens(rkey, at, 1, 0), "after the end");
	cr_expect_not(fake_rkey_is_there(dev, rkey));
}

/* Without those of the trial. */
static uint64_t binds(void)
{
	return fake_world.stats.binds - (cache.windows.tried ? 1 + !cache.windows.no_atomics : 0);
}

Test(windows, open_what_comes_again)
{
	for (int i = 0; i < 5; i++) {
		use_exact(pages + AT, LEN, READ);
		cr_expect_eq(binds(), (uint64_t)(i > 0 ? i : 0), "use %d", i);
		cr_expect_eq(cache_stats().regions, (uint64_t)(i > 0));
	}
	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().hits, 3);
	use_exact(pages + AT + 1, LEN - 2, WRITE);
	cr_expect_eq(cache_stats().misses, 2);
}

Test(windows_strict, open_what_comes_for_the_first_time)
{
	use_exact(pages + AT, LEN, WRITE);
	cr_expect_eq(binds(), 1);
	use_exact(pages + AT, LEN, WRITE);
	cr_expect_eq(binds(), 2);
	cr_expect_eq(cache_stats().misses, 1);
	cr_expect_eq(cache_stats().hits, 1);
	cr_expect_eq(cache_stats().regions, 1);
}

Test(windows_strict, of_one_region_end_one_by_one)
{
	struct verve_mr_region *one = cache_get_exact(pages + AT, LEN, READ);
	struct verve_mr_region *two = cache_get_exact(pages + AT, LEN, READ);
	uint32_t rkey = one->rkey;

	cr_expect_neq(rkey, two->rkey);
	cr_expect_eq(cache_stats().regions, 1);
	verve_mr_cache_put(&cache, one);
	cr_expect_not(opens(rkey, pages + AT, 1, READ));
	cr_expect(opens(two->rkey, pages + AT, LEN, READ));
	verve_mr_cache_put(&cache, two);
}

/* The cache has 8 places. */
Test(windows_strict, of_open_regions_leave_all_places_to_others)
{
	struct verve_mr_region *region[12];

	for (int i = 0; i < 12; i++)
		region[i] = cache_get_exact(pages + 2 * i * PAGE, LEN, READ);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 8; i++)
			cache_use(pages + (30 + 2 * i) * PAGE, PAGE, 0);
	cr_expect_eq(cache_stats().hits, 8);
	for (int i = 0; i < 12; i++)
		verve_mr_cache_put(&cache, region[i]);
	cr_expect_leq(cache_stats().regions, 8);
}

/* Local buffers in the same pages need no registration of their own, nor do other lengths. */
Test(windows_strict, share_their_region_with_buffers)
{
	use_exact(pages + AT, LEN, WRITE);
	cache_use(pages + AT - 50, 80, VERVE_NET_LOCAL_WRITE);
	cache_use(pages + PAGE, PAGE, 0);
	use_exact(pages + AT + 8, 8, READ);
	cr_expect_eq(cache_stats().misses, 1);
	cr_expect_eq(cache_stats().hits, 3);
}

/* Under an engine's lock, nothing is made ready. */
Test(windows_strict, serve_offers_once_they_are_ready)
{
	cache_use(pages + AT, LEN, READ);
	cr_expect_eq(binds(), 0);
	cr_expect_eq(fake_world.open[FAKE_BINDER], 0);
	verve_mr_cache_prepare(&cache);
	cr_expect_eq(fake_world.open[FAKE_BINDER], 1);
	cache_use(pages + AT, LEN, READ);
	cr_expect_eq(binds(), 1);
	cr_expect_eq(cache_stats().regions, 1);
}

Test(windows_strict, are_not_bound_to_read_only_memory)
{
	struct verve_mr_region *region;

	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EFAULT);
	region = cache_get_exact(pages + AT, LEN, READ);
	cr_expect(opens(region->rkey, pages + AT, LEN, READ));
	cr_expect_eq(binds(), 0);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().failures, 0);
	cr_expect_eq(cache_stats().regions, 0);
}

Test(windows_strict, that_fail_are_done_without)
{
	for (int i = 0; i < VERVE_MR_WINDOWS_TRIES; i++) {
		use_exact(pages + AT, LEN, READ);
		fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_EIO);
		use_exact(pages + AT, LEN, READ);
		cr_expect_eq(fake_world.open[FAKE_BINDER], 0);
	}
	cr_expect_eq(binds(), VERVE_MR_WINDOWS_TRIES);
	for (int i = 0; i < 3; i++)
		use_exact(pages + AT, LEN, READ);
	cr_expect_eq(binds(), VERVE_MR_WINDOWS_TRIES);
	cr_expect_eq(cache_stats().failures, 0);
}

Test(windows_strict, that_cannot_be_unbound_end_nevertheless)
{
	struct verve_mr_region *region = cache_get_exact(pages + AT, LEN, WRITE);
	uint32_t rkey = region->rkey;

	fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_ETIMEDOUT);
	verve_mr_cache_put(&cache, region);
	cr_expect_not(fake_rkey_is_there(dev, rkey));
	use_exact(pages + AT, LEN, WRITE);
	cr_expect_eq(binds(), 2);
}

/*
 * The device neither unbinds nor frees the window. A kept registration would open its bytes to the
 * peer for as long as it is kept, whoever uses them next.
 */
Test(windows_strict, that_do_not_end_take_their_registration_along)
{
	struct verve_mr_region *region = cache_get_exact(pages + AT, LEN, WRITE), *local;
	uint32_t rkey = region->rkey;

	fake_world.config.mw_stays = true;
	local = cache_get(pages + PAGE, PAGE, 0);
	cr_assert_eq(cache_stats().regions, 1);
	fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_ETIMEDOUT);
	verve_mr_cache_put(&cache, region);
	cr_expect(fake_rkey_is_there(dev, rkey));
	cache_use(pages + PAGE, PAGE, 0);
	cr_expect_eq(cache_stats().misses, 2, "others do not get the exposed registration");
	verve_mr_cache_put(&cache, local);
	cr_expect_not(fake_rkey_is_there(dev, rkey));
}

/* A bind that was given up may still be done: its window must be freed. */
Test(windows_strict, that_may_be_bound_late_take_their_registration_along)
{
	verve_mr_cache_prepare(&cache);
	fake_world.config.mw_stays = fake_world.config.mw_late = true;
	fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_ETIMEDOUT);
	use_exact(pages + AT, LEN, WRITE);
	cr_expect_eq(fake_world.open[FAKE_MW], 0);
	cr_expect_eq(cache_stats().regions, 0, "nothing is kept that peers may reach");
}

/* The region is its owner's until the end, but no one else's. */
Test(windows_strict, outlive_their_memory_until_put)
{
	struct verve_mr_region *region = cache_get_exact(pages + AT, LEN, WRITE);

	fake_net_watch_gone(pages + PAGE, PAGE);
	cr_expect(opens(region->rkey, pages + AT, LEN, VERVE_NET_REMOTE_WRITE));
	use_exact(pages + AT, LEN, WRITE);
	cr_expect_eq(cache_stats().misses, 2, "the new memory is registered");
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().regions, 1);
	fake_net_watch_pending(true);
	use_exact(pages + AT, LEN, WRITE);
	fake_net_watch_pending(false);
	cr_expect_eq(binds(), 2, "while an event is under way, nothing kept is used");
}

/* mlx5, where UMRs may not change the access for atomics. Other accesses keep their windows. */
Test(windows_strict, are_not_bound_for_atomics_where_the_device_refuses_that)
{
	const unsigned atomic = WRITE | VERVE_NET_REMOTE_ATOMIC;
	struct verve_mr_region *region;

	fake_world.config.mw_no_atomics = true;
	verve_mr_cache_prepare(&cache);
	for (int i = 0; i < 2 * VERVE_MR_WINDOWS_TRIES; i++) {
		region = cache_get_exact(pages + AT, LEN, atomic);
		cr_expect(opens(region->rkey, pages + AT, LEN, VERVE_NET_REMOTE_ATOMIC));
		verve_mr_cache_put(&cache, region);
		use_exact(pages + AT, LEN, WRITE);
	}
	cr_expect_eq(binds(), 2 * VERVE_MR_WINDOWS_TRIES);
	cr_expect_eq(fake_world.open[FAKE_BINDER], 1);
}

Test(windows_strict, are_bound_for_atomics)
{
	use_exact(pages + AT, LEN, WRITE | VERVE_NET_REMOTE_ATOMIC);
	cr_expect_eq(binds(), 1);
}

Test(windows_strict, do_not_open_by_offset)
{
	struct verve_mr_region *region;
	uint32_t base;

	cr_assert_eq(verve_mr_cache_get_exact(&cache, pages + AT, LEN, READ, &base, &region), 0);
	cr_expect_eq(binds(), 0);
	verve_mr_cache_put(&cache, region);
	cr_assert_eq(verve_mr_cache_get_exact(&cache, pages, 0, READ, NULL, &region), 0);
	cr_expect_eq(binds(), 0);
	verve_mr_cache_put(&cache, region);
}

Test(windows_strict, are_for_peers_alone)
{
	verve_mr_cache_prepare(&cache);
	cache_use(pages + AT, LEN, VERVE_NET_LOCAL_WRITE);
	verve_mr_cache_put(&cache, cache_get_exact(pages + AT, LEN, VERVE_NET_LOCAL_WRITE));
	cr_expect_eq(binds(), 0);
}

/* The region of such a window has the window's bytes, and no second window. */
Test(windows_loose, open_their_bytes_alone)
{
	struct verve_mr_region *one, *two;

	use_exact(pages + AT, LEN, READ);
	use_exact(pages + AT, LEN, READ);
	cr_expect_eq(cache_stats().misses, 1);
	use_exact(pages + AT + 1, LEN - 2, READ);
	cr_expect_eq(cache_stats().misses, 2);
	one = cache_get_exact(pages + AT, LEN, READ);
	two = cache_get_exact(pages + AT, LEN, WRITE);
	cr_expect_neq(one->lkey, two->lkey);
	verve_mr_cache_put(&cache, one);
	verve_mr_cache_put(&cache, two);
	verve_mr_cache_prepare(&cache);
	one = cache_get(pages + AT, LEN, READ);
	cr_expect_not(opens(one->rkey, pages + AT - 1, 1, 0));
	verve_mr_cache_put(&cache, one);
}

Test(windows, are_not_used_where_peers_registrations_are_kept)
{
	static const char *const kinds[] = {"on", "off"};

	for (int i = 0; i < 2; i++) {
		verve_config.mr_cache = kinds[i];
		cache_reopen_with_room();
		verve_mr_cache_prepare(&cache);
		for (int j = 0; j < 3; j++)
			verve_mr_cache_put(&cache, cache_get_exact(pages + AT, LEN, READ));
	}
	cr_expect_eq(binds(), 0);
	cr_expect_eq(fake_world.open[FAKE_BINDER], 0);
}
