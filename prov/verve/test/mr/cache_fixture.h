/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of the registration cache: a cache on a device of the fake net. */
#ifndef VERVE_TEST_MR_CACHE_FIXTURE_H
#define VERVE_TEST_MR_CACHE_FIXTURE_H

#include <criterion/criterion.h>
#include <stddef.h>

#include "../support/fake_memory.h"
#include "../support/fake_world.h"
#include "base/config.h"
#include "mr/cache.h"
#include "mr/region.h"

enum { PAGE = 4096 };

extern struct verve_net_device *dev;
extern struct verve_mr_cache cache;
extern char pages[64 * PAGE]; /* begin at a page */

/* Opens a cache of the configured kind, for 8 regions or 16 pages. Closes it. */
void cache_open(void);
void cache_close(void);
/* Opens a cache that keeps regions: "on", unless the configuration says "strict". */
void cache_open_kept(void);
/* Opens the cache again, with room for all memory of the test. */
void cache_reopen_with_room(void);

/* Gets a region of these bytes, which must succeed. The caller puts it back. */
struct verve_mr_region *cache_get(void *addr, size_t len, unsigned access);
/* As cache_get, of exactly these bytes and this access. */
struct verve_mr_region *cache_get_exact(void *addr, size_t len, unsigned access);
/* Gets a region and puts it back. */
void cache_use(void *addr, size_t len, unsigned access);
struct verve_mr_cache_stats cache_stats(void);

#endif
