/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Modify: a queue pair's states, and address handles.
 *
 * Source: ibv_modify_qp(3); InfiniBand specification, volume 1, 10.3.1.
 */
#include <errno.h>
#include <stdlib.h>

#include "atomic.h"
#include "conf.h"
#include "context.h"
#include "cq.h"
#include "lock.h"
#include "log.h"
#include "ports.h"
#include "qp.h"
#include "retry.h"
#include "segment.h"

/* Attributes that a transition requires and allows (ibv_modify_qp(3)). */
static const int init_required = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
static const int rtr_required = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
static const int rts_required = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
static const int rtr_optional = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
static const int rts_optional = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
				IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE;

static bool has(int mask, int required, int optional)
{
	return (mask & required) == required && !(mask & ~(required | optional | IBV_QP_STATE));
}

static int check_init(const struct shmv_qp *qp, const struct ibv_qp_attr *attr)
{
	return attr->port_num == 1 && attr->pkey_index < SHMV_PKEYS &&
	       qp->ctx->port->pkeys[attr->pkey_index] ? 0 : EINVAL;
}

static int check_rtr(const struct shmv_qp *qp, const struct ibv_qp_attr *attr)
{
	if (attr->max_dest_rd_atomic > shmv_conf.max_rd_atomic ||
	    128u << attr->path_mtu > shmv_load32(&qp->ctx->port->mtu))
		return EINVAL;
	return shmv_ports_check(qp->ctx->port, &attr->ah_attr);
}

static int check_modify(const struct shmv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	uint32_t from = shmv_load32(&qp->shm->state),
		 to = mask & IBV_QP_STATE ? attr->qp_state : from;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return 0;
	if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
		return has(mask, init_required, 0) ? check_init(qp, attr) : EINVAL;
	if (from == IBV_QPS_INIT && to == IBV_QPS_INIT)
		return has(mask, 0, init_required) ? 0 : EINVAL;
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return has(mask, rtr_required, rtr_optional) ? check_rtr(qp, attr) : EINVAL;
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return has(mask, rts_required, rts_optional) &&
		       attr->max_rd_atomic <= shmv_conf.max_rd_atomic ? 0 : EINVAL;
	return from == IBV_QPS_RTS && to == IBV_QPS_RTS && has(mask, 0, rts_optional) ? 0 : EINVAL;
}

static void keep_attr(struct ibv_qp_attr *to, const struct ibv_qp_attr *attr, int mask)
{
	to->pkey_index = mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : to->pkey_index;
	to->port_num = mask & IBV_QP_PORT ? attr->port_num : to->port_num;
	to->qp_access_flags = mask & IBV_QP_ACCESS_FLAGS ? attr->qp_access_flags
							 : to->qp_access_flags;
	to->ah_attr = mask & IBV_QP_AV ? attr->ah_attr : to->ah_attr;
	to->path_mtu = mask & IBV_QP_PATH_MTU ? attr->path_mtu : to->path_mtu;
	to->dest_qp_num = mask & IBV_QP_DEST_QPN ? attr->dest_qp_num : to->dest_qp_num;
	to->rq_psn = mask & IBV_QP_RQ_PSN ? attr->rq_psn : to->rq_psn;
	to->max_dest_rd_atomic = mask & IBV_QP_MAX_DEST_RD_ATOMIC ? attr->max_dest_rd_atomic :
								     to->max_dest_rd_atomic;
	to->min_rnr_timer = mask & IBV_QP_MIN_RNR_TIMER ? attr->min_rnr_timer : to->min_rnr_timer;
	to->timeout = mask & IBV_QP_TIMEOUT ? attr->timeout : to->timeout;
	to->retry_cnt = mask & IBV_QP_RETRY_CNT ? attr->retry_cnt : to->retry_cnt;
	to->rnr_retry = mask & IBV_QP_RNR_RETRY ? attr->rnr_retry : to->rnr_retry;
	to->sq_psn = mask & IBV_QP_SQ_PSN ? attr->sq_psn : to->sq_psn;
	to->max_rd_atomic = mask & IBV_QP_MAX_QP_RD_ATOMIC ? attr->max_rd_atomic
							   : to->max_rd_atomic;
}

