/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue: two rings. One ring, in the device's file, has the completions of receives:
 * the senders write them, whichever process they are in. The other ring, in this process's own
 * memory, has those of sends.
 */
#ifndef SHMV_CQ_H
#define SHMV_CQ_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "context.h"
#include "layout.h"

struct shmv_qp;

struct shmv_sent { /* completion of a send */
	uint64_t wr_id, ready; /* ready: from this time on a poll sees it; 0: at once */
	struct shmv_qp *qp;    /* NULL: the completion is dropped */
	uint32_t qpn, index, len;
	uint8_t status, opcode;
};

struct shmv_cq {
	struct ibv_cq ib;
	struct shmv_ctx *ctx;
	struct shm_cq *shm;
	uint32_t lock, head, index, refs, events, async_events;
	uint32_t sent_head, sent_tail, mask;
	struct shmv_sent *sent;
	size_t pinned;
	int order_besides, order_ring;
};

struct shmv_channel {
	struct ibv_comp_channel ib;
	int wfd;
	uint64_t id;
};

/* Touches the memory of a queue before it is used, so that no message pays for page faults. */
void shmv_cq_warm(struct shmv_seg *seg, uint32_t index);

/* Drops the completions of queue pair qp, of number qpn, as mlx5 does. */
void shmv_cq_clean(struct shmv_cq *cq, const struct shmv_qp *qp, uint32_t qpn);

/* Wakes the sleeper on the channel of a queue of this process. */
void shmv_cq_wake_own(struct shmv_ctx *ctx, uint32_t index);

#endif
