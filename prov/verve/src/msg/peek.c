/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peek, claim and discard complete at once, with the messages that have already arrived. A claimed
 * message is found again by the context pointer of the peek that claimed it. verve stores nothing
 * in the application's context.
 */
#include "msg/peek.h"

#include "comp/comp_queue.h"
#include "msg/msg.h"
#include "msg/recv.h"
#include "msg/recv_op.h"
#include "msg/unexpected.h"
#include "xport/fence_ask.h"
#include "xport/lifetime.h"
#include "xport/memory.h"
#include "xport/peer.h"
#include "xport/report.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/* Reports the message that was found; if found is NULL, the error FI_ENOMSG. */
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

/* The message that a peek with the request's context has claimed (FI_PEEK | FI_CLAIM), or NULL. */
static struct verve_unexpected *find_claimed(struct verve_xport *xport,
					     const struct verve_request *request)
{
	struct verve_unexpected *claimed;

	LIST_FOREACH(claimed, &verve_msg_of(xport)->claimed, claims)
		if (claimed->claim_context == request->context &&
		    !(claimed->packet.flags & VERVE_WIRE_TAGGED) ==
		    !(request->flags & VERVE_OP_TAGGED))
			return claimed;
	return NULL;
}

/* FI_CLAIM without FI_PEEK: receives, or discards, a message that was claimed before. */
static int take_claimed(struct verve_xport *xport, const struct verve_request *request,
			unsigned what)
{
	struct verve_unexpected *claimed = find_claimed(xport, request);
	struct verve_recv_op *recv;
	struct verve_op *op;
	int ret;

	if (!claimed)
		return -FI_EINVAL;
	if (what & VERVE_DISCARD) {
		ret = verve_unexpected_prepare_discard(claimed, 0, &op);
		if (ret)
			return ret;
		LIST_REMOVE(claimed, claims);
		report_peek(xport, request, claimed);
		verve_unexpected_discard(claimed, op);
		return 0;
	}
	recv = verve_recv_alloc(xport, request->flags);
	if (!recv)
		return -FI_EAGAIN;
	op = &recv->op;
	verve_op_fill(op, request);
	verve_recv_begin(recv, request->tag);
	LIST_REMOVE(claimed, claims);
	if (claimed->packet.type == VERVE_WIRE_RTS && !verve_unexpected_link(claimed)) {
		struct verve_xport *receiver = claimed->xport;
		struct verve_peer *peer = claimed->peer;

		op->peer = peer;
		op->len = 0;
		verve_op_report_error(receiver, op, FI_ENOTCONN, 0,
				      "the sender of the claimed message is gone");
		verve_op_free(receiver, op);
		verve_unexpected_free(claimed);
		verve_fence_continue(receiver, peer);
		return 0;
	}
	verve_recv_consume(op, claimed);
	return 0;
}

int verve_recv_peek(struct verve_xport *xport, const struct verve_request *request, unsigned what)
{
	struct verve_match *match = verve_msg_match_of(xport, request->flags & VERVE_OP_TAGGED);
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
		ret = verve_unexpected_prepare_discard(found, 0, &fin);
		if (ret)
			return ret;
	}
	report_peek(xport, request, found);
	if (!found || !(what & (VERVE_CLAIM | VERVE_DISCARD)))
		return 0;
	verve_match_remove(match, msg);
	if (what & VERVE_DISCARD) {
		verve_unexpected_discard(found, fin);
		return 0;
	}
	found->claimed = true;
	found->claim_context = request->context;
	LIST_INSERT_HEAD(&verve_msg_of(xport)->claimed, found, claims);
	return 0;
}
