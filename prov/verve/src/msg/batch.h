/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Batch: small messages that wait for the same peer leave in one packet. A device takes about as
 * long for a packet of one small message as for one of fifty. So while many requests of the link
 * are outstanding, small messages wait for the next completion, and then leave together. As long as
 * few are outstanding, no message waits for another. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_BATCH_H
#define VERVE_MSG_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "msg/direct.h"
#include "msg/send_op.h"
#include "xport/link.h"
#include "xport/op.h"
#include "xport/xport.h"

struct verve_wire_packet;

enum { VERVE_BATCH_MESSAGE = 256 }; /* bytes of a message that may share its packet, at most */

/*
 * True if a message of this length, with these flags (VERVE_OP_*), waits for the next completion of
 * the link, which is open.
 */
static inline bool verve_batch_waits(const struct verve_link *link, size_t len, uint32_t flags)
{
	return link->batches && verve_link_is_busy(link) && len <= VERVE_BATCH_MESSAGE &&
	       !(flags & VERVE_SEND_ALONE);
}

/*
 * Posts the message at the head of peer->pending and those behind it in one packet, as many as
 * credits and the packet's size allow, and ends them. The link has room. VERVE_LATER: nothing is
 * posted, because fewer than two messages can share a packet, or no slab is free. VERVE_BROKE: the
 * link broke, and has the messages.
 */
enum verve_outcome verve_batch_post(struct verve_xport *xport, struct verve_link *link);

/* BATCH has arrived: handles each of its messages. May break the link. */
void verve_batch_arrived(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet);

#endif
