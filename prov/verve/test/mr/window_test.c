/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Windows: which one is used next, and what happens when the device does not bind. */
#include "cache_fixture.h"
#include "mr/peer_window.h"
#include "mr/window.h"
#include "net/device.h"
#include <rdma/fi_errno.h>

#define SECOND 1000000000ull
#define LONGEST (64 * SECOND) /* until a binder is tried again */

static struct verve_mr_windows windows;
static struct verve_mr_region *base;

static void setup(void)
{
	fake_world.config.limits.mw = 100;
	fake_world.config.limits.mw_peer = true;
	cache_open();
	verve_mr_windows_init(&windows, dev, true);
	cr_assert_eq(verve_mr_region_open(dev, pages, 4 * PAGE,
					  VERVE_NET_LOCAL_WRITE | VERVE_NET_WINDOWS, &base), 0);
	verve_mr_windows_open(&windows);
}

static void teardown(void)
{
	verve_mr_windows_fini(&windows);
	verve_mr_region_close(base);
	cache_close();
}

TestSuite(window, .init = setup, .fini = teardown);

static struct verve_mr_region *open_window(size_t at, size_t len, unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_window_open(&windows, base, pages + at, len, access, &region), 0);
	return region;
}

static bool opens(uint32_t rkey, size_t at, uint32_t len, unsigned access)
{
	return fake_rkey_covers(dev, rkey, (uintptr_t)pages + at, len, access);
}

static int bind_error(void)
{
	struct verve_mr_region *region;

	return verve_mr_window_open(&windows, base, pages, 1, VERVE_NET_REMOTE_READ, &region);
}

Test(window, opens_its_bytes_until_it_is_closed)
{
	struct verve_mr_region *region = open_window(10, 20, VERVE_NET_REMOTE_WRITE);
	uint32_t rkey = region->rkey;

	cr_expect_eq(region->addr, pages + 10);
	cr_expect_eq(region->len, 20);
	cr_expect_eq(region->access, VERVE_NET_REMOTE_WRITE | VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(region->lkey, base->lkey);
	cr_expect_eq(region->shift, 0);
	cr_expect(opens(rkey, 10, 20, VERVE_NET_REMOTE_WRITE));
	cr_expect_not(opens(rkey, 10, 20, VERVE_NET_REMOTE_READ));
	cr_expect_not(opens(rkey, 9, 1, VERVE_NET_REMOTE_WRITE));
	cr_expect_not(opens(rkey, 29, 2, VERVE_NET_REMOTE_WRITE));
	verve_mr_window_close(&windows, region);
	cr_expect_not(opens(rkey, 10, 20, VERVE_NET_REMOTE_WRITE));
}

/* Sets up anew over a device of this kind. */
static void open_anew(bool stale, bool bounds)
{
	verve_mr_windows_fini(&windows);
	fake_world.config.mw_stale = stale;
	fake_world.config.limits.mw_bounds = bounds;
	verve_mr_windows_init(&windows, dev, true);
	verve_mr_windows_open(&windows);
}

Test(window, device_whose_old_keys_live_on_gets_none)
{
	open_anew(true, true);
	cr_expect(verve_mr_windows_are_off(&windows));
	cr_expect_eq(bind_error(), -FI_ENOENT);
}

/* The device says that it looks at a window's bounds, and does not. */
Test(window, device_that_opens_more_than_was_asked_gets_none)
{
	open_anew(false, false);
	cr_expect(verve_mr_windows_are_off(&windows));
	cr_expect_eq(bind_error(), -FI_ENOENT);
}

Test(window, device_is_tried_once)
{
	uint64_t binds = fake_world.stats.binds;

	fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_EIO);
	cr_expect_eq(bind_error(), -FI_EIO);
	verve_mr_windows_open(&windows);
	cr_expect(verve_mr_windows_are_open(&windows));
	cr_expect_eq(fake_world.stats.binds, binds);
}

/* A key counts in 8 bits at mlx5: the window that was closed last must not be the next. */
Test(window, rests_before_it_is_used_again)
{
	enum { ROUNDS = 10 * VERVE_MR_WINDOWS_REST };
	const struct verve_mr_region *used[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		struct verve_mr_region *region = open_window(0, PAGE, VERVE_NET_REMOTE_READ);

		for (int j = i < VERVE_MR_WINDOWS_REST ? 0 : i - VERVE_MR_WINDOWS_REST + 1; j < i;
		     j++)
			cr_expect_neq(used[j], region, "use %d is that of %d", i, j);
		used[i] = region;
		verve_mr_window_close(&windows, region);
	}
	cr_expect_eq(fake_world.open[FAKE_MW], VERVE_MR_WINDOWS_REST);
}

