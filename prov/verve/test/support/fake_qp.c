/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake net/qp.h: queue pairs and shared receive queues: opening, connecting, posting, closing. */
#include "fake_qp.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_region.h"
#include "net/cq.h"

enum { PSN_LIMIT = 1 << 24, QP_NUM_LIMIT = 1 << 24, POISON = 0xa5, POISON_LEN = 64, MARK_LEN = 8 };

static bool is_used(struct fake_host *host, uint32_t num)
{
	struct verve_net_qp *qp;

	HASH_FIND(hh, host->qps, &num, sizeof(num), qp);
	return qp;
}

static uint32_t next_num(struct fake_host *host)
{
	if (fake_world.config.reuse_qp_num && host->freed_qp_num &&
	    !is_used(host, host->freed_qp_num))
		return host->freed_qp_num;
	do {
		host->next_qp_num = host->next_qp_num + 1 < QP_NUM_LIMIT ? host->next_qp_num + 1
									 : 2;
	} while (is_used(host, host->next_qp_num));
	return host->next_qp_num;
}

static int check_attr(const struct fake_host *host, const struct verve_net_qp_attr *attr,
		      uint32_t psn)
{
	const struct verve_net_limits *limits = &fake_world.config.limits;

	if (!attr->send_cq || !attr->recv_cq || !attr->srq || !attr->send_wr ||
	    attr->send_wr > limits->qp_wr || attr->send_sge > limits->sge || psn >= PSN_LIMIT)
		return -FI_EINVAL;
	return host->qp_count < limits->qp ? 0 : -FI_ENOMEM;
}

int verve_net_qp_open(struct verve_net_device *dev, const struct verve_net_qp_attr *attr,
		      uint32_t psn, struct verve_net_qp **qpp)
{
	struct fake_host *host = dev->host;
	struct verve_net_qp *qp;
	int ret = fake_gate(FAKE_NET_QP_OPEN);

	fake_slow();
	if (!ret && host->removed)
		ret = -FI_ENODEV;
	if (!ret)
		ret = check_attr(host, attr, psn);
	if (ret)
		return ret;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -FI_ENOMEM;
	qp->dev = dev;
	qp->attr = *attr;
	if (qp->attr.inline_size > fake_world.config.inline_size)
		qp->attr.inline_size = fake_world.config.inline_size;
	qp->send_psn = psn;
	qp->num = next_num(host);
	TAILQ_INIT(&qp->wrs);
	HASH_ADD(hh, host->qps, num, sizeof(qp->num), qp);
	host->qp_count++;
	dev->users++;
	attr->srq->users++;
	qp->serial = attr->srq->opened++;
	fake_cq_use(attr->send_cq, 1);
	fake_cq_use(attr->recv_cq, 1);
	fake_opened(FAKE_QP);
	fake_world.stats.dscp = attr->dscp;
	fake_world.stats.qps++;
	if (fake_world.stats.qps > fake_world.stats.max_qps)
		fake_world.stats.max_qps = fake_world.stats.qps;
	fake_world.stats.qps_opened++;
	*qpp = qp;
	return 0;
}

void fake_wr_free(struct verve_net_qp *qp, struct fake_wr *wr)
{
	free(wr->response);
	if (wr->inline_data != wr->few)
		free(wr->inline_data);
	if (qp->spare)
		free(wr);
	else
		qp->spare = wr;
}

static struct fake_wr *alloc_wr(struct verve_net_qp *qp)
{
	struct fake_wr *wr = qp->spare ? qp->spare : malloc(sizeof(*wr));

	if (!wr)
		fake_fatal("no memory");
	qp->spare = NULL;
	memset(wr, 0, sizeof(*wr));
	return wr;
}

void verve_net_qp_close(struct verve_net_qp *qp)
{
	struct fake_host *host = qp->dev->host;
	struct fake_wr *wr;

	fake_slow();
	fake_windows_check_closed(qp->dev, qp);
	fake_trace("host %u qp %u closes, %u requests outstanding", host->index, qp->num,
		   qp->produced - qp->polled);
	fake_event_cancel(&qp->arrive);
	fake_event_cancel(&qp->respond);
	fake_event_cancel(&qp->complete);
	fake_event_cancel(&qp->flush);
	if (qp->has_begun) {
		qp->attr.srq->begun--;
		fake_world.stats.lost_recvs++;
	}
	while ((wr = TAILQ_FIRST(&qp->wrs))) {
		TAILQ_REMOVE(&qp->wrs, wr, link);
		fake_wr_free(qp, wr);
	}
	free(qp->spare);
	fake_cq_forget(qp->attr.send_cq, qp, qp->num);
	fake_cq_forget(qp->attr.recv_cq, qp, qp->num);
	fake_cq_use(qp->attr.send_cq, -1);
	fake_cq_use(qp->attr.recv_cq, -1);
	qp->attr.srq->users--;
	qp->attr.srq->closed++;
	qp->dev->users--;
	HASH_DEL(host->qps, qp);
	host->freed_qp_num = qp->num;
	host->qp_count--;
	free(qp);
	fake_closed(FAKE_QP);
	fake_world.stats.qps--;
}

