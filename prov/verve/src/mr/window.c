/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows: a queue of idle windows and the binder. A device that fails to bind loses the binder:
 * its queue pair may be in the error state. The next call of open makes a new one, a few times.
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

static void window_free(struct verve_mr_window *window)
{
	verve_net_mw_free(&window->net);
	free(window);
}

/* The lock is held. */
static void binder_close(struct verve_mr_windows *windows)
{
	AO_store(&windows->open, 0);
	if (windows->binder)
		verve_net_binder_close(windows->binder);
	windows->binder = NULL;
}

void verve_mr_windows_fini(struct verve_mr_windows *windows)
{
	struct verve_mr_window *window;

	binder_close(windows);
	while ((window = TAILQ_FIRST(&windows->idle))) {
		TAILQ_REMOVE(&windows->idle, window, link);
		window_free(window);
	}
	pthread_mutex_destroy(&windows->lock);
}

/* The binder did not open, or a bind or unbind failed, and the log says so. The lock is held. */
static void binder_failed(struct verve_mr_windows *windows)
{
	binder_close(windows);
	if (++windows->failures < VERVE_MR_WINDOWS_TRIES)
		return;
	AO_store(&windows->off, 1);
	VERVE_WARN(MR,
		   "%s: memory windows fail: from now on memory is registered each time that it "
		   "is opened to peers\n", name_of(windows));
}

/* The lock is held. */
static void binder_open(struct verve_mr_windows *windows)
{
	int ret = windows->tried ? 0 : verve_mr_window_trial(windows->dev);

	if (ret == -FI_EPERM || ret == -FI_EOPNOTSUPP) {
		AO_store(&windows->off, 1);
		return;
	}
	if (ret == -FI_ENOENT)
		return;
	windows->tried = !ret;
	if (!ret)
		ret = verve_net_binder_open(windows->dev, &windows->binder);
	if (ret) {
		windows->binder = NULL;
		binder_failed(windows);
		return;
	}
	AO_store(&windows->open, 1);
}

void verve_mr_windows_open(struct verve_mr_windows *windows)
{
	if (verve_mr_windows_are_open(windows) || verve_mr_windows_are_off(windows))
		return;
	pthread_mutex_lock(&windows->lock);
	if (!windows->binder && !windows->off)
		binder_open(windows);
	pthread_mutex_unlock(&windows->lock);
}

/* The lock is held. NULL: no memory, or the device has no more windows. */
static struct verve_mr_window *window_take(struct verve_mr_windows *windows)
{
	struct verve_mr_window *window;

	if (windows->idle_count < VERVE_MR_WINDOWS_REST) {
		window = malloc(sizeof(*window));
		if (window && !verve_net_mw_alloc(windows->dev, &window->net))
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
		window_free(window);
		return;
	}
	TAILQ_INSERT_TAIL(&windows->idle, window, link);
	windows->idle_count++;
}

/* The lock is held. */
static int window_bind(struct verve_mr_windows *windows, struct verve_mr_region *base, void *addr,
		       size_t len, unsigned access, struct verve_mr_window **windowp)
{
	struct verve_mr_window *window;
	int ret;

	if (!windows->binder)
		return -FI_ENOENT;
	window = window_take(windows);
	if (!window)
		return -FI_ENOMEM;
	ret = verve_net_mw_bind(windows->binder, &window->net, &base->net, addr, len, access);
	if (ret) {
		binder_failed(windows);
		window_free(window);
		return ret;
	}
	*windowp = window;
	return 0;
}

int verve_mr_window_open(struct verve_mr_windows *windows, struct verve_mr_region *base, void *addr,
			 size_t len, unsigned access, struct verve_mr_region **region)
{
	const unsigned writes = VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC;
	struct verve_mr_window *window;
	int ret;

	pthread_mutex_lock(&windows->lock);
	ret = window_bind(windows, base, addr, len, access, &window);
	pthread_mutex_unlock(&windows->lock);
	if (ret)
		return ret;
	window->region = (struct verve_mr_region) {
		.addr = addr,
		.len = len,
		.access = access | (access & writes ? VERVE_NET_LOCAL_WRITE : 0),
		.lkey = base->lkey,
		.rkey = window->net.rkey,
		.shift = base->shift,
		.base = base,
	};
	*region = &window->region;
	return 0;
}

/*
 * A window that cannot be unbound is freed, which ends it, too. The binder goes first: else it
 * might bind the window later.
 */
void verve_mr_window_close(struct verve_mr_windows *windows, struct verve_mr_region *region)
{
	struct verve_mr_window *window = (struct verve_mr_window *)region;
	bool unbound = false;

	pthread_mutex_lock(&windows->lock);
	if (windows->binder) {
		unbound = !verve_net_mw_unbind(windows->binder, &window->net, &region->base->net,
					       region->addr);
		if (!unbound)
			binder_failed(windows);
	}
	if (unbound)
		window_rest(windows, window);
	else
		window_free(window);
	pthread_mutex_unlock(&windows->lock);
}
