/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Events of the connection manager, in order with the packets: packets that arrived before a DOWN
 * are handled before it, and a packet waits for the UP of its connection. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_XPORT_CM_EVENTS_H
#define VERVE_XPORT_CM_EVENTS_H

#include <stdbool.h>

#include "xport/dispatch.h"

/* Handles all events of the manager that have come. True if there was any. */
bool verve_cm_events_step(struct verve_xport *xport);
/*
 * Handles some of the packets that have arrived, and the events that these wait for. True if there
 * was any packet. While the completion queue is flooded, no packet is taken.
 */
static inline bool verve_cm_events_receive(struct verve_xport *xport)
{
	enum verve_dispatch_result result;

	/* More packets may mean more completions, while the application reads none. */
	if (__builtin_expect(verve_dispatch_is_flooded(xport), 0))
		return false;
	while ((result = verve_dispatch_poll(xport)) == VERVE_DISPATCH_STALLED)
		verve_cm_events_step(xport);
	return result == VERVE_DISPATCH_SOME;
}
/*
 * Handles all packets that have arrived by now, flooded or not, and the events that the packets
 * wait for: xport->rx_count packets at most after each event, however many more arrive meanwhile.
 * An event may break any link, or give a peer another link.
 */
void verve_cm_events_drain(struct verve_xport *xport);

#endif
