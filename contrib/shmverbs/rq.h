/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive queue: of a queue pair, or shared. Work requests and the ring that orders them lie in the device's
 * file; a sender takes a request off the ring. The process that polls the request's completion gives its place back.
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
	struct shmv_srq *srq; /* NULL: a queue pair's own */
	uint32_t lock;	      /* posting, and the free places */
	uint32_t index, free_count, size, max_sge;
	uint32_t *free;
	size_t pinned;
	int order_ring, order_wqes;
};

/* ENOMEM in errno. */
struct shmv_rq *shmv_rq_open(struct shmv_ctx *ctx, uint32_t wrs, uint32_t sges, uint32_t pd);
void shmv_rq_close(struct shmv_rq *rq);

static inline void shmv_rq_give_back(struct shmv_rq *rq, uint32_t wqe)
{
	rq->free[rq->free_count++] = wqe;
}

/* Takes the oldest receive, of any process; false: there is none. Tells the owner when few are left. */
bool shmv_rq_take(struct shmv_seg *seg, struct shm_rq *rq, struct shm_rq_entry *entry);

/* Posts receives; 0, or the errno of the first that is refused, in *bad. */
int shmv_rq_post(struct shmv_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Tells the owner, once, if fewer receives are left than its limit says. */
void shmv_rq_tell_limit(struct shmv_seg *seg, struct shm_rq *rq, uint32_t left);

#endif
