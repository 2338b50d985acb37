/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics by the device: the initiator's half. The target's half is the device alone. */
#include "rma/atomic_device.h"

#include "rma/atomic_op.h"
#include "xport/iov.h"
#include "xport/link.h"
#include "xport/post.h"
#include "xport/report.h"
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

void verve_atomic_device_load(struct verve_atomic_op *atomic)
{
	struct verve_transfer *transfer = &atomic->rma.transfer;
	const struct verve_memory *memory = &atomic->rma.memory;
	uint64_t value = 0, expected = 0;

	/* VERVE_AMO_READ has no operand: value stays 0, and the device adds 0. */
	verve_iov_gather(&value, memory->iov, memory->iov_count, 0, sizeof(value));
	verve_iov_gather(&expected, atomic->compare, atomic->compare_count, 0, sizeof(expected));
	if (atomic->op == VERVE_AMO_CSWAP) {
		transfer->compare_add = expected;
		transfer->swap = value;
	} else {
		transfer->compare_add = value;
	}
}

/*
 * Fails the atomic: one side has atomics by the device, the other by the processor. On the same
 * memory, the two kinds together are not atomic.
 */
static void atomic_device_refuse(struct verve_xport *xport, struct verve_op *op)
{
	verve_op_fail(xport, op, FI_EOPNOTSUPP,
		      xport->attr.device_atomics ?
		      "FI_VERVE_ATOMICS=device here, not there: set it at both ends" :
		      "FI_VERVE_ATOMICS=device there, not here: set it at both ends");
}

/*
 * Whether the element lies across two segments of the target's region. The device takes one address
 * and one key, so it cannot execute such an atomic.
 */
static bool is_split(const struct verve_link *link, const struct verve_rma_op *rma)
{
	const struct verve_wire_segment *remote = &rma->transfer.remote[0];
	struct verve_net_wr wr;

	return verve_remote_key_is_exported(&link->keys, remote->key) &&
	       verve_remote_key_locate(&link->keys, remote, 0, &wr) < remote->len;
}

static enum verve_net_wr_op atomic_verb(const struct verve_rma_op *rma)
{
	const struct verve_atomic_op *atomic = (const struct verve_atomic_op *)rma;

	return atomic->op == VERVE_AMO_CSWAP ? VERVE_NET_COMPARE_SWAP : VERVE_NET_FETCH_ADD;
}

static int atomic_prepare(struct verve_xport *xport, struct verve_link *link,
			  struct verve_rma_op *rma, const char **reason)
{
	if (is_split(link, rma)) {
		*reason = "the element lies across two segments of the target's region";
		return -FI_EINVAL;
	}
	if (!rma->memory.slab)
		rma->memory.slab = verve_link_slab_alloc(xport, link);
	return rma->memory.slab ? 0 : -FI_EAGAIN;
}

enum verve_outcome verve_atomic_device_start(struct verve_xport *xport, struct verve_link *link,
					      struct verve_atomic_op *atomic)
{
	static const struct verve_rma_way way = {atomic_prepare, atomic_verb, true};

	if (xport->attr.device_atomics && link->device_atomics)
		return verve_rma_op_start(xport, link, &atomic->rma, &way);
	atomic_device_refuse(xport, &atomic->rma.op);
	return VERVE_DONE;
}

void verve_atomic_device_done(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_atomic_op *atomic = (struct verve_atomic_op *)op;

	verve_iov_scatter(atomic->result, atomic->result_count, 0, atomic->rma.memory.slab->data,
			  atomic->rma.transfer.len);
	verve_op_finish(xport, op);
}
