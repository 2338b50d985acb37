/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "mr/cache_find.h"

#include <atomic_ops.h>
#include <rdma/fi_errno.h>

#include "mr/region.h"
#include "mr/store.h"
#include "mr/want.h"

static int find_entry(struct verve_mr_cache *cache, const struct verve_mr_want *want,
		      struct verve_mr_entry **entry)
{
	*entry = verve_mr_monitor_quiet() ? verve_mr_store_find(cache->store, want) : NULL;
	return *entry ? 0 : -FI_EAGAIN;
}

/* Only windows for a peer: binding one of the others waits for the device. */
static int find_window(struct verve_mr_cache *cache, const struct verve_mr_want *want,
		       enum verve_mr_window_use use, const struct verve_mr_want *kept,
		       struct verve_mr_region **region)
{
	struct verve_mr_entry *entry;

	if (use != VERVE_MR_PEER_WINDOWS ||
	    !verve_mr_peer_windows_are_open(&cache->peer_windows) ||
	    find_entry(cache, kept, &entry))
		return -FI_EAGAIN;
	if (!verve_mr_peer_window_find(&cache->peer_windows, entry->region, (void *)want->start,
				       want->end - want->start, region))
		return 0;
	/* The memory may have gone meanwhile: then the entry is ours to end. */
	if (!verve_mr_store_put_shared(entry))
		verve_mr_cache_put(cache, entry->region);
	return -FI_EAGAIN;
}

static int find(struct verve_mr_cache *cache, const struct verve_mr_want *want,
		enum verve_mr_window_use use, bool is_kept, struct verve_mr_region **region)
{
	struct verve_mr_want kept;
	struct verve_mr_entry *entry;
	bool opens = verve_mr_want_windows_ready(cache, want, use) &&
		     verve_mr_want_window(cache, want, &kept);

	if (want->access & VERVE_MR_REMOTE && (opens || (is_kept && !cache->keeps_remote)))
		return opens ? find_window(cache, want, use, &kept, region) : -FI_ENOENT;
	if (!verve_mr_want_may_keep(cache, want))
		return is_kept ? -FI_ENOENT : -FI_EAGAIN;
	if (find_entry(cache, want, &entry))
		return is_kept && verve_mr_want_is_copied(cache, want) ? -FI_ENOENT : -FI_EAGAIN;
	*region = entry->region;
	return 0;
}

int verve_mr_cache_find(struct verve_mr_cache *cache, enum verve_mr_how how, void *addr, size_t len,
			unsigned access, struct verve_mr_region **region)
{
	struct verve_mr_want want = {(uintptr_t)addr, (uintptr_t)addr + len, access, false};
	bool is_kept = how == VERVE_MR_KEPT || how == VERVE_MR_KEPT_FOR_PEER;
	bool for_peer = how == VERVE_MR_FOR_PEER || how == VERVE_MR_KEPT_FOR_PEER;

	if (how == VERVE_MR_ONCE)
		return -FI_EAGAIN;
	if (cache->odp.all && verve_mr_want_may_widen(&want)) {
		AO_fetch_and_add1(&cache->spared);
		*region = cache->odp.all;
		return 0;
	}
	return find(cache, &want, for_peer ? VERVE_MR_PEER_WINDOWS : VERVE_MR_OPEN_WINDOWS, is_kept,
		    region);
}

struct verve_mr_region *verve_mr_cache_put_at_once(struct verve_mr_cache *cache,
						   struct verve_mr_region *region)
{
	struct verve_mr_region *kept = region->base ? region->base : region;

	if (region == cache->odp.all)
		return NULL;
	if (region->held || !kept->owner || AO_load(&kept->exposed) ||
	    verve_mr_store_has_dead(cache->store))
		return region;
	if (region->base &&
	    !(region->peer_window && verve_mr_peer_window_rest(&cache->peer_windows, region)))
		return region;
	return verve_mr_store_put_shared(kept->owner) ? NULL : kept;
}
