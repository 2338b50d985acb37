/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send: the operation of a message that could not leave at once, or that waits for its end. */
#ifndef VERVE_MSG_SEND_OP_H
#define VERVE_MSG_SEND_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/memory.h"
#include "xport/op.h"

/* Zeroed up to memory's lists. */
struct verve_send_op {
	struct verve_op op;
	uint64_t tag, data;
	uint64_t pulled; /* bytes of the message that the peer has pulled, from its beginning */
	struct verve_op *chunk; /* carries what the peer pulls of it next; NULL: the peer asked for nothing */
	bool offered;	 /* the peer was sent an RTS of it, and may pull it */
	struct verve_memory memory;
};

static inline struct verve_send_op *verve_send_op_of(struct verve_op *op)
{
	return (struct verve_send_op *) op;
}

/* An operation of ours that a peer names is a send. */
static inline bool verve_op_is_send(const struct verve_op *op)
{
	return op->cls->is_message && !op->cls->is_receive;
}

#endif
