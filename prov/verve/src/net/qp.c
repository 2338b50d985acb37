/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: opening, connecting, posting. */
#include "net/qp.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/log.h"
#include "net/bind.h"
#include "net/cq.h"
#include "net/mr.h"
#include "net/path.h"
#include "net/sys.h"
#include "net/td.h"
#include "net/timeout.h"
#include "net/verbs.h"

enum {
	INLINE_STEP = 32, /* bytes: the inline size is lowered to its next multiple */
	RNR_TIMER_MAX = 31,
	/* DSCP 26 with ECN's ECT(0): what lossless RoCE networks expect. UCX has it, too. */
	ROCE_TRAFFIC_CLASS = 106,
	ECT_0 = 2, /* of the ECN bits: the packet may be marked where there is congestion */
	DSCP_MASK = 0x3f,
	MAX_24_BITS = 0xffffff,
	MULTICAST_LID = 0xc000, /* the first; 0xffff is the permissive LID */
	LOG_INTERVAL = 60, /* seconds */
	NS_PER_S = 1000000000,
};

_Static_assert(sizeof(struct verve_net_sge) == sizeof(struct ibv_sge), "cast in post");
_Static_assert(offsetof(struct verve_net_sge, addr) == offsetof(struct ibv_sge, addr), "cast");
_Static_assert(offsetof(struct verve_net_sge, length) == offsetof(struct ibv_sge, length), "cast");
_Static_assert(offsetof(struct verve_net_sge, lkey) == offsetof(struct ibv_sge, lkey), "cast");

struct verve_net_qp {
	struct ibv_qp *qp;
	struct verve_net_device *dev;
	struct verve_net_srq *srq;
	struct verve_srq_user user;
	uint32_t inline_size;
	uint32_t psn;
	uint32_t reads;		/* under way at once: set by verve_net_qp_connect */
	uint16_t dscp;		/* of struct verve_net_qp_attr */
	bool receives;		/* it reached the state ready to receive */
	struct verve_path path; /* what the peer is told of this end */
};

/*
 * True if a smaller inline size may help after this errno of ibv_create_qp(3); 0: the driver set
 * none. bnxt_re's library does not where it compares attributes with the limits itself. Memory may
 * suffice for a smaller queue. Where another queue pair got the size, another errno has another
 * reason.
 */
static bool smaller_may_help(const struct verve_net_device *dev, uint32_t size, int error)
{
	if (!size || error == ENOMEM)
		return size != 0;
	return (!error || error == EINVAL || error == EOPNOTSUPP) &&
	       size > AO_load(&dev->inline_good);
}

/*
 * In the thread domain of the receive queue or, if the device refuses that, outside of it. A
 * failure leaves errno 0 where the driver sets none.
 */
static struct ibv_qp *create_in_domain(const struct verve_net_device *dev,
				       const struct verve_net_srq *srq,
				       struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(srq->td.pd, init);
	if (qp || !srq->td.td || errno == ENOMEM)
		return qp;
	errno = 0;
	return ibv_create_qp(dev->pd, init);
}

/*
 * ibv_create_qp(3) fails if the device cannot send so much inline data, and does not tell how much
 * it can: try smaller sizes, and remember the first that works for the device's next queue pairs.
 * A size that works when memory was short a moment before says nothing about the device.
 */
