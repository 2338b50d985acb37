/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Starting: the queues of a peer, and what leaves them. Operations of one queue start in order. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_XPORT_START_H
#define VERVE_XPORT_START_H

struct verve_op;
struct verve_peer;
struct verve_xport;

/* Puts an operation at the end of pending, or reads, and starts what can be started; connects if need be. */
void verve_peer_queue(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op);
/* Puts an operation that is to end with a packet to the peer (peer->control) there and sends what can be sent. */
void verve_peer_queue_control(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op);
/*
 * Starts what room, credits and the connection allow: control, then reads, then pending, each in order. A link that is
 * suspended, or owes its peer the refusal of a QUIESCE, waits for a later turn.
 */
void verve_peer_kick(struct verve_xport *xport, struct verve_peer *peer);

#endif
