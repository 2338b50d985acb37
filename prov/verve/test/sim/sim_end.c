/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks a run as a whole: nothing is lost, nothing overtakes, counters and sums are right. */
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "sim_check.h"

/* A receive got too little of it to tell, and another was taken for it. */
static bool may_be_mistaken(const struct sim *sim, const struct sim_op *op)
{
	for (size_t i = 0; i < sim->op_count; i++) {
		const struct sim_op *other = sim->ops[i];

		if (other->guessed && other->peer == op->peer && other->len == op->len)
			return true;
	}
	return false;
}

void sim_check_delivered(struct sim *sim)
{
	struct sim_op *op;

	while ((op = TAILQ_FIRST(&sim->delivered))) {
		TAILQ_REMOVE(&sim->delivered, op, delivery);
		op->delivery_complete = false; /* out of the list */
		while (!op->received && sim_progress(op->peer, 64))
			;
		if (!op->received && !op->may_fail && !op->peer->claim && !may_be_mistaken(sim, op))
			sim_fail(sim,
				 "message %lu of %zu bytes from node %u to node %u is complete, "
				 "but not delivered",
				 op->id, op->len, op->node->index, op->peer->index);
	}
}

static bool is_over(const struct sim_op *op)
{
	if (op->error)
		return true;
	if (op->entry && !op->done)
		return false;
	if (op->kind == SIM_SEND)
		return op->received;
	if (op->kind == SIM_WRITE)
		return (op->exposed || sim_bytes_hold(op->slice, op->id, op->len)) &&
		       (!op->has_data || op->received);
	/* A silent one is only known to be over with all others. */
	if (op->kind == SIM_ATOMIC && !op->entry)
		return op->swap ? op->peer->words[op->word].sum >= op->id
				: sim_word_read(op->peer, op->word).count >=
					  op->peer->added[op->word];
	return true;
}

/*
 * A peer that starts late refuses, and the operation's completion says so. A peer that dies takes
 * its messages along.
 */
bool sim_may_be_gone(const struct sim_op *send, const struct sim_op *peek)
{
	return send->withdrawn && !(peek->peek_flags & (FI_CLAIM | FI_DISCARD));
}

bool sim_may_be_lost(const struct sim_op *op)
{
	return op->error || (op->may_fail && !(op->node->sim->options->late && op->entry));
}

bool sim_is_over(struct sim_op *op)
{
	/* Once and for all: a slice is written again. */
	if (!op->over)
		op->over = is_over(op);
	return op->over;
}

/*
 * early and late go the same way. If the receive that took late takes early too, then early was
 * taken before that receive was posted, or by one posted before it.
 */
static void check_order(const struct sim_op *early, const struct sim_op *late)
{
	const struct sim_op *recv = late->taken_by;

	if (!recv || !early->taken_by || !sim_op_takes(recv, early))
		return;
	if (early->taken_order < late->taken_order ||
	    (early->taken_by == recv && early->taken_offset <= late->taken_offset))
		return;
	sim_fail(
		early->node->sim,
		"node %u -> %u: message %lu was overtaken by %lu: receives %lu (%lu) and %lu (%lu)",
		early->node->index, early->peer->index, early->id, late->id, early->taken_by->id,
		early->taken_order, recv->id, late->taken_order);
}

static void check_orders(struct sim *sim)
{
	for (size_t i = 0; i < sim->op_count; i++) {
		const struct sim_op *early = sim->ops[i];

		for (size_t j = i + 1; early->kind == SIM_SEND && j < sim->op_count; j++) {
			const struct sim_op *late = sim->ops[j];

			if (late->kind == SIM_SEND && late->node == early->node &&
			    late->from == early->from && late->peer == early->peer &&
			    late->to == early->to && late->tagged == early->tagged)
				check_order(early, late);
		}
	}
}

static void check_counters(struct sim_node *node)
{
	static const char *const names[SIM_CNTRS] = {"send", "receive", "read", "write",
						     "remote write", "remote read"};

	for (int i = 0; i < SIM_CNTRS; i++) {
		uint64_t value;

		if (!node->cntr[i])
			continue;
		value = fi_cntr_read(node->cntr[i]);
		if (value != node->counted[i])
			sim_fail(node->sim, "node %u: the %s counter is %lu, not %lu", node->index,
				 names[i], value, node->counted[i]);
	}
}

/*
 * Every sum that succeeded counts once. A sum that failed, or whose end is unknown, counts at most
 * once.
 */
