/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * op: operations that may fail because their peer is gone, and the end of each, which comes once.
 * For nodes with one queue, whose completions are all of such operations.
 */
#ifndef FABTESTS_OP_H
#define FABTESTS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/comp.h"
#include "common/node.h"
#include "common/rma.h"
#include "common/xfer.h"

/* Contexts point to these. All zero: not begun. */
struct op {
	bool done;
	int err; /* positive FI errno; 0 for success */
	struct xfer xfer;
	uint64_t before; /* an addition's result */
};

/*
 * Each begins an operation. A message has a buffer of its own, filled from its length; op_free
 * frees it.
 */
void op_recv(struct node *node, struct op *op, size_t len, bool tagged);
/* With FI_DELIVERY_COMPLETE. */
void op_send(struct node *node, struct op *op, size_t len, bool tagged, fi_addr_t to);
/* All of the local region, to the peer's key and offset. */
void op_write(struct node *node, struct op *op, const struct region *from, uint64_t key,
	      uint64_t offset);
/* Adds 1 to the first word of the region that the peer's key opens. */
void op_add(struct node *node, struct op *op, uint64_t key);
/* For a message: checks the guard. Does nothing without a buffer. */
void op_free(struct op *op);

/* Waits until one has ended, any; -v prints the errors. */
void op_take(struct node *node);
void op_await(struct node *node, const struct op *op);
/* Waits for a message that must succeed, checks each byte, frees it. */
void op_finish(struct node *node, struct op *op);

/* A tagged message to the peer, and one from there; both halves call it. */
void op_hello(struct node *node);
/* A tagged message between two nodes of this process. */
void op_talk(struct node *from, struct node *to, fi_addr_t addr, size_t len);

/* True if err is one that tells an application that its peer is gone. */
bool op_is_departure(int err);

#endif
