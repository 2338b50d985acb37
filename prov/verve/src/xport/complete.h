/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions of the send CQ: retires the requests that have ended, and suspends or breaks the link
 * of a request that failed. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_COMPLETE_H
#define VERVE_XPORT_COMPLETE_H

#include <stdbool.h>

struct verve_net_wc;
struct verve_xport;

/* Handles a completion of the send CQ. A completion of a retired request counts as stale. */
void verve_complete(struct verve_xport *xport, const struct verve_net_wc *wc);
/* Polls the send CQ, and handles one batch of completions. False: there was none. */
bool verve_complete_poll(struct verve_xport *xport);
/* Handles all completions that are in the send CQ now. */
void verve_complete_poll_all(struct verve_xport *xport);
/*
 * Handles the packets that have arrived, then ends the broken links that the device has let go of.
 * If a packet is stalled (xport/dispatch.h), no link ends in this turn. Not from inside other work
 * on links.
 */
void verve_complete_broken(struct verve_xport *xport);

#endif
