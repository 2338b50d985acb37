/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peek, claim and discard complete at once: they look at what is there. A claimed message is found
 * again by the context that claimed it; the context itself is never written to.
 */
#include "msg/peek.h"

#include <stdlib.h>

#include "comp/comp_queue.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "msg/recv.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

static void report_peek(struct verve_xport *xport, const struct verve_request *request,
			const struct verve_unexpected *found)
{
	struct verve_comp_queue *queue = xport->attr.sink.rx_queue;
	struct verve_comp_error entry = {
		.comp = {
			.context = request->context,
			.flags = VERVE_COMP_RECV | (request->flags & VERVE_OP_TAGGED ?
				VERVE_COMP_TAGGED : VERVE_COMP_MSG),
			.tag = request->tag,
			.src = UINT64_MAX,
		},
		.err = FI_ENOMSG,
	};

	if (!queue)
		return;
	if (!found) {
		verve_comp_queue_write_error(queue, &entry);
		return;
	}
	entry.comp.len = found->packet.len;
	entry.comp.tag = found->packet.tag;
	if (found->packet.flags & VERVE_WIRE_DATA) {
		entry.comp.data = found->packet.data;
		entry.comp.flags |= VERVE_COMP_REMOTE_CQ_DATA;
	}
	if (found->xport->attr.source)
		entry.comp.src = verve_peer_fi_addr(found->xport, found->peer);
	verve_comp_queue_write(queue, &entry.comp);
}

/* What throwing a message away needs: a FIN, if its sender waits for one. -FI_EAGAIN: no memory. */
static int prepare_discard(const struct verve_unexpected *unexpected, struct verve_op **fin)
{
	const struct verve_wire_packet *packet = &unexpected->packet;
	struct verve_xport *xport = unexpected->xport;

	*fin = NULL;
	if (packet->type != VERVE_WIRE_RTS && !(packet->flags & VERVE_WIRE_ACK))
		return 0;
	if (!verve_recv_live_link(xport, unexpected->link_id))
		return 0;
	*fin = verve_op_alloc(xport, VERVE_OP_FIN, VERVE_OP_REPORTED);
	if (!*fin)
		return -FI_EAGAIN;
	(*fin)->peer = unexpected->peer;
	(*fin)->recv.fin_id = packet->op_id;
	return 0;
}

/* The message is out of every list. */
static void discard(struct verve_unexpected *unexpected, struct verve_op *fin)
{
	struct verve_xport *xport = unexpected->xport;

	if (fin)
		verve_peer_queue_control(xport, unexpected->peer, fin);
	if (unexpected->packet.type == VERVE_WIRE_EAGER)
		verve_recv_return_credit(xport, unexpected->link_id, unexpected->packet.len);
	verve_recv_free_unexpected(unexpected);
}

static struct verve_unexpected *find_claimed(struct verve_xport *xport,
					     const struct verve_request *request)
{
	struct verve_unexpected *claimed;

	LIST_FOREACH(claimed, &xport->rx->claimed, claims)
		if (claimed->claim_context == request->context &&
		    !(claimed->packet.flags & VERVE_WIRE_TAGGED) ==
		    !(request->flags & VERVE_OP_TAGGED))
			return claimed;
	return NULL;
}

/* FI_CLAIM without FI_PEEK: the second half. */
static int take_claimed(struct verve_xport *xport, const struct verve_request *request, unsigned what)
{
	struct verve_unexpected *claimed = find_claimed(xport, request);
	struct verve_op *op;
	int ret;

	if (!claimed)
		return -FI_EINVAL;
	if (what & VERVE_DISCARD) {
		ret = prepare_discard(claimed, &op);
		if (ret)
			return ret;
		LIST_REMOVE(claimed, claims);
		report_peek(xport, request, claimed);
		discard(claimed, op);
		return 0;
	}
	op = verve_op_alloc(xport, VERVE_OP_RECV, request->flags);
	if (!op)
		return -FI_EAGAIN;
	verve_op_fill(op, request);
	LIST_REMOVE(claimed, claims);
	if (claimed->packet.type == VERVE_WIRE_RTS &&
	    !verve_recv_live_link(claimed->xport, claimed->link_id)) {
		op->peer = claimed->peer;
		op->len = 0;
		verve_op_report_error(claimed->xport, op, FI_ENOTCONN, 0,
				      "the sender of the claimed message is gone");
		verve_op_free(claimed->xport, op);
		verve_recv_free_unexpected(claimed);
		return 0;
	}
	verve_recv_consume(op, claimed);
	return 0;
}

