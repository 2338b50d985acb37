/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration cache: memory that goes while the cache has it registered, and ranges that overlap,
 * of which the cache makes one region.
 */
#include <pthread.h>
#include <rdma/fi_errno.h>

#include "cache_fixture.h"
#include "mr/monitor.h"

Test(kept, memory_that_went_is_registered_anew)
{
	cache_use(pages, 4 * PAGE, 0);
	fake_net_watch_gone(pages + 3 * PAGE, PAGE);
	cr_expect_eq(cache_stats().invalidations, 1);
	cache_use(pages, 4 * PAGE, 0);
	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().hits, 0);
	cr_expect_eq(cache_stats().regions, 1);
	fake_net_watch_gone(pages + 4 * PAGE, PAGE);
	cache_use(pages, 4 * PAGE, 0);
	cr_expect_eq(cache_stats().hits, 1);
}

/* No get or put follows. */
Test(kept, memory_that_went_is_given_back_soon)
{
	cache_use(pages, 4 * PAGE, 0);
	fake_net_watch_gone(pages, 4 * PAGE);
	cr_expect_eq(cache_stats().bytes, 4 * PAGE);
	fake_net_advance(200000000);
	cr_expect_eq(cache_stats().bytes, 0);
}

Test(kept, a_region_in_use_outlives_its_memory)
{
	struct verve_mr_region *region = cache_get(pages, PAGE, 0);

	fake_net_watch_gone(pages, PAGE);
	cr_expect_eq(cache_stats().regions, 1);
	cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().misses, 2);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().regions, 1);
}

/* The address may be new memory already, while the event of the unmap is unread. */
Test(kept, trusts_nothing_while_an_event_is_under_way)
{
	struct verve_mr_region *old = cache_get(pages, PAGE, 0), *now;

	fake_net_watch_pending(true);
	now = cache_get(pages, PAGE, 0);
	cr_expect_neq(now, old);
	verve_mr_cache_put(&cache, now);
	cr_expect_eq(cache_stats().regions, 1);
	cr_expect_eq(cache_stats().unkept, 1);
	fake_net_watch_pending(false);
	cr_expect_eq(cache_get(pages, PAGE, 0), old);
	verve_mr_cache_put(&cache, old);
	verve_mr_cache_put(&cache, old);
}

Test(kept, what_cannot_be_watched_is_not_kept)
{
	fake_net_watch_refuse(true);
	cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().regions, 0);
	cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().misses, 2);
	cr_expect_eq(cache_stats().unkept, 2);
}

Test(kept, the_application_may_say_itself_what_goes)
{
	cache_use(pages, PAGE, 0);
	verve_mr_monitor_notify((uintptr_t)pages, (uintptr_t)pages + 1);
	cr_expect_eq(cache_stats().invalidations, 1);
	cache_use(pages, PAGE, 0);
	cr_expect_eq(cache_stats().hits, 0);
}

Test(kept, what_overlaps_becomes_one)
{
	struct verve_mr_region *held = cache_get(pages + 2 * PAGE, 2 * PAGE, 0), *all;

	cache_use(pages + 6 * PAGE, 2 * PAGE, 0);
	cache_use(pages + 8 * PAGE, PAGE, 0); /* overlaps no entry */
	cr_expect_eq(cache_stats().regions, 3);
	all = cache_get(pages + 3 * PAGE, 4 * PAGE, 0);
	cr_expect_eq(all->addr, pages + 2 * PAGE);
	cr_expect_eq(all->len, 6 * PAGE);
	verve_mr_cache_put(&cache, held);
	cr_expect_eq(cache_stats().regions, 2);
	cr_expect_eq(cache_stats().bytes, 7 * PAGE);
	cr_expect_eq(cache_get(pages + 2 * PAGE, 6 * PAGE, 0), all);
	verve_mr_cache_put(&cache, all);
	verve_mr_cache_put(&cache, all);
	cr_expect_eq(cache_stats().misses, 4);
}

Test(kept, what_overlaps_but_is_much_longer_or_for_other_access_stays)
{
	cache_use(pages, 5 * PAGE, 0);
	cache_use(pages + 4 * PAGE, 2 * PAGE, VERVE_NET_LOCAL_WRITE);
	cache_use(pages + 4 * PAGE + 10, PAGE, 0);
	cr_expect_eq(cache_stats().regions, 2, "whoever may write may read");
	cache_use(pages + 5 * PAGE, 2 * PAGE, VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(cache_stats().regions, 2);
	cr_expect_eq(cache_stats().bytes, 8 * PAGE);
	cache_use(pages + 4 * PAGE, 3 * PAGE + 1, 0);
	cr_expect_eq(cache_stats().bytes, 8 * PAGE + 3 * PAGE, "the long one grew");
	cache_use(pages + 7 * PAGE, PAGE + 1, 0);
	cr_expect_eq(cache_stats().bytes, 8 * PAGE + 3 * PAGE + 2 * PAGE, "it would cost too much");
}

/* The union with the neighbours is unmapped in part, or too large to register. */
Test(kept, what_cannot_be_registered_in_one_is_registered_alone)
{
	struct verve_mr_region *region;

	cache_use(pages, 2 * PAGE, 0);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EFAULT);
	region = cache_get(pages + PAGE, 2 * PAGE, 0);
	cr_expect_eq(region->addr, pages + PAGE);
	cr_expect_eq(region->len, 2 * PAGE);
	cr_expect_eq(cache_stats().failures, 0);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(cache_stats().regions, 2);
	cache_use(pages + PAGE, 2 * PAGE, 0);
	cr_expect_eq(cache_stats().hits, 1);
}

/* Run once, in place of the watch's thread, after the nth unlocking of a mutex (0: the next). */
static void (*meanwhile)(void);
static int unlockings;

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int ret = __real_pthread_mutex_unlock(mutex);
	void (*now)(void) = meanwhile;

	if (now && unlockings-- == 0) {
		meanwhile = NULL;
		now();
	}
	return ret;
}

static void third_page_will_go(void)
{
	fake_net_watch_gone(pages + 3 * PAGE, PAGE);
}

/*
 * madvise(2) reports that pages will go, waits until the event was read, and only then takes the
 * pages. A registration from before is stale. The test reports the event at each moment of a miss
 * that joins that page with its own.
 */
Test(kept, what_will_go_is_not_joined_whenever_that_is_heard)
{
	bool heard = true;
	int when;

	for (when = 0; heard; when++) {
		uint64_t misses;

		cache_reopen_with_room();
		cache_use(pages + PAGE, 3 * PAGE, 0);
		unlockings = when;
		meanwhile = third_page_will_go;
		cache_use(pages, 2 * PAGE, 0);
		heard = !meanwhile;
		meanwhile = NULL;
		/* Now the page goes. */
		misses = cache_stats().misses;
		cache_use(pages + 3 * PAGE, PAGE, 0);
		cr_expect_eq(cache_stats().misses - misses, heard, "heard behind unlocking %d",
			     when);
	}
	cr_expect_gt(when, 3);
}
