/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Events of the connection manager, in order with the packets: an event may have to wait for
 * packets that arrived before it, and a packet for the event that names its connection. The
 * engine's lock protects everything here.
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
 * Handles one batch of arrived packets, and the events that the packets wait for. True: there was
 * any packet. While the completion queue is flooded, no packet is taken.
 */
bool verve_events_receive(struct verve_xport *xport);
/*
 * Handles all packets that have arrived by now, flooded or not, and the events that the packets
 * wait for. At most attr.rx_buffers packets in a row, however many more come meanwhile. Handling an
 * event may change any link: look again afterwards.
 */
void verve_events_drain(struct verve_xport *xport);

#endif
