/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send: posting work requests to a queue pair, and its queue of those that wait. */
#ifndef SHMV_SEND_H
#define SHMV_SEND_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "qp.h"

/* Operation of struct ibv_context_ops. */
int shmv_post_send(struct ibv_qp *ib, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* The same, for requests that the device makes itself: binding a window of type 1. */
int shmv_send_internal(struct ibv_qp *ib, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* A send is over. Under the queue pair's lock. */
void shmv_send_finish(struct shmv_qp *qp, const struct ibv_send_wr *wr, uint32_t index, int status);

/* The first that waits; there is one. */
static inline struct shmv_waiting *shmv_send_first(struct shmv_qp *qp)
{
	return (struct shmv_waiting *)(qp->sq + (qp->sq_head % qp->max_wr) * qp->sq_stride);
}

#endif
