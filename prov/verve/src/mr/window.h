/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows: memory windows that open registered memory to all peers and close it again, without a
 * registration (net/mw.h: type 1). One struct verve_mr_windows per registration cache. A window
 * that is given back rests until others were used, so that its key comes back late.
 *
 * The lock is taken after an engine's, and before those of step 6 (ARCHITECTURE.md). It is held
 * while the device binds, and never while a queue pair opens or closes. Any thread.
 */
#ifndef VERVE_MR_WINDOW_H
#define VERVE_MR_WINDOW_H

#include <atomic_ops.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/mr.h"

struct verve_mr_region;
struct verve_mr_window;
struct verve_net_binder;
struct verve_net_device;
struct verve_net_mw;

enum {
	VERVE_MR_WINDOWS_REST = 16,   /* windows that rest before one of them is used again */
	VERVE_MR_WINDOWS_IDLE = 1024, /* idle windows that are kept, at most */
	VERVE_MR_WINDOWS_TRIES = 4,   /* refusals of the device until windows are given up */
	VERVE_MR_WINDOWS_STALLS = 16, /* likewise, binds and unbinds without an answer */
};

struct verve_mr_windows {
	/*
	 * Guards the fields below, but dev, which stays, and tried and no_atomics, which only the
	 * thread that has set opening writes. Any thread reads the fields of AO_t without it.
	 */
	pthread_mutex_t lock;
	struct verve_net_device *dev;
	struct verve_net_binder *binder; /* NULL: not open */
	TAILQ_HEAD(, verve_mr_window) idle; /* not bound; used for the longest time first */
	uint32_t idle_count;
	uint32_t refusals;  /* of the device since init: verve_net_mw_is_answer */
	uint32_t stalls;    /* since init: the device did not answer for a second */
	bool opening;	    /* a thread opens the binder, or tries the device */
	bool tried;	    /* the device keeps its promises (mr/window_trial.h) */
	uint64_t pause;	    /* nanoseconds before the next binder after a failure that may pass */
	uint64_t retry_at;  /* no binder is opened before, nanoseconds */
	volatile AO_t open; /* a window can be bound now */
	volatile AO_t off;  /* no window is bound any more */
	volatile AO_t no_atomics; /* the device binds no windows for atomics */
};

/* wanted false, or a device without windows: no window will ever be bound. dev outlives it. */
void verve_mr_windows_init(struct verve_mr_windows *windows, struct verve_net_device *dev,
			   bool wanted);
/* Every window must have been closed. */
void verve_mr_windows_fini(struct verve_mr_windows *windows);

/*
 * Gets ready to bind, if that is possible and was not done before, and no other thread does it. May
 * block for milliseconds: not under an engine's lock. The log says why if no window can be bound.
 * After a failure that may pass, such as a port that is down, a later call tries again: at once,
 * then after 1 s, 2 s, ... 64 s. Four refusals of the device end windows for good, and so do 16
 * times without an answer, because threads wait for each.
 */
void verve_mr_windows_open(struct verve_mr_windows *windows);
/* True: windows can be bound. */
static inline bool verve_mr_windows_are_open(const struct verve_mr_windows *windows)
{
	return AO_load(&windows->open);
}
/* True: no window will be bound any more. */
static inline bool verve_mr_windows_are_off(const struct verve_mr_windows *windows)
{
	return AO_load(&windows->off);
}

/* False: no window will be bound with this access (VERVE_NET_*). True: perhaps. */
static inline bool verve_mr_windows_may_bind(const struct verve_mr_windows *windows,
					     unsigned access)
{
	return !verve_mr_windows_are_off(windows) &&
	       !(access & VERVE_NET_REMOTE_ATOMIC && AO_load(&windows->no_atomics));
}

/*
 * Opens len bytes at addr, which lie in the region base, to peers. access: VERVE_NET_*, with a
 * REMOTE bit. base has LOCAL_WRITE and WINDOWS, and stays open longer. *region has its own rkey and
 * otherwise the keys of base. -FI_ENOMEM, -FI_ENOENT (no window can be bound now), or an error of
 * verve_net_mw_bind, which logs. After an error the caller registers the memory, and looks whether
 * base is exposed now.
 */
int verve_mr_window_open(struct verve_mr_windows *windows, struct verve_mr_region *base, void *addr,
			 size_t len, unsigned access, struct verve_mr_region **region);
/*
 * When it returns, the device refuses the rkey; or base->exposed is set, and the base must not be
 * kept, because only closing it ends the window. The caller still has the base. May close the
 * binder's queue pair, as verve_mr_window_open may.
 */
void verve_mr_window_close(struct verve_mr_windows *windows, struct verve_mr_region *region);

/*
 * Frees a window of any type, which ends it. base: the region to which it may be bound: if the
 * window cannot be freed, base is exposed, and the log says so. NULL: it is not bound.
 */
void verve_mr_window_end(struct verve_net_device *dev, struct verve_net_mw *window,
			 struct verve_mr_region *base);

#endif
