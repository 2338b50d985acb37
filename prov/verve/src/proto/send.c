/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending. A message that can go at once, and whose buffer is free again when it went, needs no
 * operation at all: that is the fast path. Everything else is an operation in its peer's queue.
 */
#include "proto/send.h"

#include <string.h>

#include "proto/comp_queue.h"
#include "proto/link.h"
#include "proto/peer.h"
#include "proto/post.h"
#include "proto/rndv.h"
#include "proto/transfer.h"
#include "proto/xport.h"
#include <rdma/fi_errno.h>

static size_t request_len(const struct verve_request *request)
{
	size_t len = 0;

	for (size_t i = 0; i < request->iov_count; i++)
		len += request->iov[i].iov_len;
	return len;
}

static uint8_t wire_flags(uint32_t flags)
{
	return (flags & VERVE_OP_TAGGED ? VERVE_WIRE_TAGGED : 0) |
	       (flags & VERVE_OP_DATA ? VERVE_WIRE_DATA : 0) |
	       (flags & VERVE_OP_ACK ? VERVE_WIRE_ACK : 0);
}

/*
 * One eager packet; room and a credit are there. slab, if not NULL, holds the payload already, behind
 * VERVE_WIRE_PREFIX bytes. -FI_EAGAIN: no slab; other errors: the link broke.
 */
static int post_eager(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet, const struct iovec *iov, size_t count,
		      size_t len, struct verve_slab *slab, struct verve_op *tell)
{
	size_t prefix = verve_wire_prefix(packet->flags);
	struct verve_outgoing out;

	packet->type = VERVE_WIRE_EAGER;
	if (slab)
		out = (struct verve_outgoing) {(char *) slab->data + VERVE_WIRE_PREFIX - prefix, slab};
	else if (verve_link_reserve(xport, link, prefix + len, &out))
		verve_iov_gather(out.data + prefix, iov, count, 0, len);
	else
		return -FI_EAGAIN;
	verve_link_address(link, packet);
	verve_wire_encode(packet, out.data);
	link->credits -= verve_wire_costs_credit(len);
	return verve_link_post_packet(xport, link, &out, prefix + len, false, tell);
}

/* The completion of a send that never was an operation. */
static void report_now(struct verve_xport *xport, const struct verve_request *request, size_t len)
{
	struct verve_sink *sink = &xport->attr.sink;

	if (sink->tx_queue && request->flags & VERVE_OP_NOTIFY) {
		struct verve_comp comp = {
			.context = request->context,
			.flags = VERVE_COMP_SEND | (request->flags & VERVE_OP_TAGGED ?
				VERVE_COMP_TAGGED : VERVE_COMP_MSG),
			.len = len,
			.src = UINT64_MAX,
		};

		verve_comp_queue_write(sink->tx_queue, &comp);
	}
	if (sink->send)
		verve_comp_counter_add(sink->send, 1);
}

/* Nothing is ahead of it, and its end is its start. */
static bool can_go_now(const struct verve_xport *xport, const struct verve_peer *peer,
		       const struct verve_request *request, size_t len)
{
	const struct verve_link *link = peer->link;

	return link && verve_link_is_open(link) && TAILQ_EMPTY(&peer->pending) &&
	       (link->credits || !verve_wire_costs_credit(len)) && len <= link->eager_size &&
	       !(request->flags & (VERVE_OP_ACK | VERVE_OP_TRANSMIT | VERVE_OP_FENCE)) &&
	       verve_link_has_room(xport, link, false);
}

int verve_send(struct verve_xport *xport, const struct verve_request *request)
{
	size_t len = request_len(request);
	struct verve_peer *peer;
	struct verve_op *op;
	int ret;

	ret = verve_peer_find(xport, request->addr, &peer);
	if (ret)
		return ret;
	if (can_go_now(xport, peer, request, len)) {
		struct verve_wire_packet packet = {
			.flags = wire_flags(request->flags),
			.tag = request->tag,
			.data = request->data,
		};

		ret = post_eager(xport, peer->link, &packet, request->iov, request->iov_count, len,
				 NULL, NULL);
		if (!ret) {
			report_now(xport, request, len);
			return 0;
		}
		/* No slab, or the link broke: it waits like any other. */
	}

	if (request->flags & VERVE_OP_INJECT && len > xport->attr.eager_size)
		return -FI_EMSGSIZE;
	op = verve_op_alloc(xport, VERVE_OP_SEND, request->flags | VERVE_OP_TX);
	if (!op)
		return -FI_EAGAIN;
	verve_op_fill(op, request);
	if (request->flags & VERVE_OP_INJECT) {
		op->slab = verve_slab_alloc_kept(&xport->tx_slabs);
		if (!op->slab) {
			verve_op_free(xport, op);
			return -FI_EAGAIN;
		}
		verve_iov_gather((char *) op->slab->data + VERVE_WIRE_PREFIX, op->iov, op->iov_count,
				 0, len);
	}
	verve_peer_queue(xport, peer, op);
	return 0;
}

bool verve_send_start(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	bool await = op->flags & VERVE_OP_ACK, tell = !await && op->flags & VERVE_OP_TRANSMIT;
	struct verve_wire_packet packet = {
		.flags = wire_flags(op->flags),
		.tag = op->tag,
		.data = op->data,
	};
	struct verve_slab *slab = op->slab;
	int ret;

	if (op->len > link->eager_size || (!link->credits && verve_wire_costs_credit(op->len)))
		return verve_rndv_offer(xport, link, op);

	if (await && !op->id && verve_op_name(xport, op))
		return false;
	packet.op_id = op->id;
	op->slab = NULL; /* the request's from here on */
	ret = post_eager(xport, link, &packet, op->iov, op->iov_count, op->len, slab,
			 tell ? op : NULL);
	if (ret)
		return ret != -FI_EAGAIN;

	if (await || tell) {
		verve_op_activate(op, await ? VERVE_OP_AWAIT : VERVE_OP_SENT);
		return true;
	}
	verve_op_dequeue(op);
	verve_op_report(xport, op);
	verve_op_free(xport, op);
	return true;
}

void verve_send_done(struct verve_xport *xport, struct verve_op *op)
{
	verve_op_dequeue(op);
	verve_op_report(xport, op);
	verve_op_free(xport, op);
}

void verve_send_finished(struct verve_xport *xport, struct verve_op *op, uint32_t status)
{
	/* The peer's word: any number. */
	int error = status < FI_ERRNO_MAX ? (int) status : FI_EIO;

	verve_op_dequeue(op);
	if (!(op->flags & VERVE_OP_REPORTED)) {
		if (error)
			verve_op_report_error(xport, op, error, 0,
					      error == FI_ECANCELED ?
						      "cancelled before the peer took it" :
						      "the peer could not take the message");
		else
			verve_op_report(xport, op);
	}
	verve_op_free(xport, op);
}
