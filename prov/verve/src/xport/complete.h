/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions of the send CQ: retires the requests that have ended, and suspends or breaks the link
 * of a request that failed. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_COMPLETE_H
#define VERVE_XPORT_COMPLETE_H

#include <stdbool.h>

#include "xport/xport.h"

struct verve_net_wc;

/* While nothing asks for a completion, one turn in so many polls. */
enum { VERVE_COMPLETE_IDLE_TURNS = 4 };

/* Handles a completion of the send CQ. A completion of a retired request counts as stale. */
void verve_complete(struct verve_xport *xport, const struct verve_net_wc *wc);
/* Polls the send CQ, and handles one batch of completions. False: there was none. */
bool verve_complete_poll(struct verve_xport *xport);
/*
 * For each turn: polls if requests ask for their completions, or operations of the
 * application are under way (tx_used). A request that does not ask has a completion only if it
 * fails, and a poll alone shows that the queue is lost: so one turn in VERVE_COMPLETE_IDLE_TURNS
 * polls in any case, and so does the turn after verve_turn_expect. False: there was no completion.
 */
static inline bool verve_complete_step(struct verve_xport *xport)
{
	if (!xport->asked && !xport->tx_used && ++xport->unpolled < VERVE_COMPLETE_IDLE_TURNS)
		return false;
	return verve_complete_poll(xport);
}
/* Handles all completions that are in the send CQ now. */
void verve_complete_poll_all(struct verve_xport *xport);
/*
 * Handles the packets that have arrived, then ends the broken links that the device has let go of.
 * If a packet is stalled (xport/dispatch.h), no link ends in this turn. Not from inside other work
 * on links.
 */
void verve_complete_broken(struct verve_xport *xport);

#endif
