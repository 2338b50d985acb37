/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiescing: above attr.max_conns connections, idle ones are closed in agreement with their peers, so
 * that others can have their place. Nothing is lost: a connection ends when both sides have said that they
 * owe each other nothing, and know that they have heard everything.
 *
 *   OPEN    requests may be posted
 *   ASKED   we have asked (QUIESCE) and post no more until the peer answers; what comes waits
 *   AGREED  both are done: ends when the last request is acknowledged; what waits gets a new connection
 *
 * A question carries how many packets have arrived from the peer. Who is asked agrees if it is idle and has
 * sent no more than that. Questions that cross answer each other: both sides know both numbers, so both
 * come to the same result without another word. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_QUIESCE_H
#define VERVE_XPORT_QUIESCE_H

struct verve_link;
struct verve_wire_packet;
struct verve_xport;

/* There are too many connections, or a peer wants a place: asks idle peers for theirs. */
void verve_quiesce_step(struct verve_xport *xport);
/* A QUIESCE packet has arrived. */
void verve_quiesce_receive(struct verve_xport *xport, struct verve_link *link,
			   struct verve_wire_packet *packet);
/* Sends the refusal that is due, if there is one and there is room; else in a later turn. */
void verve_quiesce_continue(struct verve_xport *xport, struct verve_link *link);
/* Requests of the link have retired, or its state has changed: ends it if it is time. */
void verve_quiesce_end(struct verve_xport *xport, struct verve_link *link);
/* The manager says that the connection is over: if we have asked, that is the answer. */
void verve_quiesce_down(struct verve_link *link);

#endif
