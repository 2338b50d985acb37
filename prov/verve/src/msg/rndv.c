/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rendezvous: offers and reads. */
#include "msg/rndv.h"

#include <string.h>

#include "msg/chunks.h"
#include "msg/direct.h"
#include "msg/parts.h"
#include "msg/recv_op.h"
#include "msg/send_op.h"
#include "net/mr.h"
#include "xport/fence.h"
#include "xport/iov.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/staged.h"
#include "xport/start.h"
#include "xport/window.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * Copies a message of at most the eager size into a slab, so that the application has its buffer
 * back at once. False: the message is longer, or a read costs less than copies; or no slab is free.
 * A message that has regions was to be read.
 */
static bool copy_out(struct verve_xport *xport, struct verve_send_op *send)
{
	struct verve_memory *memory = &send->memory;

	if (send->op.len > xport->attr.eager_size || verve_direct_is_read(xport, send->op.len) ||
	    memory->owned)
		return false;
	memory->slab = verve_slab_alloc_kept(&xport->tx_slabs, &send->op.peer->kept_slabs);
	if (!memory->slab)
		return false;
	verve_iov_gather((char *)memory->slab->data + VERVE_WIRE_PREFIX, memory->iov,
			 memory->iov_count, 0, send->op.len);
	return true;
}

static void fill_segments(const struct verve_memory *memory, struct verve_wire_packet *packet)
{
	for (uint32_t i = 0; i < memory->iov_count; i++)
		if (memory->iov[i].iov_len && memory->region[i])
			packet->segment[packet->segment_count++] = verve_memory_segment(memory, i);
}

enum verve_outcome verve_rndv_offer(struct verve_xport *xport, struct verve_link *link,
				     struct verve_send_op *send)
{
	struct verve_op *op = &send->op;
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_RTS,
		.flags = (op->flags & VERVE_OP_TAGGED ? VERVE_WIRE_TAGGED : 0) |
			 (op->flags & VERVE_OP_DATA ? VERVE_WIRE_DATA : 0),
		.tag = send->tag,
		.data = send->data,
		.len = op->len,
	};
	int ret;

	if (verve_op_name(xport, op))
		return VERVE_LATER;
	/*
	 * A copy is not registered for the peer: other peers' messages lie in the same memory, and
	 * no peer may read these. An RTS without segments tells the peer to pull the message.
	 */
	if (!send->memory.slab && op->len && !copy_out(xport, send)) {
		ret = verve_staged_offer(xport, op, op->len, link->bound_keys,
					 TAILQ_EMPTY(&op->peer->active));
		if (ret == -FI_EINPROGRESS)
			return VERVE_LATER;
		if (ret && ret != -FI_ENOMEM) {
			verve_op_fail(xport, op, -ret,
				      "cannot register the message for the peer to read");
			return VERVE_DONE;
		}
		if (!ret)
			fill_segments(&send->memory, &packet);
	}
	packet.op_id = op->id;
	if (!verve_window_offer(xport, link, &send->memory, &packet))
		return link->broken ? VERVE_BROKE : VERVE_LATER;

	send->offered = true;
	verve_op_activate(op, VERVE_OP_AWAIT);
	if (packet.segment_count && verve_staged_is_partial(&send->memory))
		return verve_parts_offer(xport, link, send);
	if (send->memory.slab && !(op->flags & (VERVE_OP_ACK | VERVE_OP_TRANSMIT))) {
		verve_fence_count(op->peer);
		verve_op_report(xport, op);
	}
	return VERVE_DONE;
}

void verve_rndv_accept(struct verve_xport *xport, struct verve_peer *peer, uint32_t link_id,
		       struct verve_recv_op *recv, const struct verve_wire_packet *offer)
{
	struct verve_transfer *transfer = &recv->transfer;

	verve_transfer_init(transfer);
	memcpy(transfer->remote, offer->segment, sizeof(transfer->remote));
	transfer->remote_count = offer->segment_count;
	transfer->rkeys = true;
	transfer->len = offer->len < recv->op.len ? offer->len : recv->op.len;
	transfer->unoffered = verve_parts_unoffered(transfer);
	recv->op.len = transfer->len;
	recv->fin.id = offer->op_id;
	/* A message of a link that has broken since cannot be pulled: the reads fail. */
	if (offer->flags & VERVE_WIRE_BOUND && offer->segment_count &&
	    verve_link_live(xport, link_id))
		recv->bound_to = offer->dest;
	recv->op.peer = peer;
	if (!transfer->len)
		verve_recv_finish(xport, recv, 0, NULL);
	else
		verve_peer_queue(xport, peer, &recv->op);
}

/*
 * Finds the local memory of the read: of memory that is registered in stages, of the next stage. A
 * read of at most the eager size into an unregistered buffer goes through a slab, unless a
 * registration is at hand or costs less than the copy; or unless the sender offers the message in
 * parts, as a slab takes one read. What was found stays while the reads go on.
 */
