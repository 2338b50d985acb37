/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The responder: executes at the target the requests that arrive (fake_rc.c). */
#include <string.h>

#include "fake_qp.h"
#include "fake_world.h"
#include "net/cq.h"

enum { PSN_MASK = (1 << 24) - 1 };

/* The first four bytes that were received. */
static uint32_t head_of(const struct verve_net_qp *target, const struct verve_net_recv *recv,
			const struct fake_wr *wr)
{
	uint32_t head = 0;

	if (wr->len >= sizeof(head) && recv->sge.length >= wr->len)
		memcpy(&head, fake_wr_memory(target, &recv->sge), sizeof(head));
	return head;
}

static void push_recv(struct verve_net_qp *target, const struct verve_net_recv *recv,
		      const struct fake_wr *wr, uint32_t status)
{
	bool imm = wr->wr.op == VERVE_NET_WRITE_IMM;
	struct verve_net_wc wc = {
		.wr_id = recv->wr_id,
		.status = status,
		.opcode = imm ? VERVE_NET_WC_RECV_IMM : VERVE_NET_WC_RECV,
		.byte_len = wr->len,
		.imm = imm ? wr->wr.imm : 0,
		.qp_num = target->num,
	};

	fake_cq_push(target->attr.recv_cq, &wc, NULL, head_of(target, recv, wr));
}

int fake_responder_refuse(struct verve_net_qp *target, int status)
{
	fake_world.stats.access_errors++;
	fake_device_async(target->dev);
	fake_rc_error(target);
	return status;
}

/* The receive of a message that arrives. False: there is none. */
static bool take_recv(struct verve_net_qp *target, struct verve_net_recv *recv)
{
	if (!target->has_begun)
		return fake_srq_take(target->attr.srq, recv);
	*recv = target->begun;
	target->has_begun = false;
	target->attr.srq->begun--;
	return true;
}

/* The first packet of a message is there. */
static int begin(const struct verve_net_qp *qp, const struct fake_wr *wr,
		 struct verve_net_qp *target, const struct verve_net_recv *recv)
{
	target->begun = *recv;
	target->has_begun = true;
	target->attr.srq->begun++;
	fake_world.stats.begun++;
	fake_wr_gather(qp, wr, (void *)(uintptr_t)recv->sge.addr);
	return FAKE_BEGUN;
}

static int execute_send(const struct verve_net_qp *qp, const struct fake_wr *wr,
			struct verve_net_qp *target)
{
	bool begun = target->has_begun;
	struct verve_net_recv recv;

	if ((begun && qp->dev->host->holds) || !take_recv(target, &recv))
		return FAKE_NOT_READY;
	if (recv.sge.length < wr->len) {
		push_recv(target, &recv, wr, FAKE_WC_LOCAL_LENGTH);
		return fake_responder_refuse(target, FAKE_WC_REMOTE_INVALID);
	}
	if (!fake_lkey_covers(target->dev, recv.sge.lkey, recv.sge.addr, wr->len,
			      VERVE_NET_LOCAL_WRITE)) {
		push_recv(target, &recv, wr, FAKE_WC_LOCAL_PROTECTION);
		return fake_responder_refuse(target, FAKE_WC_REMOTE_OPERATION);
	}
	if (!begun && wr->len && fake_chance(fake_world.config.partial))
		return begin(qp, wr, target, &recv);
	fake_wr_gather(qp, wr, (void *)(uintptr_t)recv.sge.addr);
	push_recv(target, &recv, wr, FAKE_WC_OK);
	return FAKE_WC_OK;
}

/* True if the key opens these bytes to the peer of the target's queue pair. */
static bool opens(const struct verve_net_qp *target, const struct fake_wr *wr, uint32_t len,
		  unsigned access)
{
	return fake_rkey_covers(target->dev, wr->wr.rkey, wr->wr.remote_addr, len, access) &&
	       (!len || fake_rkey_is_for(target->dev, wr->wr.rkey, target));
}

static int execute_write(const struct verve_net_qp *qp, const struct fake_wr *wr,
			 struct verve_net_qp *target)
{
	struct verve_net_recv recv;

	if (wr->wr.op == VERVE_NET_WRITE_IMM && !target->attr.srq->count)
		return FAKE_NOT_READY;
	if (!opens(target, wr, wr->len, VERVE_NET_REMOTE_WRITE))
		return fake_responder_refuse(target, FAKE_WC_REMOTE_ACCESS);
	fake_wr_gather(qp, wr, fake_rkey_memory(target->dev, wr->wr.rkey, wr->wr.remote_addr));
	if (wr->wr.op == VERVE_NET_WRITE_IMM && fake_srq_take(target->attr.srq, &recv))
		push_recv(target, &recv, wr, FAKE_WC_OK);
	return FAKE_WC_OK;
}

bool fake_responder_may_read(const struct fake_wr *wr, const struct verve_net_qp *target)
{
	return opens(target, wr, wr->len, VERVE_NET_REMOTE_READ);
}

bool fake_responder_may_read_again(const struct fake_wr *wr, const struct verve_net_qp *target)
{
	return fake_responder_may_read(wr, target) && fake_rkey_is_there(target->dev, wr->wr.rkey);
}

static int execute_read(const struct fake_wr *wr, struct verve_net_qp *target)
{
	if (!fake_responder_may_read(wr, target))
		return fake_responder_refuse(target, FAKE_WC_REMOTE_ACCESS);
	return FAKE_WC_OK;
}

/* The value before is kept until the response leaves: an atomic is never executed again. */
static int execute_atomic(struct fake_wr *wr, struct verve_net_qp *target)
{
	uint64_t *word;

	if (wr->wr.remote_addr % sizeof(*word))
		return fake_responder_refuse(target, FAKE_WC_REMOTE_INVALID);
	if (!opens(target, wr, sizeof(*word), VERVE_NET_REMOTE_ATOMIC))
		return fake_responder_refuse(target, FAKE_WC_REMOTE_ACCESS);
	word = fake_rkey_memory(target->dev, wr->wr.rkey, wr->wr.remote_addr);
	wr->fetched = *word;
	if (wr->wr.op == VERVE_NET_FETCH_ADD)
		*word += wr->wr.compare_add;
	else if (*word == wr->wr.compare_add)
		*word = wr->wr.swap;
	return FAKE_WC_OK;
}

int fake_responder_execute(struct verve_net_qp *qp, struct fake_wr *wr,
			   struct verve_net_qp *target)
{
	int status;

	if (!fake_wr_is_valid(qp, wr)) {
		fake_world.stats.access_errors++;
		return FAKE_WC_LOCAL_PROTECTION;
	}
	if (wr->wr.op == VERVE_NET_SEND)
		status = execute_send(qp, wr, target);
	else if (wr->wr.op == VERVE_NET_READ)
		status = execute_read(wr, target);
	else if (fake_wr_fetches(wr))
		status = execute_atomic(wr, target);
	else
		status = execute_write(qp, wr, target);
	if (status == FAKE_WC_OK) {
		qp->send_psn = (qp->send_psn + 1) & PSN_MASK;
		target->recv_psn = (target->recv_psn + 1) & PSN_MASK;
		fake_world.stats.requests++;
		fake_world.stats.bytes += wr->len;
	}
	return status;
}
