/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "srq.h"

#include <errno.h>
#include <stdlib.h>

#include "atomic.h"
#include "conf.h"
#include "log.h"
#include "mem.h"
#include "rq.h"

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct shmv_ctx *ctx = shmv_ctx_of(pd->context);
	struct shmv_srq *srq;

	if (shmv_ctx_is_fatal(ctx))
		return shmv_fail(EIO);
	if (!shmv_conf.srq)
		return shmv_fail(EOPNOTSUPP);
	if (!init->attr.max_wr || init->attr.max_wr > shmv_conf.max_qp_wr ||
	    init->attr.max_sge > shmv_conf.max_sge)
		return shmv_fail(EINVAL);
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->rq = shmv_rq_open(ctx, init->attr.max_wr, init->attr.max_sge, pd->handle);
	if (!srq->rq) {
		free(srq);
		return shmv_fail(ENOMEM);
	}
	init->attr.max_wr = srq->rq->size;
	init->attr.max_sge = srq->rq->max_sge;
	srq->ib = (struct ibv_srq){.context = pd->context,
				   .srq_context = init->srq_context,
				   .pd = pd,
				   .handle = srq->rq->index};
	pthread_mutex_init(&srq->ib.mutex, NULL);
	pthread_cond_init(&srq->ib.cond, NULL);
	srq->rq->srq = srq;
	shmv_pd_ref(pd, 1);
	return &srq->ib;
}

/* Does not resize: IBV_DEVICE_SRQ_RESIZE is not among the device's flags. */
int ibv_modify_srq(struct ibv_srq *ib, struct ibv_srq_attr *attr, int mask)
{
	struct shmv_rq *rq = ((struct shmv_srq *)ib)->rq;

	if (shmv_ctx_is_fatal(rq->ctx))
		return EIO;
	if (mask & ~IBV_SRQ_LIMIT || (mask && attr->srq_limit > rq->size))
		return EINVAL;
	if (!mask)
		return 0;
	shmv_store32(&rq->shm->limit, attr->srq_limit);
	shmv_rq_tell_limit(rq->ctx->seg, rq->shm,
			   shmv_load32(&rq->shm->tail) - shmv_load32(&rq->shm->head));
	return 0;
}

int ibv_query_srq(struct ibv_srq *ib, struct ibv_srq_attr *attr)
{
	const struct shmv_rq *rq = ((struct shmv_srq *)ib)->rq;

	*attr = (struct ibv_srq_attr){.max_wr = rq->size, .max_sge = rq->max_sge,
				      .srq_limit = shmv_load32(&rq->shm->limit)};
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *ib)
{
	struct shmv_srq *srq = (struct shmv_srq *)ib;

	if (shmv_load32(&srq->refs))
		return EBUSY;
	shmv_rq_close(srq->rq); /* from here on no event of the queue is delivered */
	pthread_mutex_lock(&ib->mutex);
	while (ib->events_completed != srq->async_events)
		pthread_cond_wait(&ib->cond, &ib->mutex);
	pthread_mutex_unlock(&ib->mutex);
	shmv_pd_ref(ib->pd, -1);
	free(srq);
	return 0;
}
