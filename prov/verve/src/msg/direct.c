/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Direct: the regions of the message, and its packet of two kinds of memory. */
#include "msg/direct.h"

#include "msg/send_op.h"
#include "net/mr.h"
#include "xport/credit.h"
#include "xport/link.h"
#include "xport/memory.h"
#include "xport/post.h"
#include "xport/wire.h"
#include <rdma/fi_errno.h>

int verve_direct_offer(struct verve_xport *xport, const struct verve_link *link,
		       struct verve_send_op *send)
{
	if (send->op.len < xport->attr.mr_cache->crossover.offer_kept || send->memory.staged)
		return -FI_ENOENT;
	return verve_memory_offer_kept(xport, &send->op, link->bound_keys);
}

int verve_direct_register(struct verve_xport *xport, struct verve_send_op *send)
{
	struct verve_op *op = &send->op;

	/* A request has VERVE_IOV_LIMIT segments, and the header takes one of them. */
	if (op->flags & (VERVE_OP_ACK | VERVE_OP_INJECT) || send->memory.slab ||
	    send->memory.iov_count == VERVE_IOV_LIMIT)
		return -FI_ENOENT;
	return verve_memory_register_short(xport, op, op->len, 0);
}

int verve_direct_post(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet, struct verve_send_op *send)
{
	struct verve_outgoing out = {.slab = verve_link_slab_alloc(xport, link)};

	if (!out.slab) {
		/* The message may be offered instead, with regions that the peer may read. */
		verve_memory_unregister(xport, &send->memory);
		return -FI_EAGAIN;
	}
	out.data = out.slab->data;
	packet->type = VERVE_WIRE_EAGER;
	verve_link_address(link, packet);
	verve_credit_spend_message(link, send->op.len);
	return verve_link_post_headed(xport, link, &out, verve_wire_encode(packet, out.data),
				      &send->op);
}
