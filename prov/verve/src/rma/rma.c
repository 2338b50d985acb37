/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RMA: writes and reads. */
#include "rma/rma.h"

#include "comp/comp.h"
#include "net/device.h"
#include "net/mr.h"
#include "rma/key.h"
#include "rma/rma_event.h"
#include "rma/rma_op.h"
#include "xport/bulk.h"
#include "xport/iov.h"
#include "xport/link.h"
#include "xport/memory.h"
#include "xport/op_pool.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/staged.h"
#include "xport/start.h"
#include "xport/transfer.h"
#include "xport/watched.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/* Whether the application gave a descriptor for every piece of its memory. */
static bool has_descriptors(const struct verve_memory *memory)
{
	for (uint32_t i = 0; i < memory->iov_count; i++)
		if (memory->iov[i].iov_len && !memory->region[i])
			return false;
	return true;
}

/* Moves the data through a slab, one piece at a time. -FI_EAGAIN: no slab is free. */
static int bounce(struct verve_xport *xport, const struct verve_link *link,
		  struct verve_rma_op *rma)
{
	rma->memory.slab = verve_link_slab_alloc(xport, link);
	if (!rma->memory.slab)
		return -FI_EAGAIN;
	rma->transfer.base = rma->transfer.offset;
	verve_transfer_load(xport, &rma->op);
	return 0;
}

/*
 * verve_rma_way.prepare of reads and writes. A short write goes inline. Memory without descriptors
 * is copied if it is no longer than the eager size, unless a registration costs less. All other
 * memory is registered or, where the process may not lock so much, copied piece by piece.
 */
static int rma_prepare(struct verve_xport *xport, struct verve_link *link, struct verve_rma_op *rma,
		       const char **reason)
{
	bool write = rma->op.cls == &verve_write_class;
	unsigned access = write ? 0 : VERVE_NET_LOCAL_WRITE;
	struct verve_memory *memory = &rma->memory;
	int ret;

	*reason = "cannot register the local buffer";
	if (memory->slab || (memory->owned && !memory->staged) ||
	    (write && verve_transfer_is_inline(link, VERVE_NET_WRITE, rma->op.len)))
		return 0;
	if (!has_descriptors(memory) && rma->op.len <= xport->attr.eager_size && !memory->staged) {
		ret = verve_memory_register_short(xport, &rma->op, rma->op.len, access);
		if (!ret || ret == -FI_EINPROGRESS || !bounce(xport, link, rma))
			return ret == -FI_EINPROGRESS ? ret : 0;
	}
	ret = verve_staged_register(xport, &rma->op, rma->op.len, rma->transfer.offset, access,
				    write || !link->bulk_reads);
	return ret == -FI_ENOMEM || ret == -FI_EAGAIN ? bounce(xport, link, rma) : ret;
}

static enum verve_net_wr_op verb_of(bool write)
{
	return write ? VERVE_NET_WRITE : VERVE_NET_READ;
}

/* The local memory is one piece, and one request can move it as it is: inline, or by its region. */
static bool is_one_piece(const struct verve_xport *xport, const struct verve_link *link,
			   const struct verve_rma_op *rma, bool write)
{
	enum verve_net_wr_op verb = verb_of(write);
	size_t len = rma->op.len;

	if (verve_transfer_is_inline(link, verb, len))
		return rma->memory.iov_count == 1;
	return verve_memory_is_described(&rma->memory, write ? 0 : VERVE_NET_LOCAL_WRITE) &&
	       len <= verve_transfer_longest(verve_net_device_port(xport->attr.dev), verb);
}

/*
 * The operation may take the short way: nothing waits in the peer's queues, and it is one request
 * behind which no packet follows, with memory whose key the device checks. A request that is
 * repeated (xport/replay.h) reads the buffer anew, so a write that gives the buffer back at once
 * (INJECT) may not; nor may one that waits for those before it (FENCE). Whatever else
 * verve_rma_op_start comes to ask, this has to ask, too.
 */
static bool can_go_now(const struct verve_xport *xport, const struct verve_peer *peer,
		       const struct verve_rma_op *rma, bool write)
{
	const struct verve_link *link = peer->link;

	return link && verve_link_is_open(link) && !link->greets && !link->rma_event &&
	       !verve_peer_has_work(peer) && rma->op.len && rma->transfer.remote_count == 1 &&
	       verve_key_is_checked_there(link, rma->transfer.remote->key) &&
	       !(rma->op.flags & (VERVE_OP_INJECT | VERVE_OP_DATA | VERVE_OP_FENCE)) &&
	       is_one_piece(xport, link, rma, write) && verve_link_has_room(xport, link, false) &&
	       !verve_bulk_waits(xport, link, verb_of(write), rma->op.len);
}

/* The short way. If the link breaks, it has the operation. */
static void go_now(struct verve_xport *xport, struct verve_peer *peer, struct verve_rma_op *rma,
		   bool write)
{
	struct verve_link *link = peer->link;

	rma->op.peer = peer;
	rma->posted = true;
	verve_watched_owe(xport, link);
	verve_op_enqueue(&rma->op, &peer->active, VERVE_OP_SENT);
	verve_transfer_post_whole(xport, link, &rma->op, verb_of(write));
}

