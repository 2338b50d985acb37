/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A registration cache's state, for its own files (mr/cache.h). Users of the cache read the
 * crossover, and whether odp is on.
 */
#ifndef VERVE_MR_CACHE_STATE_H
#define VERVE_MR_CACHE_STATE_H

#include <atomic_ops.h>
#include <stdbool.h>
#include <stdint.h>

#include "mr/costs.h"
#include "mr/monitor.h"
#include "mr/odp.h"
#include "mr/peer_window.h"
#include "mr/window.h"

struct verve_mr_reuse;
struct verve_mr_store;
struct verve_net_device;

struct verve_mr_cache {
	struct verve_mr_listener listener; /* must be first: cast to the cache */
	struct verve_net_device *dev;
	struct verve_mr_store *store; /* the kept registrations; NULL: none is kept */
	struct verve_mr_reuse *reuse; /* which ranges are worth keeping; NULL: all */
	uintptr_t page;		      /* bytes of a page */
	bool keeps_remote;	      /* registrations that grant remote access are kept, too */
	struct verve_mr_odp odp;      /* if on, no registration is kept */
	struct verve_mr_windows windows; /* for kept registrations that grant no remote access */
	struct verve_mr_peer_windows peer_windows; /* for the same, opened to one peer */
	struct verve_mr_crossover crossover; /* constant while endpoints are open */
	volatile AO_t spared; /* gets that were served by the region of all memory */
	volatile AO_t misses, failures, unkept, invalidations; /* verve_mr_cache_stats */
	volatile AO_t regions; /* regions that are in use or kept */
	volatile AO_t bytes;   /* bytes that those regions pin */
};

#endif
