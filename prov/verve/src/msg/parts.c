/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parts of an offer: the receiver's half, then the sender's. */
#include "msg/parts.h"

#include "mr/region.h"
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

static uint64_t bytes_of_segments(const struct verve_transfer *transfer)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < transfer->remote_count; i++)
		sum += transfer->remote[i].len;
	return sum;
}

uint64_t verve_parts_closed(const struct verve_transfer *transfer)
{
	uint64_t open = bytes_of_segments(transfer);

	return open < transfer->len ? transfer->len - open : 0;
}

enum verve_outcome verve_parts_ask(struct verve_xport *xport, struct verve_link *link,
				   struct verve_recv_op *recv)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_MORE, .op_id = recv->fin.id};

	if (!recv->transfer.closed || recv->asks)
		return VERVE_DONE;
	if (verve_op_name(xport, &recv->op) || !verve_link_has_room(xport, link, false))
		return VERVE_LATER;
	packet.status = recv->op.id;
	if (!verve_link_send(xport, link, &packet, NULL))
		return link->broken ? VERVE_BROKE : VERVE_LATER;
	recv->asks = true;
	return VERVE_DONE;
}

/* False: the segments reach beyond the message, or there are too many. */
static bool add_segments(struct verve_recv_op *recv, const struct verve_wire_packet *packet)
{
	struct verve_transfer *transfer = &recv->transfer;
	uint64_t left = recv->msg_len - bytes_of_segments(transfer);

	if (packet->segment_count > VERVE_WIRE_SEGMENTS - transfer->remote_count)
		return false;
	for (uint32_t i = 0; i < packet->segment_count; i++) {
		if (!packet->segment[i].len || packet->segment[i].len > left)
			return false;
		left -= packet->segment[i].len;
		transfer->remote[transfer->remote_count++] = packet->segment[i];
	}
	transfer->closed = verve_parts_closed(transfer);
	return true;
}

void verve_parts_arrived(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet)
{
	struct verve_op *op = verve_idtab_get(&xport->op_ids, packet->op_id);
	struct verve_recv_op *recv;

	if (!op || op->peer != link->peer || !op->cls->is_receive || !verve_recv_op_of(op)->asks) {
		xport->count.stale++;
		return;
	}
	recv = verve_recv_op_of(op);
	recv->asks = false;
	if (!packet->segment_count) {
		recv->pulls = true;
	} else if (!add_segments(recv, packet)) {
		verve_link_break(xport, link, FI_EIO, 0,
				 "the peer offers what is not of its message");
		return;
	}
	if (op->state != VERVE_OP_AWAIT)
		return;
	verve_op_dequeue(op);
	verve_peer_queue(xport, link->peer, op);
}

/* The sender. */

/* The answer to one MORE. */
struct verve_part_op {
	struct verve_op op;
	uint32_t source;   /* id of the send operation */
	uint32_t receiver; /* id of the peer's receive operation */
	bool tried;	   /* the next piece has a region, or failed */
	bool failed;
};

/* The send whose piece the part offers. NULL: the send ended before, because FIN came. */
static struct verve_send_op *source_of(const struct verve_xport *xport,
				       const struct verve_part_op *part)
{
	return verve_send_op_answered(xport, part->source, &part->op);
}

/* The segment of the last piece that has a region. */
static void fill_segment(const struct verve_memory *memory, struct verve_wire_packet *packet)
{
	uint32_t i = 0;

	while (i + 1 < memory->iov_count && memory->region[i + 1])
		i++;
	packet->segment_count = 1;
	packet->segment[0] = (struct verve_wire_segment){
		(uintptr_t)memory->iov[i].iov_base + memory->region[i]->shift,
		memory->iov[i].iov_len, memory->region[i]->rkey};
}

static enum verve_outcome send_part(struct verve_xport *xport, struct verve_link *link,
				    struct verve_op *op)
{
	struct verve_part_op *part = (struct verve_part_op *)op;
	struct verve_wire_packet packet = {.type = VERVE_WIRE_PART, .op_id = part->receiver};
	struct verve_send_op *source = source_of(xport, part);

	if (!source) {
		verve_op_free(xport, op);
		return VERVE_DONE;
	}
	if (!part->tried)
		part->failed = verve_staged_next(xport, &source->memory, VERVE_NET_REMOTE_READ);
	part->tried = true;
	if (!part->failed)
		fill_segment(&source->memory, &packet);
	if (!verve_link_has_room(xport, link, true) ||
	    !verve_link_send(xport, link, &packet, NULL))
		return link->broken ? VERVE_BROKE : VERVE_LATER;
	source->answer = NULL;
	verve_op_free(xport, op);
	return VERVE_DONE;
}

_Static_assert(sizeof(struct verve_part_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

static const struct verve_op_class part_class = {
	.name = "part",
	.size = sizeof(struct verve_part_op),
	.cleared = sizeof(struct verve_part_op),
	.answer = send_part,
};

/* The message was offered, but not all of it, and no question about it is still to be answered. */
static bool may_ask(struct verve_op *op)
{
	const struct verve_send_op *source = verve_send_op_of(op);

	return verve_op_is_send(op) && source->offered && !source->answer &&
	       source->memory.staged && verve_staged_ready(&source->memory) < op->len;
}

void verve_parts_asked(struct verve_xport *xport, struct verve_link *link,
		       struct verve_wire_packet *packet)
{
	struct verve_op *source = verve_op_find_awaiting(xport, link->peer, packet->op_id), *op;
	struct verve_part_op *part;

	if (!source)
		return;
	if (!may_ask(source)) {
		verve_link_break(xport, link, FI_EIO, 0,
				 "the peer asks for segments that there are not");
		return;
	}
	op = verve_op_alloc(xport, &part_class, VERVE_OP_REPORTED);
	if (!op) {
		verve_link_break(xport, link, FI_ENOMEM, 0,
				 "no memory to offer a part of a message");
		return;
	}
	verve_send_op_of(source)->answer = op;
	part = (struct verve_part_op *)op;
	part->source = source->id;
	part->receiver = packet->status;
	op->peer = link->peer;
	verve_peer_queue_control(xport, link->peer, op);
}
