/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfer: executing a send. The sender's process does all of it: it takes a receive off the
 * peer's queue, and writes payload and completion into the peer's file. Long payloads and all
 * RDMA go from process to process (move.h). So a target need not poll, nor be scheduled.
 */
#ifndef SHMV_TRANSFER_H
#define SHMV_TRANSFER_H

#include <infiniband/verbs.h>

struct shmv_qp;

/*
 * Executes a send. Returns a completion status, or SHMV_RETRY_... (move.h): the send is to be
 * tried again. Sets qp->len and qp->arrival. Under the queue pair's lock.
 */
int shmv_transfer(struct shmv_qp *qp, const struct ibv_send_wr *wr);

#endif
