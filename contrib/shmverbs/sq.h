/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send queue: the sends of a queue pair that could not be done at once; and the end of every
 * send. All functions are called under the queue pair's lock.
 */
#ifndef SHMV_SQ_H
#define SHMV_SQ_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "qp.h"

struct shmv_waiting { /* a send that could not be done at once */
	struct ibv_send_wr wr;
	uint32_t index; /* the send's number among all sends of the queue pair */
	struct ibv_sge sge[];
};

/* Appends a copy of a send, with its inline data. 0 or ENOMEM. */
int shmv_sq_add(struct shmv_qp *qp, const struct ibv_send_wr *wr);

/* The waiting send with a number from qp->sq_head on, before qp->sq_tail. */
static inline struct shmv_waiting *shmv_sq_at(const struct shmv_qp *qp, uint32_t number)
{
	return (struct shmv_waiting *)(qp->sq + (number % qp->max_wr) * qp->sq_stride);
}

/*
 * Ends a send: writes its completion, if the send is signaled or failed. A failed send fails the
 * queue pair.
 */
void shmv_sq_finish(struct shmv_qp *qp, const struct ibv_send_wr *wr, uint32_t index, int status);

#endif
