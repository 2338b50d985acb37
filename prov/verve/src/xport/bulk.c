/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xport/bulk.h"

#include "xport/peer.h"

bool verve_bulk_is_full(const struct verve_link *link)
{
	uint32_t reads = verve_net_qp_reads(link->qp);

	return link->bulk_reads >= reads - reads / 4;
}

bool verve_bulk_step_aside(struct verve_peer *peer, struct verve_op *op)
{
	if (!op->cls->may_be_passed || op->flags & VERVE_OP_FENCE ||
	    !verve_bulk_is_full(peer->link))
		return false;
	verve_op_move(op, &peer->reads);
	return true;
}

bool verve_bulk_is_aside(const struct verve_peer *peer)
{
	const struct verve_op *op;

	TAILQ_FOREACH(op, &peer->reads, link)
		if (!op->cls->is_receive)
			return true;
	return false;
}
