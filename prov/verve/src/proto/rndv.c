/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rendezvous: offers and reads. */
#include "proto/rndv.h"

#include <assert.h>
#include <string.h>

#include "mr/region.h"
#include "net/mr.h"
#include "proto/link.h"
#include "proto/peer.h"
#include "proto/post.h"
#include "proto/pull.h"
#include "proto/recv.h"
#include "proto/transfer.h"
#include "proto/xport.h"
#include <rdma/fi_errno.h>

/* Small and copied: the application has its buffer back, and its completion, at once. */
static bool copy_out(struct verve_xport *xport, struct verve_op *op)
{
	if (op->len > xport->attr.eager_size)
		return false;
	op->slab = verve_slab_alloc_kept(&xport->tx_slabs);
	if (!op->slab)
		return false;
	verve_iov_gather((char *) op->slab->data + VERVE_WIRE_PREFIX, op->iov, op->iov_count, 0, op->len);
	return true;
}

static void fill_segments(const struct verve_op *op, struct verve_wire_packet *packet)
{
	for (uint32_t i = 0; i < op->iov_count; i++)
		if (op->iov[i].iov_len)
			packet->segment[packet->segment_count++] = (struct verve_wire_segment) {
				(uintptr_t) op->iov[i].iov_base + op->region[i]->shift,
				op->iov[i].iov_len, op->region[i]->rkey};
}

bool verve_rndv_offer(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_RTS,
		.flags = (op->flags & VERVE_OP_TAGGED ? VERVE_WIRE_TAGGED : 0) |
			 (op->flags & VERVE_OP_DATA ? VERVE_WIRE_DATA : 0),
		.tag = op->tag,
		.data = op->data,
		.len = op->len,
	};
	int ret;

	if (!op->id && verve_op_name(xport, op))
		return false;
	/* A copy is pulled: it lies among those of other peers' messages, which no key that this one has may open. */
	if (!op->slab && op->len && !copy_out(xport, op)) {
		ret = verve_op_register(xport, op, VERVE_NET_REMOTE_READ);
		if (ret && ret != -FI_ENOMEM) {
			verve_op_fail(xport, op, -ret,
				      "cannot register the message for the peer to read");
			return true;
		}
		if (!ret)
			fill_segments(op, &packet);
	}
	packet.op_id = op->id;
	if (!verve_link_send(xport, link, &packet, NULL))
		return link->broken;

	op->flags |= VERVE_OP_OFFERED;
	verve_op_activate(op, VERVE_OP_AWAIT);
	if (op->slab && !(op->flags & (VERVE_OP_ACK | VERVE_OP_TRANSMIT)))
		verve_op_report(xport, op);
	return true;
}

void verve_rndv_accept(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op,
		       const struct verve_wire_packet *offer)
{
	struct verve_transfer *transfer = &op->transfer;

	memcpy(transfer->remote, offer->segment, sizeof(transfer->remote));
	transfer->remote_count = offer->segment_count;
	transfer->len = offer->len < op->len ? offer->len : op->len;
	transfer->offset = 0;
	op->len = transfer->len;
	op->recv.fin_id = offer->op_id;
	op->peer = peer;
	if (!transfer->len)
		verve_recv_finish(xport, op, 0, NULL);
	else
		verve_peer_queue(xport, peer, op);
}

/* Short reads go through a slab: cheaper than a registration. */
static int prepare_read(struct verve_xport *xport, struct verve_op *op)
{
	if (op->slab || op->owned)
		return 0;
	if (op->transfer.len <= xport->attr.eager_size && !op->region[0])
		op->slab = verve_slab_alloc(&xport->tx_slabs);
	return op->slab ? 0 : verve_op_register(xport, op, VERVE_NET_LOCAL_WRITE);
}

bool verve_rndv_start(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	int ret;

	if (!op->transfer.remote_count)
		return verve_pull_start(xport, link, op);
	ret = prepare_read(xport, op);
	if (ret == -FI_ENOMEM) {
		op->transfer.remote_count = 0;
		return verve_pull_start(xport, link, op);
	}
	if (ret) {
		op->recv.fin_status = -ret;
		op->len = 0;
		verve_recv_finish(xport, op, -ret, "cannot register the receive buffer");
		return true;
	}
	switch (verve_transfer_post(xport, link, op, VERVE_NET_READ, true)) {
	case VERVE_TRANSFER_MORE:
		return false;
	case VERVE_TRANSFER_POSTED:
		verve_op_activate(op, VERVE_OP_SENT);
		return true;
	default:
		return true;
	}
}

void verve_rndv_done(struct verve_xport *xport, struct verve_op *op)
{
	if (op->slab) {
		verve_iov_scatter(op->iov, op->iov_count, 0, op->slab->data, op->transfer.len);
		verve_slab_free(&xport->tx_slabs, op->slab);
		op->slab = NULL;
	}
	verve_recv_finish(xport, op, 0, NULL);
}
