/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration cache: one per domain. It registers buffers that the application did not register,
 * and the application's own regions.
 *
 * A registration that is given back stays in the cache, idle, until its memory goes, or until it is
 * the least recently used one and others need its place. By default the cache keeps only buffers
 * that are used again and again (mr/reuse.h). Peers reach a kept registration through windows alone
 * (mr/window.h), from get to put. Where the device has no windows, memory for peers is registered
 * anew each time; or, if so configured, its registration is kept and stays open to them.
 *
 * A registration may outlive its mapping only if every unmap is reported. So where the monitor does
 * not open, for memory that it cannot watch, and while an event is unread, each get registers and
 * each put deregisters. From get to put a region belongs to its caller, even if its memory is
 * unmapped meanwhile. Any thread; see doc/registration.md.
 */
#ifndef VERVE_MR_CACHE_H
#define VERVE_MR_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "mr/cache_state.h"

struct verve_mr_region;
struct verve_net_device;

/*
 * Opens a cache as base/config.h says. Never fails: without memory or monitor the cache keeps no
 * registration. dev outlives the cache. The crossover is the one of verve_mr_costs_default.
 */
void verve_mr_cache_init(struct verve_mr_cache *cache, struct verve_net_device *dev);
/* Sets the crossover by the costs of the device, which are measured if they were not yet. */
void verve_mr_cache_measure(struct verve_mr_cache *cache);
/* Every region must have been given back. */
void verve_mr_cache_fini(struct verve_mr_cache *cache);

/*
 * Gets ready to open kept registrations to peers by windows, so that no get has to. May block for
 * milliseconds: not under an engine's lock. Without it, only verve_mr_cache_get_exact uses windows.
 */
void verve_mr_cache_prepare(struct verve_mr_cache *cache);

/*
 * Gets a region that contains addr to addr + len and grants at least access (VERVE_NET_*). Other
 * callers may get the same region. It may be larger and grant more; but peers can reach only bytes
 * for which some caller asked for that access. Never waits for another thread's registration. May
 * bind a window: that waits for the device, usually a microsecond, a second at most. The caller
 * gives it back with verve_mr_cache_put. Errors as verve_mr_region_open, but -FI_ENOMEM also for
 * memory that no device may use: the caller can copy it.
 */
int verve_mr_cache_get(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		       struct verve_mr_region **region);
/*
 * The same, but only if the cache has the region already, or registers it to keep it: memory that
 * is used again and again, and a range of at least crossover.keep bytes. -FI_ENOENT: neither, or
 * the memory cannot be registered; the caller can do without. For access of peers, a
 * window opens the region, of any length, where peers may not reach what is kept.
 */
int verve_mr_cache_get_kept(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
			    struct verve_mr_region **region);
/*
 * The same two for memory that one peer is to reach, over a queue pair that binds windows. The
 * region may be a window for a peer (region->peer_window; mr/peer_window.h): the caller binds
 * it (FRESH) and ends it. access: VERVE_NET_REMOTE_READ.
 */
int verve_mr_cache_get_for_peer(struct verve_mr_cache *cache, void *addr, size_t len,
				unsigned access, struct verve_mr_region **region);
int verve_mr_cache_get_kept_for_peer(struct verve_mr_cache *cache, void *addr, size_t len,
				     unsigned access, struct verve_mr_region **region);
/*
 * As verve_mr_cache_get, but the memory is registered for this one use, and the cache learns
 * nothing: for a part of memory that verve_mr_cache_get_kept did not find.
 */
int verve_mr_cache_get_once(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
			    struct verve_mr_region **region);
/* Which of the five functions above. */
enum verve_mr_how {
	VERVE_MR_ANY,
	VERVE_MR_KEPT,
	VERVE_MR_FOR_PEER,
	VERVE_MR_KEPT_FOR_PEER,
	VERVE_MR_ONCE,
	VERVE_MR_HOWS,
};
int verve_mr_cache_get_by(struct verve_mr_cache *cache, enum verve_mr_how how, void *addr,
			  size_t len, unsigned access, struct verve_mr_region **region);
/*
 * As verve_mr_cache_get, but the region has exactly that range and access, and no other caller gets
 * it until put. base: NULL; or peers reach the region by offset, as verve_mr_region_open_offset
 * explains. A region with base is never kept. Not under an engine's lock. Errors as
 * verve_mr_region_open.
 */
int verve_mr_cache_get_exact(struct verve_mr_cache *cache, void *addr, size_t len,
			     unsigned access, uint32_t *base, struct verve_mr_region **region);
/*
 * Gives a region back. No request of the caller may use it any more. When put returns, peers cannot
 * reach it by its key, unless registrations that grant remote access are kept; or unless the device
 * ends no window: then until all callers have given back what they got of the same kept
 * registration, which serves no further get, and the log says so. May unbind a window, and waits as
 * get does; if that fails, closes the binder's queue pair.
 */
void verve_mr_cache_put(struct verve_mr_cache *cache, struct verve_mr_region *region);

/* Counts since init; regions and bytes are the present values. */
struct verve_mr_cache_stats {
	uint64_t hits, misses, failures; /* gets: already registered; registered now; failed */
	uint64_t unkept;		 /* misses whose region could not be kept */
	uint64_t evictions;		 /* entries that lost their place to others */
	uint64_t invalidations;		 /* entries whose memory went */
	uint64_t regions, bytes;	 /* regions in use or kept; bytes that they pin */
};
void verve_mr_cache_stats_get(const struct verve_mr_cache *cache,
			      struct verve_mr_cache_stats *stats);

#endif
