/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transfers: cuts the memory of both sides into work requests. */
#include "xport/transfer.h"

#include <assert.h>
#include <string.h>

#include "base/config.h"
#include "mr/region.h"
#include "xport/bulk.h"
#include "xport/iov.h"
#include "xport/link.h"
#include "xport/memory.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/remote_key.h"
#include "xport/staged.h"
#include "xport/xport.h"

_Static_assert((int)VERVE_IOV_LIMIT <= (int)VERVE_NET_SGE_MIN, "every usable device takes it");

enum { SHARED_MAX = 4096 }; /* bytes of a request that need not ask for its completion */

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* What the device is told of a segment whose key is an rkey (mr/keytab.h). */
static uint64_t address_of(const struct verve_wire_segment *segment)
{
	return segment->addr + (segment->key >> 32);
}

/*
 * Sets wr's remote_addr and rkey to the peer's memory at transfer->offset. Returns the bytes that
 * one rkey reaches from there: the rest of the segment at most.
 */
static size_t locate_remote(const struct verve_link *link, const struct verve_transfer *transfer,
			    struct verve_net_wr *wr)
{
	uint64_t offset = transfer->offset;

	for (uint32_t i = 0; i < transfer->remote_count; i++) {
		const struct verve_wire_segment *segment = &transfer->remote[i];

		if (offset < segment->len || (!transfer->len && i + 1 == transfer->remote_count)) {
			if (!transfer->rkeys &&
			    verve_remote_key_is_exported(&link->keys, segment->key))
				return verve_remote_key_locate(&link->keys, segment, offset, wr);
			wr->remote_addr = address_of(segment) + offset;
			wr->rkey = (uint32_t)segment->key;
			return segment->len - offset;
		}
		offset -= segment->len;
	}
	return 0;
}

/*
 * Fills in sge for len bytes of this side's memory from offset on: VERVE_IOV_LIMIT entries at most.
 * Returns how many. is_inline: the processor copies the memory, which needs no registration.
 */
static uint32_t locate_local(struct verve_op *op, size_t offset, size_t len, bool is_inline,
			     struct verve_net_sge *sge)
{
	const struct verve_memory *memory = verve_op_memory(op);

	/* Bytes before those in the slab have moved straight, or do so again (xport/replay.h). */
	if (memory->slab && offset >= verve_op_transfer(op)->base) {
		offset -= verve_op_transfer(op)->base;
		sge[0] = (struct verve_net_sge) {(uintptr_t)memory->slab->data + offset, len,
						 memory->slab->lkey};
		return len ? 1 : 0;
	}
	return verve_memory_locate(memory, offset, len, is_inline, sge);
}

/*
 * The offset at which the current piece ends: the end of the bytes in the slab; or of those that
 * have a region here and a segment there, whichever ends first.
 */
static uint64_t end_of_piece(const struct verve_xport *xport, struct verve_op *op)
{
	const struct verve_transfer *transfer = verve_op_transfer(op);
	const struct verve_memory *memory = verve_op_memory(op);

	if (memory->slab)
		return transfer->base + min(transfer->len - transfer->base, xport->tx_slabs.size);
	return min(__builtin_expect(memory->staged, 0) ? verve_staged_ready(memory) : transfer->len,
		   transfer->len - transfer->unoffered);
}

void verve_transfer_load(const struct verve_xport *xport, struct verve_op *op)
{
	const struct verve_transfer *transfer = verve_op_transfer(op);
	const struct verve_memory *memory = verve_op_memory(op);

	if (transfer->way == VERVE_TRANSFER_OUT)
		verve_iov_gather(memory->slab->data, memory->iov, memory->iov_count, transfer->base,
				 end_of_piece(xport, op) - transfer->base);
}

bool verve_transfer_unload(const struct verve_xport *xport, struct verve_op *op)
{
	struct verve_transfer *transfer = verve_op_transfer(op);
	const struct verve_memory *memory = verve_op_memory(op);

	if (transfer->way == VERVE_TRANSFER_IN)
		verve_iov_scatter(memory->iov, memory->iov_count, transfer->base,
				  memory->slab->data, transfer->offset - transfer->base);
	transfer->base = transfer->offset;
	if (transfer->base == transfer->len)
		return true;
	verve_transfer_load(xport, op);
	return false;
}

