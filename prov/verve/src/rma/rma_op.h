/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The common part of reads, writes and atomics by the device: look the keys up, post one or more
 * work requests, and post a packet behind them if the target is to hear of the operation. The
 * engine's lock protects everything here.
 */
#ifndef VERVE_RMA_RMA_OP_H
#define VERVE_RMA_RMA_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "net/qp.h"
#include "xport/memory.h"
#include "xport/op.h"
#include "xport/transfer.h"

/* The fields before memory.iov are zeroed (cleared of each class). */
struct verve_rma_op {
	struct verve_op op;
	uint64_t data; /* remote CQ data, if op.flags has VERVE_OP_DATA */
	bool posted;   /* the whole transfer is posted; only the packet behind it may be missing */
	struct verve_memory memory;
	struct verve_transfer transfer;
};

static inline struct verve_rma_op *verve_rma_op_of(struct verve_op *op)
{
	return (struct verve_rma_op *)op;
}

/* How one kind of operation is posted. */
struct verve_rma_way {
	/*
	 * Makes the local memory ready. -FI_EAGAIN: the caller tries again later. Other errors: the
	 * operation fails; *reason, a constant string, says why.
	 */
	int (*prepare)(struct verve_xport *xport, struct verve_link *link, struct verve_rma_op *rma,
		       const char **reason);
	enum verve_net_wr_op (*verb)(const struct verve_rma_op *rma);
	/*
	 * The packet for the target (remote CQ data, RMA_EVENT) follows the last work request at
	 * once. False: the class's answer sends it when the operation has completed.
	 */
	bool notifies;
};

/* Fills the operation in from the request. Registers no memory. */
void verve_rma_op_fill(struct verve_rma_op *rma, const struct verve_request *request);
/* The start function of such a class calls this. */
enum verve_outcome verve_rma_op_start(struct verve_xport *xport, struct verve_link *link,
				       struct verve_rma_op *rma, const struct verve_rma_way *way);
/*
 * The cancel function of such a class. Posts no more of the transfer; work requests that are posted
 * complete first. Always returns 0.
 */
int verve_rma_op_cancel(struct verve_xport *xport, struct verve_op *op);

#endif
