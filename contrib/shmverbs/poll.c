/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll.h"

#include <string.h>

#include "atomic.h"
#include "conf.h"
#include "complete.h"
#include "context.h"
#include "cq.h"
#include "lock.h"
#include "mem.h"
#include "qp.h"
#include "retry.h"
#include "rq.h"

/* The result of taking one entry. */
enum { NONE = 0, TAKEN = 1, DROPPED = -1 };

/* This and the next two: under the queue's lock. */
static inline int take_sent(struct shmv_cq *cq, struct ibv_wc *wc)
{
	struct shmv_sent *sent;

	if (cq->sent_head == shmv_load32(&cq->sent_tail))
		return NONE;
	sent = &cq->sent[cq->sent_head & cq->mask];
	if (shmv_unlikely(sent->ready && sent->ready > shmv_now()))
		return NONE;
	if (shmv_unlikely(!sent->qp)) {
		shmv_store32(&cq->sent_head, cq->sent_head + 1);
		return DROPPED;
	}
	if (shmv_likely(cq->ctx->qps[sent->qpn % SHM_QP_MAX] == sent->qp)) {
		shmv_store32(&sent->qp->retired, sent->index);
		if (shmv_unlikely(sent->status))
			sent->qp->told = true;
	}
	wc->wr_id = sent->wr_id;
	wc->status = sent->status;
	wc->opcode = sent->opcode;
	wc->vendor_err = 0;
	wc->byte_len = sent->len;
	wc->qp_num = sent->qpn;
	wc->src_qp = 0;
	wc->wc_flags = 0;
	shmv_store32(&cq->sent_head, cq->sent_head + 1);
	return TAKEN;
}

/* Copies a payload into a receive's scatter list; false: a key does not open the memory. */
static inline bool scatter(struct shmv_ctx *ctx, const struct shmv_rq *rq,
			   const struct shm_wqe *wqe, const uint8_t *from, uint32_t len)
{
	for (uint32_t i = 0; len && i < wqe->sges; i++) {
		const struct ibv_sge *sge = &wqe->sge[i];
		uint32_t part = sge->length < len ? sge->length : len;
		void *to = shmv_mr_find(ctx->seg->shm, sge->lkey, sge->addr, part,
					IBV_ACCESS_LOCAL_WRITE | SHM_ACCESS_LKEY, rq->shm->pd);

		if (shmv_unlikely(!to))
			return false;
		memcpy(to, from, part);
		from += part;
		len -= part;
	}
	return true;
}

static void wc_fill(struct ibv_wc *wc, const struct shm_cqe *cqe, uint64_t wr_id, uint8_t status)
{
	wc->wr_id = wr_id;
	wc->status = status;
	wc->opcode = cqe->kind & SHM_CQE_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	wc->vendor_err = 0;
	wc->byte_len = cqe->len;
	wc->imm_data = cqe->imm;
	wc->qp_num = cqe->qpn;
	wc->src_qp = 0;
	wc->wc_flags = (cqe->kind & SHM_CQE_IMM ? IBV_WC_WITH_IMM : 0) |
		       (cqe->kind & SHM_CQE_INV ? IBV_WC_WITH_INV : 0);
}

static inline int take_received(struct shmv_cq *cq, struct ibv_wc *wc)
{
	struct shmv_ctx *ctx = cq->ctx;
	struct shm *shm = ctx->seg->shm;
	struct shm_cqe *cqe = (struct shm_cqe *)shm_at(shm, cq->shm->ring) + (cq->head & cq->mask);
	const struct shm_wqe *wqe;
	struct shmv_rq *rq;
	uint8_t status;

	if (shmv_load32(&cqe->seq) != cq->head + 1)
		return NONE;
	if (shmv_unlikely(cqe->kind & SHM_CQE_LATER &&
			  ((uint64_t *)shm_at(shm, cq->shm->times))[cq->head & cq->mask] >
				  shmv_now()))
		return NONE;
	rq = ctx->rqs[cqe->rq];
	if (shmv_unlikely(!rq)) { /* the receive queue was closed meanwhile */
		cq->head++;
		return DROPPED;
	}
	wqe = shm_at(shm, rq->shm->wqes + (uint64_t)cqe->wqe * rq->shm->stride);
	status = cqe->status;
	if (shmv_likely(!(cqe->kind & SHM_CQE_DROPPED))) {
		const uint8_t *from = cqe->kind & SHM_CQE_HERE
					      ? cqe->data
					      : shm_at(shm,
						       cq->shm->besides +
							       (uint64_t)(cq->head % SHM_BESIDES) *
								       SHM_BESIDE_MAX);

		if (cqe->kind & (SHM_CQE_HERE | SHM_CQE_BESIDE) &&
		    shmv_unlikely(!scatter(ctx, rq, wqe, from, cqe->len))) {
			status = IBV_WC_LOC_PROT_ERR;
			shmv_store32(&shm->qp[cqe->qpn % SHM_QP_MAX].state, IBV_QPS_ERR);
		}
		wc_fill(wc, cqe, wqe->wr_id, status);
	}
	shmv_lock(&rq->lock);
	shmv_rq_give_back(rq, cqe->wqe);
	shmv_unlock(&rq->lock);
	cq->head++;
	return cqe->kind & SHM_CQE_DROPPED ? DROPPED : TAKEN;
}

static inline bool is_empty(const struct shmv_cq *cq)
{
	const struct shm_cqe *ring = shm_at(cq->ctx->seg->shm, cq->shm->ring);

	return cq->sent_head == shmv_load32(&cq->sent_tail) &&
	       shmv_load32(&ring[cq->head & cq->mask].seq) != cq->head + 1;
}

static __attribute__((noinline)) void count(struct shmv_cq *cq, uint32_t sent_head, uint32_t head,
					    bool empty)
{
	struct shmv_counts *counts = &cq->ctx->count;

	counts->polls++;
	counts->empty += empty;
	counts->sent += cq->sent_head - sent_head;
	counts->received += cq->head - head;
}

int shmv_poll_cq(struct ibv_cq *ib, int max, struct ibv_wc *wc)
{
	struct shmv_cq *cq = (struct shmv_cq *)ib;
	uint32_t sent_head = cq->sent_head, head = cq->head;
	int got = 0, ret;

	if (shmv_unlikely(shmv_load32(&cq->ctx->pending)))
		shmv_retry(cq->ctx);
	if (shmv_unlikely(shmv_load32(&cq->shm->error)))
		return -1;
	if (!is_empty(cq)) {
		if (shmv_unlikely(shmv_ctx_is_fatal(cq->ctx)))
			return 0;
		shmv_lock(&cq->lock);
		while (got < max && (ret = take_sent(cq, &wc[got])))
			got += ret == TAKEN;
		while (got < max && (ret = take_received(cq, &wc[got])))
			got += ret == TAKEN;
		shmv_store32(&cq->shm->head, cq->head);
		shmv_unlock(&cq->lock);
	}
	if (shmv_unlikely(shmv_conf.stats))
		count(cq, sent_head, head, !got);
	return got;
}

int shmv_req_notify_cq(struct ibv_cq *ib, int solicited_only)
{
	struct shmv_cq *cq = (struct shmv_cq *)ib;

	cq->ctx->count.armed++;
	shmv_swap32(&cq->shm->armed, solicited_only ? 2 : 1);
	/*
	 * A completion on the wire has had its wake-up, at which the sleeper may have found
	 * nothing: it needs another.
	 */
	if (shmv_unlikely(shmv_conf.timed) && !is_empty(cq))
		shmv_complete_wake(cq);
	return 0;
}