int verve_rma(struct verve_xport *xport, enum verve_rma_kind kind,
	      const struct verve_request *request)
{
	bool write = kind == VERVE_RMA_WRITE;
	struct verve_rma_op *rma;
	struct verve_peer *peer;
	struct verve_op *op;
	int ret;

	ret = verve_peer_find(xport, request->addr, &peer);
	if (ret)
		return ret;
	op = verve_op_alloc(xport, write ? &verve_write_class : &verve_read_class,
			    request->flags | VERVE_OP_TX);
	if (!op)
		return verve_peer_try_again(xport, peer);
	rma = verve_rma_op_of(op);
	verve_rma_op_fill(rma, request);
	rma->transfer.len = op->len;
	rma->transfer.way = write ? VERVE_TRANSFER_OUT : VERVE_TRANSFER_IN;
	if (request->flags & VERVE_OP_INJECT) {
		bool fits = op->len <= xport->attr.eager_size;

		rma->memory.slab = fits ? verve_slab_alloc_kept(&xport->tx_slabs,
								&peer->kept_slabs) : NULL;
		if (!rma->memory.slab) {
			verve_op_free(xport, op);
			return fits ? verve_peer_try_again(xport, peer) : -FI_EMSGSIZE;
		}
		verve_iov_gather(rma->memory.slab->data, request->iov, request->iov_count, 0,
				 op->len);
	}
	if (can_go_now(xport, peer, rma, write))
		go_now(xport, peer, rma, write);
	else
		verve_peer_queue(xport, peer, op);
	return 0;
}

static enum verve_net_wr_op verb_of_write(const struct verve_rma_op *rma)
{
	(void)rma;
	return VERVE_NET_WRITE;
}

/*
 * A read of nothing goes as a write of nothing: a device that repeats a read may look for its
 * region, and soft-RoCE ends the connection then.
 */
static enum verve_net_wr_op verb_of_read(const struct verve_rma_op *rma)
{
	return rma->transfer.len ? VERVE_NET_READ : VERVE_NET_WRITE;
}

static enum verve_outcome start_write(struct verve_xport *xport, struct verve_link *link,
				       struct verve_op *op)
{
	static const struct verve_rma_way way = {rma_prepare, verb_of_write, true};

	return verve_rma_op_start(xport, link, verve_rma_op_of(op), &way);
}

static enum verve_outcome start_read(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op)
{
	static const struct verve_rma_way way = {rma_prepare, verb_of_read, false};

	return verve_rma_op_start(xport, link, verve_rma_op_of(op), &way);
}

/* Sends the RMA_EVENT of a read that has completed. */
static enum verve_outcome read_answer(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op)
{
	struct verve_wire_packet packet = {.flags = 0};

	verve_rma_event_describe(verve_op_transfer(op), true, &packet);
	return verve_link_answer(xport, link, op, &packet);
}

/*
 * A work request of the operation has completed: takes its piece out of the slab, if one is used.
 * True: the whole transfer is done. False: the operation has failed here, or more is to be posted.
 */
static bool piece_done(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_peer *peer = op->peer;

	if (op->error) {
		verve_op_fail(xport, op, op->error,
			      op->error == FI_ECANCELED ? "cancelled under way" :
			      op->error == FI_EACCES ?
			      "target closed the region, or local buffer cannot be registered" :
			      "cannot register all of the local buffer");
		return false;
	}
	if (!verve_op_memory(op)->slab || verve_transfer_unload(xport, op))
		return true;
	if (op->state != VERVE_OP_DOOMED)
		verve_peer_kick(xport, peer);
	return false;
}

static void done_write(struct verve_xport *xport, struct verve_op *op)
{
	if (piece_done(xport, op))
		verve_op_finish(xport, op);
}

static void done_read(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_link *link = op->peer->link;

	if (!piece_done(xport, op))
		return;
	/*
	 * Only now may the target hear of the read and change its memory: until the read has
	 * completed, the device repeats it if a response is lost.
	 */
	if (op->state == VERVE_OP_DOOMED || !link || !link->rma_event) {
		verve_op_finish(xport, op);
		return;
	}
	verve_op_dequeue(op);
	verve_op_report(xport, op);
	verve_peer_queue_control(xport, op->peer, op);
}

_Static_assert(sizeof(struct verve_rma_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

const struct verve_op_class verve_write_class = {
	.name = "write",
	.size = sizeof(struct verve_rma_op),
	.cleared = offsetof(struct verve_rma_op, memory.iov),
	.memory_at = offsetof(struct verve_rma_op, memory),
	.move_at = offsetof(struct verve_rma_op, transfer),
	.comp_flags = VERVE_COMP_RMA | VERVE_COMP_WRITE,
	.counter_at = offsetof(struct verve_sink, write),
	.start = start_write,
	.done = done_write,
	.cancel = verve_rma_op_cancel,
	.release = verve_op_release_memory,
};

const struct verve_op_class verve_read_class = {
	.name = "read",
	.size = sizeof(struct verve_rma_op),
	.cleared = offsetof(struct verve_rma_op, memory.iov),
	.memory_at = offsetof(struct verve_rma_op, memory),
	.move_at = offsetof(struct verve_rma_op, transfer),
	.comp_flags = VERVE_COMP_RMA | VERVE_COMP_READ,
	.counter_at = offsetof(struct verve_sink, read),
	.may_be_passed = true,
	.start = start_read,
	.answer = read_answer,
	.done = done_read,
	.cancel = verve_rma_op_cancel,
	.release = verve_op_release_memory,
};
