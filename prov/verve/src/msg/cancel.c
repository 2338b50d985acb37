/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cancelling. What waits here ends at once. A message that waits at the peer is taken back: the peer says
 * whether a receive was faster. What the device has is left to it, but no more of it is posted.
 */
#include "msg/cancel.h"

#include "xport/link.h"
#include "msg/peek.h"
#include "xport/peer.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

static struct verve_op *find(struct verve_op_queue *queue, const void *context)
{
	struct verve_op *op;

	TAILQ_FOREACH(op, queue, link)
		/* A receive here has its message already. */
		if (op->context == context && op->kind != VERVE_OP_RECV &&
		    !(op->flags & VERVE_OP_REPORTED))
			return op;
	return NULL;
}

static void cancel_pending(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_peer *peer = op->peer;

	/* Only what the target is to hear of it is left to be sent. */
	if (op->posted)
		return;
	if (op->transfer.offset)
		op->flags |= VERVE_OP_CANCELLED;
	else
		verve_op_fail(xport, op, FI_ECANCELED, "cancelled before it began");
	verve_peer_kick(xport, peer);
}

static int cancel_active(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_peer *peer = op->peer;
	struct verve_op *withdraw;

	if (op->kind != VERVE_OP_SEND || op->state != VERVE_OP_AWAIT ||
	    op->flags & VERVE_OP_CANCELLED)
		return 0;
	withdraw = verve_op_alloc(xport, VERVE_OP_WITHDRAW, VERVE_OP_REPORTED);
	if (!withdraw)
		return -FI_EAGAIN;
	op->flags |= VERVE_OP_CANCELLED;
	withdraw->peer = peer;
	withdraw->recv.fin_id = op->id;
	verve_peer_queue_control(xport, peer, withdraw);
	return 0;
}

int verve_cancel(struct verve_xport *xport, const void *context)
{
	struct verve_peer *peer, *next;
	struct verve_op *op;

	if (!verve_recv_cancel(xport, context))
		return 0;
	/* What was injected has no context. */
	if (!context)
		return -FI_ENOENT;
	HASH_ITER(hh, xport->peers, peer, next) {
		op = find(&peer->pending, context);
		if (op) {
			cancel_pending(xport, op);
			return 0;
		}
		op = find(&peer->active, context);
		if (op)
			return cancel_active(xport, op);
	}
	return -FI_ENOENT;
}
