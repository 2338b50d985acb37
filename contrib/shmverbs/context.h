/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Context: an open device of this process. It has tables of its objects, and the heap in its
 * file.
 */
#ifndef SHMV_CONTEXT_H
#define SHMV_CONTEXT_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atomic.h"
#include "layout.h"
#include "ports.h"
#include "segment.h"

enum { SHMV_ORDERS = 48 };

struct shmv_qp;
struct shmv_cq;
struct shmv_rq;

struct shmv_dev {
	struct ibv_device ib;
	void *not_mlx5[8]; /* libmlx5 and libefa look here whether the device is their own */
	uint32_t index;
};

/* Counts of what the application did (SHMV_STATS). Threads that count at once may lose some. */
struct shmv_counts {
	uint64_t posts, ops[IBV_WR_SEND_WITH_INV + 1], bytes, inlined, signaled, waited, polls,
		empty, sent, received, posted, reg, dereg, armed, events;
};

struct shmv_ctx {
	struct shmv_ctx *next;
	struct shmv_dev *dev;
	struct shmv_seg *seg;
	struct shmv_port *port;
	pthread_mutex_t mutex; /* the tables, the heap, and keys */
	uint64_t heap_used, heap_size;
	struct {
		uint64_t *at;
		uint32_t count, room;
	} heap_free[SHMV_ORDERS];
	struct shmv_qp *qps[SHM_QP_MAX];
	struct shmv_cq *cqs[SHM_CQ_MAX];
	struct shmv_rq *rqs[SHM_RQ_MAX];
	uint32_t qp_next, cq_next, rq_next, qp_count, pd_next, serials;
	uint32_t mr_used, *mr_free, mr_free_head, mr_free_tail;
	/* Queue pairs with sends that wait (retry.h). */
	uint32_t pend_lock, pending;
	struct shmv_qp *pend;
	uint64_t due; /* time at which the first of them is tried again */
	int async_wfd;
	struct shmv_counts count;
	struct verbs_context v; /* last, because its own end is the application's part */
};

static inline struct shmv_ctx *shmv_ctx_of(struct ibv_context *ib)
{
	return (struct shmv_ctx *)((char *)ib - offsetof(struct shmv_ctx, v.context));
}

/* Whether the device failed for good. */
static inline bool shmv_ctx_is_fatal(const struct shmv_ctx *ctx)
{
	return shmv_load32(&ctx->seg->shm->head.gone) & SHM_FATAL;
}

/* Calls a function for each open device of this process, under the mutex of the list. */
void shmv_ctx_each(void (*call)(struct shmv_ctx *ctx, void *arg), void *arg);

/* Into the list, and out of it. */
void shmv_ctx_add(struct shmv_ctx *ctx);
void shmv_ctx_remove(struct shmv_ctx *ctx);

/* After fork(2): the child has no device open. */
void shmv_ctx_forked(void);

/* Prints the counts to standard error, if the property stats is set. */
void shmv_ctx_print_counts(struct shmv_ctx *ctx);

/*
 * get: the offset of zeroed memory in the file, of at least len bytes; 0: there is none. Sets
 * *order, which put takes: the memory has 2^*order bytes. Both under the context's mutex.
 */
uint64_t shmv_heap_get(struct shmv_ctx *ctx, size_t len, int *order);
void shmv_heap_put(struct shmv_ctx *ctx, uint64_t at, int order);

/*
 * A free place of a table; -1: there is none. The search begins at *next, so that a place is used
 * again late. Under the context's mutex.
 */
int shmv_ctx_place(void *table, uint32_t size, uint32_t *next);

/* A number that no other object of the context has. Under the context's mutex. */
uint32_t shmv_ctx_serial(struct shmv_ctx *ctx);

#endif
