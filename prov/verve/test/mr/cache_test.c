/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration cache: the contracts of get and put, and the counts. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <rdma/providers/fi_prov.h>

#include "../support/fake_memory.h"
#include "../support/fake_world.h"
#include "base/config.h"
#include "base/log.h"
#include "mr/cache.h"
#include "mr/monitor.h"
#include "mr/region.h"
#include "mr/reuse.h"
#include "net/device.h"

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_device *dev;
static struct verve_mr_cache cache;
static char buffer[4096];
static _Alignas(4096) char pages[64 * 4096];

enum { PAGE = 4096 };

static void setup(void)
{
	struct verve_net_port *list;
	size_t count;

	verve_log_provider = &provider;
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_gt(count, 0);
	verve_config.mr_cache_count = 8;
	verve_config.mr_cache_size = 16 * PAGE;
	cr_assert_eq(verve_net_device_open(list->device, list->port_num, NULL, &dev), 0);
	verve_net_port_list_free(list, count);
	verve_mr_cache_init(&cache, dev);
}

static void teardown(void)
{
	verve_mr_cache_fini(&cache);
	verve_net_device_close(dev);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(cache, .init = setup, .fini = teardown);

static struct verve_mr_region *get(void *addr, size_t len, unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_cache_get(&cache, addr, len, access, &region), 0);
	return region;
}

static struct verve_mr_cache_stats stats(void)
{
	struct verve_mr_cache_stats now;

	verve_mr_cache_stats_get(&cache, &now);
	return now;
}

Test(cache, region_contains_the_range_and_grants_the_access)
{
	struct verve_mr_region *region = get(buffer + 100, 200, VERVE_NET_REMOTE_READ);
	char *start = region->addr;

	cr_expect(start <= buffer + 100 && start + region->len >= buffer + 300);
	cr_expect_eq(region->access & VERVE_NET_REMOTE_READ, VERVE_NET_REMOTE_READ);
	verve_mr_cache_put(&cache, region);
}

Test(cache, one_range_may_be_out_several_times)
{
	struct verve_mr_region *read = get(buffer, 4096, 0);
	struct verve_mr_region *write = get(buffer, 4096, VERVE_NET_LOCAL_WRITE);

	verve_mr_cache_put(&cache, read);
	cr_expect_eq(write->access & VERVE_NET_LOCAL_WRITE, VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(write->len, 4096);
	verve_mr_cache_put(&cache, write);
}

Test(cache, counts_what_is_registered)
{
	struct verve_mr_region *a = get(buffer, 1000, 0), *b = get(buffer, 24, 0);

	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().regions, 2);
	cr_expect_eq(stats().bytes, 1024);
	verve_mr_cache_put(&cache, a);
	cr_expect_eq(stats().regions, 1);
	cr_expect_eq(stats().bytes, 24);
	verve_mr_cache_put(&cache, b);
	cr_expect_eq(stats().bytes, 0);
	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().failures, 0);
}

/* The monitor does not open: no event would tell that a mapping went, so none is kept. */
Test(cache, keeps_nothing_pinned)
{
	for (int i = 0; i < 10; i++)
		verve_mr_cache_put(&cache, get(buffer, sizeof(buffer), 0));
	cr_expect_eq(stats().regions, 0);
	cr_expect_eq(stats().misses, 10);
}

Test(cache, failure_is_passed_on_and_counted)
{
	struct verve_mr_region *region;

	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	cr_expect_eq(verve_mr_cache_get(&cache, buffer, 10, 0, &region), -FI_ENOMEM);
	cr_expect_eq(stats().failures, 1);
	cr_expect_eq(stats().regions, 0);
	verve_mr_cache_put(&cache, get(buffer, 10, 0));
}

static void setup_kept(void)
{
	if (strcmp(verve_config.mr_cache, "strict"))
		verve_config.mr_cache = "on";
	fake_net_watch_allow(true);
	setup();
	cr_assert_not_null(cache.store);
}

TestSuite(kept, .init = setup_kept, .fini = teardown);

