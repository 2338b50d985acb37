/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "mr/want.h"

#include "net/device.h"
#include "net/mw.h"

/* The access of a kept registration that peers reach through windows. */
static const unsigned base_access = VERVE_NET_LOCAL_WRITE | VERVE_NET_WINDOWS;

uintptr_t verve_mr_want_page_down(const struct verve_mr_cache *cache, uintptr_t addr)
{
	return addr & -cache->page;
}

uintptr_t verve_mr_want_page_up(const struct verve_mr_cache *cache, uintptr_t addr)
{
	return verve_mr_want_page_down(cache, addr + cache->page - 1);
}

bool verve_mr_want_may_keep(const struct verve_mr_cache *cache, const struct verve_mr_want *want)
{
	return cache->store && want->start < want->end &&
	       verve_mr_want_page_up(cache, want->end) >= want->end &&
	       (cache->keeps_remote || !(want->access & VERVE_MR_REMOTE));
}

bool verve_mr_want_may_widen(const struct verve_mr_want *want)
{
	return !want->exact && !(want->access & VERVE_MR_REMOTE);
}

struct verve_mr_want verve_mr_want_widen(const struct verve_mr_cache *cache,
					 struct verve_mr_want want)
{
	if (verve_mr_want_may_widen(&want)) {
		want.start = verve_mr_want_page_down(cache, want.start);
		want.end = verve_mr_want_page_up(cache, want.end);
	}
	return want;
}

bool verve_mr_want_window(const struct verve_mr_cache *cache, const struct verve_mr_want *want,
			  struct verve_mr_want *kept)
{
	bool bounds = verve_net_device_port(cache->dev)->limits.mw_bounds;

	*kept = (struct verve_mr_want){want->start, want->end, base_access, !bounds};
	return want->access & VERVE_MR_REMOTE && want->end - want->start <= VERVE_NET_MW_MAX &&
	       verve_mr_want_may_keep(cache, kept);
}

bool verve_mr_want_windows_ready(const struct verve_mr_cache *cache,
				 const struct verve_mr_want *want, enum verve_mr_window_use use)
{
	if (use == VERVE_MR_PEER_WINDOWS &&
	    verve_mr_peer_windows_are_open(&cache->peer_windows))
		return true;
	return verve_mr_windows_may_bind(&cache->windows, want->access) &&
	       (use == VERVE_MR_WAIT_WINDOWS || verve_mr_windows_are_open(&cache->windows));
}

bool verve_mr_want_is_copied(const struct verve_mr_cache *cache, const struct verve_mr_want *want)
{
	size_t len = want->end - want->start;

	return len < cache->crossover.keep && len < cache->crossover.stage;
}
