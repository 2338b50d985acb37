/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Move: payload between this process's memory and another process's, with process_vm_readv(2) and
 * process_vm_writev(2). So a target need not poll, nor be scheduled.
 */
#ifndef SHMV_MOVE_H
#define SHMV_MOVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "layout.h"

struct shmv_seg;

enum { SHMV_SGE_MAX = 30 };

/* Codes beside the completion statuses, which are 0 and more: the send is to be tried again. */
enum {
	SHMV_RETRY_RNR = -1,	/* the peer has no receive posted */
	SHMV_RETRY_SILENT = -2, /* nothing answers */
};

/*
 * Moves len bytes to the process of a segment (write) or from it. mine: memory of this process;
 * its: of the other. Returns a completion status or SHMV_RETRY_SILENT.
 */
int shmv_move(struct shmv_seg *seg, bool write, const struct iovec *mine, int my_count,
	      const struct iovec *its, int its_count, uint64_t len);

/*
 * Moves len bytes into the scatter list of a receive, work request index of rq. Returns the same.
 */
int shmv_move_to_wqe(struct shmv_seg *seg, const struct shm_rq *rq, uint32_t index,
		     const struct iovec *iov, int count, uint64_t len);

#endif
