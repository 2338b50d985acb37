/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending. The fast path: a message that can leave at once, and that completes when it has left,
 * needs no operation. Every other message is an operation in its peer's queue.
 */
#include "msg/send.h"

#include <string.h>

#include "comp/comp_queue.h"
#include "comp/counter.h"
#include "msg/batch.h"
#include "msg/direct.h"
#include "msg/rndv.h"
#include "msg/send_op.h"
#include "msg/withdraw.h"
#include "xport/credit.h"
#include "xport/fence.h"
#include "xport/fence_ask.h"
#include "xport/iov.h"
#include "xport/link.h"
#include "xport/op_pool.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/start.h"
#include "xport/window.h"
#include "xport/wire.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * Posts one eager packet. The link has room, and a credit. slab, if not NULL, already holds the
 * payload, behind VERVE_WIRE_PREFIX bytes. tell, if not NULL: the operation whose done function is
 * called when the packet is acknowledged. -FI_EAGAIN: no slab is free; other errors: the link
 * broke.
 */
static inline __attribute__((always_inline)) int
post_eager(struct verve_xport *xport, struct verve_link *link, struct verve_wire_packet *packet,
	   const struct iovec *iov, size_t count, size_t len, struct verve_slab *slab,
	   struct verve_op *tell)
{
	size_t prefix = verve_wire_prefix(packet->flags);
	struct verve_outgoing out;

	if (slab)
		out = (struct verve_outgoing) {
			.data = (char *)slab->data + VERVE_WIRE_PREFIX - prefix, .slab = slab};
	else if (verve_link_reserve(xport, link, prefix + len, &out))
		verve_iov_gather(out.data + prefix, iov, count, 0, len);
	else
		return -FI_EAGAIN;
	verve_link_address(link, packet);
	verve_wire_encode_eager(packet, out.data);
	verve_credit_spend_message(link, len);
	return verve_link_post_packet(xport, link, &out, prefix + len, false, tell);
}

/* Reports the completion of a send that took the fast path and has no operation. */
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

/*
 * The message may take the fast path: no earlier message to the peer waits, and the message
 * completes as soon as its packet is posted.
 */
static bool can_go_now(const struct verve_xport *xport, const struct verve_peer *peer,
		       const struct verve_request *request, size_t len)
{
	const struct verve_link *link = peer->link;

	return link && verve_link_is_open(link) && TAILQ_EMPTY(&peer->pending) &&
	       link->credits && len <= link->eager_size &&
	       !verve_batch_waits(link, len, request->flags) &&
	       verve_direct_is_copied(xport, request, len) &&
	       !(request->flags & VERVE_SEND_ALONE) &&
	       verve_link_has_room(xport, link, false);
}

/* The message becomes an operation in its peer's queue. */
static __attribute__((noinline)) int send_later(struct verve_xport *xport, struct verve_peer *peer,
						const struct verve_request *request, size_t len)
{
	struct verve_send_op *send;
	struct verve_op *op;

	if (request->flags & VERVE_OP_INJECT && len > xport->attr.eager_size)
		return -FI_EMSGSIZE;
	op = verve_op_alloc(xport, &verve_send_class, request->flags | VERVE_OP_TX);
	if (!op)
		return verve_peer_try_again(xport, peer);
	verve_op_fill(op, request);
	send = verve_send_op_of(op);
	send->tag = request->tag;
	send->data = request->data;
	if (request->flags & VERVE_OP_INJECT) {
		send->memory.slab = verve_slab_alloc_kept(&xport->tx_slabs, &peer->kept_slabs);
		if (!send->memory.slab) {
			verve_op_free(xport, op);
			return verve_peer_try_again(xport, peer);
		}
		verve_iov_gather((char *)send->memory.slab->data + VERVE_WIRE_PREFIX, request->iov,
				 request->iov_count, 0, len);
	}
	verve_peer_queue(xport, peer, op);
	return 0;
}

int verve_send(struct verve_xport *xport, const struct verve_request *request)
{
	size_t len = verve_iov_len(request->iov, request->iov_count);
	struct verve_wire_packet packet;
	struct verve_peer *peer;
	int ret;

	ret = verve_peer_find(xport, request->addr, &peer);
	if (ret)
		return ret;
	if (!can_go_now(xport, peer, request, len))
		return send_later(xport, peer, request, len);
	verve_send_describe(&packet, request->flags, request->tag, request->data);
	/* If no slab is free, or the link breaks, the message waits in the peer's queue. */
	if (post_eager(xport, peer->link, &packet, request->iov, request->iov_count, len, NULL,
		       NULL))
		return send_later(xport, peer, request, len);
	verve_fence_count(peer);
	report_now(xport, request, len);
	return 0;
}