void verve_net_qp_addr(const struct verve_net_qp *qp, struct verve_net_qp_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->gid = qp->dev->addr.gid;
	for (addr->mtu_log2 = 8; 1u << addr->mtu_log2 < fake_world.config.mtu;)
		addr->mtu_log2++;
	addr->rd_atomic_target = (uint8_t)fake_world.config.limits.rd_atomic_target;
	addr->qp_num = qp->num;
	addr->psn = qp->send_psn;
}

uint32_t verve_net_qp_serial(const struct verve_net_qp *qp)
{
	return qp->serial;
}

uint32_t verve_net_srq_opened(struct verve_net_srq *srq)
{
	return srq->opened;
}

uint32_t verve_net_srq_closed(struct verve_net_srq *srq)
{
	return srq->closed;
}

uint32_t verve_net_srq_older(struct verve_net_srq *srq, uint32_t serial)
{
	struct verve_net_qp *qp, *next;
	uint32_t count = 0;

	HASH_ITER (hh, srq->dev->host->qps, qp, next)
		count += qp->attr.srq == srq && qp->serial < serial;
	return count;
}

uint32_t verve_net_qp_num(const struct verve_net_qp *qp)
{
	return qp->num;
}

uint32_t verve_net_qp_inline_size(const struct verve_net_qp *qp)
{
	return qp->attr.inline_size;
}

uint32_t verve_net_qp_reads(const struct verve_net_qp *qp)
{
	return qp->read_limit;
}

int verve_net_qp_connect(struct verve_net_qp *qp, const struct verve_net_qp_addr *remote,
			 uint32_t timeout_ms)
{
	struct fake_host *peer = fake_host_of_gid(&remote->gid);
	uint32_t read_limit = fake_world.config.limits.rd_atomic;
	int ret = fake_gate(FAKE_NET_QP_CONNECT);

	fake_slow();
	if (ret) {
		qp->receives = true; /* the second step failed */
		return ret;
	}
	if (qp->state != FAKE_QP_INIT || !peer || !remote->qp_num ||
	    remote->qp_num >= QP_NUM_LIMIT || remote->psn >= PSN_LIMIT || remote->mtu_log2 < 8 ||
	    remote->mtu_log2 > 12)
		return -FI_EINVAL;
	if (!remote->rd_atomic_target)
		return -FI_EOPNOTSUPP;
	qp->peer = peer;
	qp->peer_num = remote->qp_num;
	qp->recv_psn = remote->psn;
	qp->timeout = (uint64_t)timeout_ms * 1000000;
	qp->read_limit = read_limit < remote->rd_atomic_target ? read_limit
							       : remote->rd_atomic_target;
	qp->receives = true;
	qp->state = FAKE_QP_RTS;
	fake_trace("host %u qp %u connects to host %u qp %u", qp->dev->host->index, qp->num,
		   peer->index, qp->peer_num);
	return 0;
}

bool verve_net_qp_may_receive(const struct verve_net_qp *qp)
{
	return qp->receives;
}

bool verve_net_qp_has_failed(const struct verve_net_qp *qp)
{
	return qp->state == FAKE_QP_ERROR;
}

int verve_net_qp_error(struct verve_net_qp *qp)
{
	fake_slow();
	if (qp->dev->host->removed)
		return -FI_ENODEV;
	fake_rc_error(qp);
	return 0;
}

static uint32_t length_of(const struct verve_net_wr *wr)
{
	uint32_t len = 0;

	for (uint32_t i = 0; i < wr->sge_count; i++)
		len += wr->sge[i].length;
	return len;
}

static int check_wr(const struct verve_net_qp *qp, const struct verve_net_wr *wr)
{
	if (wr->op == VERVE_NET_BIND || wr->op == VERVE_NET_INVALIDATE)
		return qp->dev->port.limits.mw_peer && !wr->sge_count ? 0 : -FI_EINVAL;
	if (wr->sge_count > qp->attr.send_sge || wr->op > VERVE_NET_FETCH_ADD)
		return -FI_EINVAL;
	if (wr->op == VERVE_NET_READ && wr->sge_count > qp->dev->port.limits.read_sge)
		return -FI_EINVAL;
	if (wr->flags & VERVE_NET_INLINE &&
	    (wr->op >= VERVE_NET_READ || wr->sge_count > 1 ||
	     length_of(wr) > qp->attr.inline_size))
		return -FI_EINVAL;
	if (wr->op > VERVE_NET_READ && (length_of(wr) != 8 || !qp->dev->port.limits.atomics))
		return -FI_EINVAL;
	return 0;
}

static void copy_inline(struct fake_wr *copy, const struct verve_net_wr *wr)
{
	uint32_t used = 0;

	copy->inline_data = copy->len <= sizeof(copy->few) ? copy->few : malloc(copy->len);
	if (!copy->inline_data)
		fake_fatal("no memory");
	for (uint32_t i = 0; i < wr->sge_count; i++) {
		if (wr->sge[i].length)
			memcpy(copy->inline_data + used, (void *)(uintptr_t)wr->sge[i].addr,
			       wr->sge[i].length);
		used += wr->sge[i].length;
	}
}

