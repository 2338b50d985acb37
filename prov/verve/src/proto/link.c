/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Links: posting, retiring, breaking. */
#include "proto/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "conn/cm.h"
#include "net/sys.h"
#include "proto/peer.h"
#include "proto/peek.h"
#include "proto/post.h"
#include "proto/recv.h"
#include "proto/replay.h"
#include <rdma/fi_errno.h>

_Static_assert((VERVE_LINK_DEPTH & (VERVE_LINK_DEPTH - 1)) == 0, "slots are found by masking");

/* Nanoseconds for the last acknowledgements of a peer that leaves. */
static const uint64_t grace = 100000000;

int verve_link_open(struct verve_xport *xport, struct verve_peer *peer, struct verve_net_qp *qp,
		    uint32_t conn_id, uint32_t remote_id, struct verve_link **linkp)
{
	struct verve_link *link = calloc(1, sizeof(*link));

	if (!link)
		return -FI_ENOMEM;
	if (verve_idtab_alloc(&xport->link_ids, link, &link->id)) {
		free(link);
		return -FI_ENOMEM;
	}
	link->peer = peer;
	link->qp = qp;
	link->conn_id = conn_id;
	link->qp_num = verve_net_qp_num(qp);
	link->remote_id = remote_id;
	link->inline_size = verve_net_qp_inline_size(qp);
	if (link->inline_size > xport->attr.inline_size)
		link->inline_size = xport->attr.inline_size;
	link->is_self = xport->cm && verve_addr_equal(&peer->addr, verve_cm_addr(xport->cm));
	link->signaled = UINT32_MAX; /* none, the one before number 0 */
	TAILQ_INIT(&link->doomed);
	TAILQ_INSERT_TAIL(&xport->links, link, all);
	xport->link_count++;
	*linkp = link;
	return 0;
}

void verve_link_close(struct verve_xport *xport, struct verve_link *link)
{
	while (link->retired != link->produced) {
		verve_link_release(xport, link, verve_link_slot(link, link->retired++));
		xport->wr_used--;
	}
	verve_replay_free(xport, link);
	verve_key_forget_all(link);
	verve_cm_request_free(link->drop);
	if (link->qp)
		verve_net_qp_close(link->qp);
	xport->link_count--;
	verve_idtab_free(&xport->link_ids, link->id);
	TAILQ_REMOVE(link->broken ? &xport->broken_links : &xport->links, link, all);
	if (verve_peer_link_of(xport, link->conn_id) == link)
		xport->link_of_conn[verve_idtab_index(link->conn_id)] = NULL;
	free(link);
}

bool verve_link_is_waiting(const struct verve_link *link)
{
	bool begun = link->produced != link->retired && !TAILQ_EMPTY(&link->peer->pending);

	return begun || !TAILQ_EMPTY(&link->peer->active) || link->keys.asked ||
	       link->quiesce.state != VERVE_QUIESCE_OPEN || link->replay;
}

void verve_link_probe(struct verve_xport *xport, struct verve_link *link)
{
	/* A device that repeats for ever, as soft-RoCE does, never finds a dead peer: ask its port. */
	if (link->heard != link->retired)
		link->silent = false;
	else if (xport->cm && verve_cm_check(xport->cm, link->conn_id, !link->silent))
		VERVE_WARN(EP_CTRL, "no memory to check connection %#x\n", link->conn_id);
	else
		link->silent = true;
	link->heard = link->retired;
	verve_link_ask(xport, link);
}

static bool is_late(const struct verve_link *link, uint64_t now)
{
	return verve_link_is_half_open(link) &&
	       now - link->listening >= verve_config.connect_timeout * UINT64_C(1000000);
}

void verve_link_expire(struct verve_xport *xport, uint64_t now)
{
	struct verve_link *link, *next;

	TAILQ_FOREACH(link, &xport->links, all)
		if (is_late(link, now))
			break;
	if (!link)
		return;
	verve_recv_drain(xport);
	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (is_late(link, now) && link->overdue) {
			if (xport->cm)
				verve_cm_expire(xport->cm, &link->drop);
			verve_link_break(xport, link, FI_ETIMEDOUT, 0,
					 "the peer began to connect, and was not heard of again");
		} else {
			link->overdue = is_late(link, now);
		}
	}
}

