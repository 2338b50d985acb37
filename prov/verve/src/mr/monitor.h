/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Monitor: one per process; tells every registration cache which memory was unmapped. It opens with
 * the first cache and closes with the last. The kernel tells the monitor (net/unmaps.h); with
 * FI_VERVE_MR_CACHE_MONITOR=notify only the application does, as it promised.
 *
 * The list of listeners has a lock, which is taken before a listener's own lock. The watch's thread
 * takes both while the thread that unmaps waits in the kernel. So no thread may map, unmap,
 * allocate or free memory while it holds one of them. The watch's own lock is taken last.
 */
#ifndef VERVE_MR_MONITOR_H
#define VERVE_MR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_mr_listener {
	/*
	 * Called when memory from start to end lost its pages. Any thread; obeys the rule above.
	 * True: something is to be buried.
	 */
	bool (*gone)(struct verve_mr_listener *listener, uintptr_t start, uintptr_t end);
	/*
	 * Closes registrations whose memory went: a tenth of a second after gone returned true, as
	 * perhaps no operation follows that would do so. The monitor's own thread; rules as spare.
	 */
	void (*bury)(struct verve_mr_listener *listener);
	/*
	 * Gives back registrations that nobody uses. False: there was none. Any thread; may block
	 * and allocate. No listener is added or removed meanwhile.
	 */
	bool (*spare)(struct verve_mr_listener *listener);
	LIST_ENTRY(verve_mr_listener) link;
};

/*
 * Adds a listener; it stays the caller's. Errors as verve_net_unmaps_open, which logs them: then
 * the caller must keep no registration. Any thread.
 */
int verve_mr_monitor_add(struct verve_mr_listener *listener);
/*
 * Removes a listener: when remove returns, gone is not running and is not called again. In a child
 * after fork(2) it does nothing for a listener of the parent, which is not in the child's list.
 */
void verve_mr_monitor_remove(struct verve_mr_listener *listener);

/*
 * As verve_net_unmaps_add and verve_net_unmaps_quiet, while there is a listener. If only the
 * application tells, watch always returns 0 and quiet true at no cost; in a child after fork(2)
 * quiet returns false until the child adds a listener of its own.
 */
int verve_mr_monitor_watch(uintptr_t start, uintptr_t end);
bool verve_mr_monitor_quiet(void);

/*
 * The process may pin no more memory, and its limit counts for all listeners together: calls spare
 * of all but this one (NULL: of all). False: nobody had any to give, and no other thread was at it
 * meanwhile. Of locks only an engine's may be held.
 */
bool verve_mr_monitor_spare(const struct verve_mr_listener *but);

/* The application tells that memory goes, before it does. Nothing happens without a listener. */
void verve_mr_monitor_notify(uintptr_t start, uintptr_t end);

#endif
