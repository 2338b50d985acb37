/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions of the send queue: which requests they end, and what a failed request means for its
 * link. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_COMPLETE_H
#define VERVE_XPORT_COMPLETE_H

#include <stdbool.h>

struct verve_net_wc;
struct verve_xport;

/* A completion of the send queue. */
void verve_complete(struct verve_xport *xport, const struct verve_net_wc *wc);
/* Handles one batch of completions that wait. False: there was none. */
bool verve_complete_poll(struct verve_xport *xport);
/* Handles all completions that wait now. */
void verve_complete_poll_all(struct verve_xport *xport);
/*
 * Takes the packets that have arrived, then ends the broken links that the device has let go of. If
 * a packet is stalled (xport/dispatch.h), nothing ends in this turn. Not from inside other work on
 * links.
 */
void verve_complete_broken(struct verve_xport *xport);

#endif