/* All requests are off the hardware: the operations can end now. */
static void finish_break(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_op *op;

	/* Before anybody is told that memory is free. */
	if (link->qp)
		verve_net_qp_close(link->qp);
	link->qp = NULL;
	while ((op = TAILQ_FIRST(&link->doomed))) {
		TAILQ_REMOVE(&link->doomed, op, link);
		if (!(op->flags & VERVE_OP_REPORTED)) {
			if (op->error)
				verve_op_report_error(xport, op, op->error, op->status, link->reason);
			else
				verve_op_report_error(xport, op, link->error, link->status, link->reason);
		}
		verve_op_free(xport, op);
	}
	verve_link_close(xport, link);
}

static void doom(struct verve_link *link, struct verve_op_queue *queue)
{
	struct verve_op *op;

	TAILQ_FOREACH(op, queue, link) {
		verve_op_set_state(op, VERVE_OP_DOOMED);
		op->via = link;
	}
	TAILQ_CONCAT(&link->doomed, queue, link);
}

void verve_link_hear(struct verve_xport *xport, struct verve_link *link)
{
	if (link->replay || link->leaving || link->broken)
		return;
	link->may_send = true;
	/* Without memory for it, READY tells the manager. */
	if (link->listen && xport->cm)
		verve_cm_hear(xport->cm, link->conn_id);
	link->listen = false;
}

/*
 * Requests that ended well before the error, but did not ask for a completion, are not flushed. A
 * marker behind them is, and retires them: a write of nothing, which does no harm if it is still executed. It
 * is posted before the queue pair goes to error, because some devices take none afterwards (bnxt_re, ionic). If they have
 * put it in error themselves, or the device does not do what it is told, only closing ends what is outstanding.
 */
bool verve_link_stop(struct verve_xport *xport, struct verve_link *link, uint32_t *marker)
{
	struct verve_net_wr wr = {
		.wr_id = (uint64_t)link->id << 32 | link->produced,
		.op = VERVE_NET_WRITE,
		.flags = VERVE_NET_SIGNALED,
	};
	bool outstanding = link->retired != link->produced;

	if (outstanding && verve_net_qp_post(link->qp, &wr, 1)) {
		link->unmarked = true;
	} else if (outstanding) {
		*marker = link->produced;
		*verve_link_slot(link, link->produced++) =
			(struct verve_slot){.kind = VERVE_SLOT_NOTHING};
		xport->wr_used++;
	}
	if (verve_net_qp_error(link->qp))
		link->unmarked = true;
	return outstanding && !link->unmarked;
}

/* Something that was posted is to tell an operation of its end. */
static bool has_news(struct verve_link *link)
{
	for (uint32_t number = link->retired; number != link->produced; number++)
		if (verve_link_slot(link, number)->tell)
			return true;
	return false;
}

void verve_link_leave(struct verve_xport *xport, struct verve_link *link, int error, const char *reason)
{
	if (link->broken || link->leaving)
		return;
	if (link->replay || !has_news(link)) {
		verve_link_break(xport, link, error, 0, reason);
		return;
	}
	link->leaving = verve_net_now();
	link->may_send = false;
	link->error = error;
	link->reason = reason;
	xport->leaving_count++;
	/* What has not begun cannot be executed any more; what comes from here on is for a new connection. */
	doom(link, &link->peer->control);
	doom(link, &link->peer->reads);
	doom(link, &link->peer->pending);
}

void verve_link_part(struct verve_xport *xport)
{
	uint64_t now = verve_net_now();
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (link->leaving && (!has_news(link) || now - link->leaving > grace))
			verve_link_break(xport, link, link->error, 0, link->reason);
	}
}

void verve_link_break(struct verve_xport *xport, struct verve_link *link, int error, uint32_t status,
		      const char *reason)
{
	bool is_stopped = verve_replay_is_stopped(link);
	struct verve_peer *peer = link->peer;
	char name[VERVE_ADDR_STRLEN];
	uint32_t marker;

	if (link->broken)
		return;
	VERVE_INFO(EP_CTRL, "connection %#x to %s ends: %s (%s), %u requests outstanding\n",
		   link->conn_id, verve_addr_str(&peer->addr, name), reason, fi_strerror(error),
		   link->produced - link->retired);
	if (link->leaving)
		xport->leaving_count--;
	if (link->quiesce.state != VERVE_QUIESCE_OPEN)
		xport->quiescing_count--;
	link->broken = true;
	link->error = error;
	link->status = status;
	link->reason = reason;
	verve_recv_forget(xport, link);
	doom(link, &peer->control);
	doom(link, &peer->reads);
	doom(link, &peer->active);
	if (!link->leaving && link->quiesce.state != VERVE_QUIESCE_AGREED)
		doom(link, &peer->pending);
	peer->link = NULL;
	TAILQ_REMOVE(&xport->links, link, all);
	TAILQ_INSERT_TAIL(&xport->broken_links, link, all);
	verve_replay_free(xport, link);
	if (link->qp && !is_stopped)
		verve_link_stop(xport, link, &marker);
	if (xport->cm)
		verve_cm_drop(xport->cm, &link->drop);
	if (xport->cm && !TAILQ_EMPTY(&peer->pending))
		verve_peer_kick(xport, peer);
}

