/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Post: gives requests to a link's queue pair. Each request needs room in the queue, and keeps in
 * its slot, until it retires, all that posting it again on another queue pair needs. The engine's
 * lock protects everything here.
 */
#ifndef VERVE_XPORT_POST_H
#define VERVE_XPORT_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/qp.h"
#include "xport/link.h"
#include "xport/op.h"
#include "xport/slot.h"
#include "xport/wire.h"
#include "xport/xport.h"

/* A packet being written. */
struct verve_outgoing {
	char *data;		 /* first byte of the packet */
	struct verve_slab *slab; /* has the packet; NULL: it lies in link->copies, to go inline */
	uint64_t copied;	 /* without slab: the value of link->copied at its first byte */
};

/* Entries of the send CQ that are left, but for the last few. */
static inline uint32_t verve_xport_wr_left(const struct verve_xport *xport, uint32_t reserve)
{
	uint32_t taken = xport->wr_used + xport->link_count + reserve;

	return taken < xport->wr_limit ? xport->wr_limit - taken : 0;
}

/*
 * Entries that a link which has so many may still take: not the last quarter of those that links
 * share, unless it has none, and no more than are left to the others. Links do not share the
 * entries for their markers.
 */
static inline uint32_t verve_xport_wr_share(const struct verve_xport *xport, uint32_t has,
					    uint32_t reserve)
{
	uint32_t left = verve_xport_wr_left(xport, reserve);
	uint32_t others = has;

	if (has && xport->link_count < xport->wr_limit)
		others += (xport->wr_limit - xport->link_count) / 4;
	return others < left ? left - others : 0;
}

/*
 * True if there is room for one more request. control: for a control packet, which may use the last
 * VERVE_LINK_RESERVE entries. The very last entry of each link, in its queue and in the send CQ, is
 * for the marker of verve_link_stop. No link has more entries of the send CQ than are left to the
 * others, and none but its first from the last quarter: peers that take no packets, and so give no
 * entry back, stop no other peer, whether they come together or one after the other.
 */
static inline bool verve_link_has_room(const struct verve_xport *xport,
				       const struct verve_link *link, bool control)
{
	uint32_t reserve = control ? 1 : VERVE_LINK_RESERVE, has = link->produced - link->retired;

	uint32_t taken = has + xport->wr_used + xport->link_count + reserve;

	if (has >= VERVE_LINK_REQUESTS - reserve)
		return false;
	/* Far from the limit, the share need not be worked out. */
	return __builtin_expect(taken < xport->wr_limit / 4 * 3, 1) ||
	       verve_xport_wr_share(xport, has, reserve);
}

/* True if the link holds its share of the send CQ or of the slabs, so that it must wait. */
static inline bool verve_link_has_share(const struct verve_xport *xport,
					const struct verve_link *link)
{
	const struct verve_slab_pool *pool = &xport->tx_slabs;
	size_t slabs = pool->failures ? pool->count : pool->limit;
	uint32_t has = link->produced - link->retired;

	return has && (!verve_xport_wr_share(xport, has, VERVE_LINK_RESERVE) ||
		       link->slabs + verve_slab_spared(slabs, link->slabs) >= slabs - pool->used);
}

/* A slab within the link's share of the pool. NULL: there is none now. */
struct verve_slab *verve_link_slab_alloc(struct verve_xport *xport, const struct verve_link *link);
/*
 * Finds a place for a packet of at most len bytes: in link->copies, or in a slab, which is the
 * caller's until the packet is posted. Valid until the next packet is reserved. False: no slab is
 * free now.
 */
static inline bool verve_link_reserve(struct verve_xport *xport, struct verve_link *link,
				      size_t len, struct verve_outgoing *out)
{
	uint32_t at = link->copied & (VERVE_LINK_COPIES - 1);

	/* A packet lies in one piece: before the ring's end, or at its beginning. */
	out->copied = link->copied + (at + len > VERVE_LINK_COPIES ? VERVE_LINK_COPIES - at : 0);
	if (__builtin_expect(len <= link->inline_size &&
			     out->copied + len - link->copied_retired <= VERVE_LINK_COPIES, 1)) {
		/* Replay sends the packet again from here: the device keeps no copy of it. */
		out->data = (char *)&link->copies[out->copied & (VERVE_LINK_COPIES - 1)];
		out->slab = NULL;
		return true;
	}
	out->slab = verve_link_slab_alloc(xport, link);
	if (out->slab)
		out->data = out->slab->data;
	return out->slab;
}

/*
 * Posts a packet of len bytes on an unbroken link with room. The request owns the packet's slab
 * from here on, even after an error. op: its class's done is called when the request ended well;
 * NULL: none. ask: the request asks for a completion even without op. Negative FI errno: the packet
 * was not posted, and the link is broken (the peer's operations are doomed: do not touch them).
 */
int verve_link_post_packet(struct verve_xport *xport, struct verve_link *link,
			   const struct verve_outgoing *out, size_t len, bool ask,
			   struct verve_op *op);
/*
 * The same for an operation whose memory, in its regions, is the payload: out has the header of len
 * bytes, in a slab. The op's class's done is called when the peer's device has the packet; the
 * memory must not change before.
 */
int verve_link_post_headed(struct verve_xport *xport, struct verve_link *link,
			   const struct verve_outgoing *out, size_t len, struct verve_op *op);
/*
 * Posts a write of no bytes, which asks for a completion: its end shows that all requests before it
 * have ended. op and errors as in verve_link_post_packet.
 */
int verve_link_post_nothing(struct verve_xport *xport, struct verve_link *link,
			    struct verve_op *op);
/*
 * Posts any request. Counts no packet in link->sent. holds: its slot, which is copied. Errors as in
 * verve_link_post_packet.
 */
int verve_link_post_slot(struct verve_xport *xport, struct verve_link *link,
			 struct verve_net_wr *wr, const struct verve_slot *holds);
/*
 * Addresses a packet without payload and encodes it into a place for verve_link_post_packet, on an
 * unbroken link. Returns its bytes; 0: no slab is free now, and the packet's credits are owed.
 */
size_t verve_link_encode(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet, struct verve_outgoing *out);
/*
 * Addresses, encodes and posts a packet without payload, on an unbroken link with room. tell: the
 * operation whose done is called; NULL: none. False: no slab is free now, or the link broke.
 */
bool verve_link_send(struct verve_xport *xport, struct verve_link *link,
		     struct verve_wire_packet *packet, struct verve_op *tell);
/*
 * Sends the packet of an operation at the head of peer->control, if there is room, and frees the
 * operation, which ends with this packet.
 */
enum verve_outcome verve_link_answer(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op, struct verve_wire_packet *packet);
/*
 * Fills in the packet's destination, and the credits that this side owes: they are not owed then.
 */
static inline void verve_link_address(struct verve_link *link, struct verve_wire_packet *packet)
{
	uint32_t credits = link->owed < UINT16_MAX ? link->owed : UINT16_MAX;

	packet->dest = link->remote_id;
	packet->credits = credits;
	link->owed -= credits;
}

/*
 * Makes sure that a request that asks for a completion is outstanding: posts a write of no bytes,
 * if none is, there is room, and the peer has the connection. May break the link.
 */
void verve_link_ask(struct verve_xport *xport, struct verve_link *link);

#endif
