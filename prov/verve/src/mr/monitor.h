/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Monitor: one per process; tells every registration cache which memory went away. Opened for the
 * first cache, closed behind the last. It hears that from the kernel (net/watch.h), or from the
 * application alone where that has promised to tell (FI_VERVE_MR_CACHE_MONITOR=notify).
 *
 * Its list of listeners has a lock of its own, taken before theirs. The watch's thread holds
 * both, while whoever unmaps stands still: nobody may map, unmap, allocate or free with either of
 * them held. The watch's own lock is taken last.
 */
#ifndef VERVE_MR_MONITOR_H
#define VERVE_MR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_mr_listener {
	/* Memory from start to end lost its pages. Any thread; under the rule above. */
	void (*gone)(struct verve_mr_listener *listener, uintptr_t start, uintptr_t end);
	LIST_ENTRY(verve_mr_listener) link;
};

/* Errors as verve_net_watch_open, which explains them in the log: nothing may be kept. */
int verve_mr_monitor_add(struct verve_mr_listener *listener);
/*
 * gone is not running, and will not be called, when it returns. In a child after fork(2), which hears of none that
 * its parent added, it does nothing with those.
 */
void verve_mr_monitor_remove(struct verve_mr_listener *listener);

/*
 * While a listener is there: as verve_net_watch_add and verve_net_watch_quiet. Where the application
 * tells, everything can be watched and, but in a child after fork(2), all is quiet, at no cost.
 */
int verve_mr_monitor_watch(uintptr_t start, uintptr_t end);
bool verve_mr_monitor_quiet(void);

/* The application says so itself, before memory goes. Does nothing without a listener. */
void verve_mr_monitor_notify(uintptr_t start, uintptr_t end);

#endif
