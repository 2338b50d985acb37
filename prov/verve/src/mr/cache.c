/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration cache. A get that misses publishes its entry, watches the memory, registers, and
 * only then asks whether anything went in the meantime: in any other order, an unmap could fall
 * between.
 */
#include "mr/cache.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "mr/region.h"
#include "mr/reuse.h"
#include "mr/store.h"

static const unsigned remote = VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE |
			       VERVE_NET_REMOTE_ATOMIC;

/* Beside negative errors. It is for one use: keeping it is not worth it, or not possible. */
enum { NOT_WORTH = 1, NOT_KEPT = 2 };

static uintptr_t page_down(const struct verve_mr_cache *cache, uintptr_t addr)
{
	return addr & -cache->page;
}

/* 0 where memory ends. */
static uintptr_t page_up(const struct verve_mr_cache *cache, uintptr_t addr)
{
	return page_down(cache, addr + cache->page - 1);
}

/* In the watch's thread: unlinks, no more. */
static void gone(struct verve_mr_listener *listener, uintptr_t start, uintptr_t end)
{
	struct verve_mr_cache *cache = (struct verve_mr_cache *)listener;

	size_t count = verve_mr_store_invalidate(cache->store, start, end);

	AO_fetch_and_add(&cache->invalidations, count);
}

void verve_mr_cache_init(struct verve_mr_cache *cache, struct verve_net_device *dev)
{
	memset(cache, 0, sizeof(*cache));
	cache->dev = dev;
	cache->page = sysconf(_SC_PAGESIZE);
	cache->listener.gone = gone;
	cache->strict = strcmp(verve_config.mr_cache, "on") != 0;
	verve_mr_odp_open(&cache->odp, dev);
	if (cache->odp.on || !strcmp(verve_config.mr_cache, "off") || !verve_config.mr_cache_count)
		return;
	if (!strcmp(verve_config.mr_cache, "auto")) {
		cache->reuse = calloc(1, sizeof(*cache->reuse));
		if (!cache->reuse)
			return;
	}
	cache->store = verve_mr_store_open(verve_config.mr_cache_count, verve_config.mr_cache_size);
	if (cache->store && verve_mr_monitor_add(&cache->listener)) {
		verve_mr_store_close(cache->store);
		cache->store = NULL;
	}
}

static AO_t pinned(const struct verve_mr_region *region)
{
	return region->access & VERVE_NET_ON_DEMAND ? 0 : region->len;
}

static void close_region(struct verve_mr_cache *cache, struct verve_mr_region *region)
{
	AO_fetch_and_sub1(&cache->regions);
	AO_fetch_and_add(&cache->bytes, -pinned(region));
	verve_mr_region_close(region);
}

static void free_entry(struct verve_mr_cache *cache, struct verve_mr_entry *entry)
{
	if (cache->reuse && verve_mr_store_found(entry) >= VERVE_MR_REUSE_PAYS)
		verve_mr_reuse_paid(cache->reuse, &(struct verve_mr_want){
							  entry->node.start, entry->node.end,
							  entry->access, entry->exact});
	if (entry->region)
		close_region(cache, entry->region);
	entry->region = NULL;
	verve_mr_store_free(cache->store, entry);
}

/* What evictions and the monitor left behind. */
static void bury(struct verve_mr_cache *cache)
{
	struct verve_mr_entry *entry;

	while ((entry = verve_mr_store_bury(cache->store)))
		free_entry(cache, entry);
}

void verve_mr_cache_fini(struct verve_mr_cache *cache)
{
	if (cache->store) {
		verve_mr_monitor_remove(&cache->listener);
		verve_mr_store_invalidate(cache->store, 0, UINTPTR_MAX);
		bury(cache);
		verve_mr_store_close(cache->store);
	}
	free(cache->reuse);
	verve_mr_odp_close(&cache->odp);
	assert(!AO_load(&cache->regions));
}

static int open_once(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		     uint32_t *base, struct verve_mr_region **region)
{
	access = verve_mr_odp_access(&cache->odp, access);
	return base ? verve_mr_region_open_offset(cache->dev, addr, len, access, base, region) :
		      verve_mr_region_open(cache->dev, addr, len, access, region);
}

static int open_region(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		       uint32_t *base, struct verve_mr_region **region)
{
	int ret = open_once(cache, addr, len, access, base, region);

	/* What is idle is pinned for no good reason. */
	if (ret == -FI_ENOMEM && cache->store && verve_mr_store_evict_idle(cache->store)) {
		bury(cache);
		ret = open_once(cache, addr, len, access, base, region);
	}
	if (!ret) {
		AO_fetch_and_add1(&cache->regions);
		AO_fetch_and_add(&cache->bytes, pinned(*region));
	}
	return ret;
}

/* Published already: whatever goes from now on unlinks it. NOT_KEPT: it cannot be watched. */
static int fill(struct verve_mr_cache *cache, struct verve_mr_entry *entry)
{
	uintptr_t start = entry->node.start, end = entry->node.end;
	struct verve_mr_region *region;
	int ret;

	bury(cache);
	if (verve_mr_monitor_watch(page_down(cache, start), page_up(cache, end)))
		return NOT_KEPT;
	ret = open_region(cache, (void *)start, end - start, entry->access, NULL, &region);
	if (ret)
		return ret;
	entry->region = region;
	region->owner = entry;
	/* An event that is not heard yet may be about what was there before it was registered. */
	if (!verve_mr_monitor_quiet())
		verve_mr_store_unlink(cache->store, entry);
	if (!verve_mr_store_ready(cache->store, entry))
		AO_fetch_and_add1(&cache->unkept);
	return 0;
}

