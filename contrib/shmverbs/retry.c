/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "retry.h"

#include "atomic.h"
#include "context.h"
#include "lock.h"
#include "move.h"
#include "qp.h"
#include "segment.h"
#include "sq.h"
#include "thread.h"
#include "transfer.h"

enum {
	CREDIT_NS = 500,	 /* from a posted receive until its sender knows of it */
	SILENT_NS = 50 * 1000,	 /* between tries to reach a silent peer */
	DEAD_NS = 1000000000,	 /* longest silence of a process that is known to be dead */
	RNR_FOREVER = 7,
	MS_655_36 = 65536,	 /* timer 0, in tens of microseconds */
};

static void list(struct shmv_qp *qp)
{
	struct shmv_ctx *ctx = qp->ctx;

	if (qp->next_try < shmv_load64(&ctx->due))
		shmv_store64(&ctx->due, qp->next_try);
	if (qp->listed)
		return;
	shmv_lock(&ctx->pend_lock);
	qp->listed = true;
	qp->pend_next = ctx->pend;
	ctx->pend = qp;
	shmv_add32(&ctx->pending, 1);
	shmv_unlock(&ctx->pend_lock);
	shmv_thread_kick();
}

/* Under pend_lock. */
static void unlist(struct shmv_qp *qp)
{
	struct shmv_qp **at = &qp->ctx->pend;

	while (*at && *at != qp)
		at = &(*at)->pend_next;
	if (!*at)
		return;
	*at = qp->pend_next;
	qp->listed = false;
	shmv_add32(&qp->ctx->pending, -1);
}

void shmv_retry_remove(struct shmv_qp *qp)
{
	shmv_lock(&qp->ctx->pend_lock);
	unlist(qp);
	shmv_unlock(&qp->ctx->pend_lock);
}

/* Time of an RNR timer (InfiniBand specification, volume 1, 9.7.5.2.8). */
static uint64_t rnr_ns(uint32_t timer)
{
	static const uint16_t tens_of_us[] = {0,    1,	  2,	3,     4,     6,     8,	    12,
					      16,   24,	  32,	48,    64,    96,    128,   192,
					      256,  384,  512,	768,   1024,  1536,  2048,  3072,
					      4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return (timer % 32 ? tens_of_us[timer % 32] : MS_655_36) * UINT64_C(10000);
}

static int later_rnr(struct shmv_qp *qp, uint64_t now)
{
	if (now >= qp->rnr_end) {
		if (qp->attr.rnr_retry != RNR_FOREVER && !qp->rnr_left--)
			return IBV_WC_RNR_RETRY_EXC_ERR;
		qp->rnr_end = now + rnr_ns(qp->peer_qp->rnr_timer);
	}
	qp->since = now;
	/*
	 * End-to-end credits say at once that a queue pair has a receive again. They say nothing
	 * of a shared receive queue (InfiniBand specification, volume 1, 9.7.7.2).
	 */
	qp->next_try = qp->peer_qp->srq ? qp->rnr_end : now + CREDIT_NS;
	return SHMV_RETRY_RNR;
}

static int later_silent(struct shmv_qp *qp, uint64_t now)
{
	bool gone = !qp->peer || shmv_load32(&qp->peer->dead) || qp->peer->shm->head.gone;
	uint64_t limit = UINT64_MAX;

	/* Local ACK timeout: 4.096 us times 2 to the timeout; 0: none (9.7.6.1.3). */
	if (qp->attr.timeout)
		limit = (UINT64_C(4096) << qp->attr.timeout) * (qp->attr.retry_cnt + 1);
	if (gone && limit > DEAD_NS)
		limit = DEAD_NS;
	if (now - qp->since >= limit)
		return IBV_WC_RETRY_EXC_ERR;
	qp->next_try = now + SILENT_NS;
	return SHMV_RETRY_SILENT;
}

int shmv_retry_later(struct shmv_qp *qp, int why)
{
	uint64_t now = shmv_now();
	int ret;

	if (!qp->retrying) {
		qp->retrying = true;
		qp->since = now;
		qp->rnr_end = 0;
		qp->rnr_left = qp->attr.rnr_retry;
	}
	ret = why == SHMV_RETRY_RNR ? later_rnr(qp, now) : later_silent(qp, now);
	if (ret >= 0)
		return ret;
	qp->ctx->count.waited++;
	list(qp);
	return ret;
}

void shmv_retry_run(struct shmv_qp *qp)
{
	if (shmv_unlikely(shmv_ctx_is_fatal(qp->ctx)))
		return;
	while (qp->sq_head != qp->sq_tail) {
		struct shmv_waiting *first = shmv_sq_at(qp, qp->sq_head);
		int status = IBV_WC_WR_FLUSH_ERR;

		qp->arrival = 0;
		if (shmv_load32(&qp->shm->state) != IBV_QPS_ERR) {
			if (qp->retrying && shmv_now() < qp->next_try)
				return;
			status = shmv_transfer(qp, &first->wr);
			if (status < 0)
				status = shmv_retry_later(qp, status);
			if (status < 0)
				return;
			qp->retrying = false;
		}
		qp->sq_head++;
		shmv_sq_finish(qp, &first->wr, first->index, status);
	}
}

void __attribute__((noinline)) shmv_retry(struct shmv_ctx *ctx)
{
	struct shmv_qp *qp, *next;
	uint64_t due = UINT64_MAX;

	if (shmv_now() < shmv_load64(&ctx->due) || !shmv_lock_try(&ctx->pend_lock))
		return;
	shmv_store64(&ctx->due, UINT64_MAX);
	for (qp = ctx->pend; qp; qp = next) {
		next = qp->pend_next;
		if (!shmv_lock_try(&qp->lock)) {
			due = 0;
			continue;
		}
		/*
		 * The queue pair stays in the list, and its lock keeps others from destroying it.
		 */
		shmv_unlock(&ctx->pend_lock);
		shmv_retry_run(qp);
		shmv_lock(&ctx->pend_lock);
		next = qp->listed ? qp->pend_next : NULL;
		if (qp->sq_head == qp->sq_tail && qp->listed)
			unlist(qp);
		else if (qp->next_try < due)
			due = qp->next_try;
		shmv_unlock(&qp->lock);
	}
	if (due < shmv_load64(&ctx->due))
		shmv_store64(&ctx->due, due);
	shmv_unlock(&ctx->pend_lock);
}

static void retry_each(struct shmv_ctx *ctx, void *arg)
{
	bool *waits = arg;

	if (shmv_load32(&ctx->pending))
		shmv_retry(ctx);
	*waits |= shmv_load32(&ctx->pending) != 0;
}

bool shmv_retry_all(void)
{
	bool waits = false;

	shmv_ctx_each(retry_each, &waits);
	return waits;
}
