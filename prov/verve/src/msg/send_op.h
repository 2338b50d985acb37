/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send: the operation of a message that cannot leave at once, or whose completion waits for the
 * peer or its device. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_SEND_OP_H
#define VERVE_MSG_SEND_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/memory.h"
#include "xport/op.h"
#include "xport/packet.h"
#include "xport/xport.h"

/* A message with one of these flags has an operation and a packet of its own. */
enum { VERVE_SEND_ALONE = VERVE_OP_ACK | VERVE_OP_TRANSMIT | VERVE_OP_FENCE };

/* The fields before memory.iov are zeroed (verve_send_class.cleared). */
struct verve_send_op {
	struct verve_op op;
	uint64_t tag, data; /* data: remote CQ data, if op.flags has VERVE_OP_DATA */
	uint64_t pulled; /* bytes that were sent in chunks, from the beginning of the message */
	struct verve_op *chunk; /* the answer to the peer's PULL; NULL: no PULL is to be answered */
	struct verve_op *parts; /* offers the rest of the message (msg/parts.h); NULL: none does */
	bool offered;	 /* the peer has the message's RTS, and may pull the message */
	struct verve_memory memory;
};

static inline struct verve_send_op *verve_send_op_of(struct verve_op *op)
{
	return (struct verve_send_op *)op;
}

/* VERVE_WIRE_* of a message's packet, from VERVE_OP_*. */
static inline uint8_t verve_send_wire_flags(uint32_t flags)
{
	return (flags & VERVE_OP_TAGGED ? VERVE_WIRE_TAGGED : 0) |
	       (flags & VERVE_OP_DATA ? VERVE_WIRE_DATA : 0) |
	       (flags & VERVE_OP_ACK ? VERVE_WIRE_ACK : 0);
}

/*
 * Fills in what an EAGER packet has, but its link's part (verve_link_address). The other fields
 * stay undefined: to zero a packet takes as long as all the rest.
 */
static inline void verve_send_describe(struct verve_wire_packet *packet, uint32_t flags,
				       uint64_t tag, uint64_t data)
{
	packet->flags = verve_send_wire_flags(flags);
	packet->tag = tag;
	packet->data = data;
	packet->op_id = 0;
}

/* A peer's packet may name any operation by its id: whether the operation is a send. */
static inline bool verve_op_is_send(const struct verve_op *op)
{
	return op->cls->is_message && !op->cls->is_receive;
}

/* The send of this id. NULL: it has ended, as the receiver has sent FIN. */
static inline struct verve_send_op *verve_send_op_find(const struct verve_xport *xport, uint32_t id)
{
	struct verve_op *op = verve_idtab_get(&xport->op_ids, id);

	return op && verve_op_is_send(op) ? verve_send_op_of(op) : NULL;
}

#endif
