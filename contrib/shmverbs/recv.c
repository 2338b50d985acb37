/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "recv.h"

#include <errno.h>

#include "atomic.h"
#include "lock.h"
#include "qp.h"
#include "rq.h"
#include "srq.h"

int shmv_post_srq_recv(struct ibv_srq *ib, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return shmv_rq_post(((struct shmv_srq *)ib)->rq, wr, bad);
}

int shmv_post_recv(struct ibv_qp *ib, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct shmv_qp *qp = (struct shmv_qp *)ib;
	int ret;

	if (!qp->rq || shmv_load32(&qp->shm->state) == IBV_QPS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	ret = shmv_rq_post(qp->rq, wr, bad);
	/*
	 * The state is read behind a full barrier. If the queue pair fails now, either the
	 * failing process sees this receive, or this process sees the state.
	 */
	if (shmv_unlikely(shmv_add32(&qp->shm->state, 0) == IBV_QPS_ERR)) {
		shmv_lock_shared(&qp->shm->lock);
		shmv_qp_fail(qp->ctx->seg, qp->shm);
		shmv_unlock_shared(&qp->shm->lock);
	}
	return ret;
}
