/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RMA: writes, reads, and what the target is told behind them: remote CQ data, RMA events. */
#include "rma/rma.h"

#include <string.h>

#include "mr/keytab.h"
#include "mr/region.h"
#include "net/mr.h"
#include "rma/atomic_device.h"
#include "comp/comp.h"
#include "rma/key.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/transfer.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

static bool has_descriptors(const struct verve_op *op)
{
	for (uint32_t i = 0; i < op->iov_count; i++)
		if (op->iov[i].iov_len && !op->region[i])
			return false;
	return true;
}

static int bounce(struct verve_xport *xport, struct verve_op *op)
{
	op->slab = verve_slab_alloc(&xport->tx_slabs);
	if (!op->slab)
		return -FI_EAGAIN;
	verve_transfer_load(xport, op);
	return 0;
}

/*
 * What has no descriptors is copied if it is short; other memory is registered or, where that is more than the
 * process may lock, copied piece by piece. Negative: why not, see *reason; -FI_EAGAIN: later.
 */
static int prepare(struct verve_xport *xport, struct verve_link *link, struct verve_op *op,
		   const char **reason)
{
	bool write = op->kind == VERVE_OP_WRITE;
	int ret;

	if (verve_atomic_device_executes(xport, op))
		return verve_atomic_device_prepare(xport, link, op, reason);
	*reason = "cannot register the local buffer";

	if (op->slab || op->owned || (write && op->len <= link->inline_size))
		return 0;
	if (!has_descriptors(op) && op->len <= xport->attr.eager_size && !bounce(xport, op))
		return 0;
	ret = verve_op_register(xport, op, write ? 0 : VERVE_NET_LOCAL_WRITE);
	return ret == -FI_ENOMEM ? bounce(xport, op) : ret;
}

int verve_rma(struct verve_xport *xport, enum verve_op_kind kind, const struct verve_request *request)
{
	struct verve_peer *peer;
	struct verve_op *op;
	int ret;

	ret = verve_peer_find(xport, request->addr, &peer);
	if (ret)
		return ret;
	op = verve_op_alloc(xport, kind, request->flags | VERVE_OP_TX);
	if (!op)
		return -FI_EAGAIN;
	verve_op_fill(op, request);
	memcpy(op->transfer.remote, request->remote, request->remote_count * sizeof(op->transfer.remote[0]));
	op->transfer.remote_count = request->remote_count;
	op->transfer.len = op->len;
	if (request->flags & VERVE_OP_INJECT) {
		bool fits = op->len <= xport->attr.eager_size;

		op->slab = fits ? verve_slab_alloc_kept(&xport->tx_slabs) : NULL;
		if (!op->slab) {
			verve_op_free(xport, op);
			return fits ? -FI_EAGAIN : -FI_EMSGSIZE;
		}
		verve_iov_gather(op->slab->data, op->iov, op->iov_count, 0, op->len);
	}
	verve_peer_queue(xport, peer, op);
	return 0;
}

/* An earlier one lies in the same region: each region is named, and counts, once. */
static bool is_repeated(const struct verve_wire_segment *segment, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (segment[i].key == segment[index].key)
			return true;
	return false;
}

void verve_rma_describe(const struct verve_op *op, struct verve_wire_packet *packet)
{
	const struct verve_transfer *transfer = &op->transfer;

	packet->type = VERVE_WIRE_RMA_EVENT;
	packet->tag = op->kind == VERVE_OP_READ || op->kind == VERVE_OP_FETCH ? VERVE_WIRE_READ :
										VERVE_WIRE_WROTE;
	packet->len = transfer->len;
	packet->segment_count = 0;
	for (uint32_t i = 0; i < transfer->remote_count; i++)
		if (!is_repeated(transfer->remote, i))
			packet->segment[packet->segment_count++].key = transfer->remote[i].key;
}

static void count_region(struct verve_xport *xport, uint64_t wanted, bool read)
{
	const struct verve_mr_key *key;
	struct verve_comp_counter *counter;

	verve_mr_keytab_lock(xport->attr.mr_keytab);
	key = verve_mr_keytab_find(xport->attr.mr_keytab, wanted);
	counter = !key ? NULL : read ? key->read : key->write;
	if (counter)
		verve_comp_counter_add(counter, 1);
	verve_mr_keytab_unlock(xport->attr.mr_keytab);
}

