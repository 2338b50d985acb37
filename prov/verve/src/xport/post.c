/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Posting: packets from slabs or copies, writes of no bytes, any request of a slot. */
#include "xport/post.h"

#include <assert.h>
#include <string.h>

#include "xport/bulk.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/memory.h"
#include "xport/owed.h"
#include "xport/peer.h"
#include "xport/replay_state.h"
#include "xport/retire.h"
#include "xport/suspend.h"

_Static_assert((VERVE_LINK_COPIES & (VERVE_LINK_COPIES - 1)) == 0, "copies are found by masking");

/* True if there is room for one more request, without regard to the link's share of the send CQ. */
static bool has_place(const struct verve_xport *xport, const struct verve_link *link)
{
	return link->produced - link->retired < VERVE_LINK_REQUESTS - 1 &&
	       verve_xport_wr_left(xport, 1);
}

static struct verve_slot *next_slot(struct verve_link *link)
{
	return verve_link_slot(link, link->produced);
}

static bool has_slab(const struct verve_slot *slot)
{
	if (slot->kind == VERVE_SLOT_MEMORY)
		return verve_op_memory(slot->op)->slab;
	return slot->kind != VERVE_SLOT_COPY && slot->slab;
}

/* The request of the slot will hold a slab until it retires. */
static void hold_slab(struct verve_xport *xport, struct verve_link *link, struct verve_slot *slot)
{
	slot->has_slab = true;
	if (slot->kind != VERVE_SLOT_MEMORY)
		verve_slab_release(slot->slab);
	link->slabs++;
	xport->tx_slabs.posted++;
}

/* The device refuses the request of this slot, the last one that was counted. */
static __attribute__((noinline, cold)) int refused(struct verve_xport *xport,
						   struct verve_link *link,
						   const struct verve_slot *slot, int ret)
{
	/*
	 * Some devices take no request once the queue pair is in error, other devices take and
	 * flush it. In both cases replay repeats the request.
	 */
	ret = verve_replay_keep(xport, link, ret);
	if (!ret)
		return 0;
	/* The device does not have the request and will not flush it. */
	link->produced--;
	verve_link_release(xport, link, slot);
	verve_link_break(xport, link, -ret, 0, "posting a work request failed");
	return ret;
}

/* Posts the request of the link's next slot, which is filled in, has_slab included. */
static inline __attribute__((always_inline)) int post(struct verve_xport *xport,
						      struct verve_link *link,
						      struct verve_net_wr *wr,
						      struct verve_slot *slot)
{
	uint32_t number = link->produced;
	int ret;

	assert(verve_lock_held(xport->lock));
	assert(!link->broken && has_place(xport, link));
	if (number - link->signaled >= VERVE_LINK_SIGNAL ||
	    link->copied - link->copied_signaled >= VERVE_LINK_COPIES / 4 ||
	    verve_xport_is_tight(xport))
		wr->flags |= VERVE_NET_SIGNALED;
	slot->asks = wr->flags & VERVE_NET_SIGNALED;
	slot->shares = slot->tell && !slot->asks;
	link->sharing += slot->shares;
	if (slot->asks) {
		xport->asked++;
		link->signaled = number;
		link->copied_signaled = link->copied;
	}
	wr->wr_id = (uint64_t)link->id << 32 | number;
	link->produced++;
	xport->wr_used++;

	ret = verve_net_qp_post(link->qp, wr);
	return __builtin_expect(ret, 0) ? refused(xport, link, slot, ret) : 0;
}

int verve_link_post_slot(struct verve_xport *xport, struct verve_link *link,
			 struct verve_net_wr *wr, const struct verve_slot *holds)
{
	struct verve_slot *slot = next_slot(link);

	*slot = *holds;
	slot->has_slab = false;
	if (has_slab(slot))
		hold_slab(xport, link, slot);
	link->bulk_reads += verve_bulk_is(xport, slot->verb, slot->length);
	return post(xport, link, wr, slot);
}

struct verve_slab *verve_link_slab_alloc(struct verve_xport *xport, const struct verve_link *link)
{
	return verve_slab_alloc_spare(&xport->tx_slabs, link->slabs);
}

