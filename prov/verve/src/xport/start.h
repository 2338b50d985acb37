/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Starting: moves operations from the queues of their peer to the wire. Operations of one queue
 * start in order. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_START_H
#define VERVE_XPORT_START_H

struct verve_op;
struct verve_peer;
struct verve_xport;

/*
 * Puts the operation at the end of peer->pending, or of peer->reads, and kicks the peer if that
 * queue was empty. The operation may have ended, and be freed, when this function returns.
 */
void verve_peer_queue(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op);
/*
 * Puts an operation that owes the peer a packet at the end of peer->control, and kicks the peer.
 * The operation may be freed when this function returns.
 */
void verve_peer_queue_control(struct verve_xport *xport, struct verve_peer *peer,
			      struct verve_op *op);
/*
 * Starts the operations that room, credits and the connection allow: control, reads, aside,
 * pending, each in order. May break the link. Without a link, asks for one (verve_peer_connect). On
 * a link that is suspended, or has asked to quiesce, no operation starts; replay or quiescing kicks
 * the peer when the link goes on. While the refusal of a QUIESCE is due, the peer waits for a later
 * turn. Within a kick of the same peer it returns at once: the outer one looks again, before it
 * starts the next operation.
 */
void verve_peer_kick(struct verve_xport *xport, struct verve_peer *peer);

#endif
