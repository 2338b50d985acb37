/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows: a queue of idle windows and the binder. A bind that fails costs the binder: its queue
 * pair may be in the error state. The next call of open makes a new one.
 */
#include "mr/window.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mr/region.h"
#include "mr/window_trial.h"
#include "net/device.h"
#include "net/mw.h"
#include "net/sys.h"

/* Nanoseconds until a binder is opened again, after a failure that may pass. */
static const uint64_t pause_min = 1000000000, pause_max = 64000000000;

struct verve_mr_window {
	struct verve_mr_region region; /* must be first: cast to the window */
	struct verve_net_mw net;
	TAILQ_ENTRY(verve_mr_window) link; /* idle */
};

static const char *name_of(const struct verve_mr_windows *windows)
{
	return verve_net_device_port(windows->dev)->device;
}

void verve_mr_windows_init(struct verve_mr_windows *windows, struct verve_net_device *dev,
			   bool wanted)
{
	memset(windows, 0, sizeof(*windows));
	pthread_mutex_init(&windows->lock, NULL);
	TAILQ_INIT(&windows->idle);
	windows->dev = dev;
	windows->off = !wanted || !verve_net_device_port(dev)->limits.mw;
	if (wanted && windows->off)
		VERVE_INFO(MR,
			   "%s: the device has no memory windows: memory is registered each time "
			   "that it is opened to peers\n", name_of(windows));
}

void verve_mr_window_end(struct verve_net_device *dev, struct verve_net_mw *window,
			 struct verve_mr_region *base)
{
	const char *name = verve_net_device_port(dev)->device;
	uint32_t rkey = window->rkey;
	int ret = verve_net_mw_free(window);

	if (!ret)
		return;
	if (!base) {
		VERVE_WARN(MR, "%s: cannot free an unused memory window of key %#x: %s\n", name,
			   rkey, fi_strerror(-ret));
		return;
	}
	AO_store(&base->exposed, 1);
	VERVE_WARN(MR,
		   "%s: cannot free the memory window of key %#x: %s; peers may use the key until "
		   "%zu bytes at %p are deregistered, which is done after their last use now\n",
		   name, rkey, fi_strerror(-ret), base->len, base->addr);
}

/* base: the region to which the window may be bound; NULL: it is not bound. */
static void window_free(const struct verve_mr_windows *windows, struct verve_mr_window *window,
			struct verve_mr_region *base)
{
	verve_mr_window_end(windows->dev, &window->net, base);
	free(window);
}

void verve_mr_windows_fini(struct verve_mr_windows *windows)
{
	struct verve_mr_window *window;

	if (windows->binder)
		verve_net_binder_close(windows->binder);
	while ((window = TAILQ_FIRST(&windows->idle))) {
		TAILQ_REMOVE(&windows->idle, window, link);
		window_free(windows, window, NULL);
	}
	pthread_mutex_destroy(&windows->lock);
}

/*
 * The device was not tried, the binder did not open, or a bind or unbind failed; the log says
 * which. The lock is held.
 */
static void count_failure(struct verve_mr_windows *windows, int error)
{
	bool refused = verve_net_mw_is_answer(error), off;

	windows->refusals += refused;
	windows->stalls += error == -FI_ETIMEDOUT;
	off = windows->refusals == VERVE_MR_WINDOWS_TRIES ||
	      windows->stalls == VERVE_MR_WINDOWS_STALLS;
	if (off) {
		AO_store(&windows->off, 1);
		VERVE_WARN(MR,
			   "%s: the device %s memory windows: from now on memory is registered "
			   "each time that it is opened to peers\n", name_of(windows),
			   refused ? "refuses" : "does not answer for");
	} else if (!refused) {
		windows->retry_at = verve_net_now() + windows->pause;
		windows->pause = windows->pause ? 2 * windows->pause : pause_min;
		if (windows->pause > pause_max)
			windows->pause = pause_max;
		VERVE_INFO(MR, "%s: memory windows are tried again later\n", name_of(windows));
	}
}

/* A bind or unbind failed. Returns the binder, to be closed without the lock, which is held. */
static struct verve_net_binder *binder_failed(struct verve_mr_windows *windows, int error)
{
	struct verve_net_binder *binder = windows->binder;

	AO_store(&windows->open, 0);
	windows->binder = NULL;
	count_failure(windows, error);
	return binder;
}

