/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which message a receive got. */
#include "sim_identify.h"

#include "sim.h"

bool sim_is_from(const struct sim_op *send, const struct sim_completion *end)
{
	return !end->source || sim_node_addr(send->peer, send->node, send->from) == end->src;
}

bool sim_looks_like(const struct sim_op *send, const struct sim_op *recv,
		    const struct fi_cq_tagged_entry *entry, size_t total)
{
	bool data = entry->flags & FI_REMOTE_CQ_DATA;

	return sim_op_takes(recv, send) && send->len == total && send->has_data == data &&
	       (!data || send->data == entry->data) && (!send->tagged || send->tag == entry->tag);
}

/* The bits of a message's id that its first bytes show; of less than 8. */
static uint64_t shown_mask(size_t bytes)
{
	return bytes ? UINT64_MAX >> (64 - 8 * bytes) : 0;
}

/* By its first bytes, the receive can have got the message. */
static bool is_like(const struct sim_op *op, const struct sim_op *recv,
		    const struct sim_completion *end, uint64_t start)
{
	const struct fi_cq_tagged_entry *entry = end->entry;

	return sim_looks_like(op, recv, entry, entry->len + end->olen) &&
	       (op->id & shown_mask(entry->len)) == start;
}

/* The oldest message of a queue that it can have got; rather one that must come. */
static struct sim_op *find_short(const struct sim_op_queue *queue, const struct sim_op *recv,
				 const struct sim_completion *end, uint64_t start)
{
	struct sim_op *op, *doubtful = NULL;

	TAILQ_FOREACH(op, queue, link) {
		if (!sim_is_from(op, end) || !is_like(op, recv, end, start))
			continue;
		if (!sim_may_be_lost(op))
			return op;
		doubtful = doubtful ? doubtful : op;
	}
	return doubtful;
}

void sim_take(struct sim_op *recv, struct sim_op *send, uint64_t offset)
{
	if (!send->received) {
		TAILQ_REMOVE(send->stray ? &send->peer->strays : &send->peer->inbound, send, link);
		if (send->delivery_complete && send->done && !send->error)
			TAILQ_REMOVE(&send->node->sim->delivered, send, delivery);
	}
	send->received = true;
	send->taken_by = recv;
	send->taken_order = recv->order;
	send->taken_offset = offset;
}

/* The receive that got the message can have got twin instead, by all that it was told. */
static bool is_twin(const struct sim_op *twin, const struct sim_op *op)
{
	return !((twin->id ^ op->id) & shown_mask(op->shown)) &&
	       (!op->named || (twin->node == op->node && twin->from == op->from)) &&
	       sim_op_takes(op->taken_by, twin) && twin->tag == op->tag && twin->len == op->len &&
	       twin->has_data == op->has_data && twin->data == op->data;
}

static struct sim_op *find_twin(const struct sim_op_queue *queue, const struct sim_op *op)
{
	struct sim_op *twin;

	TAILQ_FOREACH(twin, queue, link)
		if (is_twin(twin, op))
			return twin;
	return NULL;
}

bool sim_give_back(struct sim_op *op)
{
	struct sim *sim = op->node->sim;
	struct sim_op *twin;

	if (!op->guessed)
		return false;
	twin = find_twin(&op->peer->inbound, op);
	if (!twin)
		twin = find_twin(&op->peer->strays, op);
	if (!twin)
		return false;
	sim_take(op->taken_by, twin, op->taken_offset);
	twin->taken_order = op->taken_order;
	twin->guessed = true;
	twin->named = op->named;
	twin->shown = op->shown;
	op->taken_by = NULL;
	op->received = op->guessed = op->stray = false;
	TAILQ_INSERT_HEAD(&op->peer->inbound, op, link);
	if (op->delivery_complete && op->done && !op->error)
		TAILQ_INSERT_TAIL(&sim->delivered, op, delivery);
	return true;
}

struct sim_op *sim_identify(struct sim_op *recv, const struct sim_buffer *buf,
			    const struct sim_completion *end)
{
	const struct fi_cq_tagged_entry *entry = end->entry;
	struct sim_node *node = recv->node;
	uint64_t start = sim_buffer_start(buf, entry->len);
	struct sim *sim = node->sim;
	struct sim_op *op;

	if (entry->len >= 8) {
		op = start && start <= sim->op_count ? sim->ops[start - 1] : NULL;
		if (!op || op->kind != SIM_SEND || op->peer != node)
			sim_fail(sim, "node %u: receive %lu got %zu bytes of nobody's (%#lx)",
				 node->index, recv->id, entry->len, start);
		if (op->withdrawn)
			sim_fail(sim, "node %u: message %lu arrives, which was cancelled",
				 node->index, op->id);
		if (op->received && !sim_give_back(op))
			sim_fail(sim, "node %u: message %lu arrives twice", node->index, op->id);
		return op;
	}
	op = find_short(&node->inbound, recv, end, start);
	if (!op)
		op = find_short(&node->strays, recv, end, start);
	for (size_t i = 0; !op && i < sim->op_count; i++) {
		struct sim_op *other = sim->ops[i];

		/* A message that was taken for another, by fewer bytes than these. */
		if (other->kind == SIM_SEND && other->peer == node && sim_is_from(other, end) &&
		    is_like(other, recv, end, start) && sim_give_back(other))
			op = other;
	}
	if (op) {
		op->guessed = true;
		op->named = end->source;
		op->shown = entry->len;
		return op;
	}
	sim_fail(sim, "node %u: receive %lu got a message of %zu bytes that nobody sent",
		 node->index, recv->id, entry->len + end->olen);
}
