/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Create: making, querying and destroying queue pairs.
 *
 * Source: ibv_create_qp(3), ibv_query_qp(3).
 */
#include <errno.h>
#include <stdlib.h>

#include "atomic.h"
#include "conf.h"
#include "context.h"
#include "cq.h"
#include "lock.h"
#include "log.h"
#include "mem.h"
#include "qp.h"
#include "retry.h"
#include "rq.h"
#include "segment.h"
#include "srq.h"

/* Sizes of a mlx5 send queue, in bytes (rdma-core, providers/mlx5/verbs.c, mlx5_calc_sq_size). */
enum {
	MLX5_BLOCK = 64,
	MLX5_OVERHEAD = 192, /* of a bind, the request with the most */
	MLX5_INLINE_HEAD = 4,
	MLX5_REQUEST_MAX = 1024,
};

/*
 * Raises the capabilities asked for to those that a mlx5 device gives; EINVAL: they are too
 * large.
 */
static int size_mlx5(struct ibv_qp_cap *cap)
{
	uint32_t gather = cap->max_send_sge * sizeof(struct ibv_sge);
	uint32_t inlined = 0, size, bytes;

	if (cap->max_inline_data)
		inlined = (MLX5_INLINE_HEAD + cap->max_inline_data + 15) & ~15u;
	size = MLX5_OVERHEAD + (inlined > gather ? inlined : gather);
	if (size > MLX5_REQUEST_MAX)
		return EINVAL;
	size = (size + MLX5_BLOCK - 1) & -MLX5_BLOCK;
	for (bytes = MLX5_BLOCK; bytes < cap->max_send_wr * size; bytes *= 2)
		;
	if (bytes / MLX5_BLOCK > shmv_conf.max_qp_wr)
		return EINVAL;
	cap->max_inline_data = size - MLX5_OVERHEAD - MLX5_INLINE_HEAD;
	cap->max_send_wr = bytes / size;
	return 0;
}

static int check_init(const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;

	if (init->qp_type != IBV_QPT_RC)
		return EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq || cap->max_send_wr > shmv_conf.max_qp_wr ||
	    cap->max_recv_wr > shmv_conf.max_qp_wr || cap->max_send_sge > shmv_conf.max_sge ||
	    cap->max_recv_sge > shmv_conf.max_sge || cap->max_inline_data > shmv_conf.max_inline)
		return EINVAL;
	return 0;
}

/* Sets the sizes of the queues; 0 or EINVAL. */
static int size_queues(struct shmv_qp *qp, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_cap *cap = &init->cap;
	int ret;

	cap->max_send_wr = cap->max_send_wr ? cap->max_send_wr : 1;
	cap->max_send_sge = cap->max_send_sge ? cap->max_send_sge : 1;
	ret = shmv_conf.mlx5_wqes ? size_mlx5(cap) : 0;
	if (ret)
		return ret;
	if (!shmv_conf.mlx5_wqes && !shmv_conf.inline_exact)
		cap->max_inline_data = shmv_conf.max_inline;
	qp->max_wr = cap->max_send_wr;
	qp->max_sge = cap->max_send_sge;
	qp->max_inline = cap->max_inline_data;
	qp->sig_all = init->sq_sig_all;
	qp->init = *init;
	qp->pinned = (size_t)qp->max_wr * ((MLX5_OVERHEAD + qp->max_inline + 63) & ~63u);
	return 0;
}

/* Gives the queue pair its place in the file; false: there are too many queue pairs. */
static bool qp_place(struct shmv_qp *qp)
{
	struct shmv_ctx *ctx = qp->ctx;
	int at = -1;

	pthread_mutex_lock(&ctx->mutex);
	if (ctx->qp_count < shmv_conf.max_qp && ctx->qp_count < shmv_conf.spare_qp)
		at = shmv_ctx_place(ctx->qps, SHM_QP_MAX, &ctx->qp_next);
	if (at >= 0) {
		qp->index = at;
		qp->shm = &ctx->seg->shm->qp[at];
		ctx->qps[at] = qp;
		ctx->qp_count++;
	}
	pthread_mutex_unlock(&ctx->mutex);
	return at >= 0;
}