void verve_link_retire(struct verve_xport *xport, struct verve_link *link, uint32_t status)
{
	struct verve_slot *slot = verve_link_slot(link, link->retired++);

	xport->wr_used--;
	verve_link_release(xport, link, slot);
	if (!slot->op)
		return;
	if (status && status != VERVE_NET_WC_FLUSHED) {
		slot->op->error = verve_net_wc_errno(status);
		slot->op->status = status;
	} else if (!status && slot->tell) {
		verve_op_done(xport, slot->op);
	}
}

void verve_link_completed(struct verve_xport *xport, const struct verve_net_wc *wc)
{
	struct verve_link *link = verve_idtab_get(&xport->link_ids, wc->wr_id >> 32);
	uint32_t number = (uint32_t) wc->wr_id, status;

	if (!link || number - link->retired >= link->produced - link->retired) {
		xport->count.stale++;
		return;
	}
	status = verve_replay_judge(xport, link, number, wc->status);
	while (link->retired != number && verve_replay_believes(xport, link, status))
		verve_link_retire(xport, link, VERVE_NET_WC_OK);
	if (status && !link->broken && verve_replay_take(xport, link, number, status))
		return;
	while (link->retired != number)
		verve_link_retire(xport, link, VERVE_NET_WC_FLUSHED);
	if (status == VERVE_NET_WC_FLUSHED && !link->broken)
		/* None of ours failed: the device ended it, for what the peer asked of it. */
		verve_link_break(xport, link, FI_ENOTCONN, status,
				 "the device ended the connection: it refused a request of the peer");
	else if (status && !link->broken)
		verve_link_break(xport, link, verve_net_wc_errno(status), status,
				 verve_net_wc_str(status));
	verve_link_retire(xport, link, status);
	if (link->broken)
		return;
	verve_quiesce_end(xport, link);
	if (link->replay)
		verve_replay_completed(xport, link, number);
}

bool verve_link_poll(struct verve_xport *xport)
{
	struct verve_net_wc wc[VERVE_POLL_BATCH];
	int count = verve_net_cq_poll(xport->send_cq, VERVE_POLL_BATCH, wc);

	for (int i = 0; i < count; i++)
		verve_link_completed(xport, &wc[i]);
	return count > 0;
}

void verve_link_poll_all(struct verve_xport *xport)
{
	/* Each request has one completion at most; those of what is posted meanwhile may come later. */
	uint32_t most = xport->wr_used + VERVE_POLL_BATCH;

	for (uint32_t i = 0; i < most && verve_link_poll(xport); i += VERVE_POLL_BATCH)
		;
}

static bool has_unmarked(const struct verve_xport *xport)
{
	const struct verve_link *link;

	TAILQ_FOREACH(link, &xport->broken_links, all)
		if (link->unmarked && link->retired != link->produced)
			return true;
	return false;
}

void verve_link_reap(struct verve_xport *xport)
{
	struct verve_link *link, *next;

	/* No marker says when that is all; what is not there is not known. */
	if (has_unmarked(xport))
		verve_link_poll_all(xport);
	/* Closing a queue pair may take its completions along, and the buffers that they give back. */
	verve_recv_drain(xport);
	for (link = TAILQ_FIRST(&xport->broken_links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (link->retired == link->produced || !link->qp || link->unmarked)
			finish_break(xport, link);
	}
	verve_lost_step(xport);
}

void verve_link_return_credit(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CREDIT};

	link->held--;
	if (++link->owed < xport->attr.window / 2 || link->broken || !verve_link_is_open(link))
		return;
	/* No room now: the next packet carries them, or the next consumed message tries again. */
	if (verve_link_has_room(xport, link, true))
		verve_link_send(xport, link, &packet, NULL);
}
