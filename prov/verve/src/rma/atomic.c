/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics: the initiator's half, then the target's. */
#include "rma/atomic.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comp/comp.h"
#include "mr/keytab.h"
#include "net/mr.h"
#include "rma/atomic_device.h"
#include "rma/atomic_op.h"
#include "rma/rma_event.h"
#include "xport/iov.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/op_pool.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/start.h"
#include "xport/wire_status.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

static const struct {
	int error; /* positive FI errno */
	const char *reason;
} refusals[VERVE_REFUSALS] = {
	[VERVE_REFUSED_MALFORMED] = {FI_EINVAL, "the target does not understand the atomic"},
	[VERVE_REFUSED_MODE] = {FI_EOPNOTSUPP, "the target has FI_VERVE_ATOMICS=device"},
	[VERVE_REFUSED_KEY] = {FI_EACCES, "the target has no region with the atomic's key"},
	[VERVE_REFUSED_RANGE] = {FI_EACCES, "the atomic reaches beyond the target's region"},
	[VERVE_REFUSED_ACCESS] = {FI_EACCES,
				  "the target's region does not grant what the atomic does"},
	[VERVE_REFUSED_MEMORY] = {FI_ENOMEM, "the target has no memory for the atomic's result"},
	[VERVE_REFUSED_SPLIT] = {FI_EINVAL,
				 "an element lies in two segments of the target's region"},
};

static void atomic_fill(struct verve_atomic_op *op, const struct verve_request *request,
			const struct verve_atomic_request *atomic)
{
	verve_rma_op_fill(&op->rma, request);
	op->op = atomic->op;
	op->type = atomic->type;
	op->compare_count = atomic->compare_count;
	op->result_count = atomic->result_count;
	for (size_t i = 0; i < atomic->compare_count; i++)
		op->compare[i] = atomic->compare[i];
	for (size_t i = 0; i < atomic->result_count; i++)
		op->result[i] = atomic->result[i];
}

/* Copies the operands, then the compares, to their place behind the packet's header. */
static void gather_operands(const struct verve_atomic_op *atomic, void *packet)
{
	const struct verve_memory *memory = &atomic->rma.memory;
	char *at = (char *)packet + verve_wire_atomic_prefix(atomic->rma.transfer.remote_count);

	at += verve_iov_gather(at, memory->iov, memory->iov_count, 0, atomic->rma.op.len);
	verve_iov_gather(at, atomic->compare, atomic->compare_count, 0,
			 verve_iov_len(atomic->compare, atomic->compare_count));
}

static enum verve_outcome atomic_start(struct verve_xport *xport, struct verve_link *link,
				       struct verve_op *op)
{
	struct verve_atomic_op *atomic = (struct verve_atomic_op *)op;
	struct verve_memory *memory = &atomic->rma.memory;
	const struct verve_transfer *transfer = &atomic->rma.transfer;
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_ATOMIC,
		.flags = op->cls->is_fetch ? VERVE_WIRE_FETCH : 0,
		.amo_op = atomic->op,
		.amo_type = atomic->type,
		.segment_count = transfer->remote_count,
	};
	struct verve_outgoing out;
	size_t payload, len;

	payload = op->len + verve_iov_len(atomic->compare, atomic->compare_count);
	if (payload > link->eager_size || transfer->len > link->eager_size) {
		verve_op_fail(xport, op, FI_EMSGSIZE,
			      "the peer's buffers are configured smaller than the atomic");
		return VERVE_DONE;
	}
	if (link->other_order) {
		verve_op_fail(xport, op, FI_EOPNOTSUPP,
			      "the peer's processor has the other byte order, so that operands and "
			      "results would mean other numbers there");
		return VERVE_DONE;
	}
	if (xport->attr.device_atomics || link->device_atomics)
		return verve_atomic_device_start(xport, link, atomic);
	/*
	 * At the limit of requests without a reply, this atomic waits for a reply. That cannot
	 * deadlock: to reply, the peer needs nothing from us.
	 */
	if (link->unanswered >= VERVE_ATOMIC_UNANSWERED || verve_op_name(xport, op))
		return VERVE_LATER;
	len = verve_wire_atomic_prefix(packet.segment_count) + payload;
	if (memory->slab) {
		out = (struct verve_outgoing) {.data = memory->slab->data, .slab = memory->slab};
		memory->slab = NULL; /* from here on, the work request owns the slab */
	} else if (verve_link_reserve(xport, link, len, &out)) {
		gather_operands(atomic, out.data);
	} else {
		return VERVE_LATER;
	}
	packet.op_id = op->id;
	memcpy(packet.segment, transfer->remote, sizeof(packet.segment));
	verve_link_address(link, &packet);
	verve_wire_encode(&packet, out.data);
	if (verve_link_post_packet(xport, link, &out, len, false, NULL))
		return VERVE_BROKE;
	link->unanswered++;
	verve_op_activate(op, VERVE_OP_AWAIT);
	return VERVE_DONE;
}

