/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rma/rma_op.h"

#include <endian.h>

#include "comp/comp.h"
#include "rma/key.h"
#include "rma/rma_event.h"
#include "xport/bulk.h"
#include "xport/fence_ask.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/request.h"
#include <rdma/fi_errno.h>

void verve_rma_op_fill(struct verve_rma_op *rma, const struct verve_request *request)
{
	struct verve_transfer *transfer = &rma->transfer;

	verve_op_fill(&rma->op, request);
	rma->data = request->data;
	verve_transfer_init(transfer);
	transfer->remote_count = request->remote_count;
	for (size_t i = 0; i < request->remote_count; i++) {
		transfer->remote[i] = request->remote[i];
		transfer->len += request->remote[i].len;
	}
}

/*
 * Posts the packet that tells the target of the operation. It follows the work requests on the same
 * queue pair, so it arrives after the data.
 */
static enum verve_outcome rma_op_notify(struct verve_xport *xport, struct verve_link *link,
					struct verve_rma_op *rma)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_WRITE_DATA,
		.flags = rma->op.flags & VERVE_OP_DATA ? VERVE_WIRE_DATA : 0,
		.data = rma->data,
		.len = rma->op.len,
	};

	if (link->rma_event)
		verve_rma_event_describe(&rma->transfer, rma->op.cls->comp_flags & VERVE_COMP_READ,
					 &packet);
	if (!verve_link_has_room(xport, link, false))
		return VERVE_LATER;
	if (verve_link_send(xport, link, &packet, &rma->op))
		return VERVE_DONE;
	return link->broken ? VERVE_BROKE : VERVE_LATER;
}

/*
 * Posts no more of the transfer: the target has revoked the key, or the application has cancelled
 * the operation. The posted work requests still use the operation's memory, so the operation must
 * not end before them. An empty write is posted behind them; when it completes, the operation ends
 * with this error (positive FI errno).
 */
static enum verve_outcome rma_op_abandon(struct verve_xport *xport, struct verve_link *link,
					 struct verve_op *op, int error)
{
	if (verve_link_post_nothing(xport, link, op))
		return VERVE_BROKE;
	op->error = error;
	verve_op_activate(op, VERVE_OP_SENT);
	return VERVE_DONE;
}

/*
 * True if the remote CQ data can go with the write itself: immediate data has 32 bits. Such a write
 * takes a buffer of the peer and leaves no trace in it (xport/rx_lost.h), so the peer must have the
 * link: it has sent a packet over it.
 */
static bool is_immediate(const struct verve_xport *xport, const struct verve_link *link,
			 struct verve_rma_op *rma)
{
	return link->immediates && link->arrived && !link->rma_event &&
	       rma->op.flags & VERVE_OP_DATA && rma->data <= UINT32_MAX && !rma->transfer.offset &&
	       verve_transfer_is_one_request(xport, link, &rma->op);
}

/*
 * Posts the rest of the transfer. VERVE_DONE with *over: the operation has failed, or it has left
 * its queue and will fail. VERVE_DONE without *over: all that is registered is posted, or all of
 * the transfer. *notice: a
 * packet follows; the class's done is called for that packet, not for the last work request. Clears
 * *notice if the request itself tells the target.
 */
static enum verve_outcome rma_post(struct verve_xport *xport, struct verve_link *link,
				   struct verve_rma_op *rma, const struct verve_rma_way *way,
				   bool *notice, bool *over)
{
	struct verve_op *op = &rma->op;
	enum verve_net_wr_op verb;
	const char *reason;
	int ret;

	*over = true;
	if (verve_transfer_is_under_way(xport, op))
		return VERVE_LATER;
	if (op->flags & VERVE_OP_CANCELLED)
		return rma_op_abandon(xport, link, op, FI_ECANCELED);
	switch (verve_key_resolve(xport, link, op, &reason)) {
	case VERVE_KEY_READY:
		break;
	case VERVE_KEY_WAIT:
		return link->broken ? VERVE_BROKE : VERVE_LATER;
	case VERVE_KEY_FAILED:
		if (rma->transfer.offset)
			return rma_op_abandon(xport, link, op, FI_EACCES);
		verve_op_fail(xport, op, FI_EACCES, reason);
		return VERVE_DONE;
	}
	/* While it waits, it has no slab, and no registration but of stages that are under way. */
	if (verve_bulk_waits(xport, link, way->verb(rma), rma->transfer.len - rma->transfer.offset))
		return VERVE_LATER;
	ret = way->prepare(xport, link, rma, &reason);
	if (ret == -FI_EAGAIN || ret == -FI_EINPROGRESS)
		return VERVE_LATER;
	if (ret && rma->transfer.offset)
		return rma_op_abandon(xport, link, op, -ret);
	if (ret) {
		verve_op_fail(xport, op, -ret, reason);
		return VERVE_DONE;
	}
	*over = false;
	verb = way->verb(rma);
	if (*notice && is_immediate(xport, link, rma)) {
		verb = VERVE_NET_WRITE_IMM;
		rma->transfer.imm = htobe32((uint32_t)rma->data);
		*notice = false;
	}
	return verve_transfer_post(xport, link, op, verb, !*notice);
}

enum verve_outcome verve_rma_op_start(struct verve_xport *xport, struct verve_link *link,
				       struct verve_rma_op *rma, const struct verve_rma_way *way)
{
	bool notice = way->notifies && (rma->op.flags & VERVE_OP_DATA || link->rma_event), over;
	enum verve_outcome progress;

	/*
	 * The device executes a read or write without the peer's processor; so ask whether the
	 * processor has handled the messages before.
	 */
	if (verve_fence_holds(xport, link, &rma->op))
		return link->broken ? VERVE_BROKE : VERVE_LATER;
	if (!rma->posted) {
		progress = rma_post(xport, link, rma, way, &notice, &over);
		if (progress != VERVE_DONE || over || rma->transfer.offset < rma->transfer.len)
			return progress;
		rma->posted = true;
	}
	if (notice) {
		progress = rma_op_notify(xport, link, rma);
		if (progress != VERVE_DONE)
			return progress;
	}
	verve_op_activate(&rma->op, VERVE_OP_SENT);
	return VERVE_DONE;
}

int verve_rma_op_cancel(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_rma_op *rma = verve_rma_op_of(op);

	/* Once the whole transfer is posted, the operation completes as usual. */
	if (op->state != VERVE_OP_QUEUED || rma->posted)
		return 0;
	if (rma->transfer.offset)
		op->flags |= VERVE_OP_CANCELLED;
	else
		verve_op_fail(xport, op, FI_ECANCELED, "cancelled before it began");
	return 0;
}