Test(window, devices_last_is_the_last)
{
	struct verve_mr_region *region[100];

	for (int i = 0; i < 100; i++)
		region[i] = open_window((size_t)i, 1, VERVE_NET_REMOTE_READ);
	cr_expect_eq(bind_error(), -FI_ENOMEM);
	verve_mr_window_close(&windows, region[7]);
	region[7] = open_window(7, 1, VERVE_NET_REMOTE_READ);
	cr_expect_eq(bind_error(), -FI_ENOMEM);
	for (int i = 0; i < 100; i++) {
		cr_expect(opens(region[i]->rkey, (size_t)i, 1, VERVE_NET_REMOTE_READ));
		verve_mr_window_close(&windows, region[i]);
	}
}

Test(window, failed_bind_takes_a_new_binder)
{
	struct verve_mr_region *before = open_window(0, 8, VERVE_NET_REMOTE_READ), *after;

	fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_EIO);
	cr_expect_eq(bind_error(), -FI_EIO);
	cr_expect_not(verve_mr_windows_are_open(&windows));
	cr_expect_not(verve_mr_windows_are_off(&windows));
	cr_expect_eq(fake_world.open[FAKE_BINDER], 0);
	cr_expect_eq(bind_error(), -FI_ENOENT);
	verve_mr_windows_open(&windows);
	cr_expect(verve_mr_windows_are_open(&windows));
	after = open_window(8, 8, VERVE_NET_REMOTE_READ);
	cr_expect(opens(before->rkey, 0, 8, VERVE_NET_REMOTE_READ));
	cr_expect(opens(after->rkey, 8, 8, VERVE_NET_REMOTE_READ));
	verve_mr_window_close(&windows, before);
	verve_mr_window_close(&windows, after);
}

/* With and without a binder. */
Test(window, is_closed_even_if_it_cannot_be_unbound)
{
	struct verve_mr_region *one = open_window(0, 8, VERVE_NET_REMOTE_READ);
	struct verve_mr_region *two = open_window(8, 8, VERVE_NET_REMOTE_READ);
	uint32_t first = one->rkey, second = two->rkey;

	fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_ETIMEDOUT);
	verve_mr_window_close(&windows, one);
	cr_expect_not(opens(first, 0, 8, VERVE_NET_REMOTE_READ));
	cr_expect_eq(fake_world.open[FAKE_BINDER], 0);
	verve_mr_window_close(&windows, two);
	cr_expect_not(opens(second, 8, 8, VERVE_NET_REMOTE_READ));
	cr_expect_eq(fake_world.open[FAKE_MW], 0);
}

Test(window, device_that_fails_again_and_again_is_given_up)
{
	for (int i = 0; i < VERVE_MR_WINDOWS_TRIES; i++) {
		cr_expect_not(verve_mr_windows_are_off(&windows));
		verve_mr_windows_open(&windows);
		fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_EIO);
		cr_expect_eq(bind_error(), -FI_EIO);
	}
	cr_expect(verve_mr_windows_are_off(&windows));
	verve_mr_windows_open(&windows);
	cr_expect_not(verve_mr_windows_are_open(&windows));
	cr_expect_eq(bind_error(), -FI_ENOENT);
}

/* Shortages, ports that are down and processes that stand still say nothing about windows. */
Test(window, device_that_does_not_answer_is_not_given_up)
{
	for (int i = 0; i < 3 * VERVE_MR_WINDOWS_TRIES; i++) {
		verve_mr_windows_open(&windows);
		cr_assert(verve_mr_windows_are_open(&windows));
		fake_net_fail(FAKE_NET_MW_BIND, 1, i % 2 ? -FI_ETIMEDOUT : -FI_ECONNABORTED);
		cr_expect_lt(bind_error(), 0);
		cr_expect_not(verve_mr_windows_are_open(&windows));
		fake_net_advance(LONGEST);
	}
	verve_mr_windows_open(&windows);
	verve_mr_window_close(&windows, open_window(0, 8, VERVE_NET_REMOTE_READ));
}

/* Each time a thread waits for a second. */
Test(window, device_that_often_does_not_answer_is_given_up)
{
	for (int i = 0; i < VERVE_MR_WINDOWS_STALLS; i++) {
		verve_mr_windows_open(&windows);
		cr_assert(verve_mr_windows_are_open(&windows));
		verve_mr_window_close(&windows, open_window(0, 8, VERVE_NET_REMOTE_READ));
		fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_ETIMEDOUT);
		cr_expect_eq(bind_error(), -FI_ETIMEDOUT);
		fake_net_advance(LONGEST);
	}
	cr_expect(verve_mr_windows_are_off(&windows));
}

Test(window, binder_that_does_not_open_is_tried_again)
{
	struct verve_mr_windows others;

	verve_mr_windows_init(&others, dev, true);
	for (int i = 0; i < 3 * VERVE_MR_WINDOWS_TRIES; i++) {
		fake_net_fail(FAKE_NET_BINDER_OPEN, 1, -FI_ENOMEM);
		verve_mr_windows_open(&others);
		cr_expect(fake_net_has_failed());
		cr_expect_not(verve_mr_windows_are_open(&others));
		cr_expect_not(verve_mr_windows_are_off(&others));
		fake_net_advance(LONGEST);
	}
	verve_mr_windows_open(&others);
	cr_expect(verve_mr_windows_are_open(&others));
	verve_mr_windows_fini(&others);
}