static struct ibv_qp *qp_create(struct verve_net_device *dev, const struct verve_net_qp_attr *attr,
			     uint32_t *inline_size)
{
	uint32_t max = AO_load(&dev->inline_max);
	uint32_t size = attr->inline_size < max ? attr->inline_size : max;
	bool short_of_memory = false;

	for (;;) {
		struct ibv_qp_init_attr init = {
			.send_cq = attr->send_cq->cq,
			.recv_cq = attr->recv_cq->cq,
			.srq = attr->srq->srq,
			.cap = {
				.max_send_wr = attr->send_wr,
				.max_send_sge = attr->send_sge,
				.max_inline_data = size,
			},
			.qp_type = IBV_QPT_RC,
		};
		struct ibv_qp *qp = create_in_domain(dev, attr->srq, &init);

		if (qp) {
			*inline_size = init.cap.max_inline_data > size ?
				init.cap.max_inline_data : size;
			if (size < attr->inline_size && !short_of_memory)
				AO_store(&dev->inline_max, size);
			if (size > AO_load(&dev->inline_good))
				AO_store(&dev->inline_good, size);
			return qp;
		}
		if (!smaller_may_help(dev, size, errno))
			return NULL;
		short_of_memory |= errno == ENOMEM;
		size = size > INLINE_STEP ? (size - 1) / INLINE_STEP * INLINE_STEP : 0;
	}
}

static int qp_to_init(struct verve_net_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = qp->dev->port.port_num,
		.pkey_index = qp->path.pkey_index,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE,
	};

	if (qp->dev->port.limits.atomics)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

/* True once a minute, to one thread. at: of the last time; 0: none. */
static bool may_log(volatile AO_t *at)
{
	AO_t last = AO_load(at), now = verve_net_now() / NS_PER_S + 1;

	return (!last || now - last >= LOG_INTERVAL) && AO_compare_and_swap(at, last, now);
}

/* The next attempts fail, too, until another queue pair is closed; any sender can cause them. */
static void log_no_qp(struct verve_net_device *dev, const struct verve_net_qp_attr *attr, int error)
{
	if (!may_log(&dev->no_qp_warned))
		return;
	VERVE_WARN(EP_CTRL,
		   "%s: cannot open a queue pair of %u work requests (the device has %u, and %u "
		   "queue pairs): %s%s\n",
		   dev->port.device, attr->send_wr, dev->port.limits.qp_wr, dev->port.limits.qp,
		   fi_strerror(-error), verve_net_queue_remedy(error));
}

/*
 * soft-RoCE says EINVAL when it has no queue pair left (rxe_pool.c, Linux 6.1), as it does for
 * attributes that it cannot have. These attributes are the same for every connection.
 */
static int create_error(struct verve_net_device *dev, int error)
{
	return error == EINVAL && AO_load(&dev->had_qps) ? -FI_ENOSPC : verve_net_error(error);
}

int verve_net_qp_open(struct verve_net_device *dev, const struct verve_net_qp_attr *attr,
		      uint32_t psn, struct verve_net_qp **qpp)
{
	struct verve_net_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return -FI_ENOMEM;
	qp->dev = dev;
	qp->psn = psn & MAX_24_BITS;
	qp->dscp = attr->dscp;
	verve_path_get(dev, &qp->path);
	qp->qp = qp_create(dev, attr, &qp->inline_size);
	if (!qp->qp) {
		ret = create_error(dev, errno);
		goto err_free;
	}
	AO_store(&dev->had_qps, 1);
	ret = qp_to_init(qp);
	if (ret) {
		ret = verve_net_error(ret);
		goto err_qp;
	}
	qp->srq = attr->srq;
	verve_srq_join(qp->srq, &qp->user);
	*qpp = qp;
	return 0;

err_qp:
	ibv_destroy_qp(qp->qp);
err_free:
	free(qp);
	log_no_qp(dev, attr, ret);
	return ret;
}

void verve_net_qp_close(struct verve_net_qp *qp)
{
	int ret = ibv_destroy_qp(qp->qp);

	if (ret)
		VERVE_WARN(EP_CTRL, "%s: cannot close queue pair %#x: %s\n", qp->dev->port.device,
			   qp->qp->qp_num, strerror(ret));
	verve_srq_leave(qp->srq, &qp->user);
	free(qp);
}

