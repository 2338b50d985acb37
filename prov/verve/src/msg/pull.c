/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pulling: the receiver's half, then the sender's. */
#include "msg/pull.h"

#include <string.h>

#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "msg/recv.h"
#include "xport/transfer.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

enum { CHUNKS = 8 }; /* asked for at a time: a round trip costs more than a chunk */

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool verve_pull_start(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	uint64_t left = op->transfer.len - op->transfer.offset;
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_PULL,
		.op_id = op->recv.fin_id,
		.len = min(left, (uint64_t) CHUNKS * link->eager_size),
	};

	if (!op->id && verve_op_name(xport, op))
		return false;
	packet.status = op->id;
	if (!verve_link_send(xport, link, &packet, NULL))
		return link->broken;
	op->recv.asked = op->transfer.offset + packet.len;
	verve_op_activate(op, VERVE_OP_AWAIT);
	return true;
}

void verve_pull_arrived(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet)
{
	struct verve_op *op = verve_recv_find_awaiting(xport, link, packet);
	struct verve_transfer *transfer;

	if (!op)
		return;
	transfer = &op->transfer;
	if (op->kind != VERVE_OP_RECV || !packet->len || packet->len > op->recv.asked - transfer->offset) {
		verve_link_break(xport, link, FI_EIO, 0, "the peer sends what nobody asked for");
		return;
	}
	verve_iov_scatter(op->iov, op->iov_count, transfer->offset, packet->payload, packet->len);
	transfer->offset += packet->len;
	if (transfer->offset == transfer->len) {
		verve_recv_finish(xport, op, 0, NULL);
		return;
	}
	if (transfer->offset < op->recv.asked)
		return;
	verve_op_dequeue(op);
	verve_peer_queue(xport, link->peer, op);
}

void verve_pull_asked(struct verve_xport *xport, struct verve_link *link, struct verve_wire_packet *packet)
{
	struct verve_op *source = verve_recv_find_awaiting(xport, link, packet), *chunk;

	if (!source)
		return;
	if (source->kind != VERVE_OP_SEND || source->flags & VERVE_OP_PULLED || !packet->len ||
	    packet->len > source->len - source->transfer.offset) {
		verve_link_break(xport, link, FI_EIO, 0, "the peer asks for what it was not offered");
		return;
	}
	chunk = verve_op_alloc(xport, VERVE_OP_CHUNK, VERVE_OP_REPORTED);
	if (!chunk) {
		verve_link_break(xport, link, FI_ENOMEM, 0, "no memory to send a part of a message");
		return;
	}
	source->flags |= VERVE_OP_PULLED;
	chunk->peer = link->peer;
	chunk->tag = source->id;
	chunk->len = packet->len;
	chunk->recv.fin_id = packet->status;
	verve_peer_queue_control(xport, link->peer, chunk);
}

/* len bytes behind their header, from the application's memory or the copy of it; how long that is. */
static size_t fill(const struct verve_op *source, const struct verve_op *op, struct verve_link *link,
		   size_t len, char *to)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CHUNK, .op_id = op->recv.fin_id};
	uint64_t offset = source->transfer.offset;
	size_t prefix;

	verve_link_address(link, &packet);
	prefix = verve_wire_encode(&packet, to);
	if (source->slab)
		memcpy(to + prefix, (char *) source->slab->data + VERVE_WIRE_PREFIX + offset, len);
	else
		verve_iov_gather(to + prefix, source->iov, source->iov_count, offset, len);
	return prefix + len;
}

bool verve_pull_send(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	struct verve_op *source = verve_idtab_get(&xport->op_ids, op->tag);
	size_t chunk = min(op->len, link->eager_size), len;
	struct verve_outgoing out;

	/* Its receiver may have ended it meanwhile. */
	if (!source) {
		TAILQ_REMOVE(&link->peer->control, op, link);
		verve_op_free(xport, op);
		return true;
	}
	if (!verve_link_has_room(xport, link, false) ||
	    !verve_link_reserve(xport, link, VERVE_WIRE_PREFIX + chunk, &out))
		return false;
	len = fill(source, op, link, chunk, out.data);
	source->transfer.offset += chunk;
	op->len -= chunk;
	if (!op->len)
		source->flags &= ~VERVE_OP_PULLED;
	if (verve_link_post_packet(xport, link, &out, len, false, NULL))
		return false;
	if (!op->len) {
		TAILQ_REMOVE(&link->peer->control, op, link);
		verve_op_free(xport, op);
	}
	return true;
}
