/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Cancelling: finds the operation that has the context. */
#include "proto/cancel.h"

#include <stdbool.h>

#include "msg/recv.h"
#include "xport/peer.h"
#include "xport/start.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * The oldest operation of the queue that has this context and can still be cancelled; NULL: none.
 */
static struct verve_op *find_cancellable(struct verve_op_queue *queue, const void *context)
{
	struct verve_op *op;

	TAILQ_FOREACH(op, queue, link)
		if (op->context == context && op->cls->cancel && !(op->flags & VERVE_OP_REPORTED))
			return op;
	return NULL;
}

int verve_cancel(struct verve_xport *xport, const void *context)
{
	struct verve_peer *peer, *next;
	int ret;

	if (!verve_recv_cancel(xport, context))
		return 0;
	/* Injected operations have no context: NULL names none of them. */
	if (!context)
		return -FI_ENOENT;
	HASH_ITER(hh, xport->peers, peer, next) {
		struct verve_op *op = find_cancellable(&peer->aside, context);

		if (!op)
			op = find_cancellable(&peer->pending, context);
		if (!op)
			op = find_cancellable(&peer->active, context);
		if (!op)
			continue;
		ret = op->cls->cancel(xport, op);
		verve_peer_kick(xport, peer);
		return ret;
	}
	return -FI_ENOENT;
}