static void check_word(struct sim_node *node, uint32_t word)
{
	const struct sim_word got = sim_word_read(node, word);
	struct sim *sim = node->sim;
	uint64_t certain = 0, unknown = 0, sum = 0, number;
	bool *seen = calloc(got.count + 1, sizeof(*seen));

	for (size_t i = 0; i < sim->op_count; i++) {
		const struct sim_op *op = sim->ops[i];

		if (op->kind != SIM_ATOMIC || op->swap || op->withdrawn || op->peer != node ||
		    op->word != word)
			continue;
		if (op->error || (!op->entry && op->may_fail)) {
			unknown++;
			continue;
		}
		certain++;
		sum += op->operand[1];
		if (!op->fetch || !op->entry)
			continue;
		number = sim->options->device ? (uint32_t)op->result[0] : op->result[0];
		if (number >= got.count || seen[number])
			sim_fail(sim, "node %u: fetch %lu was number %lu of %lu, or not alone",
				 node->index, op->id, number, got.count);
		seen[number] = true;
	}
	free(seen);
	if (sim->options->device)
		sum = (uint32_t)sum;
	if (got.count < certain || got.count > certain + unknown)
		sim_fail(sim, "node %u: %lu sums were executed; %lu were, of %lu nobody knows",
			 node->index, got.count, certain, unknown);
	if (!unknown && got.sum != sum)
		sim_fail(sim, "node %u: the sum is %#lx, not %#lx", node->index, got.sum, sum);
}

void sim_forget_receives(struct sim_node *node)
{
	for (size_t i = 0; i < node->sim->op_count; i++) {
		struct sim_op *op = node->sim->ops[i];

		if (op->node == node && op->kind == SIM_RECV && !op->done)
			sim_recv_over(op);
	}
}

/* The operation's end is unknown. */
static void drop_initiator(struct sim_op *op)
{
	op->done = true;
	op->node->live--;
	op->error = FI_ECANCELED;
	if (op->before)
		sim_region_check(op, op->error);
	sim_put_aside(op);
}

void sim_drop_all(struct sim_node *node)
{
	for (size_t i = 0; i < node->sim->op_count; i++) {
		struct sim_op *op = node->sim->ops[i];

		if (op->node != node || op->done)
			continue;
		if (op->kind == SIM_RECV && !node->srx)
			sim_recv_over(op);
		else if (op->kind != SIM_RECV && op->kind != SIM_PEEK && op->entry)
			drop_initiator(op);
	}
}

bool sim_is_counted(struct sim_node *node)
{
	uint64_t expected[SIM_CNTRS];

	if (sim_has_failures(node->sim))
		return true;
	memcpy(expected, node->counted, sizeof(expected));
	for (size_t i = 0; i < node->sim->op_count; i++) {
		const struct sim_op *op = node->sim->ops[i];

		if (op->node == node && op->kind != SIM_RECV && op->kind != SIM_PEEK &&
		    !op->entry && !op->may_fail && !op->error)
			expected[sim_cntr_of(op)]++;
	}
	for (int i = 0; i <= SIM_CNTR_WRITE; i++)
		if (node->cntr[i] && fi_cntr_read(node->cntr[i]) < expected[i])
			return false;
	return true;
}

void sim_check_end(struct sim *sim)
{
	for (size_t i = 0; i < sim->op_count; i++) {
		struct sim_op *op = sim->ops[i];

		if (op->entry && !op->done && !(op->multi && op->over))
			sim_fail(sim, "node %u: %s %lu never completed", op->node->index,
				 sim_kind_names[op->kind], op->id);
		/* Silent ones count as well. */
		if (!op->entry && !op->may_fail && !op->error)
			op->node->counted[sim_cntr_of(op)]++;
		/* The target's processor does not hear of atomics that its device executed. */
		if (op->kind == SIM_ATOMIC && !op->error && !sim->options->device)
			op->peer->counted[op->fetch ? SIM_CNTR_REMOTE_READ :
						      SIM_CNTR_REMOTE_WRITE]++;
		if ((op->kind == SIM_SEND || op->has_data) && !op->received && !sim_may_be_lost(op))
			sim_fail(sim, "node %u: %s %lu to node %u never arrived", op->node->index,
				 sim_kind_names[op->kind], op->id, op->peer->index);
	}
	for (uint32_t i = 0; i < SIM_WORDS * sim->options->nodes; i++)
		check_word(&sim->nodes[i / SIM_WORDS], i % SIM_WORDS);
	check_orders(sim);
	for (uint32_t i = 0; i < sim->options->nodes && !sim_has_failures(sim); i++)
		check_counters(&sim->nodes[i]);
	if (sim_log_warnings() && !sim_has_failures(sim) && !sim->options->tiny &&
	    !sim->options->poor && !sim->options->refused && !sim->options->closing)
		sim_fail(sim, "a warning where nothing is wrong: %s", sim_log_last());
}