static void setup_auto(void)
{
	fake_net_watch_allow(true);
	setup();
	cr_assert_not_null(cache.store);
}

/* The default configuration. */
TestSuite(reused, .init = setup_auto, .fini = teardown);

static void use(void *addr, size_t len, unsigned access)
{
	verve_mr_cache_put(&cache, get(addr, len, access));
}

Test(kept, hits_ranges_inside_what_was_registered)
{
	struct verve_mr_region *all = get(pages, 3 * PAGE, VERVE_NET_LOCAL_WRITE);

	cr_expect_eq(get(pages + PAGE + 1, 5, 0), all);
	cr_expect_eq(get(pages + 2 * PAGE, PAGE, VERVE_NET_LOCAL_WRITE), all);
	for (int i = 0; i < 3; i++)
		verve_mr_cache_put(&cache, all);
	cr_expect_eq(stats().hits, 2);
	cr_expect_eq(stats().misses, 1);
	cr_expect_eq(stats().regions, 1);
	cr_expect_eq(stats().bytes, 3 * PAGE);
	use(pages, 3 * PAGE + 1, 0);
	cr_expect_eq(stats().misses, 2);
}

/* The hint for a page may name an entry that is too short: the right one must be found. */
Test(kept, overlapping_ranges_from_the_same_page)
{
	struct verve_mr_region *one = get(pages, PAGE, 0), *four = get(pages, 4 * PAGE, 0), *again;

	cr_expect_neq(one, four);
	cr_expect_eq(get(pages, 4 * PAGE, 0), four);
	again = get(pages, PAGE, 0);
	cr_expect_geq(again->len, PAGE);
	use(pages + PAGE, 3 * PAGE, 0);
	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().hits, 3);
	fake_net_watch_gone(pages, 1);
	cr_expect_eq(stats().invalidations, 1, "the longer one took the other's place");
	cr_expect_eq(stats().regions, 2);
	verve_mr_cache_put(&cache, four);
	verve_mr_cache_put(&cache, four);
	verve_mr_cache_put(&cache, again);
	verve_mr_cache_put(&cache, one);
	cr_expect_eq(stats().regions, 0);
}

Test(kept, more_access_replaces_less)
{
	use(pages, PAGE, VERVE_NET_REMOTE_READ);
	use(pages, PAGE, VERVE_NET_LOCAL_WRITE | VERVE_NET_REMOTE_READ);
	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().regions, 1);
	use(pages, PAGE, VERVE_NET_LOCAL_WRITE);
	use(pages, PAGE, VERVE_NET_REMOTE_READ);
	use(pages, PAGE, 0);
	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().hits, 3);
}

/* An entry is widened to whole pages, but never for remote access. */
Test(kept, peers_reach_no_more_than_was_asked_for)
{
	struct verve_mr_region *local, *remote;

	remote = get(pages + 100, 200, VERVE_NET_REMOTE_READ);
	cr_expect_eq(remote->addr, pages + 100);
	cr_expect_eq(remote->len, 200);
	local = get(pages, PAGE, VERVE_NET_LOCAL_WRITE);
	cr_expect_not(local->access & VERVE_NET_REMOTE_READ);
	cr_expect_eq(get(pages + 150, 150, VERVE_NET_REMOTE_READ), remote);
	cr_expect_eq(get(pages + 99, 201, VERVE_NET_LOCAL_WRITE), local);
	cr_expect_eq(stats().hits, 2);
	for (int i = 0; i < 2; i++) {
		verve_mr_cache_put(&cache, local);
		verve_mr_cache_put(&cache, remote);
	}
}

static struct verve_mr_region *get_exact(void *addr, size_t len, unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_cache_get_exact(&cache, addr, len, access, NULL, &region), 0);
	cr_expect_eq(region->addr, addr);
	cr_expect_eq(region->len, len);
	cr_expect_eq(region->access, access);
	return region;
}

static const unsigned readable = VERVE_NET_REMOTE_READ;