static void init_shared(struct shmv_qp *qp, const struct ibv_pd *pd,
			const struct ibv_qp_init_attr *init)
{
	struct shm_qp *shm = qp->shm;

	pthread_mutex_lock(&qp->ctx->mutex);
	shmv_lock_shared(&shm->lock);
	shm->conn = 0;
	shm->access = 0;
	shm->pd = pd->handle;
	shm->srq = init->srq;
	shm->rq = init->srq ? ((struct shmv_srq *)init->srq)->rq->index : qp->rq->index;
	shm->cq = ((struct shmv_cq *)init->recv_cq)->index;
	shm->qpn = qp->ib.qp_num;
	shm->serial = shmv_ctx_serial(qp->ctx);
	shmv_store32(&shm->state, IBV_QPS_RESET);
	shmv_unlock_shared(&shm->lock);
	pthread_mutex_unlock(&qp->ctx->mutex);
}

static void ref(const struct shmv_qp *qp, int by)
{
	shmv_pd_ref(qp->ib.pd, by);
	shmv_add32(&((struct shmv_cq *)qp->ib.send_cq)->refs, by);
	shmv_add32(&((struct shmv_cq *)qp->ib.recv_cq)->refs, by);
	if (qp->ib.srq)
		shmv_add32(&((struct shmv_srq *)qp->ib.srq)->refs, by);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct shmv_ctx *ctx = shmv_ctx_of(pd->context);
	struct ibv_qp_cap *cap = &init->cap;
	struct shmv_qp *qp;
	int ret;

	if (shmv_ctx_is_fatal(ctx))
		return shmv_fail(EIO);
	ret = check_init(init);
	if (ret)
		return shmv_conf.qp_errno ? shmv_fail(ret) : NULL;
	shmv_conf_spend(shmv_conf.qp_us * UINT64_C(1000));
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->ctx = ctx;
	qp->td = ((struct shmv_pd *)pd)->td;
	ret = size_queues(qp, init);
	if (ret)
		goto err_qp;
	ret = ENOMEM;
	if (shmv_pin_ring(qp->pinned))
		goto err_qp;
	if (!init->srq) {
		qp->rq = shmv_rq_open(ctx, cap->max_recv_wr ? cap->max_recv_wr : 1,
				      cap->max_recv_sge, pd->handle);
		if (!qp->rq)
			goto err_pin;
	}
	if (!qp_place(qp))
		goto err_rq;
	qp->ib = (struct ibv_qp){
		.context = pd->context,
		.qp_context = init->qp_context,
		.pd = pd,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.handle = qp->index,
		.qp_num = ctx->seg->slot << SHM_QP_BITS | qp->index,
		.state = IBV_QPS_RESET,
		.qp_type = init->qp_type,
	};
	pthread_mutex_init(&qp->ib.mutex, NULL);
	pthread_cond_init(&qp->ib.cond, NULL);
	shmv_cq_warm(ctx->seg, ((struct shmv_cq *)init->recv_cq)->index);
	init_shared(qp, pd, init);
	ref(qp, 1);
	return &qp->ib;

err_rq:
	if (qp->rq)
		shmv_rq_close(qp->rq);
err_pin:
	shmv_unpin_ring(qp->pinned);
err_qp:
	free(qp);
	return shmv_fail(ret);
}

int ibv_destroy_qp(struct ibv_qp *ib)
{
	struct shmv_qp *qp = (struct shmv_qp *)ib;
	struct shmv_cq *send_cq = (struct shmv_cq *)ib->send_cq;
	struct shmv_ctx *ctx = qp->ctx;

	shmv_conf_spend(shmv_conf.qp_us * UINT64_C(1000));
	shmv_lock(&qp->lock);
	shmv_retry_remove(qp);
	shmv_qp_reset(qp);
	pthread_mutex_lock(&ctx->mutex);
	shmv_lock(&send_cq->lock); /* a poll looks the queue pair up in the table */
	ctx->qps[qp->index] = NULL; /* from here on no event of the queue pair is delivered */
	shmv_unlock(&send_cq->lock);
	ctx->qp_count--;
	pthread_mutex_unlock(&ctx->mutex);
	pthread_mutex_lock(&ib->mutex);
	while (ib->events_completed != qp->async_events)
		pthread_cond_wait(&ib->cond, &ib->mutex);
	pthread_mutex_unlock(&ib->mutex);
	if (qp->rq)
		shmv_rq_close(qp->rq);
	ref(qp, -1);
	shmv_unpin_ring(qp->pinned);
	free(qp->sq);
	free(qp);
	return 0;
}

int ibv_query_qp(struct ibv_qp *ib, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct shmv_qp *qp = (struct shmv_qp *)ib;

	(void)mask;
	if (shmv_ctx_is_fatal(qp->ctx))
		return EIO;
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = ib->state = shmv_load32(&qp->shm->state);
	attr->cap = qp->init.cap;
	*init = qp->init;
	return 0;
}
