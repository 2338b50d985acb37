/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a cache gives and takes without the device. */
#include "mr/cache_find.h"

#include <rdma/fi_errno.h>

#include "cache_fixture.h"

enum { READ = VERVE_NET_REMOTE_READ, AT = PAGE, LEN = PAGE };

static void setup(void)
{
	fake_world.config.limits.mw = 100;
	fake_world.config.limits.mw_peer = true;
	fake_net_watch_allow(true);
	cache_open();
	cr_assert_not_null(cache.store);
	verve_mr_cache_prepare(&cache);
}

TestSuite(find, .init = setup, .fini = cache_close);

static struct verve_mr_region *found;

static int find(enum verve_mr_how how, size_t len, unsigned access)
{
	uint64_t regs = fake_world.stats.regs, binds = fake_world.stats.binds;
	int ret = verve_mr_cache_find(&cache, how, pages + AT, len, access, &found);

	cr_expect_eq(fake_world.stats.regs, regs, "finding registers nothing");
	cr_expect_eq(fake_world.stats.binds, binds, "finding binds nothing");
	return ret;
}

static void put(struct verve_mr_region *region)
{
	cr_assert_null(verve_mr_cache_put_at_once(&cache, region));
}

/* The memory is kept from its second use on: so that windows can open it, too. */
static void keep(void)
{
	for (int i = 0; i < 2; i++)
		cache_use(pages + AT, LEN, READ);
	cr_assert_eq(cache_stats().regions, 1);
}

Test(find, a_kept_registration_needs_no_device)
{
	uint64_t hits;

	keep();
	hits = cache_stats().hits;
	for (enum verve_mr_how how = VERVE_MR_ANY; how <= VERVE_MR_KEPT; how++) {
		cr_assert_eq(find(how, LEN, 0), 0);
		put(found);
	}
	cr_expect_eq(cache_stats().hits, hits + 2);
	cr_expect_eq(cache_stats().regions, 1);
	cr_expect_eq(find(VERVE_MR_ONCE, LEN, 0), -FI_EAGAIN);
}

Test(find, what_is_not_registered_is_not_found)
{
	cr_expect_eq(find(VERVE_MR_ANY, LEN, 0), -FI_EAGAIN);
	cr_expect_eq(find(VERVE_MR_FOR_PEER, LEN, READ), -FI_EAGAIN);
	cr_expect_eq(find(VERVE_MR_KEPT_FOR_PEER, LEN, READ), -FI_EAGAIN);
	/* Asking does not count as a use. */
	cache_use(pages + AT, LEN, 0);
	cr_expect_eq(cache_stats().regions, 0);
}

Test(find, short_memory_is_not_registered_to_be_kept)
{
	cache.crossover.keep = 2 * LEN;
	cache.crossover.stage = 2 * LEN;
	cr_expect_eq(find(VERVE_MR_KEPT, LEN, 0), -FI_ENOENT);
	cr_expect_eq(find(VERVE_MR_KEPT, 2 * LEN, 0), -FI_EAGAIN);
	cr_expect_eq(find(VERVE_MR_ANY, LEN, 0), -FI_EAGAIN);
}

/* Where find says ENOENT, the function that it speaks of says the same. */
Test(find, without_windows_nothing_is_kept_for_peers)
{
	AO_store(&cache.windows.off, 1);
	AO_store(&cache.peer_windows.open, 0);
	for (enum verve_mr_how how = VERVE_MR_KEPT; how <= VERVE_MR_KEPT_FOR_PEER; how += 2) {
		cr_expect_eq(find(how, LEN, READ), -FI_ENOENT);
		cr_expect_eq(verve_mr_cache_get_by(&cache, how, pages + AT, LEN, READ, &found),
			     -FI_ENOENT);
	}
}

/* A window for a peer is found once enough of them rest; others have to be made, or bound. */
Test(find, a_window_for_a_peer_needs_no_device_if_enough_rest)
{
	struct verve_mr_region *region[VERVE_MR_WINDOWS_REST];

	keep();
	cr_expect_eq(find(VERVE_MR_FOR_PEER, LEN, READ), -FI_EAGAIN);
	for (int i = 0; i < VERVE_MR_WINDOWS_REST; i++)
		cr_assert_eq(verve_mr_cache_get_for_peer(&cache, pages + AT, LEN, READ,
							 &region[i]), 0);
	for (int i = 0; i < VERVE_MR_WINDOWS_REST; i++)
		put(region[i]);
	cr_expect_eq(find(VERVE_MR_ANY, LEN, READ), -FI_EAGAIN, "its bind waits for the device");
	cr_assert_eq(find(VERVE_MR_FOR_PEER, LEN, READ), 0);
	cr_expect_eq(found->peer_window, VERVE_MR_PEER_FRESH);
	cr_expect_eq(find(VERVE_MR_FOR_PEER, LEN, READ), -FI_EAGAIN, "the others have to rest");
	put(found);
	cr_expect_eq(cache_stats().regions, 1);
}

Test(find, a_bound_window_is_not_given_back_at_once)
{
	keep();
	cr_assert_eq(verve_mr_cache_get_for_peer(&cache, pages + AT, LEN, READ, &found), 0);
	verve_mr_peer_window_posted(found);
	cr_expect_eq(verve_mr_cache_put_at_once(&cache, found), found);
	verve_mr_cache_put(&cache, found);
	cr_assert_eq(verve_mr_cache_get(&cache, pages + AT, LEN, READ, &found), 0);
	cr_expect_not_null(found->base);
	cr_expect_eq(verve_mr_cache_put_at_once(&cache, found), found, "its unbind waits");
	verve_mr_cache_put(&cache, found);
}

Test(find, a_registration_of_its_own_is_not_given_back_at_once)
{
	struct verve_mr_region *region = cache_get(pages + AT, LEN, 0);

	cr_expect_eq(verve_mr_cache_put_at_once(&cache, region), region);
	cr_expect_eq(cache_stats().regions, 1);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().regions, 0);
}

/* The last user of memory that has gone closes its registration, and the rest may be a window's. */
Test(find, memory_that_has_gone_is_not_given_back_at_once)
{
	struct verve_mr_region *region, *other;

	keep();
	region = cache_get(pages + AT, LEN, 0);
	cr_assert_eq(verve_mr_cache_get_for_peer(&cache, pages + AT, LEN, READ, &other), 0);
	fake_net_watch_gone(pages, sizeof(pages));
	cr_expect_eq(find(VERVE_MR_ANY, LEN, 0), -FI_EAGAIN);
	put(region); /* the window still uses it */
	cr_expect_eq(verve_mr_cache_put_at_once(&cache, other), region, "the window alone rests");
	cr_expect_eq(cache_stats().regions, 1);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().regions, 0);
}

/* Entries that nobody uses any more are closed by the next put that may take long. */
Test(find, nothing_is_given_back_at_once_while_entries_are_to_be_closed)
{
	struct verve_mr_region *region;

	keep();
	for (int i = 0; i < 2; i++)
		cache_use(pages + 8 * PAGE, LEN, 0);
	region = cache_get(pages + AT, LEN, 0);
	fake_net_watch_gone(pages + 8 * PAGE, PAGE);
	cr_expect_eq(cache_stats().regions, 2);
	cr_expect_eq(verve_mr_cache_put_at_once(&cache, region), region);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().regions, 1);
}
