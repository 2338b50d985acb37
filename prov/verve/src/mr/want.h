/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Want: what a cache may do for a request (struct verve_mr_want): keep its registration, widen it,
 * open it to peers by windows. Nothing here asks the device or the kernel. Any thread.
 */
#ifndef VERVE_MR_WANT_H
#define VERVE_MR_WANT_H

#include <stdbool.h>
#include <stdint.h>

#include "mr/cache_state.h"
#include "mr/store.h"
#include "net/mr.h"

/* The access of peers. */
enum {
	VERVE_MR_REMOTE = VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC,
};

/* By which windows a get may open a kept registration to peers. */
enum verve_mr_window_use {
	VERVE_MR_OPEN_WINDOWS, /* windows for all peers, if the device is ready for them */
	VERVE_MR_WAIT_WINDOWS, /* the same; the caller can wait until the device is ready */
	VERVE_MR_PEER_WINDOWS, /* for a peer: the caller opens them; else as OPEN_WINDOWS */
};

/* The page's first address; the next page's, or 0 if that is beyond the address space. */
uintptr_t verve_mr_want_page_down(const struct verve_mr_cache *cache, uintptr_t addr);
uintptr_t verve_mr_want_page_up(const struct verve_mr_cache *cache, uintptr_t addr);

/* The cache may keep a registration of this range and access. */
bool verve_mr_want_may_keep(const struct verve_mr_cache *cache, const struct verve_mr_want *want);
/* A larger region serves as well: peers could not reach the additional bytes. */
bool verve_mr_want_may_widen(const struct verve_mr_want *want);
/* The request, in whole pages where they may be: its entry then serves their other bytes, too. */
struct verve_mr_want verve_mr_want_widen(const struct verve_mr_cache *cache,
					 struct verve_mr_want want);
/*
 * True: a window of a kept registration can open the request to peers; *kept is the request of that
 * registration. Where the device compares addresses with the bounds of the region alone, the region
 * has exactly the window's bytes, and so one window at a time.
 */
bool verve_mr_want_window(const struct verve_mr_cache *cache, const struct verve_mr_want *want,
			  struct verve_mr_want *kept);
/* The device binds such windows now. */
bool verve_mr_want_windows_ready(const struct verve_mr_cache *cache,
				 const struct verve_mr_want *want, enum verve_mr_window_use use);
/* Memory so short is copied, unless it has a registration. Memory of a stage or more never is. */
bool verve_mr_want_is_copied(const struct verve_mr_cache *cache, const struct verve_mr_want *want);

#endif
