/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "msg/batch.h"

#include <rdma/fi_errno.h>

#include "msg/recv.h"
#include "msg/send_op.h"
#include "xport/credit.h"
#include "xport/fence.h"
#include "xport/iov.h"
#include "xport/lifetime.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/wire.h"

/* What a packet will have, while messages are added to it. */
struct batch {
	size_t len;    /* bytes of the packet */
	unsigned count;
	uint64_t weight; /* of its messages */
};

/* The message completes when it is copied, and nothing of it is registered. */
static bool is_plain(const struct verve_xport *xport, const struct verve_op *op)
{
	return verve_op_is_send(op) && op->len <= VERVE_BATCH_MESSAGE &&
	       !(op->flags & VERVE_SEND_ALONE) &&
	       (op->flags & VERVE_OP_INJECT || verve_direct_is_short(xport, op->len));
}

static size_t record_len(const struct verve_op *op)
{
	return verve_wire_prefix(verve_send_wire_flags(op->flags)) + op->len;
}

/* False: the packet is full, or there is no credit. */
static bool add(struct batch *batch, const struct verve_link *link, const struct verve_op *op)
{
	size_t len = batch->len + record_len(op);

	/* The peer's receive buffers take its eager size and more. */
	if (!verve_credit_is_left(link, batch->weight) || len > link->eager_size)
		return false;
	batch->len = len;
	batch->count++;
	batch->weight += verve_credit_weight(link, op->len);
	return true;
}

static struct batch collect(const struct verve_xport *xport, const struct verve_link *link)
{
	struct batch batch = {.len = VERVE_WIRE_HEADER};
	const struct verve_op *op;

	TAILQ_FOREACH(op, &link->peer->pending, link)
		if (!is_plain(xport, op) || !add(&batch, link, op))
			break;
	return batch;
}

/* Writes the message's own packet, whose `dest` is its length. Returns the end. */
static char *write_record(struct verve_send_op *send, char *at)
{
	const struct verve_memory *memory = &send->memory;
	size_t prefix = verve_wire_prefix(verve_send_wire_flags(send->op.flags));
	char *payload = at + prefix;
	struct iovec copied = {.iov_len = send->op.len};
	struct verve_wire_packet packet;

	verve_send_describe(&packet, send->op.flags, send->tag, send->data);
	packet.dest = prefix + send->op.len;
	packet.credits = 0;
	verve_wire_encode_eager(&packet, at);
	if (memory->slab) {
		copied.iov_base = (char *)memory->slab->data + VERVE_WIRE_PREFIX;
		verve_iov_gather(payload, &copied, 1, 0, copied.iov_len);
	} else {
		verve_iov_gather(payload, memory->iov, memory->iov_count, 0, send->op.len);
	}
	return payload + send->op.len;
}

static void write_all(struct verve_link *link, unsigned count, char *at)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_BATCH};
	struct verve_op *op = TAILQ_FIRST(&link->peer->pending);

	verve_link_address(link, &packet);
	at += verve_wire_encode(&packet, at);
	for (; count; count--, op = TAILQ_NEXT(op, link))
		at = write_record(verve_send_op_of(op), at);
}

enum verve_outcome verve_batch_post(struct verve_xport *xport, struct verve_link *link)
{
	struct batch batch = collect(xport, link);
	struct verve_peer *peer = link->peer;
	struct verve_outgoing out;

	if (batch.count < 2 || !verve_link_reserve(xport, link, batch.len, &out))
		return VERVE_LATER;
	write_all(link, batch.count, out.data);
	verve_credit_spend(link, batch.weight);
	/* Asks for a completion: messages that wait for it may be there soon. */
	if (verve_link_post_packet(xport, link, &out, batch.len, true, NULL))
		return VERVE_BROKE;
	for (; batch.count; batch.count--) {
		verve_fence_count(peer);
		verve_op_finish(xport, TAILQ_FIRST(&peer->pending));
	}
	return VERVE_DONE;
}

void verve_batch_arrived(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet)
{
	const char *at = packet->payload;
	size_t left = packet->len;

	/* The link may break meanwhile, or have broken before: whole messages are of use still. */
	while (left && !link->lossy) {
		struct verve_wire_packet message;
		size_t len = left < VERVE_WIRE_HEADER ? left : verve_wire_dest(at);

		message.segment_count = 0;
		if (len > left || verve_wire_decode(at, len, &message) ||
		    message.type != VERVE_WIRE_EAGER || message.flags & VERVE_WIRE_ACK) {
			verve_link_break(xport, link, FI_EIO, 0,
					 "the peer sent a batch that is no row of messages");
			return;
		}
		at += len;
		left -= len;
		verve_recv_arrived(xport, link, &message);
	}
}