/*
 * Finds the peer. ETIMEDOUT: on RoCE, no device answers for the GID. On InfiniBand the call
 * succeeds then, and all packets are lost.
 */
static int connect_peer(struct shmv_qp *qp)
{
	int dev = shmv_ports_find(qp->ctx->port, &qp->attr.ah_attr);

	if (dev < 0 && !shmv_conf.infiniband && shmv_conf.resolve_ms) {
		shmv_conf_spend(shmv_conf.resolve_ms * UINT64_C(1000000));
		return ETIMEDOUT;
	}
	qp->peer_qpn = qp->attr.dest_qp_num;
	qp->peer = dev < 0 ? NULL : shmv_seg_attach(qp->peer_qpn >> SHM_QP_BITS);
	if (!qp->peer || qp->peer->shm->head.dev != (uint32_t)dev)
		return 0;
	qp->peer_port = &shmv_ports_get()->port[dev];
	qp->peer_qp = &qp->peer->shm->qp[qp->peer_qpn % SHM_QP_MAX];
	shmv_cq_warm(qp->peer, qp->peer_qp->cq % SHM_CQ_MAX);
	return 0;
}

/* Writes the change to the device's file, where peers see it. */
static void publish(struct shmv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct shm_qp *shm = qp->shm;

	shmv_lock_shared(&shm->lock);
	shm->access = qp->attr.qp_access_flags;
	shm->rnr_timer = qp->attr.min_rnr_timer;
	shm->pkey = qp->ctx->port->pkeys[qp->attr.pkey_index];
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR)
		shm->conn = (uint64_t)qp->attr.dest_qp_num << 32 | qp->attr.rq_psn;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR)
		shmv_qp_fail(qp->ctx->seg, shm);
	else if (mask & IBV_QP_STATE)
		shmv_store32(&shm->state, attr->qp_state);
	shmv_unlock_shared(&shm->lock);
}

int ibv_modify_qp(struct ibv_qp *ib, struct ibv_qp_attr *attr, int mask)
{
	struct shmv_qp *qp = (struct shmv_qp *)ib;
	int ret;

	shmv_conf_spend(shmv_conf.qp_us * UINT64_C(1000));
	if (shmv_ctx_is_fatal(qp->ctx))
		return EIO;
	shmv_lock(&qp->lock);
	ret = check_modify(qp, attr, mask);
	if (ret)
		goto out;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		shmv_qp_reset(qp);
	keep_attr(&qp->attr, attr, mask);
	qp->me = (uint64_t)ib->qp_num << 32 | qp->attr.sq_psn;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR) {
		ret = connect_peer(qp);
		if (ret)
			goto out;
	}
	publish(qp, attr, mask);
	qp->told |= mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR;
	shmv_retry_run(qp); /* ends the waiting sends, if the state is ERR now */
	ib->state = shmv_load32(&qp->shm->state);
out:
	shmv_unlock(&qp->lock);
	return ret;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct shmv_ctx *ctx = shmv_ctx_of(pd->context);
	struct ibv_ah *ah;

	if (shmv_ctx_is_fatal(ctx))
		return shmv_fail(EIO);
	if (!shmv_conf.ah)
		return shmv_fail(EOPNOTSUPP);
	if (shmv_ports_check(ctx->port, attr))
		return shmv_fail(EINVAL);
	if (!shmv_conf.infiniband && shmv_ports_find(ctx->port, attr) < 0) {
		shmv_conf_spend(shmv_conf.resolve_ms * UINT64_C(1000000));
		return shmv_fail(ETIMEDOUT);
	}
	ah = calloc(1, sizeof(*ah));
	if (ah)
		*ah = (struct ibv_ah){.context = pd->context, .pd = pd};
	return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}
