/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Owed: what the two sides of a link owe each other, beside the operations in the peer's queues. A
 * protocol that asks its peer a question names it here: keep-alive and quiescing look nowhere else.
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_OWED_H
#define VERVE_XPORT_OWED_H

#include <stdbool.h>

#include "xport/link.h"
#include "xport/peer.h"

/* True if a request is outstanding that asked for its completion. */
static inline bool verve_link_has_asked(const struct verve_link *link)
{
	return link->signaled - link->retired < link->produced - link->retired;
}

/* True if the peer owes an answer: to a key query, a fence, QUIESCE or RESUME. */
static inline bool verve_link_awaits(const struct verve_link *link)
{
	return link->keys.asked || link->peer->fence.asks ||
	       link->quiesce.state != VERVE_QUIESCE_OPEN || link->replay;
}

/*
 * True if this side owes the peer: a credit, or a part of one for a message that waits, the answer
 * to a key query or a fence, or the refusal of a QUIESCE. Small messages that wait do not count
 * before they hold a whole credit back: else each program that leaves one unreceived would keep its
 * link.
 */
static inline bool verve_link_owes(const struct verve_link *link)
{
	return link->held || link->long_kept || link->keys.answers || link->peer->fence.owes ||
	       link->quiesce.refuse;
}

#endif
