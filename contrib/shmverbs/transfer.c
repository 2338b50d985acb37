/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "transfer.h"

#include <string.h>

#include "atomic.h"
#include "complete.h"
#include "conf.h"
#include "lock.h"
#include "mem.h"
#include "move.h"
#include "ports.h"
#include "qp.h"
#include "rq.h"
#include "window.h"
#include "wire.h"

enum { MSG_MAX = 1 << 30 };

/* Bits of enum shm_cqe_kind for a send. */
static inline uint8_t kind_of(const struct ibv_send_wr *wr)
{
	uint8_t kind = wr->send_flags & IBV_SEND_SOLICITED ? SHM_CQE_SOLICITED : 0;

	if (wr->opcode == IBV_WR_SEND_WITH_IMM)
		kind |= SHM_CQE_IMM;
	else if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		kind |= SHM_CQE_IMM | SHM_CQE_WRITE;
	else if (wr->opcode == IBV_WR_SEND_WITH_INV)
		kind |= SHM_CQE_INV;
	return kind;
}

/*
 * Takes a receive and completes it, with the payload of a SEND. A WRITE has its payload there
 * already.
 */
static int deliver(struct shmv_qp *qp, const struct ibv_send_wr *wr, const struct iovec *iov,
		   int count, uint64_t len)
{
	bool rdma = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct shmv_seg *seg = qp->peer;
	struct shm_qp *peer = qp->peer_qp;
	struct shm_rq *rq = &seg->shm->rq[peer->rq];
	struct shm_rq_entry taken;
	struct shm_cqe entry;

	if (shmv_unlikely(shmv_load32(&rq->error)))
		return IBV_WC_REM_OP_ERR;
	if (shmv_unlikely(!shmv_rq_take(seg, rq, &taken)))
		return SHMV_RETRY_RNR;
	entry.qpn = qp->peer_qpn;
	entry.wqe = taken.wqe;
	entry.len = len;
	entry.imm = wr->imm_data;
	entry.rq = peer->rq;
	entry.status = IBV_WC_SUCCESS;
	entry.kind = kind_of(wr);
	if (!rdma && shmv_unlikely(len > taken.room)) {
		entry.status = IBV_WC_LOC_LEN_ERR;
	} else if (shmv_unlikely(wr->opcode == IBV_WR_SEND_WITH_INV) &&
		   !shmv_window_invalidate(seg->shm, wr->invalidate_rkey, peer->pd, qp->peer_qpn)) {
		/* As in soft-RoCE (Linux: rxe_resp.c, INVALIDATE_RKEY). */
		entry.status = IBV_WC_REM_INV_REQ_ERR;
	} else if (!rdma && len) {
		if (len <= SHM_HERE_MAX)
			entry.kind |= SHM_CQE_HERE;
		else if (len <= shmv_conf.beside_max)
			entry.kind |= SHM_CQE_BESIDE;
		else
			entry.status = shmv_move_to_wqe(seg, rq, taken.wqe, iov, count, len);
	}
	if (shmv_unlikely(shmv_load32(&seg->dead)))
		return SHMV_RETRY_SILENT;
	if (!rdma)
		qp->arrival = shmv_wire_send(qp, len);
	if (shmv_unlikely(!shmv_complete_recv(seg, &seg->shm->cq[peer->cq], &entry, iov, count,
					      qp->arrival)))
		return IBV_WC_REM_OP_ERR;
	if (shmv_likely(!entry.status))
		return IBV_WC_SUCCESS;
	return entry.status == IBV_WC_LOC_PROT_ERR ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR;
}

static int read_or_write(struct shmv_qp *qp, const struct ibv_send_wr *wr, const struct iovec *iov,
			 int count, uint64_t len)
{
	bool read = wr->opcode == IBV_WR_RDMA_READ;
	uint32_t need = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	struct shm *shm = qp->peer->shm;
	struct iovec its = {.iov_len = len};
	int ret = IBV_WC_SUCCESS;

	if (!(qp->peer_qp->access & need))
		return IBV_WC_REM_INV_REQ_ERR;
	if (len) { /* with a length of 0 a device does not look at the key */
		its.iov_base = shmv_mr_hold(shm, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, len,
					    need, qp->peer_qp->pd, qp->peer_qpn);
		if (!its.iov_base)
			return IBV_WC_REM_ACCESS_ERR;
		ret = shmv_move(qp->peer, !read, iov, count, &its, 1, len);
		shmv_mr_release(shm, wr->wr.rdma.rkey);
	}
	if (!ret)
		qp->arrival = read ? shmv_wire_read(qp, len) : shmv_wire_send(qp, len);
	return ret;
}

