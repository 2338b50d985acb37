/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfer: moves bytes between an operation's memory and the peer's by RDMA, split at the segments of
 * either side and at the device's longest request; resumes where room ran out.
 *
 * Every operation whose class has a transfer has a memory, too. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_TRANSFER_H
#define VERVE_XPORT_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/qp.h"
#include "xport/op.h"
#include "xport/wire.h"

struct verve_link;
struct verve_slot;
struct verve_xport;

/* Which way bytes go through a slab. */
enum verve_transfer_way { VERVE_TRANSFER_NONE, VERVE_TRANSFER_OUT, VERVE_TRANSFER_IN };

/* What is on the peer's side; verve_transfer_init makes it a transfer of nothing. */
struct verve_transfer {
	uint64_t len;	 /* bytes to move */
	uint64_t offset; /* bytes posted */
	uint64_t base;	 /* where in it the operation's slab begins, which holds what fits */
	uint64_t compare_add, swap; /* operands of an atomic of the device */
	uint32_t remote_count;
	uint8_t way;	 /* enum verve_transfer_way */
	bool rkeys;	 /* the segments' keys are rkeys, whatever the peer's application chose */
	struct verve_wire_segment remote[VERVE_WIRE_SEGMENTS]; /* as far as remote_count says */
};

static inline void verve_transfer_init(struct verve_transfer *transfer)
{
	memset(transfer, 0, offsetof(struct verve_transfer, remote));
}

/* The transfer of an operation whose class has one. */
static inline struct verve_transfer *verve_op_transfer(struct verve_op *op)
{
	return (struct verve_transfer *) ((char *) op + op->cls->move_at);
}

/*
 * Posts as much as there is room for. verb: one of RDMA, or an atomic of 8 bytes. If tell, the last request reports
 * to the class's done. VERVE_LATER: some of it is still to be posted, for lack of room in the queue or in the slab.
 */
enum verve_outcome verve_transfer_post(struct verve_xport *xport, struct verve_link *link,
					struct verve_op *op, enum verve_net_wr_op verb, bool tell);

/*
 * Memory that cannot be registered moves through the operation's slab, a piece at a time: the slab of a transfer out
 * holds the first piece from here on.
 */
void verve_transfer_load(const struct verve_xport *xport, struct verve_op *op);
/* The piece in the slab, or all of a transfer that fits there, was moved. False: the next piece is to be posted. */
bool verve_transfer_unload(const struct verve_xport *xport, struct verve_op *op);
/* A piece is on the wire, and not the last: the slab is not free for the next. */
bool verve_transfer_is_under_way(const struct verve_xport *xport, struct verve_op *op);

/*
 * Posts the request that the slot remembers. There is room, and the link takes as much inline as when it was
 * posted first. Not 0: the link broke.
 */
int verve_transfer_repeat(struct verve_xport *xport, struct verve_link *link,
			  const struct verve_slot *slot);

#endif