Test(kept, exactly_what_was_closed_is_opened_again)
{
	struct verve_mr_region *region = get_exact(pages + 1, 2 * PAGE, readable);

	verve_mr_cache_put(&cache, region);
	cr_expect_eq(get_exact(pages + 1, 2 * PAGE, readable), region);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(stats().hits, 1);
	verve_mr_cache_put(&cache, get_exact(pages + 1, 2 * PAGE, 0));
	verve_mr_cache_put(&cache, get_exact(pages + 1, 2 * PAGE - 1, readable));
	verve_mr_cache_put(&cache, get_exact(pages + 2, 2 * PAGE - 1, readable));
	cr_expect_eq(stats().misses, 4);
	cr_expect_eq(stats().regions, 4);
	cr_expect_eq(get_exact(pages + 1, 2 * PAGE, readable), region);
	fake_net_watch_gone(pages + PAGE, 1);
	cr_expect_eq(stats().invalidations, 4);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(stats().regions, 0);
}

/* The application's regions have keys of their own: an exact region has one user. */
Test(kept, exact_ones_are_nobody_elses)
{
	struct verve_mr_region *a = get_exact(pages, PAGE, readable), *b, *shared;

	b = get_exact(pages, PAGE, readable);
	cr_expect_neq(a, b);
	cr_expect_neq(a->rkey, b->rkey);
	shared = get(pages, PAGE, readable);
	cr_expect(shared != a && shared != b);
	verve_mr_cache_put(&cache, a);
	verve_mr_cache_put(&cache, b);
	cr_expect_eq(get(pages, PAGE, readable), shared);
	verve_mr_cache_put(&cache, shared);
	verve_mr_cache_put(&cache, shared);
	cr_expect_eq(stats().regions, 2, "of two that are equal, one is enough");
	cr_expect_eq(get_exact(pages, PAGE, readable), b);
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
	verve_mr_cache_put(&cache, get_exact(pages, 0, 0));
	cr_expect_eq(stats().regions, 0);
	cr_expect_eq(stats().bytes, 0);
	cr_expect_eq(stats().misses, 2);
}

Test(kept, memory_that_went_is_registered_anew)
{
	use(pages, 4 * PAGE, 0);
	fake_net_watch_gone(pages + 3 * PAGE, PAGE);
	cr_expect_eq(stats().invalidations, 1);
	use(pages, 4 * PAGE, 0);
	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().hits, 0);
	cr_expect_eq(stats().regions, 1);
	fake_net_watch_gone(pages + 4 * PAGE, PAGE);
	use(pages, 4 * PAGE, 0);
	cr_expect_eq(stats().hits, 1);
}

Test(kept, a_region_in_use_outlives_its_memory)
{
	struct verve_mr_region *region = get(pages, PAGE, 0);

	fake_net_watch_gone(pages, PAGE);
	cr_expect_eq(stats().regions, 1);
	use(pages, PAGE, 0);
	cr_expect_eq(stats().misses, 2);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(stats().regions, 1);
}

/* The address may be new memory already, while the event of the unmap is unread. */
Test(kept, trusts_nothing_while_an_event_is_under_way)
{
	struct verve_mr_region *old = get(pages, PAGE, 0), *now;

	fake_net_watch_pending(true);
	now = get(pages, PAGE, 0);
	cr_expect_neq(now, old);
	verve_mr_cache_put(&cache, now);
	cr_expect_eq(stats().regions, 1);
	cr_expect_eq(stats().unkept, 1);
	fake_net_watch_pending(false);
	cr_expect_eq(get(pages, PAGE, 0), old);
	verve_mr_cache_put(&cache, old);
	verve_mr_cache_put(&cache, old);
}

Test(kept, what_cannot_be_watched_is_not_kept)
{
	fake_net_watch_refuse(true);
	use(pages, PAGE, 0);
	cr_expect_eq(stats().regions, 0);
	use(pages, PAGE, 0);
	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().unkept, 2);
}

