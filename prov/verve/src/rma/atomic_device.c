/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics by the device: the initiator's half, which is all there is. */
#include "rma/atomic_device.h"

#include "rma/key.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "rma/rma.h"
#include "xport/transfer.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

bool verve_atomic_device_has(enum verve_amo_form form, enum verve_amo_op op,
			     enum verve_amo_type type)
{
	if (type != VERVE_AMO_INT64 && type != VERVE_AMO_UINT64)
		return false;
	switch (form) {
	case VERVE_AMO_UPDATE:
		return op == VERVE_AMO_SUM;
	case VERVE_AMO_FETCH:
		return op == VERVE_AMO_SUM || op == VERVE_AMO_READ;
	default:
		return op == VERVE_AMO_CSWAP;
	}
}

bool verve_atomic_device_executes(const struct verve_xport *xport, const struct verve_op *op)
{
	return xport->attr.device_atomics &&
	       (op->kind == VERVE_OP_ATOMIC || op->kind == VERVE_OP_FETCH);
}

void verve_atomic_device_load(struct verve_op *op)
{
	struct verve_op_atomic *atomic = &op->atomic;

	/* A read has no operand: it adds 0. */
	verve_iov_gather(&atomic->value, op->iov, op->iov_count, 0, sizeof(atomic->value));
	verve_iov_gather(&atomic->expected, atomic->compare, atomic->compare_count, 0,
			 sizeof(atomic->expected));
}

void verve_atomic_device_describe(const struct verve_op *op, struct verve_net_wr *wr)
{
	bool swap = wr->op == VERVE_NET_COMPARE_SWAP;

	wr->compare_add = swap ? op->atomic.expected : op->atomic.value;
	wr->swap = swap ? op->atomic.value : 0;
}

/* One way to update memory or the other: together they are not atomic. */
static void refuse(struct verve_xport *xport, struct verve_op *op)
{
	verve_op_fail(xport, op, FI_EOPNOTSUPP,
		      xport->attr.device_atomics ?
		      "FI_VERVE_ATOMICS=device here, not there: set it at both ends" :
		      "FI_VERVE_ATOMICS=device there, not here: set it at both ends");
}

/* The device takes one address: the element must not lie across two segments of its region. */
static bool is_split(const struct verve_link *link, const struct verve_op *op)
{
	const struct verve_wire_segment *remote = &op->transfer.remote[0];
	struct verve_net_wr wr;

	return verve_key_is_exported(link, remote->key) &&
	       verve_key_locate(link, remote, 0, &wr) < remote->len;
}

enum verve_net_wr_op verve_atomic_device_verb(const struct verve_op *op)
{
	return op->atomic.op == VERVE_AMO_CSWAP ? VERVE_NET_COMPARE_SWAP : VERVE_NET_FETCH_ADD;
}

int verve_atomic_device_prepare(struct verve_xport *xport, struct verve_link *link,
				struct verve_op *op, const char **reason)
{
	if (is_split(link, op)) {
		*reason = "the element lies across two segments of the target's region";
		return -FI_EINVAL;
	}
	if (!op->slab)
		op->slab = verve_slab_alloc(&xport->tx_slabs);
	return op->slab ? 0 : -FI_EAGAIN;
}

bool verve_atomic_device_start(struct verve_xport *xport, struct verve_link *link,
			       struct verve_op *op)
{
	if (xport->attr.device_atomics && link->device_atomics)
		return verve_rma_start(xport, link, op);
	refuse(xport, op);
	return true;
}

void verve_atomic_device_done(struct verve_xport *xport, struct verve_op *op)
{
	verve_op_dequeue(op);
	verve_iov_scatter(op->atomic.result, op->atomic.result_count, 0, op->slab->data,
			  op->transfer.len);
	verve_op_report(xport, op);
	verve_op_free(xport, op);
}
