/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a cache gives and takes without the device: a thread that holds an engine's lock asks here
 * first, and calls the functions of mr/cache.h, which may take long, once it has released the lock.
 * Nothing here waits for the device; the kernel may be asked whether memory was unmapped. Any
 * thread.
 */
#ifndef VERVE_MR_CACHE_FIND_H
#define VERVE_MR_CACHE_FIND_H

#include <stddef.h>

#include "mr/cache.h"

struct verve_mr_region;

/*
 * 0: as verve_mr_cache_get_by, whose region is at hand. -FI_ENOENT: that would return the same, at
 * once. -FI_EAGAIN: only that can tell, and may take long.
 */
int verve_mr_cache_find(struct verve_mr_cache *cache, enum verve_mr_how how, void *addr, size_t len,
			unsigned access, struct verve_mr_region **region);
/*
 * NULL: as verve_mr_cache_put. Else the caller has yet to call verve_mr_cache_put, which may take
 * long, with the region that is returned: this one, or the one beneath its window.
 */
struct verve_mr_region *verve_mr_cache_put_at_once(struct verve_mr_cache *cache,
						   struct verve_mr_region *region);

#endif