static int prepare_read(struct verve_xport *xport, const struct verve_link *link,
			struct verve_recv_op *recv)
{
	const struct verve_transfer *transfer = &recv->transfer;
	struct verve_memory *memory = &recv->memory;
	int ret;

	if (!memory->staged) {
		if (memory->slab || memory->owned || transfer->offset)
			return 0;
		if (transfer->len <= xport->attr.eager_size && !transfer->unoffered &&
		    !memory->region[0]) {
			ret = verve_memory_register_short(xport, &recv->op, transfer->len,
							  VERVE_NET_LOCAL_WRITE);
			if (ret == -FI_EINPROGRESS)
				return ret;
			if (ret)
				memory->slab = verve_link_slab_alloc(xport, link);
		}
		if (memory->slab || memory->owned)
			return 0;
	}
	/* Where a long read is under way, registering costs no time that is not used. */
	return verve_staged_register(xport, &recv->op, transfer->len, transfer->offset,
				     VERVE_NET_LOCAL_WRITE, !link->bulk_reads);
}

/*
 * The message cannot be read, or not any more: it is pulled, from its first byte on. No read of it
 * is under way.
 */
static void pull_instead(struct verve_xport *xport, struct verve_recv_op *recv)
{
	verve_memory_release(xport, &recv->memory);
	recv->transfer.remote_count = 0;
	recv->transfer.unoffered = 0;
	recv->transfer.offset = 0;
	recv->bound_to = 0;
	recv->stopped = false;
}

/*
 * Reads no more. The receive fails if it has an error, else the message is pulled. Reads that are
 * under way write into the buffer, so they end before: an empty write is posted behind them, and
 * then verve_rndv_done goes on.
 */
static enum verve_outcome stop_reading(struct verve_xport *xport, struct verve_link *link,
				       struct verve_recv_op *recv)
{
	if (recv->transfer.offset) {
		if (verve_link_post_nothing(xport, link, &recv->op))
			return VERVE_BROKE;
		recv->stopped = true;
		verve_op_activate(&recv->op, VERVE_OP_SENT);
		return VERVE_DONE;
	}
	if (!recv->op.error) {
		pull_instead(xport, recv);
		return verve_chunks_start(xport, link, recv);
	}
	verve_recv_fail(xport, &recv->op, "a side cannot register its buffer");
	return VERVE_DONE;
}

bool verve_rndv_restart(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_recv_op *recv = verve_recv_op_of(op);

	if (!recv->bound_to)
		return false;
	if (op->error) {
		verve_recv_fail(xport, op, "a side cannot register its buffer");
		return true;
	}
	pull_instead(xport, recv);
	if (op->state != VERVE_OP_QUEUED) {
		verve_op_dequeue(op);
		verve_op_enqueue(op, &op->peer->reads, VERVE_OP_QUEUED);
	}
	return true;
}

enum verve_outcome verve_rndv_start(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op)
{
	struct verve_recv_op *recv = verve_recv_op_of(op);
	struct verve_transfer *transfer = &recv->transfer;
	enum verve_outcome outcome;
	uint64_t offered;
	int ret;

	if (recv->bound_to && recv->bound_to != link->conn_id)
		pull_instead(xport, recv);
	if (!transfer->remote_count)
		return verve_chunks_start(xport, link, recv);
	ret = verve_parts_take(xport, link, recv);
	if (ret == -FI_EAGAIN)
		return VERVE_LATER;
	offered = transfer->len - transfer->unoffered;
	if (!ret && transfer->offset < offered)
		ret = prepare_read(xport, link, recv);
	if (ret == -FI_EINPROGRESS)
		return VERVE_LATER;
	if (ret) {
		op->error = ret == -FI_ENOMEM ? 0 : -ret;
		return stop_reading(xport, link, recv);
	}
	if (transfer->offset < offered) {
		outcome = verve_transfer_post(xport, link, op, VERVE_NET_READ, true);
		/* DONE: this stage is posted, and the next call, which comes at once, goes on. */
		if (outcome != VERVE_DONE || transfer->offset < offered)
			return outcome;
	}
	/* verve_parts_arrived queues the receive again. */
	verve_op_activate(op, transfer->unoffered ? VERVE_OP_AWAIT : VERVE_OP_SENT);
	return VERVE_DONE;
}

void verve_rndv_done(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_recv_op *recv = verve_recv_op_of(op);
	struct verve_memory *memory = &recv->memory;

	if (recv->stopped && op->error) {
		verve_recv_fail(xport, op, "a side cannot register its buffer");
		return;
	}
	if (recv->stopped) {
		pull_instead(xport, recv);
		if (op->state != VERVE_OP_DOOMED) {
			verve_op_dequeue(op);
			verve_peer_queue(xport, op->peer, op);
		}
		return;
	}
	if (memory->slab) {
		verve_iov_scatter(memory->iov, memory->iov_count, 0, memory->slab->data,
				  recv->transfer.len);
		verve_slab_free(&xport->tx_slabs, memory->slab);
		memory->slab = NULL;
	}
	verve_recv_finish(xport, recv, 0, NULL);
}