bool verve_transfer_is_under_way(const struct verve_xport *xport, struct verve_op *op)
{
	const struct verve_transfer *transfer = verve_op_transfer(op);

	return verve_op_memory(op)->slab && transfer->offset < transfer->len &&
	       transfer->offset == end_of_piece(xport, op);
}

/*
 * Posts inline data that lies in several pieces. irdma sends one segment inline and refuses more,
 * so the pieces are copied together first.
 */
static int post_pieces(struct verve_xport *xport, struct verve_link *link, struct verve_net_wr *wr,
		       const struct verve_slot *slot)
{
	unsigned char bytes[VERVE_CONFIG_INLINE_MAX];
	struct verve_net_sge whole = {.addr = (uintptr_t)bytes};

	for (uint32_t i = 0; i < wr->sge_count; i++) {
		memcpy(bytes + whole.length, (const void *)(uintptr_t)wr->sge[i].addr,
		       wr->sge[i].length);
		whole.length += wr->sge[i].length;
	}
	wr->sge = &whole;
	wr->sge_count = 1;
	return verve_link_post_slot(xport, link, wr, slot);
}

/*
 * A long request asks in any case: the application is to hear of its end at once, not at the end of
 * a later one. So does each bulk read, because others wait for its end; and a request behind which
 * the operation waits for the peer: without it, a queue pair that fails would not be noticed.
 */
static bool asks(const struct verve_xport *xport, const struct verve_link *link,
		 const struct verve_slot *slot)
{
	return (slot->tell && (slot->length > SHARED_MAX || !verve_link_may_share(link))) ||
	       verve_bulk_is(xport, slot->verb, slot->length) ||
	       verve_op_transfer(slot->op)->unoffered;
}

bool verve_transfer_is_inline(const struct verve_link *link, enum verve_net_wr_op verb, size_t len)
{
	return (verb == VERVE_NET_WRITE || verb == VERVE_NET_WRITE_IMM) &&
	       len <= link->inline_size;
}

int verve_transfer_post_slot(struct verve_xport *xport, struct verve_link *link,
			     const struct verve_slot *slot)
{
	const struct verve_transfer *transfer = verve_op_transfer(slot->op);
	bool has_imm = slot->verb == VERVE_NET_WRITE_IMM;
	bool is_inline = verve_transfer_is_inline(link, slot->verb, slot->length);
	struct verve_net_sge sge[VERVE_IOV_LIMIT];
	struct verve_net_wr wr = {
		.op = slot->verb,
		.flags = (asks(xport, link, slot) ? VERVE_NET_SIGNALED : 0) |
			 (is_inline ? VERVE_NET_INLINE : 0),
		.remote_addr = slot->remote_addr,
		.rkey = slot->rkey,
		.compare_add = transfer->compare_add,
		.swap = transfer->swap,
		.imm = transfer->imm,
		.sge = sge,
		.sge_count = locate_local(slot->op, slot->offset, slot->length, is_inline, sge),
	};

	link->sent += has_imm;
	verve_stat_request(link->peer->stat, slot->verb, slot->length);
	if (__builtin_expect(is_inline && wr.sge_count > 1, 0))
		return post_pieces(xport, link, &wr, slot);
	return verve_link_post_slot(xport, link, &wr, slot);
}

