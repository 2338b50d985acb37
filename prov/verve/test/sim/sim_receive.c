/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Traffic: random receives, peeks and claims by every call of fi_msg and fi_tagged. */
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "sim.h"
#include "sim_traffic.h"

enum { POSTED_MAX = 12 };

/* The only sender from which the receive takes messages, or FI_ADDR_UNSPEC. */
static fi_addr_t source(const struct sim_op *op)
{
	return op->peer ? sim_node_addr(op->node, op->peer, op->from) : FI_ADDR_UNSPEC;
}

static ssize_t recv_tagged(struct sim_op *op, uint32_t call, uint64_t flags)
{
	fi_addr_t from = source(op);
	struct sim_buffer *buf = &op->buf;
	struct fi_msg_tagged msg = {
		.msg_iov = buf->iov,
		.desc = buf->desc,
		.iov_count = buf->count,
		.addr = from,
		.tag = op->tag,
		.ignore = op->ignore,
		.context = op,
	};

	if (call == 0)
		return fi_trecv(sim_node_rx(op->node), buf->iov[0].iov_base, op->len, buf->desc[0],
				from, op->tag, op->ignore, op);
	if (call == 1)
		return fi_trecvv(sim_node_rx(op->node), buf->iov, buf->desc, buf->count, from,
				 op->tag, op->ignore, op);
	return fi_trecvmsg(sim_node_rx(op->node), &msg, flags);
}

static ssize_t recv_msg(struct sim_op *op, uint32_t call, uint64_t flags)
{
	fi_addr_t from = source(op);
	struct sim_buffer *buf = &op->buf;
	struct fi_msg msg = {
		.msg_iov = buf->iov,
		.desc = buf->desc,
		.iov_count = buf->count,
		.addr = from,
		.context = op,
	};

	if (call == 0)
		return fi_recv(sim_node_rx(op->node), buf->iov[0].iov_base, op->len, buf->desc[0],
			       from, op);
	if (call == 1)
		return fi_recvv(sim_node_rx(op->node), buf->iov, buf->desc, buf->count, from, op);
	return fi_recvmsg(sim_node_rx(op->node), &msg, flags);
}

static bool post(struct sim_op *op, uint32_t call, uint64_t flags)
{
	if (!sim_op_admit(op, op->tagged ? recv_tagged(op, call, flags) : recv_msg(op, call, flags),
		   "receive"))
		return false;
	op->entry = true;
	op->node->posted++;
	return true;
}

/* Chooses sender and tag of a receive or a peek. */
static void choose_filter(struct sim_op *op)
{
	static const uint64_t ignores[] = {
		0, UINT32_MAX, 0xffffffffffff, UINT64_MAX, 0xffffull << 48 | UINT32_MAX,
	};
	struct sim *sim = op->node->sim;

	if (sim_chance(sim, 500)) {
		op->peer = &sim->nodes[sim_below(sim, sim->options->nodes)];
		op->from = sim_choose_member(op->peer);
	}
	if (!op->tagged)
		return;
	op->ignore = ignores[sim_below(sim, 5)];
	op->tag = (uint64_t)sim_below(sim, 3) << 48 | (uint64_t)sim_below(sim, 2) << 32;
	op->tag |= sim_random(sim) & op->ignore;
}

void sim_start_recv(struct sim_node *node)
{
	struct sim *sim = node->sim;
	uint32_t call = sim_below(sim, 3);
	struct sim_op *op;

	if (node->posted >= POSTED_MAX)
		return;
	op = sim_op_new(node, SIM_RECV);
	op->tagged = sim_chance(sim, 500);
	op->multi = !op->tagged && call == 2 && sim_chance(sim, 300);
	choose_filter(op);
	op->len = sim_chance(sim, 700) ? sim->options->max_len
				       : sim_choose_len(sim, sim->options->max_len);
	if (op->multi)
		op->len = 300 + sim_below(sim, 3 * (uint32_t)sim->options->max_len);
	sim_buffer_init(node, &op->buf, op->len,
			call && !op->multi ? 1 + sim_below(sim, SIM_IOV) : 1, sim_chance(sim, 300));
	post(op, call, op->multi ? FI_MULTI_RECV : 0);
}

void sim_start_sweep(struct sim_node *node, bool tagged)
{
	struct sim_op *op = sim_op_new(node, SIM_RECV);

	op->tagged = tagged;
	op->sweep = true;
	op->ignore = UINT64_MAX;
	op->len = node->sim->options->max_len;
	sim_buffer_init(node, &op->buf, op->len, 1, false);
	if (post(op, 0, 0))
		node->sweeps[tagged]++;
}

/* A message that can be named exactly by its tag; NULL: none waits. */
static struct sim_op *find_nameable(struct sim_node *node)
{
	struct sim_op *op;

	TAILQ_FOREACH (op, &node->inbound, link)
		if (op->tagged && (uint32_t)op->tag == op->id)
			return op;
	return NULL;
}

void sim_start_peek(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_op *op, *found = NULL;
	uint64_t flags = FI_PEEK;

	if (node->claim) {
		sim_start_claim(node);
		return;
	}
	op = sim_op_new(node, SIM_PEEK);
	op->tagged = sim_chance(sim, 800);
	choose_filter(op);
	if (op->tagged && sim_chance(sim, 300))
		found = find_nameable(node);
	if (found) {
		flags |= FI_DISCARD;
		op->tag = found->tag;
		op->ignore = 0;
		op->peer = found->node;
		op->from = found->from;
	} else if (op->tagged && !node->claiming && sim_chance(sim, 500)) {
		flags |= FI_CLAIM;
	}
	op->peek_flags = flags;
	op->entry = true;
	if (sim_op_admit(op, op->tagged ? recv_tagged(op, 2, flags) : recv_msg(op, 2, flags),
			 "peek")) {
		node->live++;
		node->claiming |= flags & FI_CLAIM;
	}
}

/* The peek's own operation becomes the receive: a claim goes by its context. */
void sim_start_claim(struct sim_node *node)
{
	struct sim_op *op = node->claim;
	size_t len = node->sim->options->max_len;
	ssize_t ret;

	sim_buffer_init(node, &op->buf, len, 1 + sim_below(node->sim, SIM_IOV), false);
	op->len = len;
	ret = recv_tagged(op, 2, FI_CLAIM);
	if (ret == -FI_EAGAIN) {
		sim_buffer_fini(&op->buf);
		return;
	}
	if (ret)
		sim_fail(node->sim, "node %u: claim: %s", node->index, fi_strerror((int)-ret));
	op->kind = SIM_RECV;
	op->claimed = true;
	op->done = false;
	node->posted++;
	node->claim = NULL;
}
