/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration cache: see cache.h; passes through and counts. */
#include "mr/cache.h"

#include <assert.h>
#include <string.h>

#include "mr/region.h"

void verve_mr_cache_init(struct verve_mr_cache *cache, struct verve_net_device *dev)
{
	memset(cache, 0, sizeof(*cache));
	cache->dev = dev;
}

void verve_mr_cache_fini(struct verve_mr_cache *cache)
{
	assert(!AO_load(&cache->regions));
	(void)cache;
}

int verve_mr_cache_get(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		       struct verve_mr_region **region)
{
	int ret = verve_mr_region_open(cache->dev, addr, len, access, region);

	if (ret) {
		AO_fetch_and_add1(&cache->failures);
		return ret;
	}
	AO_fetch_and_add1(&cache->misses);
	AO_fetch_and_add1(&cache->regions);
	AO_fetch_and_add(&cache->bytes, (*region)->len);
	return 0;
}

void verve_mr_cache_put(struct verve_mr_cache *cache, struct verve_mr_region *region)
{
	AO_fetch_and_sub1(&cache->regions);
	AO_fetch_and_add(&cache->bytes, -(AO_t)region->len);
	verve_mr_region_close(region);
}

void verve_mr_cache_stats_get(const struct verve_mr_cache *cache,
			      struct verve_mr_cache_stats *stats)
{
	stats->misses = AO_load(&cache->misses);
	stats->failures = AO_load(&cache->failures);
	stats->regions = AO_load(&cache->regions);
	stats->bytes = AO_load(&cache->bytes);
}