void verve_transfer_post_whole(struct verve_xport *xport, struct verve_link *link,
			       struct verve_op *op, enum verve_net_wr_op verb)
{
	const struct verve_memory *memory = verve_op_memory(op);
	const struct iovec *iov = memory->iov;
	struct verve_transfer *transfer = verve_op_transfer(op);
	const struct verve_wire_segment *remote = transfer->remote;
	bool is_inline = verve_transfer_is_inline(link, verb, iov->iov_len);
	struct verve_net_sge sge = {(uintptr_t)iov->iov_base, iov->iov_len, 0};
	struct verve_slot slot = {
		.op = op,
		.remote_addr = address_of(remote),
		.rkey = (uint32_t)remote->key,
		.length = iov->iov_len,
		.kind = VERVE_SLOT_MEMORY,
		.verb = verb,
		.tell = true,
	};
	struct verve_net_wr wr = {
		.op = verb,
		.flags = (asks(xport, link, &slot) ? VERVE_NET_SIGNALED : 0) |
			 (is_inline ? VERVE_NET_INLINE : 0),
		.remote_addr = slot.remote_addr,
		.rkey = slot.rkey,
		.sge = &sge,
		.sge_count = 1,
	};

	assert(memory->iov_count == 1 && transfer->remote_count == 1);
	assert(is_inline || memory->region[0]);
	if (!is_inline) {
		sge.addr += memory->region[0]->shift;
		sge.lkey = memory->region[0]->lkey;
	}
	transfer->offset = transfer->len;
	verve_stat_request(link->peer->stat, verb, slot.length);
	verve_link_post_slot(xport, link, &wr, &slot);
}

bool verve_transfer_is_one_request(const struct verve_xport *xport, const struct verve_link *link,
				   struct verve_op *op)
{
	const struct verve_transfer *transfer = verve_op_transfer(op);

	return transfer->len && transfer->remote_count == 1 &&
	       !verve_remote_key_is_exported(&link->keys, transfer->remote->key) &&
	       transfer->len <= verve_net_device_port(xport->attr.dev)->limits.msg_size &&
	       end_of_piece(xport, op) == transfer->len;
}

size_t verve_transfer_read_size(const struct verve_net_port *port)
{
	size_t asked = verve_config.read_size;

	return min(port->limits.msg_size,
		   verve_config_is_auto(asked) ? port->limits.read_size : asked);
}

size_t verve_transfer_longest(const struct verve_net_port *port, enum verve_net_wr_op verb)
{
	return verb == VERVE_NET_READ ? verve_transfer_read_size(port) : port->limits.msg_size;
}

/* Bytes that the pieces of this side's memory allow for the next request. */
static size_t local_reach(const struct verve_net_port *port, struct verve_op *op,
			  enum verve_net_wr_op verb)
{
	const struct verve_memory *memory = verve_op_memory(op);

	if (verb != VERVE_NET_READ || memory->slab || memory->iov_count <= port->limits.read_sge)
		return SIZE_MAX;
	return verve_memory_reach(memory, verve_op_transfer(op)->offset, port->limits.read_sge);
}

enum verve_outcome verve_transfer_post(struct verve_xport *xport, struct verve_link *link,
					struct verve_op *op, enum verve_net_wr_op verb, bool tell)
{
	struct verve_transfer *transfer = verve_op_transfer(op);
	const struct verve_net_port *port = verve_net_device_port(xport->attr.dev);
	size_t longest = verve_transfer_longest(port, verb);
	uint64_t end = end_of_piece(xport, op);
	bool in_slab = verve_op_memory(op)->slab;

	tell = end == transfer->len ? tell : in_slab;
	do {
		size_t len, left = end - transfer->offset;
		struct verve_slot slot;
		struct verve_net_wr wr = {.rkey = 0};

		if (!verve_link_has_room(xport, link, false))
			return VERVE_LATER;
		len = min(min(locate_remote(link, transfer, &wr), left),
			  min(local_reach(port, op, verb), longest));
		if (verve_bulk_waits(xport, link, verb, len))
			return VERVE_LATER;
		slot = (struct verve_slot) {
			.op = op,
			.offset = transfer->offset,
			.remote_addr = wr.remote_addr,
			.rkey = wr.rkey,
			.length = len,
			.kind = VERVE_SLOT_MEMORY,
			.verb = verb,
			.tell = len == left && tell,
		};
		if (verve_transfer_post_slot(xport, link, &slot))
			return VERVE_BROKE;
		transfer->offset += len;
	} while (transfer->offset < end);
	return in_slab && end < transfer->len ? VERVE_LATER : VERVE_DONE;
}
