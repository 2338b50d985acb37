/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What reads, writes and atomics by the device have in common: their keys must be known, then come
 * one or more work requests, and perhaps a packet behind these. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_RMA_RMA_OP_H
#define VERVE_RMA_RMA_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "net/qp.h"
#include "xport/memory.h"
#include "xport/op.h"
#include "xport/transfer.h"

/* Zeroed up to memory's lists. */
struct verve_rma_op {
	struct verve_op op;
	uint64_t data; /* remote CQ data */
	bool posted;   /* all of the transfer is on the wire */
	struct verve_memory memory;
	struct verve_transfer transfer;
};

static inline struct verve_rma_op *verve_rma_op_of(struct verve_op *op)
{
	return (struct verve_rma_op *) op;
}

/* How one kind is posted. */
struct verve_rma_way {
	/*
	 * Makes the local memory ready. -FI_EAGAIN: try later; other errors: the operation fails,
	 * for
	 * *reason, a constant string.
	 */
	int (*prepare)(struct verve_xport *xport, struct verve_link *link, struct verve_rma_op *rma,
		       const char **reason);
	enum verve_net_wr_op (*verb)(const struct verve_rma_op *rma);
	bool notifies; /* a packet behind the request tells the target */
};

/* Takes what the request says; no memory is registered yet. */
void verve_rma_op_fill(struct verve_rma_op *rma, const struct verve_request *request);
/* For a class's start. */
enum verve_outcome verve_rma_op_start(struct verve_xport *xport, struct verve_link *link,
				       struct verve_rma_op *rma, const struct verve_rma_way *way);
/* For a class's cancel. What is posted ends as usual; the rest is not posted. 0. */
int verve_rma_op_cancel(struct verve_xport *xport, struct verve_op *op);

#endif