static enum verve_outcome send_start(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op)
{
	bool await = op->flags & VERVE_OP_ACK, tell = !await && op->flags & VERVE_OP_TRANSMIT;
	struct verve_send_op *send = verve_send_op_of(op);
	struct verve_memory *memory = &send->memory;
	struct verve_slab *slab = memory->slab;
	struct verve_wire_packet packet;
	bool direct;
	int ret;

	if (verve_batch_waits(link, op->len, op->flags))
		return VERVE_LATER;
	if (link->batches && TAILQ_NEXT(op, link)) {
		enum verve_outcome outcome = verve_batch_post(xport, link);

		if (outcome != VERVE_LATER)
			return outcome;
	}
	if (verve_fence_holds(xport, link, op))
		return link->broken ? VERVE_BROKE : VERVE_LATER;
	if (op->len > link->eager_size || !link->credits ||
	    (!slab && verve_direct_is_read(xport, op->len)))
		return verve_rndv_offer(xport, link, send);
	ret = slab ? -FI_ENOENT : verve_direct_offer(xport, link, send);
	if (!ret)
		return verve_rndv_offer(xport, link, send);
	if (ret == -FI_EINPROGRESS)
		return VERVE_LATER;

	if (await && verve_op_name(xport, op))
		return VERVE_LATER;
	verve_send_describe(&packet, op->flags, send->tag, send->data);
	packet.op_id = op->id;
	ret = verve_direct_register(xport, send);
	if (ret == -FI_EINPROGRESS)
		return VERVE_LATER;
	direct = !ret;
	tell |= direct;
	memory->slab = NULL; /* from here on, the work request owns the slab */
	ret = direct ? verve_direct_post(xport, link, &packet, send) :
		       post_eager(xport, link, &packet, memory->iov, memory->iov_count, op->len,
				  slab, tell ? op : NULL);
	if (ret)
		return ret == -FI_EAGAIN ? VERVE_LATER : VERVE_BROKE;

	if (!await)
		verve_fence_count(op->peer);
	if (await || tell)
		verve_op_activate(op, await ? VERVE_OP_AWAIT : VERVE_OP_SENT);
	else
		verve_op_finish(xport, op);
	return VERVE_DONE;
}

/* The peer has said what became of the message, or its device has the message. */
static void send_end(struct verve_xport *xport, struct verve_op *op)
{
	if (op->error)
		verve_op_fail(xport, op, op->error,
			      op->error == FI_ECANCELED ? "cancelled before the peer took it" :
							  "the peer could not take the message");
	else if (op->flags & VERVE_OP_REPORTED)
		verve_op_free(xport, op);
	else
		verve_op_finish(xport, op);
}

static void send_done(struct verve_xport *xport, struct verve_op *op)
{
	verve_window_ended(&verve_send_op_of(op)->memory);
	send_end(xport, op);
}

/*
 * A message that has not left ends at once. A message that waits at the peer is asked back. A
 * message in state SENT completes as usual: no request can be taken back from the device.
 */
static int send_cancel(struct verve_xport *xport, struct verve_op *op)
{
	if (op->state == VERVE_OP_AWAIT)
		return verve_withdraw(xport, op);
	if (op->state == VERVE_OP_QUEUED)
		verve_op_fail(xport, op, FI_ECANCELED, "cancelled before it began");
	return 0;
}

void verve_send_finished(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet)
{
	struct verve_op *op = verve_op_find_awaiting(xport, link->peer, packet->op_id);
	/* The status comes from the peer, so it may be any number. */
	int error = packet->status < FI_ERRNO_MAX ? (int)packet->status : FI_EIO;

	if (!op || !verve_op_is_send(op))
		return;
	op->error = error;
	op->flags |= VERVE_OP_ANSWERED;
	/* The send completes when the peer cannot read the message any more. */
	if (!verve_window_close(xport, link, op))
		send_end(xport, op);
}

_Static_assert(sizeof(struct verve_send_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

const struct verve_op_class verve_send_class = {
	.name = "send",
	.size = sizeof(struct verve_send_op),
	.cleared = offsetof(struct verve_send_op, memory.iov),
	.memory_at = offsetof(struct verve_send_op, memory),
	.comp_flags = VERVE_COMP_SEND,
	.counter_at = offsetof(struct verve_sink, send),
	.is_message = true,
	.start = send_start,
	/* direct, or VERVE_OP_TRANSMIT: the peer's device has it; or its windows have ended */
	.done = send_done,
	.cancel = send_cancel,
	.release = verve_op_release_memory,
};