/* Atomic only among atomics of devices on this memory: IBV_ATOMIC_HCA. */
static int atomic(struct shmv_qp *qp, const struct ibv_send_wr *wr, const struct iovec *iov)
{
	bool add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct shm *shm = qp->peer->shm;
	uint64_t old, new;
	struct iovec mine = {&old, 8}, its = {.iov_len = 8};
	int ret;

	if (!(qp->peer_qp->access & IBV_ACCESS_REMOTE_ATOMIC) || wr->wr.atomic.remote_addr % 8)
		return IBV_WC_REM_INV_REQ_ERR;
	its.iov_base = shmv_mr_hold(shm, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, 8,
				    IBV_ACCESS_REMOTE_ATOMIC, qp->peer_qp->pd, qp->peer_qpn);
	if (!its.iov_base)
		return IBV_WC_REM_ACCESS_ERR;
	shmv_lock_shared(&shm->atomics);
	ret = shmv_move(qp->peer, false, &mine, 1, &its, 1, 8);
	new = add ? old + wr->wr.atomic.compare_add : wr->wr.atomic.swap;
	if (!ret && (add || old == wr->wr.atomic.compare_add)) {
		mine.iov_base = &new;
		ret = shmv_move(qp->peer, true, &mine, 1, &its, 1, 8);
	}
	shmv_unlock_shared(&shm->atomics);
	shmv_mr_release(shm, wr->wr.atomic.rkey);
	if (!ret) {
		memcpy(iov->iov_base, &old, 8);
		qp->arrival = shmv_wire_read(qp, 8);
	}
	return ret;
}

/* True if such a request writes to the memory of its scatter list. */
static inline bool is_fetching(uint32_t opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/*
 * Sets iov to the request's local memory, *len to its length; false: a key does not open the
 * memory.
 */
static inline bool local(const struct shmv_qp *qp, const struct ibv_send_wr *wr, struct iovec *iov,
			 uint64_t *len)
{
	uint32_t need = SHM_ACCESS_LKEY | (is_fetching(wr->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0);
	uint32_t pd = qp->ib.pd->handle;

	*len = 0;
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		iov[i].iov_base = (void *)(uintptr_t)sge->addr;
		iov[i].iov_len = sge->length;
		*len += sge->length;
		if (wr->send_flags & IBV_SEND_INLINE || !sge->length)
			continue;
		iov[i].iov_base = shmv_mr_find(qp->ctx->seg->shm, sge->lkey, sge->addr, sge->length,
					       need, pd);
		if (!iov[i].iov_base)
			return false;
	}
	return true;
}

/* Does the work of the peer's device. Under the peer's lock. */
static int execute(struct shmv_qp *qp, const struct ibv_send_wr *wr, const struct iovec *iov,
		   uint64_t len)
{
	int ret;

	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return deliver(qp, wr, iov, wr->num_sge, len);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ret = read_or_write(qp, wr, iov, wr->num_sge, len);
		return ret ? ret : deliver(qp, wr, iov, wr->num_sge, len);
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		return read_or_write(qp, wr, iov, wr->num_sge, len);
	default:
		return len == 8 && wr->num_sge == 1 ? atomic(qp, wr, iov) : IBV_WC_LOC_LEN_ERR;
	}
}

/* Executes a request that concerns no peer. */
static int execute_here(struct shmv_qp *qp, const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_BIND_MW)
		return shmv_window_bind(qp, wr);
	if (shmv_window_invalidate(qp->ctx->seg->shm, wr->invalidate_rkey, qp->ib.pd->handle,
				   qp->ib.qp_num))
		return IBV_WC_SUCCESS;
	return IBV_WC_LOC_QP_OP_ERR;
}

/* True if packets get to the peer and back. */
static inline bool is_reachable(const struct shmv_qp *qp)
{
	return qp->peer_qp && !shmv_load32(&qp->peer->dead) &&
	       !shmv_load32(&qp->peer->shm->head.gone) &&
	       shmv_load32(&qp->ctx->port->state) == IBV_PORT_ACTIVE &&
	       shmv_load32(&qp->peer_port->state) == IBV_PORT_ACTIVE && !qp->lost;
}

/*
 * True: this send is lost, or (*executed) only its acknowledgement; and all that follows is lost.
 * False: the send is not lost.
 */
static __attribute__((noinline)) bool lose(struct shmv_qp *qp, bool *executed)
{
	if (!shmv_wire_loses())
		return false;
	qp->lost = true;
	*executed = shmv_wire_coin();
	return true;
}

int shmv_transfer(struct shmv_qp *qp, const struct ibv_send_wr *wr)
{
	struct shm_qp *peer = qp->peer_qp;
	struct iovec iov[SHMV_SGE_MAX];
	bool lost = false, executed = false;
	uint32_t state;
	uint64_t len;
	int ret;

	qp->arrival = 0;
	if (shmv_unlikely(!local(qp, wr, iov, &len)))
		return IBV_WC_LOC_PROT_ERR;
	if (shmv_unlikely(len > MSG_MAX))
		return IBV_WC_LOC_LEN_ERR;
	qp->len = len;
	if (shmv_unlikely(wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV))
		return execute_here(qp, wr);
	if (shmv_unlikely(!is_reachable(qp)))
		return SHMV_RETRY_SILENT;
	if (shmv_unlikely(shmv_conf.lose_one_in)) {
		lost = lose(qp, &executed);
		if (lost && !executed)
			return SHMV_RETRY_SILENT;
	}
	shmv_lock_shared(&peer->lock);
	state = shmv_load32(&peer->state);
	if (shmv_unlikely((state != IBV_QPS_RTS && state != IBV_QPS_RTR) || peer->conn != qp->me ||
			  !shmv_ports_share(peer->pkey, qp->shm->pkey))) {
		ret = SHMV_RETRY_SILENT;
	} else {
		ret = execute(qp, wr, iov, len);
		if (shmv_unlikely(ret > 0))
			shmv_qp_fail(qp->peer, peer);
	}
	shmv_unlock_shared(&peer->lock);
	return shmv_unlikely(lost) && !ret ? SHMV_RETRY_SILENT : ret;
}
