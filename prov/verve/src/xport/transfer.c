/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transfers: cutting memory on both sides into work requests. */
#include "xport/transfer.h"

#include <string.h>

#include "base/config.h"
#include "mr/region.h"
#include "rma/atomic_device.h"
#include "rma/key.h"
#include "xport/link.h"
#include "xport/post.h"
#include "xport/xport.h"

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t verve_iov_gather(void *to, const struct iovec *iov, size_t count, size_t offset, size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = min(iov[i].iov_len - offset, len - done);
		memcpy((char *) to + done, (char *) iov[i].iov_base + offset, n);
		done += n;
		offset = 0;
	}
	return done;
}

size_t verve_iov_scatter(const struct iovec *iov, size_t count, size_t offset, const void *from,
			 size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = min(iov[i].iov_len - offset, len - done);
		memcpy((char *) iov[i].iov_base + offset, (const char *) from + done, n);
		done += n;
		offset = 0;
	}
	return done;
}

/* The peer's memory at offset: its segment's rest, as far as one key of the device goes. */
static size_t locate_remote(const struct verve_link *link, const struct verve_op *op,
			    struct verve_net_wr *wr)
{
	const struct verve_transfer *transfer = &op->transfer;
	bool rkeys = op->kind == VERVE_OP_RECV; /* an RTS names nothing else */
	uint64_t offset = transfer->offset;

	for (uint32_t i = 0; i < transfer->remote_count; i++) {
		const struct verve_wire_segment *segment = &transfer->remote[i];

		if (offset < segment->len || (!transfer->len && i + 1 == transfer->remote_count)) {
			if (!rkeys && verve_key_is_exported(link, segment->key))
				return verve_key_locate(link, segment, offset, wr);
			/* mr/keytab.h: what to add is above the rkey. */
			wr->remote_addr = segment->addr + (segment->key >> 32) + offset;
			wr->rkey = (uint32_t) segment->key;
			return segment->len - offset;
		}
		offset -= segment->len;
	}
	return 0;
}

/*
 * This side's memory from offset on, len bytes in at most VERVE_IOV_LIMIT segments. is_inline: for
 * the processor, which copies it, not for the device.
 */
static uint32_t locate_local(const struct verve_op *op, size_t offset, size_t len, bool is_inline,
			     struct verve_net_sge *sge)
{
	uint32_t count = 0;

	if (op->slab) {
		offset -= op->transfer.base;
		sge[0] = (struct verve_net_sge) {(uintptr_t) op->slab->data + offset, len, op->slab->lkey};
		return len ? 1 : 0;
	}
	for (uint32_t i = 0; i < op->iov_count && len; i++) {
		size_t n;

		if (offset >= op->iov[i].iov_len) {
			offset -= op->iov[i].iov_len;
			continue;
		}
		n = min(op->iov[i].iov_len - offset, len);
		sge[count] = (struct verve_net_sge) {(uintptr_t) op->iov[i].iov_base + offset, n, 0};
		if (!is_inline) {
			sge[count].addr += op->region[i]->shift;
			sge[count].lkey = op->region[i]->lkey;
		}
		count++;
		len -= n;
		offset = 0;
	}
	return count;
}

/* Of the transfer, so much can be posted now. */
static uint64_t end_of_piece(const struct verve_xport *xport, const struct verve_op *op)
{
	const struct verve_transfer *transfer = &op->transfer;
	uint64_t left = transfer->len - transfer->base;

	return op->slab ? transfer->base + min(left, xport->tx_slabs.size) : transfer->len;
}

void verve_transfer_load(const struct verve_xport *xport, struct verve_op *op)
{
	uint64_t base = op->transfer.base;

	if (op->kind == VERVE_OP_WRITE)
		verve_iov_gather(op->slab->data, op->iov, op->iov_count, base,
				 end_of_piece(xport, op) - base);
}

bool verve_transfer_unload(const struct verve_xport *xport, struct verve_op *op)
{
	struct verve_transfer *transfer = &op->transfer;

	if (op->kind == VERVE_OP_READ)
		verve_iov_scatter(op->iov, op->iov_count, transfer->base, op->slab->data,
				  transfer->offset - transfer->base);
	transfer->base = transfer->offset;
	if (transfer->base == transfer->len)
		return true;
	verve_transfer_load(xport, op);
	return false;
}

bool verve_transfer_is_under_way(const struct verve_xport *xport, const struct verve_op *op)
{
	return op->transfer.offset < op->transfer.len && op->transfer.offset == end_of_piece(xport, op);
}

int verve_transfer_repeat(struct verve_xport *xport, struct verve_link *link,
			  const struct verve_slot *slot)
{
	bool is_inline = slot->verb == VERVE_NET_WRITE && slot->length <= link->inline_size;
	struct verve_net_sge sge[VERVE_IOV_LIMIT];
	struct verve_net_wr wr = {
		.op = slot->verb,
		.flags = (slot->tell ? VERVE_NET_SIGNALED : 0) | (is_inline ? VERVE_NET_INLINE : 0),
		.remote_addr = slot->remote_addr,
		.rkey = slot->rkey,
		.sge = sge,
		.sge_count = locate_local(slot->op, slot->offset, slot->length, is_inline, sge),
	};

	if (slot->verb == VERVE_NET_FETCH_ADD || slot->verb == VERVE_NET_COMPARE_SWAP)
		verve_atomic_device_describe(slot->op, &wr);
	return verve_link_post_slot(xport, link, &wr, slot);
}

enum verve_transfer_result verve_transfer_post(struct verve_xport *xport, struct verve_link *link,
					       struct verve_op *op, enum verve_net_wr_op verb, bool tell)
{
	struct verve_transfer *transfer = &op->transfer;
	size_t longest = verve_net_device_port(xport->attr.dev)->limits.msg_size;
	uint64_t end = end_of_piece(xport, op);

	if (verb == VERVE_NET_READ)
		longest = min(longest, verve_config.read_size);
	do {
		size_t len, left = end - transfer->offset;
		struct verve_slot slot;
		struct verve_net_wr wr = {.rkey = 0};

		if (!verve_link_has_room(xport, link, false))
			return VERVE_TRANSFER_MORE;
		len = min(min(locate_remote(link, op, &wr), left), longest);
		slot = (struct verve_slot) {
			.op = op,
			.offset = transfer->offset,
			.remote_addr = wr.remote_addr,
			.rkey = wr.rkey,
			.length = len,
			.kind = VERVE_SLOT_MEMORY,
			.verb = verb,
			.tell = len == left && (tell || end < transfer->len),
		};
		if (verve_transfer_repeat(xport, link, &slot))
			return VERVE_TRANSFER_BROKE;
		transfer->offset += len;
	} while (transfer->offset < end);
	return end < transfer->len ? VERVE_TRANSFER_MORE : VERVE_TRANSFER_POSTED;
}