int verve_recv_peek(struct verve_xport *xport, const struct verve_request *request, unsigned what)
{
	struct verve_match *match = verve_recv_match_of(xport, request->flags & VERVE_OP_TAGGED);
	uint32_t source = VERVE_MATCH_ANY;
	struct verve_unexpected *found;
	struct verve_match_msg *msg;
	struct verve_peer *peer;
	struct verve_op *fin = NULL;
	int ret;

	if (!(what & VERVE_PEEK))
		return take_claimed(xport, request, what);
	if (request->addr != UINT64_MAX) {
		ret = verve_peer_find(xport, request->addr, &peer);
		if (ret)
			return ret;
		source = peer->id;
	}
	msg = verve_match_find(match, source, request->tag, request->ignore);
	found = msg ? verve_unexpected_of(msg) : NULL;
	if (found && what & VERVE_DISCARD) {
		ret = prepare_discard(found, &fin);
		if (ret)
			return ret;
	}
	report_peek(xport, request, found);
	if (!found || !(what & (VERVE_CLAIM | VERVE_DISCARD)))
		return 0;
	verve_match_remove(match, msg);
	if (what & VERVE_DISCARD) {
		discard(found, fin);
		return 0;
	}
	found->claimed = true;
	found->claim_context = request->context;
	LIST_INSERT_HEAD(&xport->rx->claimed, found, claims);
	return 0;
}

void verve_recv_withdrawn(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	struct verve_unexpected *offer;
	struct verve_op *fin;

	TAILQ_FOREACH(offer, &link->peer->offers, offer)
		if (offer->link_id == link->id && offer->packet.op_id == packet->op_id)
			break;
	/* Somebody has it, or is to have it: the FIN that says so goes its way. */
	if (!offer || offer->claimed)
		return;
	if (prepare_discard(offer, &fin)) {
		verve_link_break(xport, link, FI_ENOMEM, 0, "no memory to give a message back");
		return;
	}
	if (fin)
		fin->recv.fin_status = FI_ECANCELED;
	verve_match_remove(verve_recv_match_of(xport, offer->packet.flags & VERVE_WIRE_TAGGED),
			   &offer->match);
	discard(offer, fin);
}

/* The receive is out of its table. A buffer that messages are still coming into ends with the last. */
static void cancel(struct verve_xport *xport, struct verve_op *op)
{
	if (op->recv.children) {
		op->recv.spent = true;
		return;
	}
	op->len = 0;
	verve_op_report_error(xport, op, FI_ECANCELED, 0, "cancelled");
	verve_op_free(xport, op);
}

int verve_recv_cancel(struct verve_xport *xport, const void *context)
{
	for (int i = 0; i < 2; i++) {
		struct verve_match *match = verve_recv_match_of(xport, i);
		struct verve_match_recv *recv;

		TAILQ_FOREACH(recv, &match->posted, order) {
			struct verve_op *op = verve_recv_op_of(recv);

			if (op->context != context)
				continue;
			verve_match_cancel(match, recv);
			cancel(xport, op);
			return 0;
		}
	}
	return -FI_ENOENT;
}

/* Of all the messages that came to xport; link: only those that must be fetched over it. */
static void drop_unexpected(struct verve_xport *xport, const struct verve_link *link)
{
	for (int i = 0; i < 2; i++) {
		struct verve_match *match = verve_recv_match_of(xport, i);
		struct verve_match_msg *msg = TAILQ_FIRST(&match->unexpected), *next;

		for (; msg; msg = next) {
			struct verve_unexpected *unexpected = verve_unexpected_of(msg);

			next = TAILQ_NEXT(msg, order);
			if (unexpected->xport != xport ||
			    (link && (unexpected->link_id != link->id ||
				      unexpected->packet.type != VERVE_WIRE_RTS)))
				continue;
			verve_match_remove(match, msg);
			verve_recv_free_unexpected(unexpected);
		}
	}
}

static void drop_claimed(struct verve_xport *xport)
{
	struct verve_unexpected *claimed = LIST_FIRST(&xport->rx->claimed), *next;

	for (; claimed; claimed = next) {
		next = LIST_NEXT(claimed, claims);
		if (claimed->xport != xport)
			continue;
		LIST_REMOVE(claimed, claims);
		verve_recv_free_unexpected(claimed);
	}
}

void verve_recv_cancel_all(struct verve_xport *xport)
{
	/* Those of a shared receive context wait for its other transports' messages. */
	for (int i = 0; i < 2; i++) {
		struct verve_match_recv *recv;

		while ((recv = TAILQ_FIRST(&xport->match[i].posted))) {
			verve_match_cancel(&xport->match[i], recv);
			cancel(xport, verve_recv_op_of(recv));
		}
	}
	drop_unexpected(xport, NULL);
	drop_claimed(xport);
}

void verve_recv_forget(struct verve_xport *xport, const struct verve_link *link)
{
	drop_unexpected(xport, link);
}
