/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations from the transport's pools, and back. Inline, because where the compiler knows the
 * class, which is a constant, it knows the pool and what is to be zeroed. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_XPORT_OP_POOL_H
#define VERVE_XPORT_OP_POOL_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "xport/op.h"
#include "xport/xport.h"

/*
 * A new operation in state NEW, zeroed as far as its class says. NULL: no memory, or VERVE_OP_TX is
 * in flags and attr.tx_size operations are in use.
 */
static inline struct verve_op *verve_op_alloc(struct verve_xport *xport,
					      const struct verve_op_class *cls, uint32_t flags)
{
	struct verve_op *op;

	assert(verve_lock_held(xport->lock));
	if ((flags & VERVE_OP_TX) && xport->tx_used >= xport->attr.tx_size)
		return NULL;
	op = verve_pool_alloc(verve_op_pool(xport, cls));
	if (!op)
		return NULL;
	*op = (struct verve_op){.cls = cls, .flags = flags};
	if (cls->cleared > sizeof(*op))
		memset(op + 1, 0, cls->cleared - sizeof(*op));
	if (flags & VERVE_OP_TX)
		xport->tx_used++;
	return op;
}

/*
 * As verve_op_free, for an operation of this class that is in no queue, does not count as TX, and
 * has neither id nor memory.
 */
static inline void verve_op_free_bare(struct verve_xport *xport, const struct verve_op_class *cls,
				      struct verve_op *op)
{
	assert(op->cls == cls && !op->queue && !op->id && !(op->flags & VERVE_OP_TX));
	verve_pool_free(verve_op_pool(xport, cls), op);
}

#endif
