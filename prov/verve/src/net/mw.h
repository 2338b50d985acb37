/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows: ibv_alloc_mw(3), ibv_bind_mw(3), ibv_dealloc_mw(3). A bound window opens bytes of
 * a region (VERVE_NET_WINDOWS) to peers that know the window's key.
 *
 * A window of type 1 opens them to every peer. Binding changes the key and ends the old one. It
 * takes a request to a queue pair, which may be any of the device: the binder has one of its own,
 * which is connected to itself or, if the binder reads, to a second one.
 *
 * A window *for a peer* (type 2B) opens them to the peer of one queue pair. Requests to this queue
 * pair bind it and end it (VERVE_NET_BIND and INVALIDATE of net/qp.h). The key is known before the
 * bind is posted, so that a packet behind it can tell the peer. A window that is bound must be
 * invalidated before it is bound again. It must be freed before its queue pair is closed, if it was
 * not invalidated: soft-RoCE lets a bound window hold its queue pair.
 *
 * Calls on one binder, and on one window, must not overlap. Any thread.
 */
#ifndef VERVE_NET_MW_H
#define VERVE_NET_MW_H

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/bind.h"

struct verve_net_binder;
struct verve_net_device;
struct verve_net_mr;

/* Bytes of a window at most. mlx5 binds no more: its windows count bytes in 31 bits. */
#define VERVE_NET_MW_MAX (1ull << 31)

/* Nanoseconds until a binder gives the device up. */
#define VERVE_NET_BINDER_PATIENCE 1000000000ull

/*
 * Opens a binder, whose requests wait for the device for patience nanoseconds at most: usually
 * VERVE_NET_BINDER_PATIENCE. May block for milliseconds. Logs, but not -FI_EOPNOTSUPP: the driver
 * binds no windows. Other errors say nothing about windows (verve_net_mw_is_answer is false).
 * reads: verve_net_binder_read is going to be called.
 */
int verve_net_binder_open(struct verve_net_device *dev, uint64_t patience, bool reads,
			  struct verve_net_binder **binder);
/* Requests that have not ended are not executed any more. */
void verve_net_binder_close(struct verve_net_binder *binder);

/*
 * Reads len bytes at from, by the remote key rkey, into to, by the local key lkey: what the peer of
 * the binder's queue pair would do with that key. Waits as verve_net_mw_bind. Does not log.
 * -FI_EACCES: the device refused it; other errors: whether it would is not known. After an error
 * the binder must be closed.
 */
int verve_net_binder_read(struct verve_net_binder *binder, void *to, uint32_t lkey,
			  const void *from, uint32_t rkey, uint32_t len);

/*
 * A new window is not bound. for_peer: limits.mw_peer. Does not log. -FI_ENOMEM, or the error of
 * libibverbs. May block.
 */
int verve_net_mw_alloc(struct verve_net_device *dev, bool for_peer, struct verve_net_mw *mw);
/*
 * Ends the window, even if it is bound. No queue pair, unless it is in the error state, may have a
 * request for it. Does not log. May block. A negative error of libibverbs: the window lives on, and
 * nothing can end it any more but the end of the region to which it is bound.
 */
int verve_net_mw_free(struct verve_net_mw *mw);

/* The key that the next VERVE_NET_BIND of a window for a peer must have. */
uint32_t verve_net_mw_next_key(const struct verve_net_mw *mw);
/* A VERVE_NET_BIND with the next key was posted: mw->rkey is that key now. */
void verve_net_mw_posted(struct verve_net_mw *mw);

/*
 * Binds the window to len bytes from addr on, 1 to VERVE_NET_MW_MAX of them, of the region mr. The
 * region has VERVE_NET_WINDOWS and, unless access is VERVE_NET_REMOTE_READ, VERVE_NET_LOCAL_WRITE.
 * Peers use virtual addresses. access: VERVE_NET_*; the REMOTE bits count. Waits for the device: a
 * microsecond, and its patience at most. Logs an error: -FI_ETIMEDOUT (no answer); -FI_EIO (it
 * refuses this bind); -FI_ECONNABORTED (the binder's queue pair has failed for another reason, such
 * as a port that is down); or the error of libibverbs. After an error close the binder and free the
 * window. Order: a window of type 1 after its binder (a request that has not ended might bind it
 * again); a window for a peer always before it, also without an error (soft-RoCE lets a bound
 * window hold its queue pair). A window for a peer opens the bytes to the binder itself.
 */
int verve_net_mw_bind(struct verve_net_binder *binder, struct verve_net_mw *mw,
		      const struct verve_net_mr *mr, void *addr, size_t len, unsigned access);
/*
 * True if this error of a binder's calls is an answer of device or driver to what was asked. False:
 * a shortage, or something that may pass, and says nothing about windows.
 */
static inline bool verve_net_mw_is_answer(int error)
{
	return error == -FI_EIO || error == -FI_EINVAL || error == -FI_EOPNOTSUPP ||
	       error == -FI_ENOSYS || error == -FI_EPERM;
}
/*
 * Unbinds the window from mr, to which it was bound at addr. When unbind has returned 0, the device
 * refuses the key. Errors as verve_net_mw_bind.
 */
int verve_net_mw_unbind(struct verve_net_binder *binder, struct verve_net_mw *mw,
			const struct verve_net_mr *mr, void *addr);

#endif
