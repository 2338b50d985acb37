/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parts of an offer: the receiver's half, then the sender's. */
#include "msg/parts.h"

#include <string.h>

#include "msg/recv_op.h"
#include "msg/send_op.h"
#include "net/mr.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/op_pool.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/staged.h"
#include "xport/start.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

_Static_assert((int)VERVE_IOV_LIMIT <= (int)VERVE_WIRE_SEGMENTS, "a receive takes all stages");

static uint64_t bytes_of(const struct verve_wire_segment *segment, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += segment[i].len;
	return sum;
}

uint64_t verve_parts_unoffered(const struct verve_transfer *transfer)
{
	uint64_t offered = bytes_of(transfer->remote, transfer->remote_count);

	return offered && offered < transfer->len ? transfer->len - offered : 0;
}

void verve_parts_expect(struct verve_link *link, const struct verve_wire_packet *rts)
{
	uint64_t left = rts->len - bytes_of(rts->segment, rts->segment_count);

	if (rts->segment_count && left)
		link->parts = (struct verve_link_parts){
			.id = rts->op_id,
			.room = VERVE_WIRE_SEGMENTS - rts->segment_count,
			.left = left,
		};
}

int verve_parts_take(struct verve_xport *xport, struct verve_link *link, struct verve_recv_op *recv)
{
	struct verve_transfer *transfer = &recv->transfer;
	struct verve_link_parts *parts = &link->parts;

	/* A hostile peer may have begun another message: then this one waits for the link's end. */
	if (!transfer->unoffered || parts->id != recv->fin.id)
		return 0;
	/* Or it may have named two messages alike. */
	if (parts->count > VERVE_WIRE_SEGMENTS - transfer->remote_count)
		return -FI_EIO;
	if (verve_recv_name(xport, recv))
		return -FI_EAGAIN;
	parts->recv = recv->op.id;
	memcpy(&transfer->remote[transfer->remote_count], parts->segment,
	       parts->count * sizeof(*parts->segment));
	transfer->remote_count += parts->count;
	parts->count = 0;
	transfer->unoffered = verve_parts_unoffered(transfer);
	return transfer->unoffered ? -(int)parts->status : 0;
}

/*
 * The status comes from the peer, so it may be any number; but not one that makes the receive wait,
 * which would try again for ever.
 */
static uint32_t error_of(uint32_t status)
{
	if (status == FI_EAGAIN)
		return FI_ENOMEM;
	return status < FI_ERRNO_MAX && status != FI_EINPROGRESS ? status : FI_EIO;
}

/* False: the segments reach beyond the message, or there are too many. */
static bool keep(struct verve_link_parts *parts, const struct verve_wire_packet *packet)
{
	if (packet->segment_count > parts->room)
		return false;
	for (uint32_t i = 0; i < packet->segment_count; i++) {
		if (!packet->segment[i].len || packet->segment[i].len > parts->left)
			return false;
		parts->left -= packet->segment[i].len;
		parts->room--;
		parts->segment[parts->count++] = packet->segment[i];
	}
	if (packet->status)
		parts->status = error_of(packet->status);
	return true;
}

void verve_parts_arrived(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet)
{
	struct verve_link_parts *parts = &link->parts;
	struct verve_op *op;

	if (!parts->id || parts->id != packet->op_id) {
		xport->count.stale++;
		return;
	}
	if (!keep(parts, packet)) {
		verve_link_break(xport, link, FI_EIO, 0,
				 "the peer offers what is not of its message");
		return;
	}
	op = parts->recv ? verve_idtab_get(&xport->op_ids, parts->recv) : NULL;
	/* It may have ended, or not wait for parts: it is pulled, or has not read so far. */
	if (!op || op->peer != link->peer || op->state != VERVE_OP_AWAIT || !op->cls->is_receive ||
	    !verve_recv_op_of(op)->transfer.unoffered)
		return;
	verve_op_resume(op);
	verve_peer_kick(xport, link->peer);
}

/* The sender. */

/* Sends the PARTs of one message. */
struct verve_parts_op {
	struct verve_op op;
	uint32_t source; /* id of the send operation */
	bool tried;	 /* the next stage has a region, or failed; its PART has not left */
	int error;	 /* negative FI errno of the next stage, or 0 */
};

/* The send. NULL: it has ended, or is pulled. By now another operation may have its id. */
static struct verve_send_op *source_of(const struct verve_xport *xport,
				       const struct verve_parts_op *parts)
{
	struct verve_send_op *source = verve_send_op_find(xport, parts->source);

	return source && source->parts == &parts->op ? source : NULL;
}

/* The segment of the last stage that has a region. */
static void fill_segment(const struct verve_memory *memory, struct verve_wire_packet *packet)
{
	uint32_t i = verve_staged_count(memory) - 1;

	packet->segment_count = 1;
	packet->segment[0] = verve_memory_segment(memory, i);
}

/* Sends one PART. Ends the operation behind the last one. */
static enum verve_outcome send_part(struct verve_xport *xport, struct verve_link *link,
				    struct verve_op *op)
{
	struct verve_parts_op *parts = (struct verve_parts_op *)op;
	struct verve_send_op *source = source_of(xport, parts);
	struct verve_wire_packet packet = {.type = VERVE_WIRE_PART, .op_id = parts->source};

	if (!source) {
		verve_op_free(xport, op);
		return VERVE_DONE;
	}
	if (!parts->tried)
		parts->error = verve_staged_next(xport, &source->op, VERVE_NET_REMOTE_READ);
	if (parts->error == -FI_EINPROGRESS)
		return VERVE_PASS;
	parts->tried = true;
	packet.status = (uint32_t)-parts->error;
	if (!parts->error)
		fill_segment(&source->memory, &packet);
	if (!verve_link_has_room(xport, link, true) ||
	    !verve_link_send(xport, link, &packet, NULL))
		return link->broken ? VERVE_BROKE : VERVE_LATER;
	parts->tried = false;
	if (parts->error || !verve_staged_is_partial(&source->memory)) {
		source->parts = NULL;
		verve_op_free(xport, op);
	}
	return VERVE_DONE;
}

_Static_assert(sizeof(struct verve_parts_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

static const struct verve_op_class parts_class = {
	.name = "parts",
	.size = sizeof(struct verve_parts_op),
	.cleared = sizeof(struct verve_parts_op),
	.answer = send_part,
};

enum verve_outcome verve_parts_offer(struct verve_xport *xport, struct verve_link *link,
				     struct verve_send_op *send)
{
	struct verve_op *op = verve_op_alloc(xport, &parts_class, VERVE_OP_REPORTED);

	if (!op) {
		verve_link_break(xport, link, FI_ENOMEM, 0,
				 "no memory to offer the rest of a message");
		return VERVE_BROKE;
	}
	send->parts = op;
	((struct verve_parts_op *)op)->source = send->op.id;
	op->peer = link->peer;
	verve_peer_queue_control(xport, link->peer, op);
	return VERVE_DONE;
}

void verve_parts_end(struct verve_xport *xport, struct verve_send_op *send)
{
	send->parts = NULL;
	if (send->memory.staged)
		verve_memory_unregister(xport, &send->memory);
}