void verve_rma_count(struct verve_xport *xport, const struct verve_wire_packet *packet, bool read)
{
	const struct verve_sink *sink = &xport->attr.sink;
	struct verve_comp_counter *counter = read ? sink->remote_read : sink->remote_write;

	/* Regions first: who waits for the endpoint's counter may look at theirs. */
	for (uint32_t i = 0; xport->attr.rma_event && i < packet->segment_count; i++)
		if (!is_repeated(packet->segment, i))
			count_region(xport, packet->segment[i].key, read);
	if (counter)
		verve_comp_counter_add(counter, 1);
}

static enum verve_net_wr_op verb_of(const struct verve_op *op)
{
	switch (op->kind) {
	case VERVE_OP_WRITE:
		return VERVE_NET_WRITE;
	case VERVE_OP_READ:
		/* A responder that is asked again may look for a region: soft-RoCE does, and ends all. */
		return op->transfer.len ? VERVE_NET_READ : VERVE_NET_WRITE;
	default:
		return verve_atomic_device_verb(op);
	}
}

/* The target hears of it behind the request, on the same queue pair, so after it. */
static bool send_notice(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_WRITE_DATA,
		.flags = op->flags & VERVE_OP_DATA ? VERVE_WIRE_DATA : 0,
		.data = op->data,
		.len = op->len,
	};

	if (link->rma_event)
		verve_rma_describe(op, &packet);
	return verve_link_has_room(xport, link, false) && verve_link_send(xport, link, &packet, op);
}

/*
 * The key was revoked under way, or the application does not want it any more. What is posted must end before
 * its memory is let go of: a write of nothing behind it tells when.
 */
static void abandon(struct verve_xport *xport, struct verve_link *link, struct verve_op *op, int error)
{
	if (verve_link_post_nothing(xport, link, op))
		return;
	op->error = error;
	verve_op_activate(op, VERVE_OP_SENT);
}

/* Its keys are known and open what it wants. False: later, or it has failed: *over. */
static bool is_open(struct verve_xport *xport, struct verve_link *link, struct verve_op *op, bool *over)
{
	const char *reason;
	enum verve_key_result result = verve_key_resolve(xport, link, op, &reason);

	*over = result == VERVE_KEY_FAILED;
	if (!*over)
		return result == VERVE_KEY_READY;
	if (op->transfer.offset)
		abandon(xport, link, op, FI_EACCES);
	else
		verve_op_fail(xport, op, FI_EACCES, reason);
	return false;
}

bool verve_rma_start(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	/* Of a read when it is done, see there. */
	bool notice = op->kind != VERVE_OP_READ && (op->flags & VERVE_OP_DATA || link->rma_event);
	const char *reason;
	int ret;

	if (!op->posted) {
		bool over;

		if (verve_transfer_is_under_way(xport, op))
			return false;
		if (op->flags & VERVE_OP_CANCELLED) {
			abandon(xport, link, op, FI_ECANCELED);
			return true;
		}
		if (!is_open(xport, link, op, &over))
			return over;
		ret = prepare(xport, link, op, &reason);
		if (ret == -FI_EAGAIN)
			return false;
		if (ret) {
			verve_op_fail(xport, op, -ret, reason);
			return true;
		}
		switch (verve_transfer_post(xport, link, op, verb_of(op), !notice)) {
		case VERVE_TRANSFER_MORE:
			return false;
		case VERVE_TRANSFER_POSTED:
			op->posted = true;
			break;
		default:
			return true;
		}
	}
	if (notice && !send_notice(xport, link, op))
		return link->broken;
	verve_op_activate(op, VERVE_OP_SENT);
	return true;
}

void verve_rma_done(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_peer *peer = op->peer;
	bool notice;

	if (op->error) {
		verve_op_fail(xport, op, op->error,
			      op->error == FI_ECANCELED ? "cancelled under way" :
							  "the target closed the region meanwhile");
		return;
	}
	if (op->slab && !verve_transfer_unload(xport, op)) {
		if (op->state != VERVE_OP_DOOMED)
			verve_peer_kick(xport, peer);
		return;
	}
	/* Only now: a device whose response was lost reads again. */
	notice = op->kind == VERVE_OP_READ && op->state != VERVE_OP_DOOMED && peer->link &&
		 peer->link->rma_event;

	verve_op_dequeue(op);
	verve_op_report(xport, op);
	if (notice)
		verve_peer_queue_control(xport, peer, op);
	else
		verve_op_free(xport, op);
}
