/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pair, reliable connected. Its state, and all that a peer reads, lie in the device's file.
 * Its send queue holds only sends that could not be done at once (sq.h).
 */
#ifndef SHMV_QP_H
#define SHMV_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "context.h"
#include "layout.h"

struct shmv_td;

/* What the wire (wire.h) has of a queue pair: times in ns of CLOCK_MONOTONIC. */
struct shmv_qp_wire {
	uint64_t start;	   /* no request starts earlier, because one before it waited for reads */
	uint64_t sent;	   /* the last message arrives at the peer */
	uint64_t answered; /* the last answer to a read arrives, less a latency */
	uint64_t ends[UINT8_MAX]; /* the last reads end; by their number modulo max_rd_atomic */
	uint64_t reads;	   /* so many have been posted */
};

struct shmv_qp {
	struct ibv_qp ib;
	struct shmv_ctx *ctx;
	struct shmv_td *td; /* NULL: any threads post */
	struct shm_qp *shm, *peer_qp;
	struct shmv_seg *peer;
	struct shmv_port *peer_port;
	uint32_t lock, index, peer_qpn, async_events;
	uint64_t me; /* value of peer_qp->conn if the peer is connected to this queue pair */
	uint32_t posted, retired, counted;
	uint32_t max_wr, max_sge, max_inline;
	uint32_t len;	  /* length of the send that was executed last */
	uint64_t arrival; /* time at which this send arrives; 0: at once */
	struct shmv_qp_wire wire;
	bool sig_all, told; /* told: the library knows of the error (property err_post) */
	bool lost;	    /* no packet reaches the peer any more (property lose_one_in) */
	struct shmv_rq *rq; /* its own receive queue; NULL: ib.srq has it */
	size_t pinned;
	/* The send queue, and its place in the context's list (retry.h). */
	uint8_t *sq;
	size_t sq_stride;
	uint32_t sq_head, sq_tail;
	bool retrying, listed;
	uint32_t rnr_left;
	uint64_t since, next_try, rnr_end;
	struct shmv_qp *pend_next;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
};

/*
 * Makes the state ERR. The receives in the queue pair's own receive queue end; with a shared
 * receive queue, an event (LAST_WQE_REACHED) says that it takes no more. The queue pair may be
 * another process's. Under shm_qp.lock.
 */
void shmv_qp_fail(struct shmv_seg *seg, struct shm_qp *qp);

/*
 * Makes the state RESET: no peer reaches the queue pair, and it forgets its sends. Under its
 * lock.
 */
void shmv_qp_reset(struct shmv_qp *qp);

#endif