void verve_net_qp_addr(const struct verve_net_qp *qp, struct verve_net_qp_addr *addr)
{
	*addr = (struct verve_net_qp_addr) {
		.gid = qp->path.gid,
		.lid = qp->path.lid,
		.mtu_log2 = qp->path.mtu_log2,
		.pkey = qp->path.pkey,
		.grh = qp->path.grh,
		.rd_atomic_target = qp->dev->port.limits.rd_atomic_target,
		.qp_num = qp->qp->qp_num,
		.psn = qp->psn,
	};
}

struct ibv_qp *verve_qp_handle(const struct verve_net_qp *qp)
{
	return qp->qp;
}

uint32_t verve_net_qp_num(const struct verve_net_qp *qp)
{
	return qp->qp->qp_num;
}

uint32_t verve_net_qp_serial(const struct verve_net_qp *qp)
{
	return qp->user.serial;
}

uint32_t verve_net_qp_inline_size(const struct verve_net_qp *qp)
{
	return qp->inline_size;
}

uint32_t verve_net_qp_reads(const struct verve_net_qp *qp)
{
	return qp->reads;
}

/*
 * False: a queue pair must not be connected to this address, which came in a datagram. Numbers 0
 * and 1 are the management queue pairs (InfiniBand spec. vol. 1, 3.9); LIDs of ports: 4.1.3.
 */
static bool remote_is_sane(const struct verve_net_qp *qp, const struct verve_net_qp_addr *remote)
{
	static const struct verve_net_gid none;

	if (remote->qp_num < 2 || remote->qp_num > MAX_24_BITS || remote->psn > MAX_24_BITS)
		return false;
	if (remote->mtu_log2 < 8 || remote->mtu_log2 > 12)
		return false;
	if (!qp->dev->port.ethernet && (!remote->lid || remote->lid >= MULTICAST_LID))
		return false;
	return memcmp(&remote->gid, &none, sizeof(none)) != 0;
}

static enum ibv_mtu path_mtu(const struct verve_net_qp *qp, const struct verve_net_qp_addr *remote)
{
	uint8_t log2 = qp->path.mtu_log2 < remote->mtu_log2 ? qp->path.mtu_log2 : remote->mtu_log2;

	return IBV_MTU_256 + (log2 - 8);
}

static uint8_t traffic_class(const struct verve_net_qp *qp)
{
	if (!verve_config_is_auto(verve_config.traffic_class))
		return verve_config.traffic_class;
	if (qp->dscp & VERVE_NET_DSCP)
		return (qp->dscp & DSCP_MASK) << 2 | ECT_0;
	return qp->dev->port.ethernet ? ROCE_TRAFFIC_CLASS : 0;
}

/*
 * The code of the shortest time that is at least FI_VERVE_RNR_TIMEOUT. Code 1 is 10 us; codes 2, 3,
 * 4, 5, 6, ... are 20, 30, 40, 60, 80, ... us (InfiniBand spec. vol. 1, 9.7.5.2.8).
 */
static uint8_t rnr_timer(void)
{
	uint8_t code = verve_config.rnr_timeout <= 10 ? 1 : 2;

	while (code > 1 && code < RNR_TIMER_MAX &&
	       10u * (2 + (code & 1)) << (code / 2 - 1) < verve_config.rnr_timeout)
		code++;
	return code;
}

/* The index at which the GID that the peer was told is now. */
static uint8_t current_gid_index(struct verve_net_qp *qp)
{
	struct verve_path now;

	verve_path_get(qp->dev, &now);
	return memcmp(&now.gid, &qp->path.gid, sizeof(now.gid)) ? qp->path.gid_index :
								   now.gid_index;
}

/* A queue pair that is connected to itself sends nothing through the fabric. */
static bool is_itself(const struct verve_net_qp *qp, const struct verve_net_qp_addr *remote)
{
	return remote->qp_num == qp->qp->qp_num && remote->pkey == qp->path.pkey &&
	       !memcmp(&remote->gid, &qp->path.gid, sizeof(remote->gid));
}

