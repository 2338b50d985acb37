/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive queue: of a queue pair, or shared. The work requests, and the ring that orders them,
 * lie in the device's file; a sender takes a request off the ring. Polling the request's
 * completion frees its place.
 */
#ifndef SHMV_RQ_H
#define SHMV_RQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "context.h"
#include "layout.h"

struct shmv_srq;

struct shmv_rq {
	struct shmv_ctx *ctx;
	struct shm_rq *shm;
	struct shmv_srq *srq; /* NULL: the queue is a queue pair's own */
	uint32_t lock;	      /* posting, and the free places */
	uint32_t index, free_count, size, max_sge;
	uint32_t *free;
	size_t pinned;
	int order_ring, order_wqes;
};

/* NULL, and ENOMEM in errno: there is no memory, or no place in the device's file. */
struct shmv_rq *shmv_rq_open(struct shmv_ctx *ctx, uint32_t wrs, uint32_t sges, uint32_t pd);
void shmv_rq_close(struct shmv_rq *rq);

/* Frees the place of a work request. Under rq->lock. */
static inline void shmv_rq_give_back(struct shmv_rq *rq, uint32_t wqe)
{
	rq->free[rq->free_count++] = wqe;
}

/*
 * Takes the oldest receive; false: there is none. The queue may be another process's. Raises the
 * event SRQ_LIMIT_REACHED if fewer receives are left than the limit.
 */
bool shmv_rq_take(struct shmv_seg *seg, struct shm_rq *rq, struct shm_rq_entry *entry);

/*
 * Posts a list of receives. Returns 0, or the errno of the first receive that it refuses, which
 * is *bad.
 */
int shmv_rq_post(struct shmv_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Raises SRQ_LIMIT_REACHED, and disarms the limit, if fewer receives are left than the limit. */
void shmv_rq_tell_limit(struct shmv_seg *seg, struct shm_rq *rq, uint32_t left);

#endif
