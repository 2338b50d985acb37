/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pulling: rendezvous of copies, which nobody may read, and where either side has no memory left that it may
 * register (RLIMIT_MEMLOCK, the device's limits). The receiver asks for a few chunks after the other; each goes
 * through a buffer of the sender's and one of the receiver's, as a short message does. Slow if the message is long,
 * and always possible. A copy that fits into one packet leaves from where it lies.
 */
#ifndef VERVE_PROTO_PULL_H
#define VERVE_PROTO_PULL_H

#include <stdbool.h>

struct verve_link;
struct verve_op;
struct verve_wire_packet;
struct verve_xport;

/* Receiver, for verve_peer_kick: asks for the next chunks. False: later. */
bool verve_pull_start(struct verve_xport *xport, struct verve_link *link, struct verve_op *op);
/* Sender: PULL. */
void verve_pull_asked(struct verve_xport *xport, struct verve_link *link, struct verve_wire_packet *packet);
/* Sender, for verve_peer_kick: a chunk goes. False: later, or the link broke. */
bool verve_pull_send(struct verve_xport *xport, struct verve_link *link, struct verve_op *op);
/* Receiver: CHUNK. */
void verve_pull_arrived(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet);

#endif
