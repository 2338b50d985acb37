/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pulling: the receiver's half, then the sender's. */
#include "msg/chunks.h"

#include <string.h>

#include "msg/parts.h"
#include "msg/recv_op.h"
#include "msg/send_op.h"
#include "xport/iov.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/op_pool.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/start.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

enum { CHUNKS = 8 }; /* in one PULL: a round trip takes longer than a chunk */

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

enum verve_outcome verve_chunks_start(struct verve_xport *xport, struct verve_link *link,
				      struct verve_recv_op *recv)
{
	uint64_t left = recv->transfer.len - recv->transfer.offset;
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_PULL,
		.op_id = recv->fin.id,
		.len = min(left, (uint64_t)CHUNKS * link->eager_size),
	};

	if (verve_recv_name(xport, recv))
		return VERVE_LATER;
	packet.status = recv->op.id;
	if (!verve_link_send(xport, link, &packet, NULL))
		return link->broken ? VERVE_BROKE : VERVE_LATER;
	recv->asked = recv->transfer.offset + packet.len;
	verve_op_activate(&recv->op, VERVE_OP_AWAIT);
	return VERVE_DONE;
}

void verve_chunks_arrived(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	struct verve_op *op = verve_op_find_awaiting(xport, link->peer, packet->op_id);
	struct verve_transfer *transfer;
	struct verve_recv_op *recv;

	if (!op)
		return;
	recv = verve_recv_op_of(op);
	transfer = &recv->transfer;
	if (!op->cls->is_receive || transfer->remote_count || !packet->len ||
	    packet->len > recv->asked - transfer->offset) {
		verve_link_break(xport, link, FI_EIO, 0, "the peer sends what nobody asked for");
		return;
	}
	verve_iov_scatter(recv->memory.iov, recv->memory.iov_count, transfer->offset,
			  packet->payload, packet->len);
	transfer->offset += packet->len;
	if (transfer->offset == transfer->len) {
		verve_recv_finish(xport, recv, 0, NULL);
		return;
	}
	if (transfer->offset < recv->asked)
		return;
	verve_op_resume(op);
	verve_peer_kick(xport, link->peer);
}

/* The sender. */

/* The answer to one PULL: up to CHUNKS packets. */
struct verve_chunk_op {
	struct verve_op op; /* op.len: bytes that are still to be sent */
	uint32_t source;    /* id of the send operation */
	uint32_t receiver;  /* id of the peer's receive operation */
};

/*
 * The send whose bytes the chunk carries. NULL: the send ended before this chunk left. By now
 * another operation may have its id: ids repeat.
 */
static struct verve_send_op *source_of(const struct verve_xport *xport,
				       const struct verve_chunk_op *chunk)
{
	struct verve_send_op *source = verve_send_op_find(xport, chunk->source);

	return source && source->chunk == &chunk->op ? source : NULL;
}

/*
 * Finds room in out for len bytes of payload behind a header. whole: the payload is the whole copy
 * in the send's slab, so the slab itself is sent. False: no buffer is free now.
 */
static bool chunk_reserve(struct verve_xport *xport, struct verve_link *link,
			  struct verve_send_op *source, bool whole, size_t len,
			  struct verve_outgoing *out)
{
	if (!whole)
		return verve_link_reserve(xport, link, VERVE_WIRE_PREFIX + len, out);
	out->data = (char *)source->memory.slab->data + VERVE_WIRE_PREFIX - VERVE_WIRE_HEADER;
	out->slab = source->memory.slab;
	source->memory.slab = NULL; /* from here on, the work request owns the slab */
	return true;
}

/* Copies the next len bytes of the message from the application's memory, or from its copy. */
static void chunk_gather(const struct verve_send_op *source, size_t len, char *to)
{
	const struct verve_memory *memory = &source->memory;

	if (memory->slab)
		memcpy(to, (char *)memory->slab->data + VERVE_WIRE_PREFIX + source->pulled, len);
	else
		verve_iov_gather(to, memory->iov, memory->iov_count, source->pulled, len);
}

/* Sends one packet. Ends the operation when it was the last packet of the answer. */
static enum verve_outcome send_chunk(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op)
{
	struct verve_chunk_op *chunk = (struct verve_chunk_op *)op;
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CHUNK, .op_id = chunk->receiver};
	struct verve_send_op *source = source_of(xport, chunk);
	size_t len = min(op->len, link->eager_size), prefix;
	struct verve_outgoing out;
	bool whole;

	if (!source) {
		verve_op_free(xport, op);
		return VERVE_DONE;
	}
	whole = source->memory.slab && len == source->op.len;
	if (!verve_link_has_room(xport, link, false) ||
	    !chunk_reserve(xport, link, source, whole, len, &out))
		return VERVE_LATER;
	verve_link_address(link, &packet);
	prefix = verve_wire_encode(&packet, out.data);
	if (!whole)
		chunk_gather(source, len, out.data + prefix);
	source->pulled += len;
	op->len -= len;
	if (!op->len)
		source->chunk = NULL;
	if (verve_link_post_packet(xport, link, &out, prefix + len, false, NULL))
		return VERVE_BROKE;
	if (!op->len)
		verve_op_free(xport, op);
	return VERVE_DONE;
}

_Static_assert(sizeof(struct verve_chunk_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

static const struct verve_op_class chunk_class = {
	.name = "chunk",
	.size = sizeof(struct verve_chunk_op),
	.cleared = sizeof(struct verve_chunk_op),
	.answer = send_chunk,
};

/*
 * The peer may ask for len bytes now: the message was offered to the peer, no earlier PULL of
 * the message is still to be answered, and at least len bytes are left.
 */
static bool may_pull(struct verve_op *op, uint64_t len)
{
	const struct verve_send_op *source = verve_send_op_of(op);

	return verve_op_is_send(op) && source->offered && !source->chunk && len &&
	       len <= op->len - source->pulled;
}

void verve_chunks_asked(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet)
{
	struct verve_op *source = verve_op_find_awaiting(xport, link->peer, packet->op_id), *op;
	struct verve_chunk_op *chunk;

	if (!source)
		return;
	if (!may_pull(source, packet->len)) {
		verve_link_break(xport, link, FI_EIO, 0,
				 "the peer asks for what it was not offered");
		return;
	}
	op = verve_op_alloc(xport, &chunk_class, VERVE_OP_REPORTED);
	if (!op) {
		verve_link_break(xport, link, FI_ENOMEM, 0,
				 "no memory to send a part of a message");
		return;
	}
	verve_send_op_of(source)->chunk = op;
	verve_parts_end(xport, verve_send_op_of(source));
	chunk = (struct verve_chunk_op *)op;
	chunk->source = source->id;
	chunk->receiver = packet->status;
	op->peer = link->peer;
	op->len = packet->len;
	verve_peer_queue_control(xport, link->peer, op);
}
