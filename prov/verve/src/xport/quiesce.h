/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiescing: where more places are taken than there are (xport/places.h), idle links are closed in
 * agreement with their peers, so that others can have these places. No message is lost: a link
 * ends when both sides have said that they owe each other nothing, and know that every packet has
 * arrived.
 *
 *   OPEN    requests may be posted
 *   ASKED   this side has sent QUIESCE and posts no more until the peer answers; new operations
 *           wait in the peer's queues
 *   AGREED  both sides agree: the link ends when its last request is acknowledged; operations that
 *           wait get a new connection
 *
 * The QUIESCE that asks carries the number of packets that the asking side has received. The other
 * side agrees if it is idle and has sent no more packets than that. If both sides ask at the same
 * time, each question answers the other: both sides know both numbers and come to the same
 * decision. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_QUIESCE_H
#define VERVE_XPORT_QUIESCE_H

struct verve_link;
struct verve_wire_packet;
struct verve_xport;

/*
 * Gives free places to the peers that wait for one (verve_places_step), then asks idle peers to
 * close as many links as are too many. Called while verve_places_is_due; does nothing while the
 * endpoint closes.
 */
void verve_quiesce_step(struct verve_xport *xport);
/* A QUIESCE packet has arrived. */
void verve_quiesce_receive(struct verve_xport *xport, struct verve_link *link,
			   struct verve_wire_packet *packet);
/* Sends a refusal that is due. Without room, the peer waits for a later turn. */
void verve_quiesce_continue(struct verve_xport *xport, struct verve_link *link);
/* Breaks a link that is AGREED and has no request outstanding. Harmless on any other link. */
void verve_quiesce_end(struct verve_xport *xport, struct verve_link *link);
/* The manager has ended the connection: a link that is ASKED counts this as the peer's consent. */
void verve_quiesce_down(struct verve_link *link);

#endif
