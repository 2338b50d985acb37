/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Windows for a peer: a queue of idle windows, and the life of one. */
#include "mr/peer_window.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mr/region.h"
#include "mr/window.h"
#include "mr/window_trial.h"
#include "net/device.h"
#include "net/mw.h"
#include "net/qp.h"

struct verve_mr_peer_window {
	struct verve_mr_region region; /* must be first: cast to the window */
	struct verve_net_mw net;
	TAILQ_ENTRY(verve_mr_peer_window) link; /* idle */
};

void verve_mr_peer_windows_init(struct verve_mr_peer_windows *windows, struct verve_net_device *dev)
{
	memset(windows, 0, sizeof(*windows));
	pthread_mutex_init(&windows->lock, NULL);
	TAILQ_INIT(&windows->idle);
	windows->dev = dev;
}

/* The window that rests longest, if at least so many rest; or NULL. */
static struct verve_mr_peer_window *take_idle(struct verve_mr_peer_windows *windows, uint32_t least)
{
	struct verve_mr_peer_window *window = NULL;

	pthread_mutex_lock(&windows->lock);
	if (windows->idle_count >= least)
		window = TAILQ_FIRST(&windows->idle);
	if (window) {
		TAILQ_REMOVE(&windows->idle, window, link);
		windows->idle_count--;
	}
	pthread_mutex_unlock(&windows->lock);
	return window;
}

void verve_mr_peer_windows_fini(struct verve_mr_peer_windows *windows)
{
	struct verve_mr_peer_window *window;

	while ((window = take_idle(windows, 0))) {
		verve_mr_window_end(windows->dev, &window->net, NULL);
		free(window);
	}
	pthread_mutex_destroy(&windows->lock);
}

/* Returns the value before. */
static bool set_tried(struct verve_mr_peer_windows *windows, bool tried)
{
	bool before;

	pthread_mutex_lock(&windows->lock);
	before = windows->tried;
	windows->tried = tried;
	pthread_mutex_unlock(&windows->lock);
	return before;
}

void verve_mr_peer_windows_open(struct verve_mr_peer_windows *windows)
{
	int ret;

	if (!verve_net_device_port(windows->dev)->limits.mw_peer || set_tried(windows, true))
		return;
	ret = verve_mr_window_trial_for_peer(windows->dev);
	if (!ret)
		AO_store(&windows->open, 1);
	else if (!verve_net_mw_is_answer(ret))
		set_tried(windows, false);
}

void verve_mr_peer_windows_refused(struct verve_mr_peer_windows *windows)
{
	if (!verve_mr_peer_windows_are_open(windows))
		return;
	AO_store(&windows->open, 0);
	VERVE_WARN(MR,
		   "%s: the device refuses to bind a memory window for a peer: from now on windows "
		   "for all peers are used\n", verve_net_device_port(windows->dev)->device);
}

static struct verve_mr_peer_window *window_alloc(struct verve_mr_peer_windows *windows)
{
	struct verve_mr_peer_window *window = malloc(sizeof(*window));

	if (window && !verve_net_mw_alloc(windows->dev, true, &window->net))
		return window;
	free(window);
	return NULL;
}

static struct verve_mr_region *begin(struct verve_mr_peer_window *window,
				     struct verve_mr_region *base, void *addr, size_t len)
{
	window->region = (struct verve_mr_region){
		.addr = addr,
		.len = len,
		.access = VERVE_NET_REMOTE_READ,
		.lkey = base->lkey,
		.rkey = verve_net_mw_next_key(&window->net),
		.shift = base->shift,
		.base = base,
		.peer_window = VERVE_MR_PEER_FRESH,
	};
	return &window->region;
}

int verve_mr_peer_window_find(struct verve_mr_peer_windows *windows, struct verve_mr_region *base,
			      void *addr, size_t len, struct verve_mr_region **region)
{
	struct verve_mr_peer_window *window = take_idle(windows, VERVE_MR_WINDOWS_REST);

	if (!window)
		return -FI_ENOENT;
	*region = begin(window, base, addr, len);
	return 0;
}

int verve_mr_peer_window_get(struct verve_mr_peer_windows *windows, struct verve_mr_region *base,
			     void *addr, size_t len, struct verve_mr_region **region)
{
	struct verve_mr_peer_window *window;

	if (!verve_mr_peer_window_find(windows, base, addr, len, region))
		return 0;
	window = window_alloc(windows);
	if (!window)
		window = take_idle(windows, 0);
	if (!window)
		return -FI_ENOMEM;
	*region = begin(window, base, addr, len);
	return 0;
}

static struct verve_mr_peer_window *window_of(const struct verve_mr_region *region)
{
	assert(region->peer_window != VERVE_MR_NO_PEER_WINDOW);
	return (struct verve_mr_peer_window *)region;
}

void verve_mr_peer_window_free(struct verve_mr_peer_windows *windows,
			       struct verve_mr_region *region)
{
	if (region->peer_window != VERVE_MR_PEER_BOUND &&
	    region->peer_window != VERVE_MR_PEER_CLOSING)
		return;
	verve_mr_window_end(windows->dev, &window_of(region)->net, region->base);
	region->peer_window = VERVE_MR_PEER_FREED;
}

/* False: enough windows rest. */
static bool rest(struct verve_mr_peer_windows *windows, struct verve_mr_peer_window *window)
{
	bool rests;

	pthread_mutex_lock(&windows->lock);
	rests = windows->idle_count < VERVE_MR_WINDOWS_IDLE;
	if (rests) {
		TAILQ_INSERT_TAIL(&windows->idle, window, link);
		windows->idle_count++;
	}
	pthread_mutex_unlock(&windows->lock);
	return rests;
}

bool verve_mr_peer_window_rest(struct verve_mr_peer_windows *windows,
			       struct verve_mr_region *region)
{
	return (region->peer_window == VERVE_MR_PEER_FRESH ||
		region->peer_window == VERVE_MR_PEER_ENDED) && rest(windows, window_of(region));
}

void verve_mr_peer_window_put(struct verve_mr_peer_windows *windows,
			      struct verve_mr_region *region)
{
	struct verve_mr_peer_window *window = window_of(region);

	verve_mr_peer_window_free(windows, region);
	if (region->peer_window == VERVE_MR_PEER_FREED) {
		free(window);
	} else if (!rest(windows, window)) {
		verve_mr_window_end(windows->dev, &window->net, NULL);
		free(window);
	}
}

void verve_mr_peer_window_describe(const struct verve_mr_region *region,
				   struct verve_net_bind *bind)
{
	*bind = (struct verve_net_bind){
		.mw = &window_of(region)->net,
		.mr = &region->base->net,
		.addr = region->addr,
		.len = region->len,
		.access = region->access,
	};
}

void verve_mr_peer_window_posted(struct verve_mr_region *region)
{
	assert(region->peer_window == VERVE_MR_PEER_FRESH);
	verve_net_mw_posted(&window_of(region)->net);
	region->peer_window = VERVE_MR_PEER_BOUND;
}

void verve_mr_peer_window_closing(struct verve_mr_region *region)
{
	assert(region->peer_window == VERVE_MR_PEER_BOUND);
	region->peer_window = VERVE_MR_PEER_CLOSING;
}

void verve_mr_peer_window_ended(struct verve_mr_region *region)
{
	assert(region->peer_window == VERVE_MR_PEER_CLOSING);
	region->peer_window = VERVE_MR_PEER_ENDED;
}
