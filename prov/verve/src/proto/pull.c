/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pulling: the receiver's half, then the sender's. */
#include "proto/pull.h"

#include <string.h>

#include "proto/link.h"
#include "proto/peer.h"
#include "proto/post.h"
#include "proto/recv.h"
#include "proto/transfer.h"
#include "proto/xport.h"
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

/* The peer was offered the message, does not wait for a part of it yet, and there are so many bytes left. */
static bool may_pull(const struct verve_op *source, uint64_t len)
{
	return source->kind == VERVE_OP_SEND && source->flags & VERVE_OP_OFFERED && !source->chunk && len &&
	       len <= source->len - source->transfer.offset;
}

void verve_pull_asked(struct verve_xport *xport, struct verve_link *link, struct verve_wire_packet *packet)
{
	struct verve_op *source = verve_recv_find_awaiting(xport, link, packet), *chunk;

	if (!source)
		return;
	if (!may_pull(source, packet->len)) {
		verve_link_break(xport, link, FI_EIO, 0, "the peer asks for what it was not offered");
		return;
	}
	chunk = verve_op_alloc(xport, VERVE_OP_CHUNK, VERVE_OP_REPORTED);
	if (!chunk) {
		verve_link_break(xport, link, FI_ENOMEM, 0, "no memory to send a part of a message");
		return;
	}
	source->chunk = chunk;
	chunk->peer = link->peer;
	chunk->tag = source->id;
	chunk->len = packet->len;
	chunk->recv.fin_id = packet->status;
	verve_peer_queue_control(xport, link->peer, chunk);
}

/* NULL: the receiver has ended the message meanwhile. Its id may be another's by now. */
static struct verve_op *source_of(const struct verve_xport *xport, const struct verve_op *chunk)
{
	struct verve_op *source = verve_idtab_get(&xport->op_ids, chunk->tag);

	return source && source->kind == VERVE_OP_SEND && source->chunk == chunk ? source : NULL;
}

/* Room for len bytes behind their header. whole: they are all of a copy, which goes itself. False: none now. */
static bool reserve(struct verve_xport *xport, struct verve_link *link, struct verve_op *source, bool whole,
		    size_t len, struct verve_outgoing *out)
{
	if (!whole)
		return verve_link_reserve(xport, link, VERVE_WIRE_PREFIX + len, out);
	out->data = (char *) source->slab->data + VERVE_WIRE_PREFIX - VERVE_WIRE_HEADER;
	out->slab = source->slab;
	source->slab = NULL; /* the request's from here on */
	return true;
}

/* len bytes from the application's memory, or from the copy of it. */
static void gather(const struct verve_op *source, size_t len, char *to)
{
	uint64_t offset = source->transfer.offset;

	if (source->slab)
		memcpy(to, (char *) source->slab->data + VERVE_WIRE_PREFIX + offset, len);
	else
		verve_iov_gather(to, source->iov, source->iov_count, offset, len);
}

bool verve_pull_send(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CHUNK, .op_id = op->recv.fin_id};
	struct verve_op *source = source_of(xport, op);
	size_t len = min(op->len, link->eager_size), prefix;
	struct verve_outgoing out;
	bool whole;

	if (!source) {
		TAILQ_REMOVE(&link->peer->control, op, link);
		verve_op_free(xport, op);
		return true;
	}
	whole = source->slab && len == source->len;
	if (!verve_link_has_room(xport, link, false) || !reserve(xport, link, source, whole, len, &out))
		return false;
	verve_link_address(link, &packet);
	prefix = verve_wire_encode(&packet, out.data);
	if (!whole)
		gather(source, len, out.data + prefix);
	source->transfer.offset += len;
	op->len -= len;
	if (!op->len)
		source->chunk = NULL;
	if (verve_link_post_packet(xport, link, &out, prefix + len, false, NULL))
		return false;
	if (!op->len) {
		TAILQ_REMOVE(&link->peer->control, op, link);
		verve_op_free(xport, op);
	}
	return true;
}
