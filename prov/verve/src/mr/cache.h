/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration cache: one per domain; where the provider gets regions for buffers that the
 * application did not register.
 *
 * It keeps nothing: every get registers and every put deregisters, because a region may outlive its
 * mapping only where every unmap is seen, and no monitor proves that here. A cache that keeps
 * entries publishes each one as pending before it registers and compares the monitor's generation
 * after; what was invalidated in between goes back to nobody. Callers need not know: a region is
 * theirs from get to put, whatever happens to the mapping. Any thread.
 */
#ifndef VERVE_MR_CACHE_H
#define VERVE_MR_CACHE_H

#include <atomic_ops.h>
#include <stddef.h>
#include <stdint.h>

struct verve_mr_region;
struct verve_net_device;

struct verve_mr_cache {
	struct verve_net_device *dev;
	volatile AO_t misses, failures;
	volatile AO_t regions; /* out or kept */
	volatile AO_t bytes;   /* of those */
};

void verve_mr_cache_init(struct verve_mr_cache *cache, struct verve_net_device *dev);
/* Every region must have come back. */
void verve_mr_cache_fini(struct verve_mr_cache *cache);

/*
 * A region that contains addr to addr + len and grants at least access (VERVE_NET_*); it may be
 * larger and grant more. Never waits for another thread's registration. Errors as
 * verve_mr_region_open.
 */
int verve_mr_cache_get(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		       struct verve_mr_region **region);
/* Nothing may use the region on the caller's behalf any more. */
void verve_mr_cache_put(struct verve_mr_cache *cache, struct verve_mr_region *region);

/* Counts since init, except regions and bytes, which are as of now. */
struct verve_mr_cache_stats {
	uint64_t misses, failures; /* gets that registered; that could not */
	uint64_t regions, bytes;
};
void verve_mr_cache_stats_get(const struct verve_mr_cache *cache,
			      struct verve_mr_cache_stats *stats);

#endif
