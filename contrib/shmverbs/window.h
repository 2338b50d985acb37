/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows of type 1 and 2B. A bound window is a key of its own: the bounds and the access
 * are the window's, the memory is the region's. A window of type 2B opens the memory to the peer
 * of one queue pair alone.
 *
 * Source: ibv_alloc_mw(3), ibv_bind_mw(3), ibv_post_send(3); InfiniBand specification, volume 1,
 * 10.6.7.
 */
#ifndef SHMV_WINDOW_H
#define SHMV_WINDOW_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "layout.h"

struct shmv_qp;

/* Operations of struct ibv_context_ops. */
struct ibv_mw *shmv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int shmv_dealloc_mw(struct ibv_mw *mw);

/* 0, or EINVAL: such a bind work request may not be posted. */
int shmv_window_check(const struct ibv_send_wr *wr);

/* Executes a bind work request; a completion status. Under the queue pair's lock. */
int shmv_window_bind(struct shmv_qp *qp, const struct ibv_send_wr *wr);

/* Ends the window of type 2B behind a key; false: no such window was bound on queue pair qpn. */
bool shmv_window_invalidate(struct shm *shm, uint32_t key, uint32_t pd, uint32_t qpn);

#endif