_Static_assert(sizeof(struct verve_atomic_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

/* fi_atomic: no value comes back. */
static const struct verve_op_class update_class = {
	.name = "atomic",
	.size = sizeof(struct verve_atomic_op),
	.cleared = offsetof(struct verve_atomic_op, rma.memory.iov),
	.memory_at = offsetof(struct verve_atomic_op, rma.memory),
	.move_at = offsetof(struct verve_atomic_op, rma.transfer),
	.comp_flags = VERVE_COMP_ATOMIC | VERVE_COMP_WRITE,
	.counter_at = offsetof(struct verve_sink, write),
	.start = atomic_start,
	.done = verve_atomic_device_done,
	.cancel = verve_rma_op_cancel,
	.release = verve_op_release_memory,
};

/* fi_fetch_atomic, fi_compare_atomic: the value before the operation comes back. */
static const struct verve_op_class fetch_class = {
	.name = "fetching atomic",
	.size = sizeof(struct verve_atomic_op),
	.cleared = offsetof(struct verve_atomic_op, rma.memory.iov),
	.memory_at = offsetof(struct verve_atomic_op, rma.memory),
	.move_at = offsetof(struct verve_atomic_op, rma.transfer),
	.comp_flags = VERVE_COMP_ATOMIC | VERVE_COMP_READ,
	.counter_at = offsetof(struct verve_sink, read),
	.is_fetch = true,
	.start = atomic_start,
	.done = verve_atomic_device_done,
	.cancel = verve_rma_op_cancel,
	.release = verve_op_release_memory,
};

static bool is_atomic(const struct verve_op *op)
{
	return op->cls == &update_class || op->cls == &fetch_class;
}

int verve_atomic(struct verve_xport *xport, const struct verve_request *request,
		 const struct verve_atomic_request *request_atomic)
{
	bool update = request_atomic->form == VERVE_AMO_UPDATE;
	struct verve_atomic_op *atomic;
	struct verve_peer *peer;
	struct verve_op *op;
	int ret;

	ret = verve_peer_find(xport, request->addr, &peer);
	if (ret)
		return ret;
	op = verve_op_alloc(xport, update ? &update_class : &fetch_class,
			    request->flags | VERVE_OP_TX);
	if (!op)
		return verve_peer_try_again(xport, peer);
	atomic = (struct verve_atomic_op *)op;
	atomic_fill(atomic, request, request_atomic);
	if (xport->attr.device_atomics) {
		verve_atomic_device_load(atomic);
	} else if (request->flags & VERVE_OP_INJECT) {
		atomic->rma.memory.slab = verve_slab_alloc_kept(&xport->tx_slabs,
								&peer->kept_slabs);
		if (!atomic->rma.memory.slab) {
			verve_op_free(xport, op);
			return verve_peer_try_again(xport, peer);
		}
		gather_operands(atomic, atomic->rma.memory.slab->data);
	}
	verve_peer_queue(xport, peer, op);
	return 0;
}

void verve_atomic_finished(struct verve_xport *xport, struct verve_link *link,
			   struct verve_wire_packet *packet)
{
	struct verve_op *op = verve_op_find_awaiting(xport, link->peer, packet->op_id);
	struct verve_atomic_op *atomic = (struct verve_atomic_op *)op;
	size_t wanted;

	link->unanswered -= link->unanswered > 0;
	if (!op || !is_atomic(op))
		return;
	wanted = op->cls->is_fetch ? atomic->rma.transfer.len : 0;
	if (packet->status && packet->status < VERVE_REFUSALS) {
		verve_op_fail(xport, op, refusals[packet->status].error,
			      refusals[packet->status].reason);
	} else if (packet->status || packet->len != wanted) {
		verve_op_fail(xport, op, FI_EIO, "the target's answer makes no sense");
	} else {
		verve_iov_scatter(atomic->result, atomic->result_count, 0, packet->payload,
				  packet->len);
		verve_op_finish(xport, op);
	}
}

/* The target. */

struct verve_reply_op {
	struct verve_op op; /* op.len: bytes of values */
	uint32_t id;	 /* of the peer's operation */
	uint32_t status; /* enum verve_refusal */
	void *values;	 /* elements before the operation, from malloc; NULL: the reply has none */
};

/* Sends the reply. */
static enum verve_outcome reply_answer(struct verve_xport *xport, struct verve_link *link,
				       struct verve_op *op)
{
	struct verve_reply_op *reply = (struct verve_reply_op *)op;
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_ATOMIC_REPLY,
		.op_id = reply->id,
		.status = reply->status,
	};
	struct verve_outgoing out;
	size_t prefix;

	if (!verve_link_has_room(xport, link, true) ||
	    !verve_link_reserve(xport, link, VERVE_WIRE_PREFIX + op->len, &out))
		return VERVE_LATER;
	verve_link_address(link, &packet);
	prefix = verve_wire_encode(&packet, out.data);
	if (op->len)
		memcpy(out.data + prefix, reply->values, op->len);
	if (verve_link_post_packet(xport, link, &out, prefix + op->len, false, NULL))
		return VERVE_BROKE;
	link->replies--;
	verve_op_free(xport, op);
	return VERVE_DONE;
}

static void reply_release(struct verve_xport *xport, struct verve_op *op)
{
	(void)xport;
	free(((struct verve_reply_op *)op)->values);
}

_Static_assert(sizeof(struct verve_reply_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

static const struct verve_op_class reply_class = {
	.name = "reply",
	.size = sizeof(struct verve_reply_op),
	.cleared = sizeof(struct verve_reply_op),
	.answer = reply_answer,
	.release = reply_release,
};

static enum verve_amo_form form_of(const struct verve_wire_packet *packet)
{
	if (verve_amo_compares(packet->amo_op))
		return VERVE_AMO_COMPARE;
	return packet->flags & VERVE_WIRE_FETCH ? VERVE_AMO_FETCH : VERVE_AMO_UPDATE;
}

/*
 * Whether operation, type, segments and operands of the request agree, and the result has room in a
 * packet. The peer may have sent any bytes.
 */
static bool is_well_formed(const struct verve_xport *xport, const struct verve_wire_packet *packet)
{
	size_t size = verve_amo_size(packet->amo_type), operands = 1, len = 0;
	enum verve_amo_form form = form_of(packet);

	if (!verve_amo_is_valid(form, packet->amo_op, packet->amo_type) ||
	    (form == VERVE_AMO_COMPARE && !(packet->flags & VERVE_WIRE_FETCH)))
		return false;
	for (uint32_t i = 0; i < packet->segment_count; i++) {
		if (packet->segment[i].len % size ||
		    packet->segment[i].len > xport->attr.eager_size)
			return false;
		len += packet->segment[i].len;
	}
	if (packet->amo_op == VERVE_AMO_READ)
		operands = 0;
	else if (form == VERVE_AMO_COMPARE)
		operands = 2;
	return len && len <= xport->attr.eager_size && packet->len == operands * len;
}

static unsigned access_of(const struct verve_wire_packet *packet)
{
	return (packet->flags & VERVE_WIRE_FETCH ? VERVE_NET_REMOTE_READ : 0) |
	       (packet->amo_op != VERVE_AMO_READ ? VERVE_NET_REMOTE_WRITE : 0);
}

/* Where a segment of a request begins in the target's region, while the key table is locked. */
struct place {
	const struct verve_mr_segments *segments; /* of the region */
	uint64_t position; /* in segments; mr/segments.h */
};

/*
 * Whether an element lies half in one segment of the region and half in the next. Such an element
 * cannot be changed atomically.
 */
static bool splits_elements(struct place place, uint64_t len, size_t size)
{
	struct verve_mr_segment rest;

	while (verve_mr_segments_rest(place.segments, place.position, &rest) && rest.len < len) {
		if (rest.len % size)
			return true;
		place.position += rest.len;
		len -= rest.len;
	}
	return false;
}

/* Finds the memory of the request's segment i, and checks that the region allows the access. */
static enum verve_refusal place_find(const struct verve_xport *xport,
				     const struct verve_wire_packet *packet, uint32_t i,
				     struct place *place)
{
	const struct verve_wire_segment *segment = &packet->segment[i];
	const struct verve_mr_key *key =
		verve_mr_keytab_find(xport->attr.mr_keytab, segment->key);
	unsigned access = access_of(packet);

	if (!key)
		return VERVE_REFUSED_KEY;
	place->segments = &key->segments;
	if (!verve_mr_segments_find(place->segments, segment->addr, segment->len,
				    &place->position))
		return VERVE_REFUSED_RANGE;
	if (key->device || (key->access & access) != access)
		return VERVE_REFUSED_ACCESS;
	return splits_elements(*place, segment->len, verve_amo_size(packet->amo_type)) ?
		       VERVE_REFUSED_SPLIT : VERVE_REFUSED_NOT;
}

/*
 * Executes the request on len bytes from place on. These may lie in several segments of the region.
 * at: offset in bytes of the first operand; values, if not NULL, gets the old elements there.
 */
static void place_run(const struct verve_wire_packet *packet, struct place place, uint64_t len,
		      size_t at, char *values)
{
	const char *operand = packet->payload, *compare = operand + packet->len / 2;
	size_t size = verve_amo_size(packet->amo_type);
	struct verve_mr_segment rest;

	while (len && verve_mr_segments_rest(place.segments, place.position, &rest)) {
		uint64_t n = rest.len < len ? rest.len : len;

		verve_amo_run(packet->amo_op, packet->amo_type, (void *)(uintptr_t)rest.addr,
			      n / size, operand + at, compare + at, values ? values + at : NULL);
		place.position += n;
		at += n;
		len -= n;
	}
}

/*
 * Executes the request on all of its segments, or on none. values, if not NULL, gets the elements
 * before the operation.
 */
static enum verve_refusal request_execute(struct verve_xport *xport,
					  const struct verve_wire_packet *packet, char *values)
{
	struct verve_mr_keytab *keytab = xport->attr.mr_keytab;
	struct place places[VERVE_WIRE_SEGMENTS];
	enum verve_refusal refusal = VERVE_REFUSED_NOT;
	size_t at = 0;

	verve_mr_keytab_lock(keytab);
	for (uint32_t i = 0; i < packet->segment_count && !refusal; i++)
		refusal = place_find(xport, packet, i, &places[i]);
	for (uint32_t i = 0; i < packet->segment_count && !refusal; i++) {
		place_run(packet, places[i], packet->segment[i].len, at, values);
		at += packet->segment[i].len;
	}
	verve_mr_keytab_unlock(keytab);
	return refusal;
}

/*
 * Executes the request and fills the reply in. The reply's memory is allocated first: an atomic
 * that was executed must not fail for lack of memory.
 */
static enum verve_refusal request_take(struct verve_xport *xport,
				       const struct verve_wire_packet *packet,
				       struct verve_reply_op *reply)
{
	enum verve_refusal refusal;
	size_t len = 0;

	if (!is_well_formed(xport, packet))
		return VERVE_REFUSED_MALFORMED;
	if (xport->attr.device_atomics)
		return VERVE_REFUSED_MODE;
	if (packet->flags & VERVE_WIRE_FETCH) {
		for (uint32_t i = 0; i < packet->segment_count; i++)
			len += packet->segment[i].len;
		reply->values = malloc(len);
		if (!reply->values)
			return VERVE_REFUSED_MEMORY;
	}
	refusal = request_execute(xport, packet, reply->values);
	if (!refusal)
		reply->op.len = len;
	return refusal;
}

void verve_atomic_execute(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	struct verve_reply_op *reply;
	char name[VERVE_ADDR_STRLEN];

	if (link->replies >= VERVE_ATOMIC_UNANSWERED) {
		verve_link_break(xport, link, FI_EIO, 0,
				 "the peer asks for too many atomics at once");
		return;
	}
	reply = (struct verve_reply_op *)verve_op_alloc(xport, &reply_class, VERVE_OP_REPORTED);
	if (!reply) {
		verve_link_break(xport, link, FI_ENOMEM, 0, "no memory to answer an atomic");
		return;
	}
	reply->op.peer = link->peer;
	reply->id = packet->op_id;
	reply->status = request_take(xport, packet, reply);
	if (reply->status)
		VERVE_INFO(EP_DATA, "connection %#x: refused an atomic from %s: %s\n",
			   link->conn_id, verve_addr_str(&link->peer->addr, name),
			   refusals[reply->status].reason);
	else
		verve_rma_event_count(xport, packet, packet->flags & VERVE_WIRE_FETCH);
	link->replies++;
	verve_peer_queue_control(xport, link->peer, &reply->op);
}