/* Opening takes long on some devices, and an application may register memory often. */
Test(window, binder_that_does_not_open_twice_is_left_alone_for_a_while)
{
	struct verve_mr_windows others;

	verve_mr_windows_init(&others, dev, true);
	for (int i = 0; i < 2; i++) {
		fake_net_fail(FAKE_NET_BINDER_OPEN, 1, -FI_ENOMEM);
		verve_mr_windows_open(&others);
		cr_expect(fake_net_has_failed());
	}
	verve_mr_windows_open(&others);
	cr_expect_not(verve_mr_windows_are_open(&others));
	fake_net_advance(SECOND);
	verve_mr_windows_open(&others);
	cr_expect(verve_mr_windows_are_open(&others));
	verve_mr_windows_fini(&others);
}

static int looks;

static void look_at_lock(void *arg)
{
	struct verve_mr_windows *of = arg;

	cr_assert_eq(pthread_mutex_trylock(&of->lock), 0, "a queue pair closes under the lock");
	pthread_mutex_unlock(&of->lock);
	looks++;
}

/* Opening has a trial, which closes queue pairs. */
Test(window, lock_is_free_while_queue_pairs_open_and_close)
{
	struct verve_mr_region *region = open_window(0, 8, VERVE_NET_REMOTE_READ);
	struct verve_mr_windows others;

	verve_mr_windows_init(&others, dev, true);
	fake_net_on_close(look_at_lock, &others);
	verve_mr_windows_open(&others);
	cr_expect_gt(looks, 0);
	looks = 0;
	fake_net_on_close(look_at_lock, &windows);
	fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_EIO);
	cr_expect_eq(bind_error(), -FI_EIO);
	verve_mr_windows_open(&windows);
	fake_net_fail(FAKE_NET_MW_BIND, 1, -FI_EIO);
	verve_mr_window_close(&windows, region);
	cr_expect_gt(looks, 3);
	fake_net_on_close(NULL, NULL);
	verve_mr_windows_fini(&others);
}

/* A second thread comes while the first one opens: it registers its memory instead. */
static void open_again(void *arg)
{
	fake_net_on_close(NULL, NULL);
	verve_mr_windows_open(arg);
	cr_expect_not(verve_mr_windows_are_open(arg));
	looks++;
}

Test(window, one_thread_opens_at_a_time)
{
	struct verve_mr_windows others;

	verve_mr_windows_init(&others, dev, true);
	fake_net_on_close(open_again, &others);
	verve_mr_windows_open(&others);
	cr_expect_eq(looks, 1);
	cr_expect(verve_mr_windows_are_open(&others));
	verve_mr_windows_fini(&others);
}

Test(window, device_without_windows_is_not_asked)
{
	struct verve_mr_windows others;

	((struct verve_net_port *)verve_net_device_port(dev))->limits.mw = 0;
	verve_mr_windows_init(&others, dev, true);
	cr_expect(verve_mr_windows_are_off(&others));
	verve_mr_windows_open(&others);
	cr_expect_not(verve_mr_windows_are_open(&others));
	verve_mr_windows_fini(&others);
}

/* Opens windows for a peer; returns true if the device keeps their promises. */
static bool try_for_peer(void)
{
	struct verve_mr_peer_windows peers;
	bool open;

	verve_mr_peer_windows_init(&peers, dev);
	verve_mr_peer_windows_open(&peers);
	open = verve_mr_peer_windows_are_open(&peers);
	verve_mr_peer_windows_fini(&peers);
	return open;
}

Test(window, for_a_peer_are_tried)
{
	cr_expect(try_for_peer());
	fake_world.config.mw_for_all = true;
	cr_expect_not(try_for_peer(), "other peers can use the key");
	fake_world.config.mw_for_all = false;
	fake_world.config.mw_stale = true;
	cr_expect_not(try_for_peer(), "the key lives on");
	fake_world.config.mw_stale = false;
	((struct verve_net_port *)verve_net_device_port(dev))->limits.mw_peer = false;
	cr_expect_not(try_for_peer(), "the device has none");
}

/* What says nothing about windows does not end them. */
Test(window, trial_for_a_peer_that_could_not_be_made_is_made_again)
{
	struct verve_mr_peer_windows peers;

	verve_mr_peer_windows_init(&peers, dev);
	fake_net_fail(FAKE_NET_BINDER_OPEN, 1, -FI_ENOMEM);
	verve_mr_peer_windows_open(&peers);
	cr_expect_not(verve_mr_peer_windows_are_open(&peers));
	verve_mr_peer_windows_open(&peers);
	cr_expect(verve_mr_peer_windows_are_open(&peers));
	verve_mr_peer_windows_fini(&peers);
}
