/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The question of a fence (xport/fence.h), and its answer. The engine's lock protects everything
 * here.
 */
#ifndef VERVE_XPORT_FENCE_ASK_H
#define VERVE_XPORT_FENCE_ASK_H

#include <stdbool.h>

#include "xport/fence.h"

struct verve_link;
struct verve_peer;
struct verve_wire_packet;
struct verve_xport;

/* For verve_fence_holds alone. */
bool verve_fence_is_passed(struct verve_xport *xport, struct verve_link *link,
			   const struct verve_op *op);

/*
 * op: at the head of peer->pending. True: the operation may not start yet, because it speaks for
 * messages before it, and the peer is not known to have handled or matched them. The peer was
 * asked. Call again when a packet has come, or there is room; or link->broken.
 */
static inline bool verve_fence_holds(struct verve_xport *xport, struct verve_link *link,
				     const struct verve_op *op)
{
	return verve_fence_speaks(op) && !verve_fence_is_passed(xport, link, op);
}

/* FENCE and FENCED have arrived. */
void verve_fence_asked(struct verve_xport *xport, struct verve_link *link,
		       struct verve_wire_packet *packet);
void verve_fence_answered(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);
/*
 * Answers the peer if an answer is owed and true by now. Without room, the peer waits for a later
 * turn. May break the link.
 */
void verve_fence_continue(struct verve_xport *xport, struct verve_peer *peer);

#endif
