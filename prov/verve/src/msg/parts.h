/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parts of an offer: a sender that registers its memory in stages (xport/staged.h) offers the first
 * piece by RTS. For each of the others the receiver asks (MORE), while it still reads the piece
 * before, and the sender answers with the next segment (PART); or without, if it cannot register
 * more: then the message is pulled. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_PARTS_H
#define VERVE_MSG_PARTS_H

#include <stdint.h>

#include "xport/op.h"
#include "xport/transfer.h"

struct verve_recv_op;
struct verve_wire_packet;

/* Bytes at the transfer's end that its segments do not reach. */
uint64_t verve_parts_closed(const struct verve_transfer *transfer);
/*
 * Receiver, for a receive in state QUEUED: asks for the next part, unless it has asked, or all of
 * the message is open. VERVE_DONE: it needs not, or has asked; the receive stays QUEUED.
 */
enum verve_outcome verve_parts_ask(struct verve_xport *xport, struct verve_link *link,
				   struct verve_recv_op *recv);
/* Receiver: PART has arrived. */
void verve_parts_arrived(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet);
/* Sender: MORE has arrived. */
void verve_parts_asked(struct verve_xport *xport, struct verve_link *link,
		       struct verve_wire_packet *packet);

#endif
