/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "complete.h"
#include "cq.h"
#include "lock.h"
#include "qp.h"
#include "wire.h"

int shmv_sq_add(struct shmv_qp *qp, const struct ibv_send_wr *wr)
{
	struct shmv_waiting *to;

	if (!qp->sq) {
		qp->sq_stride = (sizeof(*to) + qp->max_sge * sizeof(struct ibv_sge) +
				 qp->max_inline + 15) &
				~(size_t)15;
		qp->sq = malloc(qp->max_wr * qp->sq_stride);
		if (!qp->sq)
			return ENOMEM;
	}
	to = shmv_sq_at(qp, qp->sq_tail++);
	to->wr = *wr;
	to->wr.next = NULL;
	to->wr.sg_list = to->sge;
	to->index = qp->posted;
	if (wr->num_sge)
		memcpy(to->sge, wr->sg_list, wr->num_sge * sizeof(*to->sge));
	if (wr->send_flags & IBV_SEND_INLINE) {
		uint8_t *data = (uint8_t *)&to->sge[qp->max_sge];

		for (int i = 0; i < wr->num_sge; i++) {
			memcpy(data, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
			to->sge[i].addr = (uintptr_t)data;
			data += wr->sg_list[i].length;
		}
	}
	return 0;
}

/* Opcode of the completion of a send. */
static uint8_t opcode_of(const struct ibv_send_wr *wr)
{
	static const uint8_t opcode[] = {
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	};

	return opcode[wr->opcode];
}

static inline void complete(struct shmv_qp *qp, const struct ibv_send_wr *wr, uint32_t index,
			    int status)
{
	struct shmv_sent sent = {
		.wr_id = wr->wr_id,
		.ready = shmv_wire_ack(qp->arrival),
		.qp = qp,
		.qpn = qp->ib.qp_num,
		.index = index,
		.len = qp->len,
		.status = status,
		.opcode = opcode_of(wr),
	};

	shmv_complete_send((struct shmv_cq *)qp->ib.send_cq, &sent);
}

void shmv_sq_finish(struct shmv_qp *qp, const struct ibv_send_wr *wr, uint32_t index, int status)
{
	if (status || wr->send_flags & IBV_SEND_SIGNALED || qp->sig_all)
		complete(qp, wr, index, status);
	if (shmv_unlikely(status) && shmv_load32(&qp->shm->state) != IBV_QPS_ERR) {
		shmv_lock_shared(&qp->shm->lock);
		shmv_qp_fail(qp->ctx->seg, qp->shm);
		shmv_unlock_shared(&qp->shm->lock);
	}
}
