/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic: the choices that all random operations share, and sends by every call of fi_msg and
 * fi_tagged.
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>

#include "sim.h"
#include "sim_traffic.h"

struct sim_op *sim_op_new(struct sim_node *node, enum sim_kind kind)
{
	struct sim_op *op = calloc(1, sizeof(*op));

	if (!op)
		abort();
	op->magic[0] = op->magic[1] = SIM_OP_MAGIC;
	op->kind = kind;
	op->node = node;
	op->id = node->sim->op_count + 1;
	return op;
}

void sim_op_free(struct sim_op *op)
{
	sim_buffer_fini(&op->buf);
	free(op->first);
	free(op->before);
	free(op);
}

bool sim_op_admit(struct sim_op *op, ssize_t ret, const char *call)
{
	struct sim *sim = op->node->sim;

	if (ret == -FI_EAGAIN) {
		sim_op_free(op);
		return false;
	}
	if (ret)
		sim_fail(sim, "node %u: %s: %s", op->node->index, call, fi_strerror((int)-ret));
	if (sim->op_count == sim->op_size) {
		sim->op_size = sim->op_size ? 2 * sim->op_size : 256;
		sim->ops = realloc(sim->ops, sim->op_size * sizeof(sim->ops[0]));
		if (!sim->ops)
			abort();
	}
	sim->ops[sim->op_count++] = op;
	op->order = sim->next_order++;
	sim_trace("node %u: %s %lu, peer %d, %zu bytes, tag %#lx, ignore %#lx%s%s", op->node->index,
		  call, op->id, op->peer ? (int)op->peer->index : -1, op->len, op->tag, op->ignore,
		  op->tagged ? ", tagged" : "", op->multi ? ", multi" : "");
	return true;
}

struct sim_node *sim_choose_peer(struct sim_node *node)
{
	struct sim *sim = node->sim;

	for (int i = 0; i < 8; i++) {
		struct sim_node *peer = &sim->nodes[sim_below(sim, sim->options->nodes)];

		if (!peer->retired)
			return peer;
	}
	return NULL;
}

uint32_t sim_choose_member(const struct sim_node *node)
{
	return node->members > 1 ? sim_below(node->sim, node->members) : 0;
}

void sim_choose_way(struct sim_op *op, struct sim_node *peer)
{
	op->peer = peer;
	if (!peer)
		return;
	op->from = sim_choose_member(op->node);
	op->to = sim_choose_member(peer);
}

fi_addr_t sim_op_target(const struct sim_op *op)
{
	return sim_node_addr(op->node, op->peer, op->to);
}

size_t sim_choose_len(struct sim *sim, size_t max)
{
	switch (sim_below(sim, 6)) {
	case 0:
		return sim_below(sim, 9);
	case 1:
	case 2:
		return sim_below(sim, max < 80 ? (uint32_t)max + 1 : 80);
	case 3:
	case 4:
		return sim_below(sim, max < 1500 ? (uint32_t)max + 1 : 1500);
	default:
		return sim_below(sim, (uint32_t)max + 1);
	}
}

bool sim_may_fail(const struct sim_node *node, const struct sim_node *peer)
{
	const struct sim_options *options = node->sim->options;

	return peer->start_at || options->abandon || (options->kill && node->host == 0) ||
	       (options->kill && peer->host == 0);
}

uint64_t sim_choose_flags(struct sim_op *op, size_t inject_size)
{
	static const uint64_t levels[] = {0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
					  FI_DELIVERY_COMPLETE};
	struct sim *sim = op->node->sim;
	uint64_t flags = levels[sim_below(sim, 4)];

	op->delivery_complete = flags == FI_DELIVERY_COMPLETE;
	if (!op->node->selective || sim_chance(sim, 600) ||
	    (op->kind == SIM_READ && sim->options->retire)) {
		op->entry = true;
		if (op->node->selective || sim_chance(sim, 300))
			flags |= FI_COMPLETION;
	}
	if (op->len <= inject_size && op->kind != SIM_READ && sim_chance(sim, 300))
		flags |= FI_INJECT;
	if (sim_chance(sim, 50))
		flags |= FI_FENCE;
	if (sim_chance(sim, 100))
		flags |= FI_MORE;
	if (op->has_data)
		flags |= FI_REMOTE_CQ_DATA;
	return flags;
}

static void choose_tag(struct sim_op *op)
{
	struct sim *sim = op->node->sim;

	op->tag = (uint64_t)sim_below(sim, 3) << 48 | (uint64_t)sim_below(sim, 2) << 32;
	/* A message must be known by something: its data, its CQ data, or its tag. */
	if (sim_chance(sim, 500) || (op->len < 8 && !op->has_data))
		op->tag |= op->id;
}