/* No other thread opens. The lock is not held: opening takes a millisecond on some devices. */
static void binder_open(struct verve_mr_windows *windows)
{
	struct verve_net_binder *binder = NULL;
	bool atomics;
	int ret = windows->tried ? 0 : verve_mr_window_trial(windows->dev, &atomics);

	if (!windows->tried && !ret)
		AO_store(&windows->no_atomics, !atomics);
	windows->tried = !ret;
	if (!ret)
		ret = verve_net_binder_open(windows->dev, VERVE_NET_BINDER_PATIENCE, false,
					    &binder);
	pthread_mutex_lock(&windows->lock);
	windows->opening = false;
	windows->binder = ret ? NULL : binder;
	AO_store(&windows->open, !ret);
	if (ret == -FI_EPERM || ret == -FI_EOPNOTSUPP)
		AO_store(&windows->off, 1);
	else if (ret)
		count_failure(windows, ret);
	pthread_mutex_unlock(&windows->lock);
}

void verve_mr_windows_open(struct verve_mr_windows *windows)
{
	bool opens;

	if (verve_mr_windows_are_open(windows) || verve_mr_windows_are_off(windows))
		return;
	pthread_mutex_lock(&windows->lock);
	opens = !windows->binder && !windows->off && !windows->opening &&
		verve_net_now() >= windows->retry_at;
	windows->opening |= opens;
	pthread_mutex_unlock(&windows->lock);
	if (opens)
		binder_open(windows);
}

/* The lock is held. NULL: no memory, or the device has no more windows. */
static struct verve_mr_window *window_take(struct verve_mr_windows *windows)
{
	struct verve_mr_window *window;

	if (windows->idle_count < VERVE_MR_WINDOWS_REST) {
		window = malloc(sizeof(*window));
		if (window && !verve_net_mw_alloc(windows->dev, false, &window->net))
			return window;
		free(window);
	}
	window = TAILQ_FIRST(&windows->idle);
	if (window) {
		TAILQ_REMOVE(&windows->idle, window, link);
		windows->idle_count--;
	}
	return window;
}

/* The lock is held. */
static void window_rest(struct verve_mr_windows *windows, struct verve_mr_window *window)
{
	if (windows->idle_count == VERVE_MR_WINDOWS_IDLE) {
		window_free(windows, window, NULL);
		return;
	}
	TAILQ_INSERT_TAIL(&windows->idle, window, link);
	windows->idle_count++;
}

/* The lock is held. After an error, *windowp and *failed, if not NULL, are to be given up. */
static int window_bind(struct verve_mr_windows *windows, struct verve_mr_region *window,
		       struct verve_mr_window **windowp, struct verve_net_binder **failed)
{
	int ret;

	if (!windows->binder || !verve_mr_windows_may_bind(windows, window->access))
		return -FI_ENOENT;
	*windowp = window_take(windows);
	if (!*windowp)
		return -FI_ENOMEM;
	ret = verve_net_mw_bind(windows->binder, &(*windowp)->net, &window->base->net,
				window->addr, window->len, window->access);
	if (ret)
		*failed = binder_failed(windows, ret);
	else
		windows->pause = 0;
	return ret;
}

/*
 * A window that cannot be unbound is freed, which ends it, too. The binder goes first: else it
 * might bind the window later. If the window cannot be freed either, its base says so. The lock is
 * not held.
 */
static void window_give_up(struct verve_mr_windows *windows, struct verve_net_binder *failed,
			   struct verve_mr_window *window, struct verve_mr_region *base)
{
	if (failed)
		verve_net_binder_close(failed);
	if (window)
		window_free(windows, window, base);
}

int verve_mr_window_open(struct verve_mr_windows *windows, struct verve_mr_region *base, void *addr,
			 size_t len, unsigned access, struct verve_mr_region **region)
{
	const unsigned writes = VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC;
	struct verve_mr_region opened = {
		.addr = addr,
		.len = len,
		.access = access | (access & writes ? VERVE_NET_LOCAL_WRITE : 0),
		.lkey = base->lkey,
		.shift = base->shift,
		.base = base,
	};
	struct verve_net_binder *failed = NULL;
	struct verve_mr_window *window = NULL;
	int ret;

	pthread_mutex_lock(&windows->lock);
	ret = window_bind(windows, &opened, &window, &failed);
	pthread_mutex_unlock(&windows->lock);
	if (ret) {
		window_give_up(windows, failed, window, base);
		return ret;
	}
	opened.rkey = window->net.rkey;
	window->region = opened;
	*region = &window->region;
	return 0;
}

void verve_mr_window_close(struct verve_mr_windows *windows, struct verve_mr_region *region)
{
	struct verve_mr_window *window = (struct verve_mr_window *)region;
	struct verve_net_binder *failed = NULL;
	int ret = -FI_ENOENT;

	pthread_mutex_lock(&windows->lock);
	if (windows->binder) {
		ret = verve_net_mw_unbind(windows->binder, &window->net, &region->base->net,
					  region->addr);
		if (ret)
			failed = binder_failed(windows, ret);
		else
			window_rest(windows, window);
	}
	pthread_mutex_unlock(&windows->lock);
	if (ret)
		window_give_up(windows, failed, window, region->base);
}