/* Registers what is to be kept, and was added just now. NULL, it could not be: NOT_KEPT. */
static int keep_new(struct verve_mr_cache *cache, struct verve_mr_entry *entry,
		    struct verve_mr_region **region)
{
	int ret;

	if (!entry)
		return NOT_KEPT;
	/* What came twice, and not again since, is pinned for no good reason. */
	if (cache->reuse)
		verve_mr_store_age(cache->store);
	ret = fill(cache, entry);
	if (ret) {
		verve_mr_store_unlink(cache->store, entry);
		if (verve_mr_store_put(entry))
			free_entry(cache, entry);
		return ret;
	}
	*region = entry->region;
	return 0;
}

static bool may_keep(const struct verve_mr_cache *cache, const struct verve_mr_want *want)
{
	return cache->store && want->start < want->end && page_up(cache, want->end) >= want->end &&
	       !(cache->strict && want->access & remote);
}

/* Nobody minds if it is larger. Peers reach no more than was asked for. */
static bool may_widen(const struct verve_mr_want *want)
{
	return !want->exact && !(want->access & remote);
}

/* What to keep for it. Whole pages serve their neighbours, too. */
static struct verve_mr_want widen(const struct verve_mr_cache *cache, struct verve_mr_want want)
{
	if (may_widen(&want)) {
		want.start = page_down(cache, want.start);
		want.end = page_up(cache, want.end);
	}
	return want;
}

/*
 * Registers what is to be kept, in one with what is kept of the memory around it: or an application
 * whose buffers lie at random, in one piece of memory, would pin its pages several times over.
 */
static int get_new(struct verve_mr_cache *cache, const struct verve_mr_want *want,
		   struct verve_mr_region **region)
{
	struct verve_mr_want own = widen(cache, *want);
	bool again = !cache->reuse || verve_mr_reuse_missed(cache->reuse, &own);
	struct verve_mr_entry *entry;
	bool joined = false;
	int ret = NOT_WORTH;

	/* What shares pages with memory that came twice is as good as that. */
	if (may_widen(&own)) {
		entry = verve_mr_store_add_joined(cache->store, &own, &joined);
		if (joined)
			ret = keep_new(cache, entry, region);
	}
	/* Those may have gone meanwhile, or be too much. */
	if (ret && (joined || again))
		ret = keep_new(cache, verve_mr_store_add(cache->store, &own), region);
	return ret;
}

static int get(struct verve_mr_cache *cache, const struct verve_mr_want *want, uint32_t *base,
	       struct verve_mr_region **region)
{
	bool keep = !base && may_keep(cache, want);
	struct verve_mr_entry *entry;
	int ret = NOT_KEPT;

	if (cache->odp.all && may_widen(want)) {
		AO_fetch_and_add1(&cache->spared);
		*region = cache->odp.all;
		return 0;
	}
	if (keep && verve_mr_monitor_quiet()) {
		entry = verve_mr_store_find(cache->store, want);
		if (entry) {
			*region = entry->region;
			return 0;
		}
		ret = get_new(cache, want, region);
	}
	if (ret > 0) {
		keep &= ret == NOT_KEPT;
		ret = open_region(cache, (void *)want->start, want->end - want->start, want->access,
				  base, region);
		if (!ret && keep)
			AO_fetch_and_add1(&cache->unkept);
	}
	AO_fetch_and_add1(ret ? &cache->failures : &cache->misses);
	return ret;
}

int verve_mr_cache_get(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		       struct verve_mr_region **region)
{
	struct verve_mr_want want = {(uintptr_t)addr, (uintptr_t)addr + len, access, false};

	return get(cache, &want, NULL, region);
}

int verve_mr_cache_get_exact(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
			     uint32_t *base, struct verve_mr_region **region)
{
	struct verve_mr_want want = {(uintptr_t)addr, (uintptr_t)addr + len, access, true};

	return get(cache, &want, base, region);
}

void verve_mr_cache_put(struct verve_mr_cache *cache, struct verve_mr_region *region)
{
	if (region == cache->odp.all)
		return;
	if (!region->owner)
		close_region(cache, region);
	else if (verve_mr_store_put(region->owner))
		free_entry(cache, region->owner);
	if (cache->store)
		bury(cache);
}

void verve_mr_cache_stats_get(const struct verve_mr_cache *cache,
			      struct verve_mr_cache_stats *stats)
{
	stats->hits = cache->store ? verve_mr_store_hits(cache->store) : AO_load(&cache->spared);
	stats->misses = AO_load(&cache->misses);
	stats->failures = AO_load(&cache->failures);
	stats->unkept = AO_load(&cache->unkept);
	stats->evictions = cache->store ? verve_mr_store_evictions(cache->store) : 0;
	stats->invalidations = AO_load(&cache->invalidations);
	stats->regions = AO_load(&cache->regions);
	stats->bytes = AO_load(&cache->bytes);
}
