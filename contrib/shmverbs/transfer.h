/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfer: executing a send. The sender's process does all of it: it takes a receive off the peer's queue, and
 * writes payload and completion into the peer's file; long payloads, and all RDMA, go from process to process with
 * process_vm_readv(2) and process_vm_writev(2). So a target need not poll, nor be scheduled.
 */
#ifndef SHMV_TRANSFER_H
#define SHMV_TRANSFER_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <sys/uio.h>

#include "layout.h"

struct shmv_qp;
struct shmv_seg;

enum { /* no completion statuses: it has to be tried again */
	SHMV_RETRY_RNR = -1,	/* no receive is posted */
	SHMV_RETRY_SILENT = -2, /* nothing answers */
};

/* A completion status, or why it has to be tried again. Sets qp->len and qp->arrival. Under the queue pair's lock. */
int shmv_transfer(struct shmv_qp *qp, const struct ibv_send_wr *wr);

/* Writes to where a receive points; a completion status. */
int shmv_transfer_to_wqe(struct shmv_seg *seg, const struct shm_rq *rq, uint32_t wqe, const struct iovec *iov,
			 int count, uint64_t len);

#endif
