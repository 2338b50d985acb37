/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration cache. A get that misses does four steps in this order: it publishes its entry,
 * watches the memory, registers it, and asks the monitor whether an event is unread. In any other
 * order, an unmap between two steps could be missed.
 */
#include "mr/cache.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "mr/costs_measure.h"
#include "mr/region.h"
#include "mr/reuse.h"
#include "mr/store.h"
#include "mr/want.h"
#include "net/device.h"

/*
 * Results beside negative errors: do not keep the region, as it is not worth it, or not possible.
 */
enum { NOT_WORTH = 1, NOT_KEPT = 2 };

/* The listener's callback, in the watch's thread: may only unlink entries (mr/monitor.h). */
static bool cache_gone(struct verve_mr_listener *listener, uintptr_t start, uintptr_t end)
{
	struct verve_mr_cache *cache = (struct verve_mr_cache *)listener;
	size_t count = verve_mr_store_invalidate(cache->store, start, end);

	AO_fetch_and_add(&cache->invalidations, count);
	return count;
}

static AO_t region_pinned(const struct verve_mr_region *region)
{
	return region->access & VERVE_NET_ON_DEMAND ? 0 : region->len;
}

static void region_close(struct verve_mr_cache *cache, struct verve_mr_region *region)
{
	AO_fetch_and_sub1(&cache->regions);
	AO_fetch_and_add(&cache->bytes, -region_pinned(region));
	verve_mr_region_close(region);
}

static void entry_free(struct verve_mr_cache *cache, struct verve_mr_entry *entry)
{
	if (cache->reuse && verve_mr_store_found(entry) >= VERVE_MR_REUSE_PAYS)
		verve_mr_reuse_paid(cache->reuse, &(struct verve_mr_want){
							  entry->node.start, entry->node.end,
							  entry->access, entry->exact});
	if (entry->region)
		region_close(cache, entry->region);
	entry->region = NULL;
	verve_mr_store_free(cache->store, entry);
}

/*
 * Closes the regions of entries that an eviction or the monitor has unlinked. False: there was
 * none.
 */
static bool cache_bury(struct verve_mr_cache *cache)
{
	struct verve_mr_entry *entry;
	bool found = false;

	while ((entry = verve_mr_store_bury(cache->store))) {
		entry_free(cache, entry);
		found = true;
	}
	return found;
}

/* Another callback of the listener. */
static void cache_bury_late(struct verve_mr_listener *listener)
{
	cache_bury((struct verve_mr_cache *)listener);
}

/* The last one: closes the regions that nobody uses, or whose memory went. */
static bool cache_spare(struct verve_mr_listener *listener)
{
	struct verve_mr_cache *cache = (struct verve_mr_cache *)listener;
	bool found = verve_mr_store_evict_idle(cache->store);

	return cache_bury(cache) || found;
}