static ssize_t send_tagged(struct sim_op *op, enum sim_call call, uint64_t flags)
{
	fi_addr_t to = sim_op_target(op);
	struct sim_buffer *buf = &op->buf;
	void *start = buf->iov[0].iov_base;
	struct fid_ep *ep = op->node->ep[op->from];
	struct fi_msg_tagged msg = {
		.msg_iov = buf->iov,
		.desc = buf->desc,
		.iov_count = buf->count,
		.addr = to,
		.tag = op->tag,
		.context = op,
		.data = op->data,
	};

	switch (call) {
	case SIM_CALL_SEND:
		return fi_tsend(ep, start, op->len, buf->desc[0], to, op->tag, op);
	case SIM_CALL_SENDV:
		return fi_tsendv(ep, buf->iov, buf->desc, buf->count, to, op->tag, op);
	case SIM_CALL_INJECT:
		return fi_tinject(ep, start, op->len, to, op->tag);
	case SIM_CALL_SENDDATA:
		return fi_tsenddata(ep, start, op->len, buf->desc[0], op->data, to, op->tag, op);
	case SIM_CALL_INJECTDATA:
		return fi_tinjectdata(ep, start, op->len, op->data, to, op->tag);
	default:
		return fi_tsendmsg(ep, &msg, flags);
	}
}

static ssize_t send_msg(struct sim_op *op, enum sim_call call, uint64_t flags)
{
	fi_addr_t to = sim_op_target(op);
	struct sim_buffer *buf = &op->buf;
	void *start = buf->iov[0].iov_base;
	struct fid_ep *ep = op->node->ep[op->from];
	struct fi_msg msg = {
		.msg_iov = buf->iov,
		.desc = buf->desc,
		.iov_count = buf->count,
		.addr = to,
		.context = op,
		.data = op->data,
	};

	switch (call) {
	case SIM_CALL_SEND:
		return fi_send(ep, start, op->len, buf->desc[0], to, op);
	case SIM_CALL_SENDV:
		return fi_sendv(ep, buf->iov, buf->desc, buf->count, to, op);
	case SIM_CALL_INJECT:
		return fi_inject(ep, start, op->len, to);
	case SIM_CALL_SENDDATA:
		return fi_senddata(ep, start, op->len, buf->desc[0], op->data, to, op);
	case SIM_CALL_INJECTDATA:
		return fi_injectdata(ep, start, op->len, op->data, to);
	default:
		return fi_sendmsg(ep, &msg, flags);
	}
}

void sim_op_started(struct sim_op *op, bool injected)
{
	struct sim_node *node = op->node;

	node->budget--;
	if (op->entry)
		node->live++;
	if (injected)
		sim_buffer_fini(&op->buf);
}

void sim_start_send(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_node *peer = sim_choose_peer(node);
	struct sim_op *op = sim_op_new(node, SIM_SEND);
	enum sim_call call = sim_below(sim, SIM_CALLS);
	bool inject = call == SIM_CALL_INJECT || call == SIM_CALL_INJECTDATA;
	uint64_t flags = 0;

	if (!peer || (inject && sim_may_fail(node, peer))) {
		sim_op_free(op);
		return;
	}
	sim_choose_way(op, peer);
	op->tagged = sim_chance(sim, 500);
	op->may_fail = sim_may_fail(node, peer);
	op->len = sim_choose_len(sim, inject ? node->inject_size : sim->options->max_len);
	op->has_data = call == SIM_CALL_SENDDATA || call == SIM_CALL_INJECTDATA ||
		       (call == SIM_CALL_SENDMSG && sim_chance(sim, 300));
	if (op->has_data)
		op->data = sim_random(sim) << 32 | op->id;
	if (op->tagged)
		choose_tag(op);
	op->entry = !node->selective && !inject;
	if (call == SIM_CALL_SENDMSG)
		flags = sim_choose_flags(op, node->inject_size);
	sim_buffer_init(node, &op->buf, op->len,
			call == SIM_CALL_SENDMSG || call == SIM_CALL_SENDV ?
				1 + sim_below(sim, SIM_IOV) : 1,
			!inject && !(flags & FI_INJECT) && sim_chance(sim, 300));
	sim_buffer_fill(&op->buf, op->id);
	if (!sim_op_admit(op, op->tagged ? send_tagged(op, call, flags) : send_msg(op, call, flags),
		   "send"))
		return;
	TAILQ_INSERT_TAIL(&peer->inbound, op, link);
	sim_op_started(op, inject || flags & FI_INJECT);
}

/* Each swap expects the value that the swap before it stored, which must therefore be executed. */
static bool may_cancel(const struct sim_op *op)
{
	if (op->kind == SIM_RECV)
		return !op->claimed;
	return op->entry && op->kind != SIM_PEEK && !op->swap;
}

void sim_cancel_some(struct sim_node *node)
{
	struct sim *sim = node->sim;

	for (size_t i = 0; i < 16 && sim->op_count; i++) {
		struct sim_op *op = sim->ops[sim_below(sim, (uint32_t)sim->op_count)];
		int ret;

		if (op->node != node || op->done || op->cancelled || !may_cancel(op))
			continue;
		ret = (int)fi_cancel(op->kind == SIM_RECV ? &sim_node_rx(node)->fid :
							    &node->ep[op->from]->fid,
				     op);
		sim_trace("node %u: cancel %lu: %d", node->index, op->id, ret);
		if (ret && ret != -FI_ENOENT)
			sim_fail(sim, "fi_cancel: %s", fi_strerror(-ret));
		op->cancelled = true;
		return;
	}
}
