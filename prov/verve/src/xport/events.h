/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Events of the connection manager, and the packets that come with them: an event may have to wait for the packets that
 * arrived before it, and a packet for the event that names its connection. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_EVENTS_H
#define VERVE_XPORT_EVENTS_H

#include <stdbool.h>

struct verve_xport;

/* Handles all events of the manager that wait. True if there was any. */
bool verve_events_step(struct verve_xport *xport);
/* The completion queue holds VERVE_COMP_UNINVITED completions of peers' writes that did not fit into its ring. */
bool verve_events_is_flooded(const struct verve_xport *xport);
/*
 * Handles one batch of arrived packets, and the events that they wait for. True: there was any packet. None is taken
 * while the completion queue is flooded.
 */
bool verve_events_receive(struct verve_xport *xport);
/*
 * Handles all packets that have arrived by now, flooded or not, and the events that they wait for: attr.rx_buffers packets
 * in a row at most, however many more come meanwhile.
 */
void verve_events_drain(struct verve_xport *xport);

#endif