/* Without memory or monitor there is no store. */
static void store_open(struct verve_mr_cache *cache)
{
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

void verve_mr_cache_init(struct verve_mr_cache *cache, struct verve_net_device *dev)
{
	memset(cache, 0, sizeof(*cache));
	cache->dev = dev;
	cache->page = sysconf(_SC_PAGESIZE);
	cache->listener.gone = cache_gone;
	cache->listener.bury = cache_bury_late;
	cache->listener.spare = cache_spare;
	cache->keeps_remote = !strcmp(verve_config.mr_cache, "on");
	verve_mr_costs_compare(&verve_mr_costs_default, &cache->crossover);
	verve_mr_odp_open(&cache->odp, dev);
	store_open(cache);
	verve_mr_windows_init(&cache->windows, dev, cache->store && !cache->keeps_remote);
	verve_mr_peer_windows_init(&cache->peer_windows, dev);
}

void verve_mr_cache_prepare(struct verve_mr_cache *cache)
{
	verve_mr_windows_open(&cache->windows);
	if (verve_mr_windows_are_open(&cache->windows))
		verve_mr_peer_windows_open(&cache->peer_windows);
}

void verve_mr_cache_measure(struct verve_mr_cache *cache)
{
	struct verve_mr_costs costs;

	verve_mr_costs_measure(cache->dev, &costs);
	verve_mr_costs_compare(&costs, &cache->crossover);
}

void verve_mr_cache_fini(struct verve_mr_cache *cache)
{
	if (cache->store) {
		verve_mr_monitor_remove(&cache->listener);
		verve_mr_store_invalidate(cache->store, 0, UINTPTR_MAX);
		cache_bury(cache);
		verve_mr_store_close(cache->store);
	}
	verve_mr_windows_fini(&cache->windows);
	verve_mr_peer_windows_fini(&cache->peer_windows);
	free(cache->reuse);
	verve_mr_odp_close(&cache->odp);
	assert(!AO_load(&cache->regions));
}

static int region_open_once(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		     uint32_t *base, struct verve_mr_region **region)
{
	access = verve_mr_odp_access(&cache->odp, access);
	return base ? verve_mr_region_open_offset(cache->dev, addr, len, access, base, region) :
		      verve_mr_region_open(cache->dev, addr, len, access, region);
}

static int region_open(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		       uint32_t *base, struct verve_mr_region **region)
{
	int ret = region_open_once(cache, addr, len, access, base, region);

	/* Too much memory is pinned: drop what nobody uses, and try again. */
	if (ret == -FI_ENOMEM && cache->store && cache_spare(&cache->listener))
		ret = region_open_once(cache, addr, len, access, base, region);
	/* RLIMIT_MEMLOCK counts what the caches of all domains keep. */
	if (ret == -FI_ENOMEM && verve_mr_monitor_spare(&cache->listener))
		ret = region_open_once(cache, addr, len, access, base, region);
	if (!ret) {
		AO_fetch_and_add1(&cache->regions);
		AO_fetch_and_add(&cache->bytes, region_pinned(*region));
	}
	return ret;
}

/*
 * Registers the memory of a new entry. The entry is published already, so any unmap from now on
 * unlinks it. NOT_KEPT: the memory cannot be watched.
 */
static int entry_fill(struct verve_mr_cache *cache, struct verve_mr_entry *entry)
{
	uintptr_t start = entry->node.start, end = entry->node.end;
	struct verve_mr_region *region;
	int ret;

	cache_bury(cache);
	if (verve_mr_monitor_watch(verve_mr_want_page_down(cache, start),
				   verve_mr_want_page_up(cache, end)))
		return NOT_KEPT;
	ret = region_open(cache, (void *)start, end - start, entry->access, NULL, &region);
	if (ret)
		return ret;
	entry->region = region;
	region->owner = entry;
	/* An unread event may be about older memory at this address: then keep no entry. */
	if (!verve_mr_monitor_quiet())
		verve_mr_store_unlink(cache->store, entry);
	if (!verve_mr_store_ready(cache->store, entry))
		AO_fetch_and_add1(&cache->unkept);
	return 0;
}

/* Registers a new entry. entry NULL: the store had no place for it; returns NOT_KEPT. */
static int entry_open(struct verve_mr_cache *cache, struct verve_mr_entry *entry,
		      struct verve_mr_region **region)
{
	int ret;

	if (!entry)
		return NOT_KEPT;
	/* Drop idle entries: buffers used twice and never since only cost pinned memory. */
	if (cache->reuse)
		verve_mr_store_age(cache->store);
	ret = entry_fill(cache, entry);
	if (ret) {
		verve_mr_store_unlink(cache->store, entry);
		if (verve_mr_store_put(entry))
			entry_free(cache, entry);
		return ret;
	}
	*region = entry->region;
	return 0;
}

/*
 * Registers memory for a new entry, together with overlapping entries: else an application whose
 * buffers lie anywhere in one piece of memory would pin its pages several times.
 */
static int cache_get_new(struct verve_mr_cache *cache, const struct verve_mr_want *want,
			 struct verve_mr_region **region)
{
	struct verve_mr_want own = verve_mr_want_widen(cache, *want);
	bool again = !cache->reuse || verve_mr_reuse_missed(cache->reuse, &own);
	struct verve_mr_entry *entry;
	bool joined = false;
	int ret = NOT_WORTH;

	/* A buffer that overlaps a kept entry is kept at its first use already. */
	if (verve_mr_want_may_widen(&own)) {
		entry = verve_mr_store_add_joined(cache->store, &own, &joined);
		if (joined)
			ret = entry_open(cache, entry, region);
	}
	/* The larger range may be unmapped in part, or too large to register: try the own range. */
	if (ret && (joined || again))
		ret = entry_open(cache, verve_mr_store_add(cache->store, &own), region);
	return ret;
}

/* Finds or makes an entry. 0; found: there was one. Or NOT_WORTH, NOT_KEPT, or an error. */
static int cache_get_entry(struct verve_mr_cache *cache, const struct verve_mr_want *want,
			   struct verve_mr_region **region, bool *found)
{
	struct verve_mr_entry *entry;

	*found = false;
	if (!verve_mr_monitor_quiet())
		return NOT_KEPT;
	entry = verve_mr_store_find(cache->store, want);
	if (!entry)
		return cache_get_new(cache, want, region);
	*found = true;
	*region = entry->region;
	return 0;
}

/* A window of the kept registration base. False: there is none. */
static bool window_get(struct verve_mr_cache *cache, const struct verve_mr_want *want,
		       enum verve_mr_window_use use, struct verve_mr_region *base,
		       struct verve_mr_region **region)
{
	void *addr = (void *)want->start;
	size_t len = want->end - want->start;

	if (use == VERVE_MR_PEER_WINDOWS && verve_mr_peer_windows_are_open(&cache->peer_windows) &&
	    !verve_mr_peer_window_get(&cache->peer_windows, base, addr, len, region))
		return true;
	if (use == VERVE_MR_WAIT_WINDOWS)
		verve_mr_windows_open(&cache->windows);
	return !verve_mr_window_open(&cache->windows, base, addr, len, want->access, region);
}

/*
 * Opens a kept registration to peers. False: a registration of its own must serve. The memory may
 * be read-only, which windows do not take.
 */
static bool cache_get_window(struct verve_mr_cache *cache, const struct verve_mr_want *want,
			     enum verve_mr_window_use use, struct verve_mr_region **region)
{
	struct verve_mr_region *base;
	struct verve_mr_want kept;
	bool found;

	if (!verve_mr_want_windows_ready(cache, want, use) ||
	    !verve_mr_want_window(cache, want, &kept) ||
	    cache_get_entry(cache, &kept, &base, &found))
		return false;
	if (!window_get(cache, want, use, base, region)) {
		verve_mr_cache_put(cache, base);
		return false;
	}
	if (!found)
		AO_fetch_and_add1(&cache->misses);
	return true;
}

static int cache_get(struct verve_mr_cache *cache, const struct verve_mr_want *want,
		     enum verve_mr_window_use use, uint32_t *base, struct verve_mr_region **region)
{
	bool keep = !base && verve_mr_want_may_keep(cache, want), found = false;
	int ret = NOT_KEPT;

	if (cache->odp.all && verve_mr_want_may_widen(want)) {
		AO_fetch_and_add1(&cache->spared);
		*region = cache->odp.all;
		return 0;
	}
	if (!base && cache_get_window(cache, want, use, region))
		return 0;
	if (keep)
		ret = cache_get_entry(cache, want, region, &found);
	if (found)
		return 0;
	if (ret > 0) {
		keep &= ret == NOT_KEPT;
		ret = region_open(cache, (void *)want->start, want->end - want->start, want->access,
				  base, region);
		if (!ret && keep)
			AO_fetch_and_add1(&cache->unkept);
	}
	AO_fetch_and_add1(ret ? &cache->failures : &cache->misses);
	return ret;
}

/* Memory that no device may use (net/mr.h) can be copied, like memory that cannot be pinned. */
static int transfer_error(int ret)
{
	return ret == -FI_EOPNOTSUPP ? -FI_ENOMEM : ret;
}

int verve_mr_cache_get(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
		       struct verve_mr_region **region)
{
	struct verve_mr_want want = {(uintptr_t)addr, (uintptr_t)addr + len, access, false};

	return transfer_error(cache_get(cache, &want, VERVE_MR_OPEN_WINDOWS, NULL, region));
}

int verve_mr_cache_get_for_peer(struct verve_mr_cache *cache, void *addr, size_t len,
				unsigned access, struct verve_mr_region **region)
{
	struct verve_mr_want want = {(uintptr_t)addr, (uintptr_t)addr + len, access, false};

	return transfer_error(cache_get(cache, &want, VERVE_MR_PEER_WINDOWS, NULL, region));
}

static int cache_get_kept(struct verve_mr_cache *cache, const struct verve_mr_want *want,
			  enum verve_mr_window_use use, struct verve_mr_region **region)
{
	struct verve_mr_entry *entry;

	if (cache->odp.all && verve_mr_want_may_widen(want)) {
		AO_fetch_and_add1(&cache->spared);
		*region = cache->odp.all;
		return 0;
	}
	if (want->access & VERVE_MR_REMOTE && !cache->keeps_remote)
		return cache_get_window(cache, want, use, region) ? 0 : -FI_ENOENT;
	if (!verve_mr_want_may_keep(cache, want) || !verve_mr_monitor_quiet())
		return -FI_ENOENT;
	entry = verve_mr_store_find(cache->store, want);
	if (entry) {
		*region = entry->region;
		return 0;
	}
	if (verve_mr_want_is_copied(cache, want) || cache_get_new(cache, want, region))
		return -FI_ENOENT;
	AO_fetch_and_add1(&cache->misses);
	return 0;
}

int verve_mr_cache_get_kept(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
			    struct verve_mr_region **region)
{
	struct verve_mr_want want = {(uintptr_t)addr, (uintptr_t)addr + len, access, false};

	return cache_get_kept(cache, &want, VERVE_MR_OPEN_WINDOWS, region);
}

int verve_mr_cache_get_kept_for_peer(struct verve_mr_cache *cache, void *addr, size_t len,
				     unsigned access, struct verve_mr_region **region)
{
	struct verve_mr_want want = {(uintptr_t)addr, (uintptr_t)addr + len, access, false};

	return cache_get_kept(cache, &want, VERVE_MR_PEER_WINDOWS, region);
}

int verve_mr_cache_get_once(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
			    struct verve_mr_region **region)
{
	int ret = region_open(cache, addr, len, access, NULL, region);

	AO_fetch_and_add1(ret ? &cache->failures : &cache->misses);
	return transfer_error(ret);
}

int verve_mr_cache_get_by(struct verve_mr_cache *cache, enum verve_mr_how how, void *addr,
			  size_t len, unsigned access, struct verve_mr_region **region)
{
	static int (*const get[VERVE_MR_HOWS])(struct verve_mr_cache *, void *, size_t, unsigned,
					       struct verve_mr_region **) = {
		[VERVE_MR_ANY] = verve_mr_cache_get,
		[VERVE_MR_KEPT] = verve_mr_cache_get_kept,
		[VERVE_MR_FOR_PEER] = verve_mr_cache_get_for_peer,
		[VERVE_MR_KEPT_FOR_PEER] = verve_mr_cache_get_kept_for_peer,
		[VERVE_MR_ONCE] = verve_mr_cache_get_once,
	};

	return get[how](cache, addr, len, access, region);
}

static struct verve_mr_entry *entry_of(const struct verve_mr_region *region)
{
	return region->base ? region->base->owner : region->owner;
}

/* The caller keeps the region for as long as it likes: its entry takes no place meanwhile. */
static void region_hold(struct verve_mr_cache *cache, struct verve_mr_region *region)
{
	struct verve_mr_entry *entry = entry_of(region);

	region->held = entry != NULL;
	if (entry)
		verve_mr_store_hold(cache->store, entry);
}

static void region_release(struct verve_mr_cache *cache, struct verve_mr_region *region)
{
	region->held = false;
	verve_mr_store_release(cache->store, entry_of(region));
}

int verve_mr_cache_get_exact(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
			     uint32_t *base, struct verve_mr_region **region)
{
	struct verve_mr_want want = {(uintptr_t)addr, (uintptr_t)addr + len, access, true};
	int ret = cache_get(cache, &want, VERVE_MR_WAIT_WINDOWS, base, region);

	if (!ret)
		region_hold(cache, *region);
	return ret;
}

void verve_mr_cache_put(struct verve_mr_cache *cache, struct verve_mr_region *region)
{
	struct verve_mr_region *base = region->base;

	if (region == cache->odp.all)
		return;
	if (region->held)
		region_release(cache, region);
	if (base) {
		if (region->peer_window)
			verve_mr_peer_window_put(&cache->peer_windows, region);
		else
			verve_mr_window_close(&cache->windows, region);
		region = base;
	}
	/* The region must not serve others: peers may reach it until it is deregistered. */
	if (region->owner && AO_load(&region->exposed))
		verve_mr_store_unlink(cache->store, region->owner);
	if (!region->owner)
		region_close(cache, region);
	else if (verve_mr_store_put(region->owner))
		entry_free(cache, region->owner);
	if (cache->store)
		cache_bury(cache);
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
