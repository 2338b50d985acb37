/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "complete.h"
#include "conf.h"
#include "lock.h"
#include "retry.h"
#include "transfer.h"
#include "window.h"
#include "wire.h"

static int sq_add(struct shmv_qp *qp, const struct ibv_send_wr *wr)
{
	struct shmv_waiting *to;

	if (!qp->sq) {
		qp->sq_stride = (sizeof(*to) + qp->max_sge * sizeof(struct ibv_sge) + qp->max_inline + 15) &
				~(size_t)15;
		qp->sq = malloc(qp->max_wr * qp->sq_stride);
		if (!qp->sq)
			return ENOMEM;
	}
	to = (struct shmv_waiting *)(qp->sq + (qp->sq_tail++ % qp->max_wr) * qp->sq_stride);
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

void shmv_send_finish(struct shmv_qp *qp, const struct ibv_send_wr *wr, uint32_t index, int status)
{
	if (status || wr->send_flags & IBV_SEND_SIGNALED || qp->sig_all)
		shmv_complete_send(qp, wr, index, status, shmv_wire_ack(qp->arrival));
	if (shmv_unlikely(status) && shmv_load32(&qp->shm->state) != IBV_QPS_ERR) {
		shmv_lock_shared(&qp->shm->lock);
		shmv_qp_fail(qp->ctx->seg, qp->shm);
		shmv_unlock_shared(&qp->shm->lock);
	}
}

/* Whether an opcode may have its payload inline. */
static inline bool is_inlinable(uint32_t opcode)
{
	return opcode <= IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}

/* What the device does not do at all. */
static __attribute__((noinline)) int check_rare(const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return shmv_conf.atomics ? 0 : EINVAL;
	if (!shmv_conf.mw)
		return EINVAL;
	if (wr->opcode == IBV_WR_BIND_MW)
		return shmv_window_check(wr);
	return wr->opcode <= IBV_WR_SEND_WITH_INV ? 0 : EINVAL;
}

/* What ibv_post_send(3) refuses at once. */
static inline int check_send(const struct shmv_qp *qp, const struct ibv_send_wr *wr, uint32_t state)
{
	if (shmv_unlikely(state != IBV_QPS_RTS && (state != IBV_QPS_ERR ||
			  (shmv_conf.err_post && (qp->told || shmv_conf.err_post == 2)))))
		return EINVAL;
	if (shmv_unlikely(qp->posted - shmv_load32(&qp->retired) >= qp->max_wr))
		return ENOMEM;
	if (shmv_unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->max_sge))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE) {
		uint64_t len = 0;

		for (int i = 0; i < wr->num_sge; i++)
			len += wr->sg_list[i].length;
		if (shmv_unlikely(len > qp->max_inline || !is_inlinable(wr->opcode)))
			return EINVAL;
	}
	return 0;
}

static __attribute__((noinline)) void count_sends(struct shmv_counts *count, const struct ibv_send_wr *wr)
{
	count->posts++;
	for (; wr; wr = wr->next) {
		if (wr->opcode <= IBV_WR_SEND_WITH_INV)
			count->ops[wr->opcode]++;
		for (int i = 0; i < wr->num_sge; i++)
			count->bytes += wr->sg_list[i].length;
		count->inlined += !!(wr->send_flags & IBV_SEND_INLINE);
		count->signaled += !!(wr->send_flags & IBV_SEND_SIGNALED);
	}
}

/* Does one work request, or puts it behind those that wait. */
static inline int post_one(struct shmv_qp *qp, const struct ibv_send_wr *wr, uint32_t state)
{
	int status, ret;

	qp->posted++;
	if (shmv_likely(qp->sq_head == qp->sq_tail && state == IBV_QPS_RTS &&
			!shmv_ctx_is_fatal(qp->ctx))) {
		status = shmv_transfer(qp, wr);
		if (shmv_unlikely(status < 0))
			status = shmv_retry_later(qp, status);
		if (shmv_likely(status >= 0)) {
			qp->retrying = false;
			shmv_send_finish(qp, wr, qp->posted, status);
			return 0;
		}
	}
	ret = sq_add(qp, wr);
	if (ret)
		qp->posted--;
	return ret;
}

static inline int post(struct shmv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, bool internal)
{
	int ret = 0;

	if (shmv_unlikely(shmv_conf.stats))
		count_sends(&qp->ctx->count, wr);
	shmv_lock(&qp->lock);
	for (; wr; wr = wr->next) {
		uint32_t state = shmv_load32(&qp->shm->state);

		ret = check_send(qp, wr, state);
		if (shmv_unlikely(wr->opcode > IBV_WR_RDMA_READ) && !ret && !internal)
			ret = check_rare(wr);
		if (shmv_likely(!ret))
			ret = post_one(qp, wr, state);
		if (shmv_unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	if (shmv_unlikely(qp->sq_head != qp->sq_tail))
		shmv_retry_run(qp);
	shmv_unlock(&qp->lock);
	return ret;
}

int shmv_post_send(struct ibv_qp *ib, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return post((struct shmv_qp *)ib, wr, bad, false);
}

int shmv_send_internal(struct ibv_qp *ib, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return post((struct shmv_qp *)ib, wr, bad, true);
}
