/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "event.h"

#include <unistd.h>

#include "atomic.h"
#include "context.h"
#include "cq.h"
#include "lock.h"
#include "note.h"
#include "qp.h"
#include "rq.h"
#include "srq.h"

/* An event in the pipe behind a context's async_fd. */
struct record {
	uint32_t type, index, serial;
};

/* The type of object that an event is about. */
enum about { ABOUT_PORT, ABOUT_CQ, ABOUT_QP, ABOUT_SRQ };

static enum about about(uint32_t type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return ABOUT_CQ;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ABOUT_SRQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ABOUT_QP;
	default:
		return ABOUT_PORT;
	}
}

static void deliver(struct shmv_ctx *ctx, uint32_t type, uint32_t index, uint32_t serial)
{
	struct record record = {type, index, serial};

	(void)!write(ctx->async_wfd, &record, sizeof(record));
}

static void fail_cq(struct shmv_ctx *ctx, uint32_t index)
{
	struct shm_cq *cq = &ctx->seg->shm->cq[index];

	if (!ctx->cqs[index])
		return;
	shmv_store32(&cq->error, 1);
	deliver(ctx, IBV_EVENT_CQ_ERR, index, cq->serial);
}

static void fail_srq(struct shmv_ctx *ctx, uint32_t index)
{
	struct shm_rq *rq = &ctx->seg->shm->rq[index];

	if (!ctx->rqs[index] || !ctx->rqs[index]->srq)
		return;
	shmv_store32(&rq->error, 1);
	deliver(ctx, IBV_EVENT_SRQ_ERR, index, rq->serial);
}

static void fail_qp(struct shmv_ctx *ctx, uint32_t index)
{
	struct shm_qp *qp = &ctx->seg->shm->qp[index];

	if (!ctx->qps[index])
		return;
	shmv_lock_shared(&qp->lock);
	shmv_qp_fail(ctx->seg, qp);
	shmv_unlock_shared(&qp->lock);
	deliver(ctx, IBV_EVENT_QP_FATAL, index, qp->serial);
}

/* Makes the object of an event fail, then delivers the event. */
static void inject(struct shmv_ctx *ctx, const struct shmv_note *note)
{
	void (*fail)(struct shmv_ctx *ctx, uint32_t index);
	uint32_t max;

	switch (note->type) {
	case IBV_EVENT_CQ_ERR:
		fail = fail_cq;
		max = SHM_CQ_MAX;
		break;
	case IBV_EVENT_SRQ_ERR:
		fail = fail_srq;
		max = SHM_RQ_MAX;
		break;
	case IBV_EVENT_QP_FATAL:
		fail = fail_qp;
		max = SHM_QP_MAX;
		break;
	case IBV_EVENT_DEVICE_FATAL:
		__atomic_or_fetch(&ctx->seg->shm->head.gone, SHM_FATAL, __ATOMIC_SEQ_CST);
		/* fall through */
	default:
		deliver(ctx, note->type, 0, 0);
		return;
	}
	pthread_mutex_lock(&ctx->mutex);
	for (uint32_t i = 0; i < max; i++)
		if (note->index == (uint32_t)SHMV_NOTE_ALL || note->index == i)
			fail(ctx, i);
	pthread_mutex_unlock(&ctx->mutex);
}

static void take(struct shmv_ctx *ctx, void *arg)
{
	const struct shmv_note *note = arg;

	if (ctx->seg->slot != note->slot)
		return;
	switch (note->kind) {
	case SHMV_NOTE_EVENT:
		deliver(ctx, note->type, note->index, note->serial);
		break;
	case SHMV_NOTE_INJECT:
		inject(ctx, note);
		break;
	case SHMV_NOTE_WAKE:
		shmv_cq_wake_own(ctx, note->index);
		break;
	}
}

void shmv_event_take(const struct shmv_note *note)
{
	shmv_ctx_each(take, (void *)note);
}

/*
 * Sets *event to a record's event, and counts it at its object; false: the object was destroyed
 * meanwhile.
 */
static bool resolve(struct shmv_ctx *ctx, const struct record *record,
		    struct ibv_async_event *event)
{
	bool found = true;

	pthread_mutex_lock(&ctx->mutex);
	if (about(record->type) == ABOUT_CQ) {
		struct shmv_cq *cq = ctx->cqs[record->index % SHM_CQ_MAX];

		found = cq && cq->shm->serial == record->serial;
		if (found)
			cq->async_events++;
		event->element.cq = found ? &cq->ib : NULL;
	} else if (about(record->type) == ABOUT_QP) {
		struct shmv_qp *qp = ctx->qps[record->index % SHM_QP_MAX];

		found = qp && qp->shm->serial == record->serial;
		if (found)
			qp->async_events++;
		event->element.qp = found ? &qp->ib : NULL;
	} else if (about(record->type) == ABOUT_SRQ) {
		struct shmv_rq *rq = ctx->rqs[record->index % SHM_RQ_MAX];

		found = rq && rq->srq && rq->shm->serial == record->serial;
		if (found)
			rq->srq->async_events++;
		event->element.srq = found ? &rq->srq->ib : NULL;
	} else {
		event->element.port_num = 1;
	}
	pthread_mutex_unlock(&ctx->mutex);
	event->event_type = record->type;
	return found;
}

int ibv_get_async_event(struct ibv_context *ib, struct ibv_async_event *event)
{
	struct record record;

	do {
		if (read(ib->async_fd, &record, sizeof(record)) != sizeof(record))
			return -1;
	} while (!resolve(shmv_ctx_of(ib), &record, event));
	return 0;
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (about(event->event_type)) {
	case ABOUT_CQ:
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case ABOUT_QP:
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case ABOUT_SRQ:
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case ABOUT_PORT:
		break;
	}
}
