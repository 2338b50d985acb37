/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows for a peer: memory windows of type 2B, which open registered memory to the peer of one
 * queue pair (net/mw.h). One struct verve_mr_peer_windows per registration cache. The transport
 * posts the requests that bind a window and end it (xport/window.h); here is what becomes of the
 * window. A window that is given back rests until others were used, so that its key comes back
 * late.
 *
 * The lock is taken last, and not held while the device is asked. Any thread; a region that was got
 * belongs to one.
 */
#ifndef VERVE_MR_PEER_WINDOW_H
#define VERVE_MR_PEER_WINDOW_H

#include <atomic_ops.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_mr_peer_window;
struct verve_mr_region;
struct verve_net_bind;
struct verve_net_device;

struct verve_mr_peer_windows {
	pthread_mutex_t lock; /* guards the fields below, but open */
	struct verve_net_device *dev;
	TAILQ_HEAD(, verve_mr_peer_window) idle; /* not bound; used for the longest time first */
	uint32_t idle_count;
	bool tried;	    /* the device was, or is being, tried */
	volatile AO_t open; /* the device keeps its promises, and has refused no bind */
};

/* dev outlives it. */
void verve_mr_peer_windows_init(struct verve_mr_peer_windows *windows,
				struct verve_net_device *dev);
/* Every window must have been given back. */
void verve_mr_peer_windows_fini(struct verve_mr_peer_windows *windows);

/*
 * Tries the device once, if it has such windows; they are used from then on if it keeps their
 * promises. A trial that could not be made is made by a later call. May block for milliseconds.
 */
void verve_mr_peer_windows_open(struct verve_mr_peer_windows *windows);
/* The device has refused a bind of a queue pair: no window is handed out any more. Logs. */
void verve_mr_peer_windows_refused(struct verve_mr_peer_windows *windows);
static inline bool verve_mr_peer_windows_are_open(const struct verve_mr_peer_windows *windows)
{
	return AO_load(&windows->open);
}

/*
 * A window for len bytes at addr, which lie in the region base, to be opened for reading; FRESH.
 * base has LOCAL_WRITE and WINDOWS, and stays open longer. *region has its own rkey and otherwise
 * the keys of base. May block: asks the kernel for a new window while few rest. -FI_ENOMEM: there
 * is none now; does not log.
 */
int verve_mr_peer_window_get(struct verve_mr_peer_windows *windows, struct verve_mr_region *base,
			     void *addr, size_t len, struct verve_mr_region **region);
/* The same, but only a window that rests: never blocks. */
int verve_mr_peer_window_find(struct verve_mr_peer_windows *windows, struct verve_mr_region *base,
			      void *addr, size_t len, struct verve_mr_region **region);
/*
 * Gives the window back, in any state. BOUND or CLOSING: frees it, which may block. No request may
 * name it then, unless its queue pair is in the error state. When put returns, the device refuses
 * the key; or base->exposed is set (mr/window.h).
 */
void verve_mr_peer_window_put(struct verve_mr_peer_windows *windows,
			      struct verve_mr_region *region);
/*
 * True: as put, of a window that is not bound. False: nothing was done: it may be bound, or was
 * freed, or enough windows rest.
 */
bool verve_mr_peer_window_rest(struct verve_mr_peer_windows *windows,
			       struct verve_mr_region *region);
/*
 * The queue pair to which the window may be bound is going to be closed: frees the window, and
 * leaves the region to its owner. Rules as put. Harmless if the window is not bound.
 */
void verve_mr_peer_window_free(struct verve_mr_peer_windows *windows,
			       struct verve_mr_region *region);

/* What VERVE_NET_BIND is to open (net/qp.h). Its key is the region's. */
void verve_mr_peer_window_describe(const struct verve_mr_region *region,
				   struct verve_net_bind *bind);
/* That bind was posted: BOUND. */
void verve_mr_peer_window_posted(struct verve_mr_region *region);
/* A request that ends the window is going to be posted: CLOSING. It has ended well: ENDED. */
void verve_mr_peer_window_closing(struct verve_mr_region *region);
void verve_mr_peer_window_ended(struct verve_mr_region *region);

#endif