static void post_one(struct verve_net_qp *qp, const struct verve_net_wr *wr)
{
	struct fake_wr *copy = alloc_wr(qp);

	copy->wr = *wr;
	if (wr->op == VERVE_NET_BIND)
		copy->bind = *wr->bind;
	copy->wr.sge = copy->sge;
	if (wr->sge_count)
		memcpy(copy->sge, wr->sge, wr->sge_count * sizeof(copy->sge[0]));
	copy->len = length_of(wr);
	copy->number = qp->produced++;
	if (wr->flags & VERVE_NET_INLINE)
		copy_inline(copy, wr);
	TAILQ_INSERT_TAIL(&qp->wrs, copy, link);
	if (!qp->posted)
		qp->posted = copy;
}

int verve_net_qp_post(struct verve_net_qp *qp, const struct verve_net_wr *wr)
{
	int ret = fake_gate(FAKE_NET_QP_POST);

	if (!ret && (qp->state == FAKE_QP_INIT || qp->dev->host->removed))
		ret = -FI_EINVAL;
	if (!ret && qp->state == FAKE_QP_ERROR && fake_world.config.error_takes_no_post)
		ret = -FI_EINVAL;
	if (!ret)
		ret = check_wr(qp, wr);
	if (ret)
		return ret;
	if (qp->produced - qp->polled == qp->attr.send_wr) {
		fake_world.stats.full++;
		return -FI_ENOMEM;
	}
	post_one(qp, wr);
	fake_rc_launch(qp);
	return 0;
}

void fake_qp_polled(struct verve_net_qp *qp, uint32_t number)
{
	qp->polled = number + 1;
}

int verve_net_srq_open(struct verve_net_device *dev, uint32_t depth, struct verve_net_srq **srqp)
{
	struct verve_net_srq *srq;
	int ret = fake_gate(FAKE_NET_SRQ_OPEN);

	if (ret)
		return ret;
	if (!depth || depth > fake_world.config.limits.srq_wr)
		return -FI_EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -FI_ENOMEM;
	srq->ring = calloc(depth, sizeof(srq->ring[0]));
	if (!srq->ring)
		goto err_free;
	srq->dev = dev;
	srq->depth = depth;
	dev->users++;
	fake_opened(FAKE_SRQ);
	*srqp = srq;
	return 0;

err_free:
	free(srq);
	return -FI_ENOMEM;
}

void verve_net_srq_close(struct verve_net_srq *srq)
{
	if (srq->users)
		fake_fatal("a shared receive queue is closed that %u queue pairs use", srq->users);
	srq->dev->users--;
	free(srq->ring);
	free(srq);
	fake_closed(FAKE_SRQ);
}

/*
 * The buffer is the device's from here on: all of it but the beginning is spoiled, so that no
 * program relies on its contents.
 */
static void poison(const struct verve_net_srq *srq, const struct verve_net_sge *sge)
{
	uint32_t len = sge->length < POISON_LEN ? sge->length : POISON_LEN;

	if (len > MARK_LEN &&
	    fake_lkey_covers(srq->dev, sge->lkey, sge->addr, len, VERVE_NET_LOCAL_WRITE))
		memset((char *)(uintptr_t)sge->addr + MARK_LEN, POISON, len - MARK_LEN);
}

/* Two receives must not fill one buffer. */
static void check_unused(const struct verve_net_srq *srq, const struct verve_net_recv *recv)
{
	struct verve_net_qp *qp, *next;

	if (!srq->begun)
		return;
	HASH_ITER (hh, srq->dev->host->qps, qp, next)
		if (qp->attr.srq == srq && qp->has_begun && qp->begun.sge.addr == recv->sge.addr)
			fake_fatal("a buffer is posted that queue pair %u is filling", qp->num);
}

uint32_t fake_net_srq_count(const struct verve_net_srq *srq)
{
	return srq->count + srq->begun;
}

int verve_net_srq_post(struct verve_net_srq *srq, const struct verve_net_recv *recv, uint32_t count,
		       uint32_t *posted)
{
	/* A device that takes no more receives has taken those before. */
	int ret = fake_gate(FAKE_NET_SRQ_POST);
	uint32_t take = ret ? count / 2 : count;

	*posted = 0;
	if (srq->count + count > srq->depth) {
		fake_world.stats.full++;
		return -FI_ENOMEM;
	}
	for (; *posted < take; ++*posted) {
		uint32_t pos = srq->head + srq->count++;

		check_unused(srq, &recv[*posted]);
		srq->ring[pos < srq->depth ? pos : pos - srq->depth] = recv[*posted];
		poison(srq, &recv[*posted].sge);
	}
	return ret;
}

bool fake_srq_take(struct verve_net_srq *srq, struct verve_net_recv *recv)
{
	if (!srq->count)
		return false;
	*recv = srq->ring[srq->head];
	srq->head = srq->head + 1 < srq->depth ? srq->head + 1 : 0;
	srq->count--;
	return true;
}