Test(kept, evicts_what_was_not_used_lately_and_never_exceeds_the_count)
{
	for (int i = 0; i < 40; i++) {
		use(pages + (i + 8) * PAGE, PAGE, 0);
		use(pages, PAGE, 0);
		cr_expect_leq(stats().regions, 8);
	}
	cr_expect_eq(stats().hits, 39);
	cr_expect_eq(stats().evictions, 41 - 8);
}

Test(kept, never_exceeds_the_bytes)
{
	for (int i = 0; i < 10; i++) {
		use(pages + 5 * i * PAGE, 5 * PAGE, 0);
		cr_expect_leq(stats().bytes, 16 * PAGE);
	}
	use(pages, 17 * PAGE, 0); /* more than the cache may keep */
	cr_expect_leq(stats().bytes, 16 * PAGE);
	cr_expect_eq(stats().failures, 0);
}

Test(kept, what_is_in_use_is_never_evicted)
{
	struct verve_mr_region *region[12];

	for (int i = 0; i < 12; i++)
		region[i] = get(pages + i * PAGE, PAGE, 0);
	cr_expect_eq(stats().regions, 12);
	cr_expect_eq(stats().evictions, 0);
	cr_expect_eq(stats().unkept, 4);
	for (int i = 0; i < 12; i++)
		verve_mr_cache_put(&cache, region[i]);
	cr_expect_eq(stats().regions, 8);
}

Test(kept, gives_idle_memory_back_when_there_is_none)
{
	for (int i = 0; i < 4; i++)
		use(pages + i * PAGE, PAGE, 0);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	use(pages + 10 * PAGE, PAGE, 0);
	cr_expect_eq(stats().failures, 0);
	cr_expect_eq(stats().evictions, 4);
	cr_expect_eq(stats().regions, 1);
}

Test(kept, what_cannot_be_registered_is_not_found_later)
{
	struct verve_mr_region *region;

	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(verve_mr_cache_get(&cache, NULL, 10, 0, &region), -FI_EFAULT);
		cr_expect_eq(stats().failures, 1 + i);
	}
	cr_expect_eq(stats().regions, 0);
	cr_expect_eq(stats().hits, 0);
}

Test(kept, an_address_space_that_ends_is_no_range)
{
	struct verve_mr_region *region = get((void *)(UINTPTR_MAX - 10), 10, 0);

	verve_mr_cache_put(&cache, region);
	cr_expect_eq(stats().regions, 0);
}

Test(kept, the_application_may_say_itself_what_goes)
{
	use(pages, PAGE, 0);
	verve_mr_monitor_notify((uintptr_t)pages, (uintptr_t)pages + 1);
	cr_expect_eq(stats().invalidations, 1);
	use(pages, PAGE, 0);
	cr_expect_eq(stats().hits, 0);
}

static void setup_strict(void)
{
	verve_config.mr_cache = "strict";
	setup_kept();
}

TestSuite(strict, .init = setup_strict, .fini = teardown);

