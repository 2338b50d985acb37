/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Post: what a link's queue pair is given: room for it, and the place from which it can be posted again, on
 * another queue pair, until it retires. The engine's lock protects everything here.
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
	char *data;		 /* its first byte */
	struct verve_slab *slab; /* in which it lies; NULL: among the link's copies, to go inline */
};

/* Entries of the send CQ that are left, but for the last few. */
static inline uint32_t verve_xport_wr_left(const struct verve_xport *xport, uint32_t reserve)
{
	uint32_t taken = xport->wr_used + xport->link_count + reserve;

	return taken < xport->wr_limit ? xport->wr_limit - taken : 0;
}

/*
 * Room for one more request. The last few are for control messages; the very last of each link, in its
 * queue and in the send CQ, for the marker that follows a break. No link has more entries of the send CQ
 * than are left to others: peers that take nothing, and so give none back, stop nobody else.
 */
static inline bool verve_link_has_room(const struct verve_xport *xport, const struct verve_link *link,
				       bool control)
{
	uint32_t reserve = control ? 1 : VERVE_LINK_RESERVE, has = link->produced - link->retired;

	return has < VERVE_LINK_REQUESTS - reserve && has < verve_xport_wr_left(xport, reserve);
}

/* It has its share of the send CQ, or of the slabs. */
static inline bool verve_link_has_share(const struct verve_xport *xport, const struct verve_link *link)
{
	const struct verve_slab_pool *pool = &xport->tx_slabs;
	size_t slabs = (pool->failures ? pool->count : pool->limit) - pool->used;
	uint32_t has = link->produced - link->retired;

	return has && (has >= verve_xport_wr_left(xport, VERVE_LINK_RESERVE) ||
		       link->slabs >= slabs);
}

/* Bytes of a packet that may be posted inline, because a copy of them can be kept. */
static inline uint32_t verve_link_inline_room(const struct verve_link *link)
{
	uint32_t room = VERVE_LINK_COPIES - (uint32_t) (link->copied - link->copied_retired);
	uint32_t end = VERVE_LINK_COPIES - (uint32_t) (link->copied & (VERVE_LINK_COPIES - 1));

	/* In one piece: here or, without the rest, at the beginning. */
	if (room > end)
		room = room - end > end ? room - end : end;
	return room < link->inline_size ? room : link->inline_size;
}

/* Within the link's share. NULL: there is none now. */
struct verve_slab *verve_link_slab_alloc(struct verve_xport *xport, const struct verve_link *link);
/* A place for a packet of at most len bytes, until the next one is posted. False: there is no slab now. */
bool verve_link_reserve(struct verve_xport *xport, struct verve_link *link, size_t len,
			struct verve_outgoing *out);
/*
 * Posts a packet of len bytes on an unbroken link with room; its slab is the request's from here on. op, if not
 * NULL, hears of its end. ask: that end must be heard of in any case. A negative error: it was not posted, and
 * the link is broken (the peer's operations are doomed: do not touch them).
 */
int verve_link_post_packet(struct verve_xport *xport, struct verve_link *link,
			   const struct verve_outgoing *out, size_t len, bool ask,
			   struct verve_op *op);
/* The same for a write of nothing, whose end tells that all before it has ended. */
int verve_link_post_nothing(struct verve_xport *xport, struct verve_link *link, struct verve_op *op);
/* The same for any request, which is no packet that the peer counts. holds: what it would be posted again from. */
int verve_link_post_slot(struct verve_xport *xport, struct verve_link *link, struct verve_net_wr *wr,
			 const struct verve_slot *holds);
/*
 * Posts a packet without payload; there is room. tell, if not NULL, hears of its end. False: no slab now, or
 * the link broke.
 */
bool verve_link_send(struct verve_xport *xport, struct verve_link *link,
		     struct verve_wire_packet *packet, struct verve_op *tell);
/* The same for an operation at the head of peer->control that ends with this packet: frees it when it was posted. */
enum verve_outcome verve_link_answer(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op, struct verve_wire_packet *packet);
/* Fills in destination and the credits that we owe. */
void verve_link_address(struct verve_link *link, struct verve_wire_packet *packet);

/* A request that asks for its completion is outstanding, if there is room: a write of no bytes, if need be. */
void verve_link_ask(struct verve_xport *xport, struct verve_link *link);

#endif
