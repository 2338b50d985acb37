/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfer: moves bytes between an operation's memory and the peer's by RDMA, split at the segments of
 * either side and at the device's longest request; resumes where room ran out.
 */
#ifndef VERVE_XPORT_TRANSFER_H
#define VERVE_XPORT_TRANSFER_H

#include "net/qp.h"
#include "xport/op.h"
#include "xport/slot.h"

enum verve_transfer_result {
	VERVE_TRANSFER_MORE,   /* no room for the rest, in the queue or in the slab */
	VERVE_TRANSFER_POSTED, /* all on the wire */
	VERVE_TRANSFER_BROKE,  /* the link broke; the operation is doomed: hands off */
};

/* verb: one of RDMA, or an atomic of 8 bytes. If tell, the last request reports to verve_op_done. */
enum verve_transfer_result verve_transfer_post(struct verve_xport *xport, struct verve_link *link,
					       struct verve_op *op, enum verve_net_wr_op verb, bool tell);

/*
 * Memory that cannot be registered moves through the operation's slab, a piece at a time: of a write it has
 * the first piece from here on.
 */
void verve_transfer_load(const struct verve_xport *xport, struct verve_op *op);
/* The piece in the slab, or all of a transfer that fits there, was moved. False: the next piece is to be posted. */
bool verve_transfer_unload(const struct verve_xport *xport, struct verve_op *op);
/* A piece is on the wire, and not the last: the slab is not free for the next. */
bool verve_transfer_is_under_way(const struct verve_xport *xport, const struct verve_op *op);

/*
 * Posts the request that the slot remembers. There is room, and the link takes as much inline as when it was
 * posted first. Not 0: the link broke.
 */
int verve_transfer_repeat(struct verve_xport *xport, struct verve_link *link,
			  const struct verve_slot *slot);

/* Copies len bytes between memory and an iov from offset on; returns how many fitted. */
size_t verve_iov_gather(void *to, const struct iovec *iov, size_t count, size_t offset, size_t len);
size_t verve_iov_scatter(const struct iovec *iov, size_t count, size_t offset, const void *from,
			 size_t len);

#endif
