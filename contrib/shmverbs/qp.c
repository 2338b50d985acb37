/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "qp.h"

#include "atomic.h"
#include "complete.h"
#include "conf.h"
#include "cq.h"
#include "lock.h"
#include "note.h"
#include "rq.h"
#include "segment.h"

void shmv_qp_fail(struct shmv_seg *seg, struct shm_qp *qp)
{
	bool first = shmv_swap32(&qp->state, IBV_QPS_ERR) != IBV_QPS_ERR;
	struct shm_rq_entry entry;

	if (qp->srq) {
		if (first && shmv_conf.last_wqe)
			shmv_note_event(seg, IBV_EVENT_QP_LAST_WQE_REACHED, qp - seg->shm->qp,
					qp->serial);
		return;
	}
	while (shmv_rq_take(seg, &seg->shm->rq[qp->rq], &entry)) {
		struct shm_cqe end = {.qpn = qp->qpn, .wqe = entry.wqe, .rq = qp->rq,
				      .status = IBV_WC_WR_FLUSH_ERR};

		shmv_complete_recv(seg, &seg->shm->cq[qp->cq], &end, NULL, 0, 0);
	}
}

/*
 * Adds the sends to the port's counters. It happens where the queue pair ends, so no message pays
 * for it.
 */
static void count(struct shmv_qp *qp)
{
	if (!qp->peer_qp)
		return;
	shmv_add64(&qp->ctx->port->sent, qp->posted - qp->counted);
	shmv_add64(&qp->peer_port->received, qp->posted - qp->counted);
	qp->counted = qp->posted;
}

void shmv_qp_reset(struct shmv_qp *qp)
{
	struct shm_rq_entry entry;

	count(qp);
	shmv_lock_shared(&qp->shm->lock);
	shmv_store32(&qp->shm->state, IBV_QPS_RESET);
	qp->shm->conn = 0;
	while (qp->rq && shmv_rq_take(qp->ctx->seg, qp->rq->shm, &entry)) {
		shmv_lock(&qp->rq->lock);
		shmv_rq_give_back(qp->rq, entry.wqe);
		shmv_unlock(&qp->rq->lock);
	}
	shmv_unlock_shared(&qp->shm->lock);
	qp->sq_head = qp->sq_tail;
	qp->retired = qp->posted;
	qp->retrying = false;
	qp->told = false;
	qp->lost = false;
	qp->wire = (struct shmv_qp_wire){0};
	if (qp->peer)
		shmv_seg_detach(qp->peer);
	qp->peer = NULL;
	qp->peer_qp = NULL;
	if (shmv_conf.clean_cq) {
		shmv_cq_clean((struct shmv_cq *)qp->ib.send_cq, qp, qp->ib.qp_num);
		shmv_cq_clean((struct shmv_cq *)qp->ib.recv_cq, qp, qp->ib.qp_num);
	}
}
