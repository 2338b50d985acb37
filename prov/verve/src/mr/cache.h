/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration cache: one per domain; where regions come from: for buffers that the application did
 * not register, and for those that it did.
 *
 * What comes back is kept, idle, until it is the one not used for longest and others need its
 * place, or its memory went; by default, only what is used again (mr/reuse.h), and while it is. A region may outlive its mapping only where every unmap is heard:
 * where the monitor does not open, for memory that it cannot watch, and while it has an event
 * under way, each get registers and each put deregisters. A region is its caller's from get to
 * put, whatever happens to the mapping. Any thread.
 */
#ifndef VERVE_MR_CACHE_H
#define VERVE_MR_CACHE_H

#include <atomic_ops.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mr/monitor.h"
#include "mr/odp.h"

struct verve_mr_region;
struct verve_mr_reuse;
struct verve_mr_store;
struct verve_net_device;

struct verve_mr_cache {
	struct verve_mr_listener listener; /* first */
	struct verve_net_device *dev;
	struct verve_mr_store *store; /* what it keeps; NULL: nothing */
	struct verve_mr_reuse *reuse; /* which of what it may; NULL: all */
	uintptr_t page;		      /* bytes */
	bool strict;		      /* keeps nothing that peers can reach */
	struct verve_mr_odp odp;      /* with it, nothing needs keeping */
	volatile AO_t spared; /* by the region of all memory */
	volatile AO_t misses, failures, unkept, invalidations;
	volatile AO_t regions; /* out or kept */
	volatile AO_t bytes;   /* pinned by those */
};

/* As the configuration says (base/config.h). Without memory, or a monitor, it keeps nothing. */
void verve_mr_cache_init(struct verve_mr_cache *cache, struct verve_net_device *dev);
/* Every region must have come back. */
void verve_mr_cache_fini(struct verve_mr_cache *cache);

/*
 * A region that contains addr to addr + len and grants at least access (VERVE_NET_*); others may
 * have it, too. It may be larger and grant more, but lets peers reach no byte that nobody asked for
 * with that access. Never waits for another thread's registration. Errors as verve_mr_region_open.
 */
int verve_mr_cache_get(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		       struct verve_mr_region **region);
/*
 * The same, but exactly that range and access, and nobody else has it. base: NULL, or peers reach
 * it by offset, as verve_mr_region_open_offset; such a region is not kept.
 */
int verve_mr_cache_get_exact(struct verve_mr_cache *cache, void *addr, size_t len,
			     unsigned access, uint32_t *base, struct verve_mr_region **region);
/* Nothing may use the region on the caller's behalf any more. */
void verve_mr_cache_put(struct verve_mr_cache *cache, struct verve_mr_region *region);

/* Counts since init, except regions and bytes, which are as of now. */
struct verve_mr_cache_stats {
	uint64_t hits, misses, failures; /* gets that registered nothing; did; could not */
	uint64_t unkept;		 /* misses whose region was to be kept, and could not be */
	uint64_t evictions, invalidations;
	uint64_t regions, bytes;
};
void verve_mr_cache_stats_get(const struct verve_mr_cache *cache,
			      struct verve_mr_cache_stats *stats);

#endif
