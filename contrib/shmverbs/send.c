/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "send.h"

#include <errno.h>

#include "atomic.h"
#include "conf.h"
#include "lock.h"
#include "qp.h"
#include "retry.h"
#include "sq.h"
#include "td.h"
#include "transfer.h"
#include "window.h"

/* True if the payload of such a request may be inline. */
static inline bool is_inlinable(uint32_t opcode)
{
	return opcode <= IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}

/* Checks the opcodes that not all devices have; 0 or EINVAL. */
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

/* Checks what ibv_post_send(3) refuses at once; 0 or the errno. */
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

static __attribute__((noinline)) void count_sends(struct shmv_counts *count,
						  const struct ibv_send_wr *wr)
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

/* Executes a work request, or appends it to the send queue. */
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
			shmv_sq_finish(qp, wr, qp->posted, status);
			return 0;
		}
	}
	ret = shmv_sq_add(qp, wr);
	if (ret)
		qp->posted--;
	return ret;
}

static inline int post(struct shmv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		       bool internal)
{
	int ret = 0;

	if (shmv_unlikely(shmv_conf.stats))
		count_sends(&qp->ctx->count, wr);
	shmv_td_enter(qp->td);
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
	shmv_td_leave(qp->td);
	return ret;
}

int shmv_post_send(struct ibv_qp *ib, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return post((struct shmv_qp *)ib, wr, bad, false);
}

/* The rkey changes at once, although the request is executed later (ibv_bind_mw(3)). */
int shmv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info},
	}, *bad;
	int ret = post((struct shmv_qp *)qp, &wr, &bad, true);

	if (!ret)
		mw->rkey = wr.bind_mw.rkey;
	return ret;
}