int verve_link_post_packet(struct verve_xport *xport, struct verve_link *link,
			   const struct verve_outgoing *out, size_t len, bool ask,
			   struct verve_op *op)
{
	struct verve_net_sge sge = {(uintptr_t)out->data, len, 0};
	struct verve_net_wr wr = {
		.op = VERVE_NET_SEND,
		.flags = ask || op ? VERVE_NET_SIGNALED : 0,
		.sge = &sge,
		.sge_count = 1,
	};
	struct verve_slot *slot = next_slot(link);

	slot->op = op;
	slot->tell = op;
	slot->verb = 0;
	slot->length = len;
	if (out->slab) {
		slot->kind = VERVE_SLOT_SLAB;
		slot->slab = out->slab;
		slot->at = out->data - (char *)out->slab->data;
		hold_slab(xport, link, slot);
		sge.lkey = out->slab->lkey;
	} else {
		assert(len <= link->inline_size);
		slot->kind = VERVE_SLOT_COPY;
		slot->has_slab = false;
		/* Bytes that are skipped at the end of the ring count as used, too. */
		slot->copied = link->copied = out->copied + len;
		assert(link->copied - link->copied_retired <= VERVE_LINK_COPIES);
		wr.flags |= VERVE_NET_INLINE;
	}
	link->sent++;
	verve_stat_sent(link->peer->stat, out->data[0], len);
	return post(xport, link, &wr, slot);
}

int verve_link_post_headed(struct verve_xport *xport, struct verve_link *link,
			   const struct verve_outgoing *out, size_t len, struct verve_op *op)
{
	struct verve_net_sge sge[VERVE_IOV_LIMIT] = {
		{(uintptr_t)out->data, len, out->slab->lkey}};
	struct verve_net_wr wr = {.op = VERVE_NET_SEND, .flags = VERVE_NET_SIGNALED, .sge = sge};
	struct verve_slot slot = {
		.op = op,
		.slab = out->slab,
		.length = len,
		.kind = VERVE_SLOT_HEADED,
		.at = out->data - (char *)out->slab->data,
		.tell = true,
	};

	assert(verve_op_memory(op)->iov_count < VERVE_IOV_LIMIT);
	wr.sge_count = 1 + verve_memory_locate(verve_op_memory(op), 0, op->len, false, sge + 1);
	link->sent++;
	verve_stat_sent(link->peer->stat, out->data[0], len + op->len);
	return verve_link_post_slot(xport, link, &wr, &slot);
}

int verve_link_post_nothing(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	struct verve_net_wr wr = {.op = VERVE_NET_WRITE, .flags = VERVE_NET_SIGNALED};
	struct verve_slot slot = {.op = op, .tell = op};

	return verve_link_post_slot(xport, link, &wr, &slot);
}

size_t verve_link_encode(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet, struct verve_outgoing *out)
{
	uint8_t bytes[VERVE_WIRE_RTS_MAX];
	size_t len;

	verve_link_address(link, packet);
	len = verve_wire_encode(packet, bytes);
	if (!verve_link_reserve(xport, link, len, out)) {
		link->owed += packet->credits;
		return 0;
	}
	memcpy(out->data, bytes, len);
	return len;
}

bool verve_link_send(struct verve_xport *xport, struct verve_link *link,
		     struct verve_wire_packet *packet, struct verve_op *tell)
{
	bool ask = packet->type == VERVE_WIRE_BYE || packet->type == VERVE_WIRE_QUIESCE;
	struct verve_outgoing out;
	size_t len = verve_link_encode(xport, link, packet, &out);

	if (!len)
		return false;
	return !verve_link_post_packet(xport, link, &out, len, ask, tell);
}

enum verve_outcome verve_link_answer(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op, struct verve_wire_packet *packet)
{
	if (!verve_link_has_room(xport, link, true))
		return VERVE_LATER;
	if (!verve_link_send(xport, link, packet, NULL))
		return link->broken ? VERVE_BROKE : VERVE_LATER;
	verve_op_free(xport, op);
	return VERVE_DONE;
}

void verve_link_ask(struct verve_xport *xport, struct verve_link *link)
{
	if (!verve_link_has_asked(link) && verve_replay_is_mutual(link) && has_place(xport, link))
		verve_link_post_nothing(xport, link, NULL);
}
