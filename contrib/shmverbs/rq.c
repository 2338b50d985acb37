/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "conf.h"
#include "cq.h"
#include "lock.h"
#include "log.h"
#include "mem.h"
#include "note.h"
#include "segment.h"

static uint32_t power_of_2(uint32_t least)
{
	uint32_t size = 1;

	while (size < least)
		size *= 2;
	return size;
}

/*
 * Gives the queue its place and its rings in the file; false: there is none. Under the context's
 * mutex.
 */
static bool rq_place(struct shmv_rq *rq, uint32_t pd)
{
	struct shmv_ctx *ctx = rq->ctx;
	int at = shmv_ctx_place(ctx->rqs, SHM_RQ_MAX, &ctx->rq_next);
	struct shm_rq *shm = &ctx->seg->shm->rq[at < 0 ? 0 : at];
	uint32_t stride = sizeof(struct shm_wqe) + rq->max_sge * sizeof(struct ibv_sge);

	if (at < 0)
		return false;
	memset(shm, 0, sizeof(*shm));
	shm->mask = rq->size - 1;
	shm->pd = pd;
	shm->serial = shmv_ctx_serial(ctx);
	shm->stride = (stride + 15) & ~15u;
	shm->ring = shmv_heap_get(ctx, rq->size * sizeof(struct shm_rq_entry), &rq->order_ring);
	shm->wqes = shmv_heap_get(ctx, (size_t)rq->size * shm->stride, &rq->order_wqes);
	if (!shm->ring || !shm->wqes) {
		shmv_heap_put(ctx, shm->ring, rq->order_ring);
		return false;
	}
	rq->shm = shm;
	rq->index = at;
	ctx->rqs[at] = rq;
	return true;
}

struct shmv_rq *shmv_rq_open(struct shmv_ctx *ctx, uint32_t wrs, uint32_t sges, uint32_t pd)
{
	struct shmv_rq *rq = calloc(1, sizeof(*rq));
	bool placed;

	if (!rq)
		return NULL;
	rq->ctx = ctx;
	rq->size = power_of_2(wrs);
	rq->max_sge = sges ? sges : 1;
	rq->pinned = (size_t)rq->size * 16 * (1 + rq->max_sge);
	rq->free = calloc(rq->size, sizeof(*rq->free));
	if (!rq->free || shmv_pin_ring(rq->pinned))
		goto err_rq;
	for (uint32_t i = 0; i < rq->size; i++)
		shmv_rq_give_back(rq, rq->size - 1 - i);
	pthread_mutex_lock(&ctx->mutex);
	placed = rq_place(rq, pd);
	pthread_mutex_unlock(&ctx->mutex);
	if (placed)
		return rq;
	shmv_unpin_ring(rq->pinned);
err_rq:
	free(rq->free);
	free(rq);
	return shmv_fail(ENOMEM);
}

void shmv_rq_close(struct shmv_rq *rq)
{
	struct shmv_ctx *ctx = rq->ctx;

	/*
	 * A poll, under the lock of its completion queue, finds an entry's receive queue by this
	 * table.
	 */
	pthread_mutex_lock(&ctx->mutex);
	for (uint32_t i = 0; i < SHM_CQ_MAX; i++)
		if (ctx->cqs[i])
			shmv_lock(&ctx->cqs[i]->lock);
	ctx->rqs[rq->index] = NULL;
	for (uint32_t i = 0; i < SHM_CQ_MAX; i++)
		if (ctx->cqs[i])
			shmv_unlock(&ctx->cqs[i]->lock);
	shmv_heap_put(ctx, rq->shm->ring, rq->order_ring);
	shmv_heap_put(ctx, rq->shm->wqes, rq->order_wqes);
	pthread_mutex_unlock(&ctx->mutex);
	shmv_unpin_ring(rq->pinned);
	free(rq->free);
	free(rq);
}

void __attribute__((noinline))
shmv_rq_tell_limit(struct shmv_seg *seg, struct shm_rq *rq, uint32_t left)
{
	uint32_t limit = shmv_load32(&rq->limit);

	if (limit && left < limit && shmv_replace32(&rq->limit, limit, 0))
		shmv_note_event(seg, IBV_EVENT_SRQ_LIMIT_REACHED, rq - seg->shm->rq, rq->serial);
}

bool shmv_rq_take(struct shmv_seg *seg, struct shm_rq *rq, struct shm_rq_entry *entry)
{
	const struct shm_rq_entry *ring = shm_at(seg->shm, rq->ring);
	uint32_t head = shmv_load32(&rq->head);

	do {
		if ((int32_t)(shmv_load32(&rq->seen) - head) <= 0) {
			uint32_t tail = shmv_load32(&rq->tail);

			if (tail == head)
				return false;
			shmv_store32(&rq->seen, tail);
		}
		*entry = ring[head & rq->mask];
	} while (!__atomic_compare_exchange_n(&rq->head, &head, head + 1, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_ACQUIRE));
	if (shmv_unlikely(shmv_load32(&rq->limit)))
		shmv_rq_tell_limit(seg, rq, shmv_load32(&rq->tail) - head - 1);
	return true;
}

int shmv_rq_post(struct shmv_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct shm *shm = rq->ctx->seg->shm;
	struct shm_rq *to = rq->shm;
	struct shm_rq_entry *ring = shm_at(shm, to->ring);
	int ret = 0;
	uint32_t tail;

	shmv_lock(&rq->lock);
	tail = to->tail;
	for (; wr; wr = wr->next) {
		struct shm_wqe *wqe;
		uint32_t index, room = 0;

		if (shmv_unlikely(!rq->free_count || wr->num_sge < 0 ||
				  (uint32_t)wr->num_sge > rq->max_sge)) {
			ret = rq->free_count ? EINVAL : ENOMEM;
			*bad = wr;
			break;
		}
		index = rq->free[--rq->free_count];
		wqe = shm_at(shm, to->wqes + (uint64_t)index * to->stride);
		wqe->wr_id = wr->wr_id;
		wqe->sges = wr->num_sge;
		for (int i = 0; i < wr->num_sge; i++) {
			wqe->sge[i] = wr->sg_list[i];
			room += wr->sg_list[i].length;
		}
		ring[tail++ & to->mask] = (struct shm_rq_entry){index, room};
	}
	if (shmv_unlikely(shmv_conf.stats))
		rq->ctx->count.posted += tail - to->tail;
	shmv_store32(&to->tail, tail);
	shmv_unlock(&rq->lock);
	return ret;
}