static int qp_to_rtr(struct verve_net_qp *qp, const struct verve_net_qp_addr *remote)
{
	const struct verve_net_device *dev = qp->dev;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = path_mtu(qp, remote),
		.dest_qp_num = remote->qp_num,
		.rq_psn = remote->psn,
		.max_dest_rd_atomic = dev->port.limits.rd_atomic_target,
		.min_rnr_timer = rnr_timer(),
		.ah_attr = {
			.dlid = remote->lid,
			.src_path_bits = qp->path.path_bits,
			.sl = verve_config.sl,
			.port_num = dev->port.port_num,
			/*
			 * RoCE always needs a global route header. InfiniBand needs it where one
			 * of the ports says so.
			 */
			.is_global = qp->path.grh || remote->grh,
			.grh = {
				.sgid_index = current_gid_index(qp),
				.hop_limit = verve_config.hop_limit,
				.flow_label = verve_config.flow_label,
				.traffic_class = traffic_class(qp),
			},
		},
	};

	memcpy(&attr.ah_attr.grh.dgid, &remote->gid, sizeof(remote->gid));
	return ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER);
}

static int qp_to_rts(struct verve_net_qp *qp, const struct verve_net_qp_addr *remote,
		  uint32_t timeout_ms)
{
	uint32_t ours = qp->dev->port.limits.rd_atomic, theirs = remote->rd_atomic_target;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = verve_net_timeout_choose(timeout_ms, verve_config.retry_count).exponent,
		.retry_cnt = verve_config.retry_count,
		.rnr_retry = verve_config.rnr_retry_count,
		.sq_psn = qp->psn,
		.max_rd_atomic = ours < theirs ? ours : theirs,
	};

	qp->reads = attr.max_rd_atomic;
	return ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Any sender of a handshake can cause it, any number of times. */
static void log_not_connected(const struct verve_net_qp *qp, const struct verve_net_qp_addr *remote,
			      const char *reason)
{
	enum fi_log_level level = may_log(&qp->dev->connect_warned) ? FI_LOG_WARN : FI_LOG_INFO;
	char gid[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, &remote->gid, gid, sizeof(gid));
	FI_LOG(verve_log_provider, level, FI_LOG_EP_CTRL,
	       "%s: cannot connect queue pair %#x to GID %s LID %u queue pair %#x: %s\n",
	       qp->dev->port.device, qp->qp->qp_num, gid, remote->lid, remote->qp_num, reason);
}

int verve_net_qp_connect(struct verve_net_qp *qp, const struct verve_net_qp_addr *remote,
			 uint32_t timeout_ms)
{
	char buf[VERVE_NET_REASON_MAX];
	const char *reason = NULL;
	int ret;

	if (!remote_is_sane(qp, remote)) {
		ret = EINVAL;
	} else if (!remote->rd_atomic_target) {
		reason = "that device serves no RDMA reads, which long messages need";
		ret = EOPNOTSUPP;
	} else {
		reason = is_itself(qp, remote) ? NULL :
						 verve_path_refuse(qp->dev, &qp->path, &remote->gid,
								   remote->pkey, buf);
		ret = reason ? EHOSTUNREACH : qp_to_rtr(qp, remote);
	}
	if (!ret) {
		qp->receives = true;
		ret = qp_to_rts(qp, remote, timeout_ms);
	}
	if (!ret)
		return 0;
	log_not_connected(qp, remote, reason ? reason : strerror(ret));
	return verve_net_error(ret);
}

bool verve_net_qp_may_receive(const struct verve_net_qp *qp)
{
	return qp->receives;
}

bool verve_net_qp_has_failed(const struct verve_net_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init) || attr.qp_state == IBV_QPS_ERR;
}

int verve_net_qp_error(struct verve_net_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int ret = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

	if (ret)
		VERVE_WARN(EP_CTRL, "%s: cannot stop queue pair %#x: %s\n", qp->dev->port.device,
			   qp->qp->qp_num, strerror(ret));
	return ret ? verve_net_error(ret) : 0;
}

