/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration cache of the default kind: it keeps only memory that is used again. */
#include "cache_fixture.h"
#include "mr/reuse.h"

static void setup_auto(void)
{
	fake_net_watch_allow(true);
	cache_open();
	cr_assert_not_null(cache.store);
}

/* The default configuration. */
TestSuite(reused, .init = setup_auto, .fini = cache_close);

/* Buffers at random places of one piece of memory, as a message pool or malloc makes them. */
Test(reused, ranges_at_random_pin_their_memory_once)
{
	enum { PAGES = sizeof(pages) / PAGE, USES = 3000 };
	uint64_t misses = 0;

	cache_reopen_with_room();
	for (int i = 0; i < 2 * USES; i++) {
		size_t start = fake_net_random() % sizeof(pages);
		size_t len = 1 + fake_net_random() % (sizeof(pages) - start);

		if (i == USES)
			misses = cache_stats().misses;
		cache_use(pages + start, fake_net_random() % 2 ? len : 1 + len % (3 * PAGE), 0);
	}
	cr_expect_leq(cache_stats().regions, 2);
	cr_expect_leq(cache_stats().bytes, sizeof(pages) + sizeof(pages) / 4);
	misses = cache_stats().misses - misses;
	cr_expect_leq(misses, 20, "%lu misses", misses);
}

Test(reused, is_kept_when_it_comes_again)
{
	cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().regions, 0);
	cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().regions, 1);
	cache_use(pages + 10, 20, 0);
	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().hits, 1);
	cr_expect_eq(cache_stats().unkept, 0);
}

/* The memory goes after each use, and comes back at the same address. */
Test(reused, what_goes_after_each_use_is_kept_ever_less_often)
{
	enum { ROUNDS = 2000 };

	for (int i = 0; i < ROUNDS; i++) {
		cache_use(pages, PAGE, 0);
		fake_net_watch_gone(pages, PAGE);
	}
	cr_expect_eq(cache_stats().hits, 0);
	cr_expect_eq(cache_stats().misses, ROUNDS);
	cr_expect_geq(cache_stats().invalidations, 8);
	cr_expect_leq(cache_stats().invalidations, 8 + ROUNDS / VERVE_MR_REUSE_MAX);
	cache_use(pages + PAGE, PAGE, 0);
	cache_use(pages + PAGE, PAGE, 0);
	cr_expect_eq(cache_stats().regions, 1, "others are none the worse for it");
}

Test(reused, what_paid_is_kept_at_once)
{
	for (int i = 0; i < 4; i++)
		cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().hits, 2);
	fake_net_watch_gone(pages, PAGE);
	cache_use(pages + PAGE, PAGE, 0); /* buries the entry of the first page */
	cr_expect_eq(cache_stats().regions, 0);
	cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().regions, 1);
}

/* There is room for all entries: only their age makes them go. */
Test(reused, what_is_not_found_any_more_goes)
{
	enum { ROUNDS = 500, FEW = 64 };
	static _Alignas(PAGE) char many[(ROUNDS + 1) * PAGE];

	verve_mr_cache_fini(&cache);
	verve_config.mr_cache_count = 2 * ROUNDS;
	verve_config.mr_cache_size = 2 * ROUNDS * PAGE;
	verve_mr_cache_init(&cache, dev);
	for (int i = 1; i <= ROUNDS; i++) {
		cache_use(many + i * PAGE, PAGE, 0);
		cache_use(many + i * PAGE, PAGE, 0);
		cache_use(many, PAGE, 0);
	}
	cr_expect_leq(cache_stats().regions, FEW + 1);
	cr_expect_eq(cache_stats().regions + cache_stats().evictions, ROUNDS + 1);
	cr_expect_eq(cache_stats().hits, ROUNDS - 2, "what is found stays");
}

Test(reused, what_peers_can_reach_is_not_kept)
{
	for (int i = 0; i < 3; i++)
		cache_use(pages, PAGE, VERVE_NET_REMOTE_READ);
	cr_expect_eq(cache_stats().regions, 0);
	cr_expect_eq(cache_stats().misses, 3);
}