Test(strict, keeps_nothing_that_peers_can_reach)
{
	use(pages, PAGE, VERVE_NET_REMOTE_READ);
	cr_expect_eq(stats().regions, 0);
	use(pages, PAGE, VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(stats().regions, 1);
	use(pages, PAGE, VERVE_NET_REMOTE_READ);
	cr_expect_eq(stats().regions, 1);
	cr_expect_eq(stats().misses, 3);
	verve_mr_cache_put(&cache, get_exact(pages, PAGE, readable));
	cr_expect_eq(stats().regions, 1);
	verve_mr_cache_put(&cache, get_exact(pages, PAGE, VERVE_NET_LOCAL_WRITE));
	cr_expect_eq(stats().regions, 2);
}

Test(strict, off_keeps_nothing_at_all)
{
	struct verve_mr_cache off;

	verve_config.mr_cache = "off";
	verve_mr_cache_init(&off, dev);
	cr_expect_null(off.store);
	verve_mr_cache_fini(&off);
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

/* Opens the cache again, with room for all memory of the test. */
static void reopen_with_room(void)
{
	verve_mr_cache_fini(&cache);
	verve_config.mr_cache_count = 1024;
	verve_config.mr_cache_size = 1024 * PAGE;
	verve_mr_cache_init(&cache, dev);
}

Test(kept, what_overlaps_becomes_one)
{
	struct verve_mr_region *held = get(pages + 2 * PAGE, 2 * PAGE, 0), *all;

	use(pages + 6 * PAGE, 2 * PAGE, 0);
	use(pages + 8 * PAGE, PAGE, 0); /* overlaps no entry */
	cr_expect_eq(stats().regions, 3);
	all = get(pages + 3 * PAGE, 4 * PAGE, 0);
	cr_expect_eq(all->addr, pages + 2 * PAGE);
	cr_expect_eq(all->len, 6 * PAGE);
	verve_mr_cache_put(&cache, held);
	cr_expect_eq(stats().regions, 2);
	cr_expect_eq(stats().bytes, 7 * PAGE);
	cr_expect_eq(get(pages + 2 * PAGE, 6 * PAGE, 0), all);
	verve_mr_cache_put(&cache, all);
	verve_mr_cache_put(&cache, all);
	cr_expect_eq(stats().misses, 4);
}

Test(kept, what_overlaps_but_is_much_longer_or_for_other_access_stays)
{
	use(pages, 5 * PAGE, 0);
	use(pages + 4 * PAGE, 2 * PAGE, VERVE_NET_LOCAL_WRITE);
	use(pages + 4 * PAGE + 10, PAGE, 0);
	cr_expect_eq(stats().regions, 2, "whoever may write may read");
	use(pages + 5 * PAGE, 2 * PAGE, VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(stats().regions, 2);
	cr_expect_eq(stats().bytes, 8 * PAGE);
	use(pages + 4 * PAGE, 3 * PAGE + 1, 0);
	cr_expect_eq(stats().bytes, 8 * PAGE + 3 * PAGE, "the long one grew");
	use(pages + 7 * PAGE, PAGE + 1, 0);
	cr_expect_eq(stats().bytes, 8 * PAGE + 3 * PAGE + 2 * PAGE, "it would cost too much");
}

/* The union with the neighbours is unmapped in part, or too large to register. */
Test(kept, what_cannot_be_registered_in_one_is_registered_alone)
{
	struct verve_mr_region *region;

	use(pages, 2 * PAGE, 0);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EFAULT);
	region = get(pages + PAGE, 2 * PAGE, 0);
	cr_expect_eq(region->addr, pages + PAGE);
	cr_expect_eq(region->len, 2 * PAGE);
	cr_expect_eq(stats().failures, 0);
	verve_mr_cache_put(&cache, region);
	cr_expect_eq(stats().regions, 2);
	use(pages + PAGE, 2 * PAGE, 0);
	cr_expect_eq(stats().hits, 1);
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

		reopen_with_room();
		use(pages + PAGE, 3 * PAGE, 0);
		unlockings = when;
		meanwhile = third_page_will_go;
		use(pages, 2 * PAGE, 0);
		heard = !meanwhile;
		meanwhile = NULL;
		/* Now the page goes. */
		misses = stats().misses;
		use(pages + 3 * PAGE, PAGE, 0);
		cr_expect_eq(stats().misses - misses, heard, "heard behind unlocking %d", when);
	}
	cr_expect_gt(when, 3);
}

/* Buffers at random places of one piece of memory, as a message pool or malloc makes them. */
Test(reused, ranges_at_random_pin_their_memory_once)
{
	enum { PAGES = sizeof(pages) / PAGE, USES = 3000 };
	uint64_t misses = 0;

	reopen_with_room();
	for (int i = 0; i < 2 * USES; i++) {
		size_t start = fake_net_random() % sizeof(pages);
		size_t len = 1 + fake_net_random() % (sizeof(pages) - start);

		if (i == USES)
			misses = stats().misses;
		use(pages + start, fake_net_random() % 2 ? len : 1 + len % (3 * PAGE), 0);
	}
	cr_expect_leq(stats().regions, 2);
	cr_expect_leq(stats().bytes, sizeof(pages) + sizeof(pages) / 4);
	cr_expect_leq(stats().misses - misses, 20, "%lu misses", stats().misses - misses);
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
			uint64_t hits = stats().hits;

			fake_net_watch_gone(addr, len);
			use(addr, len, 0);
			cr_assert_eq(stats().hits, hits);
		} else if (out[i]) {
			verve_mr_cache_put(&cache, out[i]);
			out[i] = NULL;
		} else {
			unsigned access = random >> 56 & VERVE_NET_LOCAL_WRITE;
			struct verve_mr_region *region = random >> 55 & 1 ?
				get_exact(addr, len % 3 + 1, access) : get(addr, len, access);

			len = random >> 55 & 1 ? len % 3 + 1 : len;

			cr_assert(
				fake_lkey_covers(dev, region->lkey, (uintptr_t)addr, len, access));
			out[i] = region;
		}
		fake_net_watch_pending(random >> 59 & 1);
		cr_assert_leq(stats().regions, 8 + 6);
		/* Idle regions stay within the limit; regions in use come on top. */
		cr_assert_leq(stats().bytes, 16 * PAGE + bytes_of(out, 6));
	}
	for (int i = 0; i < 6; i++)
		if (out[i])
			verve_mr_cache_put(&cache, out[i]);
	cr_expect_leq(stats().bytes, 16 * PAGE);
	cr_expect_gt(stats().hits, 1000);
	cr_expect_gt(stats().evictions, 1000);
	cr_expect_gt(stats().invalidations, 100);
}

