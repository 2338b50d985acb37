/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FIN: the packet that tells a waiting sender whether its message was received. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_MSG_FIN_H
#define VERVE_MSG_FIN_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/op.h"
#include "xport/wire.h"

struct verve_peer;

/* The content of a FIN. */
struct verve_fin {
	uint32_t id;	 /* the sender's operation; 0: the sender wants no FIN */
	uint32_t status; /* positive FI errno; 0: the message was received */
};

/* The sender of this message waits for a FIN. */
static inline bool verve_fin_is_wanted(const struct verve_wire_packet *message)
{
	return message->type == VERVE_WIRE_RTS || message->flags & VERVE_WIRE_ACK;
}

/*
 * The operation that sends a FIN for a message that no receive took. The caller gives the operation
 * to verve_peer_queue_control, or frees it. NULL: no memory.
 */
struct verve_op *verve_fin_alloc(struct verve_xport *xport, struct verve_peer *peer,
				 struct verve_fin fin);
/* Sends a FIN for op, the head of peer->control, and frees op when the FIN is posted. */
enum verve_outcome verve_fin_send(struct verve_xport *xport, struct verve_link *link,
				   struct verve_op *op, struct verve_fin fin);

#endif
