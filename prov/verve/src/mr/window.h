/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows: memory windows that open registered memory to peers and close it again, without a
 * registration (net/mw.h). One struct verve_mr_windows per registration cache. A window that is
 * given back rests until others were used, so that its key comes back late.
 *
 * The lock is taken after an engine's, and before those of step 6 (ARCHITECTURE.md). It is held
 * while the device binds. Any thread.
 */
#ifndef VERVE_MR_WINDOW_H
#define VERVE_MR_WINDOW_H

#include <atomic_ops.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_mr_region;
struct verve_mr_window;
struct verve_net_binder;
struct verve_net_device;

enum {
	VERVE_MR_WINDOWS_REST = 16,   /* windows that rest before one of them is used again */
	VERVE_MR_WINDOWS_IDLE = 1024, /* idle windows that are kept, at most */
	VERVE_MR_WINDOWS_TRIES = 4,   /* failures of the device until windows are given up */
};

struct verve_mr_windows {
	pthread_mutex_t
		lock; /* guards the fields below; any thread may read open and off without it */
	struct verve_net_device *dev;
	struct verve_net_binder *binder; /* NULL: not open */
	TAILQ_HEAD(, verve_mr_window) idle; /* not bound; used for the longest time first */
	uint32_t idle_count;
	uint32_t failures;  /* of the device since init */
	bool tried;	    /* the device keeps its promises (mr/window_trial.h) */
	volatile AO_t open; /* a window can be bound now */
	volatile AO_t off;  /* no window is bound any more */
};

/* wanted false, or a device without windows: no window will ever be bound. dev outlives it. */
void verve_mr_windows_init(struct verve_mr_windows *windows, struct verve_net_device *dev,
			   bool wanted);
/* Every window must have been closed. */
void verve_mr_windows_fini(struct verve_mr_windows *windows);

/*
 * Gets ready to bind, if that is possible and was not done before. May block for milliseconds: not
 * under an engine's lock. The log says why if no window can be bound.
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

/*
 * Opens len bytes at addr, which lie in the region base, to peers. access: VERVE_NET_*, with a
 * REMOTE bit. base has LOCAL_WRITE and WINDOWS, and stays open longer. *region has its own rkey and
 * otherwise the keys of base. -FI_ENOMEM, -FI_ENOENT (no window can be bound now), or an error of
 * verve_net_mw_bind, which logs. After an error the caller registers the memory.
 */
int verve_mr_window_open(struct verve_mr_windows *windows, struct verve_mr_region *base, void *addr,
			 size_t len, unsigned access, struct verve_mr_region **region);
/* When it returns, the device refuses the rkey. The caller still has the base. */
void verve_mr_window_close(struct verve_mr_windows *windows, struct verve_mr_region *region);

#endif