Test(reused, is_kept_when_it_comes_again)
{
	use(pages, PAGE, 0);
	cr_expect_eq(stats().regions, 0);
	use(pages, PAGE, 0);
	cr_expect_eq(stats().regions, 1);
	use(pages + 10, 20, 0);
	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().hits, 1);
	cr_expect_eq(stats().unkept, 0);
}

/* The memory goes after each use, and comes back at the same address. */
Test(reused, what_goes_after_each_use_is_kept_ever_less_often)
{
	enum { ROUNDS = 2000 };

	for (int i = 0; i < ROUNDS; i++) {
		use(pages, PAGE, 0);
		fake_net_watch_gone(pages, PAGE);
	}
	cr_expect_eq(stats().hits, 0);
	cr_expect_eq(stats().misses, ROUNDS);
	cr_expect_geq(stats().invalidations, 8);
	cr_expect_leq(stats().invalidations, 8 + ROUNDS / VERVE_MR_REUSE_MAX);
	use(pages + PAGE, PAGE, 0);
	use(pages + PAGE, PAGE, 0);
	cr_expect_eq(stats().regions, 1, "others are none the worse for it");
}

Test(reused, what_paid_is_kept_at_once)
{
	for (int i = 0; i < 4; i++)
		use(pages, PAGE, 0);
	cr_expect_eq(stats().hits, 2);
	fake_net_watch_gone(pages, PAGE);
	use(pages + PAGE, PAGE, 0); /* buries the entry of the first page */
	cr_expect_eq(stats().regions, 0);
	use(pages, PAGE, 0);
	cr_expect_eq(stats().regions, 1);
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
		use(many + i * PAGE, PAGE, 0);
		use(many + i * PAGE, PAGE, 0);
		use(many, PAGE, 0);
	}
	cr_expect_leq(stats().regions, FEW + 1);
	cr_expect_eq(stats().regions + stats().evictions, ROUNDS + 1);
	cr_expect_eq(stats().hits, ROUNDS - 2, "what is found stays");
}

Test(reused, what_peers_can_reach_is_not_kept)
{
	for (int i = 0; i < 3; i++)
		use(pages, PAGE, VERVE_NET_REMOTE_READ);
	cr_expect_eq(stats().regions, 0);
	cr_expect_eq(stats().misses, 3);
}
