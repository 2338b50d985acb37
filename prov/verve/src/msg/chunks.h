/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pulling: rendezvous without RDMA. A message is pulled if the sender has copied it into a slab,
 * because no peer may read slabs. A message is also pulled if the sender or the receiver cannot
 * register its memory, or the last part of it (RLIMIT_MEMLOCK, limits of the device). The receiver
 * asks for a few chunks (PULL), then for the next few. Each chunk (CHUNK) goes through a buffer of
 * the sender and a buffer of the receiver, as a short message does. Pulling is slow for long
 * messages, but it always works. A copy that fits into one packet is sent from its slab. The
 * engine's lock protects everything here.
 */
#ifndef VERVE_MSG_CHUNKS_H
#define VERVE_MSG_CHUNKS_H

#include "xport/op.h"

struct verve_recv_op;
struct verve_wire_packet;

/* Receiver, for a receive in state QUEUED: asks for the next chunks. */
enum verve_outcome verve_chunks_start(struct verve_xport *xport, struct verve_link *link,
				      struct verve_recv_op *recv);
/* Sender: PULL has arrived. */
void verve_chunks_asked(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet);
/* Receiver: CHUNK has arrived. */
void verve_chunks_arrived(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);

#endif
