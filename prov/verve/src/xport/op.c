/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations: the state table, queues, freeing. */
#include "xport/op.h"

#include <assert.h>

#include "base/log.h"
#include "xport/xport.h"

#define BIT(state) (1u << VERVE_OP_##state)

/* From each state, the states that may follow. ARCHITECTURE.md draws this table. */
const uint16_t verve_op_next_states[VERVE_OP_STATES] = {
	[VERVE_OP_NEW] = BIT(QUEUED) | BIT(SENT) | BIT(POSTED) | BIT(FINISH),
	[VERVE_OP_QUEUED] = BIT(SENT) | BIT(AWAIT) | BIT(FINISH) | BIT(DOOMED),
	[VERVE_OP_SENT] = BIT(QUEUED) | BIT(FINISH) | BIT(DOOMED),
	[VERVE_OP_AWAIT] = BIT(QUEUED) | BIT(SENT) | BIT(FINISH) | BIT(DOOMED),
	[VERVE_OP_POSTED] = BIT(QUEUED) | BIT(FINISH),
	[VERVE_OP_FINISH] = BIT(DOOMED),
	[VERVE_OP_DOOMED] = 0,
};

static const char *const state_names[VERVE_OP_STATES] = {
	"new", "queued", "sent", "await", "posted", "finish", "doomed",
};

void verve_op_log_step(const struct verve_op *op, enum verve_op_state state)
{
	bool legal = verve_op_next_states[op->state] & 1u << state;

	if (!legal)
		VERVE_WARN(EP_DATA, "%s %p: illegal step %s -> %s\n", op->cls->name, (void *)op,
			   state_names[op->state], state_names[state]);
	assert(legal);
	VERVE_TRACE(EP_DATA, "%s %p id %#x: %s -> %s\n", op->cls->name, (void *)op, op->id,
		    state_names[op->state], state_names[state]);
}

void verve_op_enqueue(struct verve_op *op, struct verve_op_queue *queue, enum verve_op_state state)
{
	assert(!op->queue);
	verve_op_set_state(op, state);
	op->queue = queue;
	TAILQ_INSERT_TAIL(queue, op, link);
}

void verve_op_move(struct verve_op *op, struct verve_op_queue *queue)
{
	verve_op_dequeue(op);
	op->queue = queue;
	TAILQ_INSERT_TAIL(queue, op, link);
}

void verve_op_dequeue(struct verve_op *op)
{
	if (op->queue)
		TAILQ_REMOVE(op->queue, op, link);
	op->queue = NULL;
}

void verve_op_move_all(struct verve_op_queue *to, struct verve_op_queue *from,
		       enum verve_op_state state)
{
	struct verve_op *op;

	TAILQ_FOREACH(op, from, link) {
		verve_op_set_state(op, state);
		op->queue = to;
	}
	TAILQ_CONCAT(to, from, link);
}

void verve_op_free(struct verve_xport *xport, struct verve_op *op)
{
	verve_op_dequeue(op);
	if (op->id)
		verve_idtab_free(&xport->op_ids, op->id);
	if (op->cls->release)
		op->cls->release(xport, op);
	if (op->flags & VERVE_OP_TX)
		xport->tx_used--;
	verve_pool_free(verve_op_pool(xport, op->cls), op);
}

int verve_op_name(struct verve_xport *xport, struct verve_op *op)
{
	return op->id ? 0 : verve_idtab_alloc(&xport->op_ids, op, &op->id);
}

struct verve_op *verve_op_find_awaiting(struct verve_xport *xport, const struct verve_peer *peer,
					uint32_t id)
{
	struct verve_op *op = verve_idtab_get(&xport->op_ids, id);

	if (op && op->state == VERVE_OP_AWAIT && op->peer == peer)
		return op;
	xport->count.stale++;
	return NULL;
}
