/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pulling: rendezvous of copies, which no peer may read, and where either side has no memory left that it may
 * register (RLIMIT_MEMLOCK, the device's limits). The receiver asks for a few chunks after the other; each goes
 * through a buffer of the sender's and one of the receiver's, as a short message does. Slow if the message is long,
 * and always possible. A copy that fits into one packet leaves from where it lies.
 */
#ifndef VERVE_MSG_PULL_H
#define VERVE_MSG_PULL_H

#include "xport/op.h"

struct verve_recv_op;
struct verve_wire_packet;

/* Receiver, QUEUED: asks for the next chunks. */
enum verve_outcome verve_pull_start(struct verve_xport *xport, struct verve_link *link,
				     struct verve_recv_op *recv);
/* Sender: PULL. */
void verve_pull_asked(struct verve_xport *xport, struct verve_link *link, struct verve_wire_packet *packet);
/* Receiver: CHUNK. */
void verve_pull_arrived(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet);

#endif
