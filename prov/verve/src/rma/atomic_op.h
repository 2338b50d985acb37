/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic: the initiator's operation. The target's processor or its device executes the atomic. The
 * engine's lock protects the operation.
 */
#ifndef VERVE_RMA_ATOMIC_OP_H
#define VERVE_RMA_ATOMIC_OP_H

#include <stdint.h>
#include <sys/uio.h>

#include "rma/rma_op.h"

struct verve_atomic_op {
	struct verve_rma_op rma; /* rma.memory: the operands */
	uint8_t op, type; /* enum verve_amo_op, verve_amo_type */
	uint32_t compare_count, result_count;
	/* Only the first compare_count and result_count entries are valid. */
	struct iovec compare[VERVE_IOV_LIMIT], result[VERVE_IOV_LIMIT];
};

#endif
