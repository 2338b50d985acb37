/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parts of an offer: a sender that registers its memory in stages (xport/staged.h) offers the first
 * one by RTS, whose segments are shorter than the message, and each further one by a PART, at once
 * when it is registered. So the receiver reads while the sender registers, and needs nothing more
 * of the sender's processor. A PART with an error says that no more will come: after a shortage
 * (FI_ENOMEM, FI_EAGAIN) the message is pulled, after any other error it fails.
 *
 * A PART may come before the message has a receive. So the link keeps what came (struct
 * verve_link_parts) until the receive takes it. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_PARTS_H
#define VERVE_MSG_PARTS_H

#include <stdint.h>

#include "xport/op.h"
#include "xport/transfer.h"

struct verve_recv_op;
struct verve_send_op;
struct verve_wire_packet;

/* Bytes at the transfer's end that its segments do not reach. Without segments 0: it is pulled. */
uint64_t verve_parts_unoffered(const struct verve_transfer *transfer);
/* Receiver: RTS has arrived. If it does not offer all of its message, PARTs will come. */
void verve_parts_expect(struct verve_link *link, const struct verve_wire_packet *rts);
/*
 * Receiver, for a receive in state QUEUED: takes what has come. If more is to come, and the receive
 * is in state AWAIT then, verve_parts_arrived queues it again. 0; -FI_EAGAIN: no memory now; or the
 * error of the peer.
 */
int verve_parts_take(struct verve_xport *xport, struct verve_link *link,
		     struct verve_recv_op *recv);
/* Receiver: PART has arrived. */
void verve_parts_arrived(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet);

/*
 * Sender, for a send in state AWAIT whose first stage was offered, within a kick of its peer: the
 * kick goes on with registering and offering the others, as far as there is room, and a later one
 * with the rest. VERVE_BROKE: there is no memory for that, and the link broke.
 */
enum verve_outcome verve_parts_offer(struct verve_xport *xport, struct verve_link *link,
				     struct verve_send_op *send);
/*
 * Sender: the peer pulls the message. The send offers no further stage, and the stages that it has
 * offered lose their registrations, so that the peer cannot read them any more.
 */
void verve_parts_end(struct verve_xport *xport, struct verve_send_op *send);

#endif