_Static_assert((int)VERVE_NET_WRITE == IBV_WR_RDMA_WRITE, "opcode");
_Static_assert((int)VERVE_NET_WRITE_IMM == IBV_WR_RDMA_WRITE_WITH_IMM, "opcode");
_Static_assert((int)VERVE_NET_SEND == IBV_WR_SEND, "opcode");
_Static_assert((int)VERVE_NET_READ == IBV_WR_RDMA_READ, "opcode");
_Static_assert((int)VERVE_NET_COMPARE_SWAP == IBV_WR_ATOMIC_CMP_AND_SWP, "opcode");
_Static_assert((int)VERVE_NET_FETCH_ADD == IBV_WR_ATOMIC_FETCH_AND_ADD, "opcode");
_Static_assert((int)VERVE_NET_INVALIDATE == IBV_WR_LOCAL_INV, "opcode");
_Static_assert((int)VERVE_NET_BIND == IBV_WR_BIND_MW, "opcode");
_Static_assert((int)VERVE_NET_SIGNALED == IBV_SEND_SIGNALED, "flag");
_Static_assert((int)VERVE_NET_INLINE == IBV_SEND_INLINE, "flag");

void verve_qp_bind_info(const struct verve_net_bind *bind, struct ibv_mw_bind_info *info)
{
	unsigned access = bind->access;

	*info = (struct ibv_mw_bind_info){
		.mr = bind->mr->handle,
		.addr = (uintptr_t)bind->addr,
		.length = bind->len,
		.mw_access_flags =
			(access & VERVE_NET_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0) |
			(access & VERVE_NET_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
			(access & VERVE_NET_REMOTE_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0),
	};
}

/* The fields of requests that are neither sends nor RDMA. */
static __attribute__((noinline)) void translate_rare(const struct verve_net_wr *from,
						     struct ibv_send_wr *to)
{
	if (verve_net_wr_is_atomic(from->op)) {
		to->wr.atomic.remote_addr = from->remote_addr;
		to->wr.atomic.rkey = from->rkey;
		to->wr.atomic.compare_add = from->compare_add;
		to->wr.atomic.swap = from->swap;
	} else if (from->op == VERVE_NET_INVALIDATE) {
		to->invalidate_rkey = from->rkey;
	} else {
		to->sg_list = NULL;
		to->bind_mw.mw = from->bind->mw->handle;
		to->bind_mw.rkey = from->rkey;
		verve_qp_bind_info(from->bind, &to->bind_mw.bind_info);
	}
}

static inline void wr_translate(const struct verve_net_wr *from, struct ibv_send_wr *to)
{
	to->wr_id = from->wr_id;
	to->next = NULL;
	/* The cast is safe: ibv_post_send(3) does not write to the segments. */
	to->sg_list = (struct ibv_sge *)(uintptr_t)from->sge;
	to->num_sge = from->sge_count;
	to->opcode = (enum ibv_wr_opcode)from->op;
	to->send_flags = from->flags;
	to->imm_data = from->imm;
	if (__builtin_expect(from->op > VERVE_NET_READ, 0)) {
		translate_rare(from, to);
		return;
	}
	to->wr.rdma.remote_addr = from->remote_addr;
	to->wr.rdma.rkey = from->rkey;
}

static __attribute__((noinline, cold)) int post_failed(const struct verve_net_qp *qp, int error)
{
	VERVE_WARN(EP_DATA, "%s: queue pair %#x takes no work request: %s\n",
		   qp->dev->port.device, qp->qp->qp_num, strerror(error));
	return verve_net_error(error);
}

int verve_net_qp_post(struct verve_net_qp *qp, const struct verve_net_wr *wr)
{
	struct ibv_send_wr request, *bad;
	int ret;

	wr_translate(wr, &request);
	ret = ibv_post_send(qp->qp, &request, &bad);
	return __builtin_expect(ret, 0) ? post_failed(qp, ret) : 0;
}
