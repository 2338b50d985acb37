/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pair, reliable connected. Its state and what a peer needs lie in the device's file; its send queue holds
 * only what could not be done at once.
 */
#ifndef SHMV_QP_H
#define SHMV_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "context.h"
#include "layout.h"

struct shmv_qp {
	struct ibv_qp ib;
	struct shmv_ctx *ctx;
	struct shm_qp *shm, *peer_qp;
	struct shmv_seg *peer;
	struct shmv_port *peer_port;
	uint32_t lock, index, peer_qpn, async_events;
	uint64_t me; /* what peer_qp listens to when it listens to us */
	uint32_t posted, retired, counted;
	uint32_t max_wr, max_sge, max_inline;
	uint32_t len;	  /* of the send that was executed last */
	uint64_t arrival; /* and when it arrived; 0: at once */
	bool sig_all, told; /* told: an error was polled, or asked for */
	bool lost;	    /* nothing reaches the peer any more (SHMV_LOSE_ONE_IN) */
	struct shmv_rq *rq; /* its own; NULL: ib.srq's */
	size_t pinned;
	/* Waiting sends. */
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
 * The state becomes ERR: what is posted to its own receive queue ends, and with a shared one an event says that
 * there is no more to come. Of any process; under its shared lock.
 */
void shmv_qp_fail(struct shmv_seg *seg, struct shm_qp *qp);

/* No peer reaches it any more, and what waits is forgotten. Under its lock. */
void shmv_qp_reset(struct shmv_qp *qp);

#endif
