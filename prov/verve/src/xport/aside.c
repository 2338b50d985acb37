/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xport/aside.h"

#include "xport/bulk.h"
#include "xport/peer.h"
#include "xport/transfer.h"

bool verve_aside_step(const struct verve_xport *xport, struct verve_peer *peer)
{
	struct verve_op *op = TAILQ_FIRST(&peer->pending);
	const struct verve_transfer *transfer;

	if (!op || !peer->link || !verve_link_is_open(peer->link) || !op->cls->may_be_passed ||
	    op->flags & VERVE_OP_FENCE || !verve_bulk_is_full(peer->link))
		return false;
	transfer = verve_op_transfer(op);
	if (transfer->len - transfer->offset <= xport->attr.bulk_read)
		return false;
	/* Only the head of a queue keeps the link's knowledge of its key fresh (rma/key.c). */
	if (transfer->offset && !TAILQ_EMPTY(&peer->aside))
		return false;
	verve_op_move(op, &peer->aside);
	return true;
}
