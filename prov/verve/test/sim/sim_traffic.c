/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Traffic: starts random operations by every call of fi_msg, fi_tagged, fi_rma and fi_atomic. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { POSTED_MAX = 12 };

static const uint64_t magic = 0x766572766573696d;

/* How a message is sent. */
enum call { SEND, SENDV, SENDMSG, INJECT, SENDDATA, INJECTDATA, CALLS };

static struct sim_op *op_new(struct sim_node *node, enum sim_kind kind)
{
	struct sim_op *op = calloc(1, sizeof(*op));

	if (!op)
		abort();
	op->magic[0] = op->magic[1] = magic;
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

/* The provider took it, or has no room now. */
static bool admit(struct sim_op *op, ssize_t ret, const char *call)
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

static struct sim_node *choose_peer(struct sim_node *node)
{
	struct sim *sim = node->sim;

	for (int i = 0; i < 8; i++) {
		struct sim_node *peer = &sim->nodes[sim_below(sim, sim->options->nodes)];

		if (!peer->retired)
			return peer;
	}
	return NULL;
}

static uint32_t choose_member(const struct sim_node *node)
{
	return node->members > 1 ? sim_below(node->sim, node->members) : 0;
}

/* A peer's endpoint, and one of the node's own to go from. */
static void choose_way(struct sim_op *op, struct sim_node *peer)
{
	op->peer = peer;
	if (!peer)
		return;
	op->from = choose_member(op->node);
	op->to = choose_member(peer);
}

static fi_addr_t target(const struct sim_op *op)
{
	return sim_node_addr(op->node, op->peer, op->to);
}

/* Of a receive. */
static fi_addr_t source(const struct sim_op *op)
{
	return op->peer ? sim_node_addr(op->node, op->peer, op->from) : FI_ADDR_UNSPEC;
}

static size_t choose_len(struct sim *sim, size_t max)
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

static bool may_fail(const struct sim_node *node, const struct sim_node *peer)
{
	const struct sim_options *options = node->sim->options;

	return peer->start_at || options->abandon || (options->kill && node->host == 0) ||
	       (options->kill && peer->host == 0);
}

/* A completion level and what else a call with flags may ask for. */
static uint64_t choose_flags(struct sim_op *op, size_t inject_size)
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

static ssize_t send_tagged(struct sim_op *op, enum call call, uint64_t flags)
{
	fi_addr_t to = target(op);
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
	case SEND:
		return fi_tsend(ep, start, op->len, buf->desc[0], to, op->tag, op);
	case SENDV:
		return fi_tsendv(ep, buf->iov, buf->desc, buf->count, to, op->tag, op);
	case INJECT:
		return fi_tinject(ep, start, op->len, to, op->tag);
	case SENDDATA:
		return fi_tsenddata(ep, start, op->len, buf->desc[0], op->data, to, op->tag, op);
	case INJECTDATA:
		return fi_tinjectdata(ep, start, op->len, op->data, to, op->tag);
	default:
		return fi_tsendmsg(ep, &msg, flags);
	}
}

static ssize_t send_msg(struct sim_op *op, enum call call, uint64_t flags)
{
	fi_addr_t to = target(op);
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
	case SEND:
		return fi_send(ep, start, op->len, buf->desc[0], to, op);
	case SENDV:
		return fi_sendv(ep, buf->iov, buf->desc, buf->count, to, op);
	case INJECT:
		return fi_inject(ep, start, op->len, to);
	case SENDDATA:
		return fi_senddata(ep, start, op->len, buf->desc[0], op->data, to, op);
	case INJECTDATA:
		return fi_injectdata(ep, start, op->len, op->data, to);
	default:
		return fi_sendmsg(ep, &msg, flags);
	}
}

/* The operation is under way. A buffer that was injected is the application's again. */
static void started(struct sim_op *op, bool injected)
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
	struct sim_node *peer = choose_peer(node);
	struct sim_op *op = op_new(node, SIM_SEND);
	enum call call = sim_below(sim, CALLS);
	bool inject = call == INJECT || call == INJECTDATA;
	uint64_t flags = 0;

	if (!peer || (inject && may_fail(node, peer))) {
		sim_op_free(op);
		return;
	}
	choose_way(op, peer);
	op->tagged = sim_chance(sim, 500);
	op->may_fail = may_fail(node, peer);
	op->len = choose_len(sim, inject ? node->inject_size : sim->options->max_len);
	op->has_data = call == SENDDATA || call == INJECTDATA ||
		       (call == SENDMSG && sim_chance(sim, 300));
	if (op->has_data)
		op->data = sim_random(sim) << 32 | op->id;
	if (op->tagged)
		choose_tag(op);
	op->entry = !node->selective && !inject;
	if (call == SENDMSG)
		flags = choose_flags(op, node->inject_size);
	sim_buffer_init(node, &op->buf, op->len,
			call == SENDMSG || call == SENDV ? 1 + sim_below(sim, SIM_IOV) : 1,
			!inject && !(flags & FI_INJECT) && sim_chance(sim, 300));
	sim_buffer_fill(&op->buf, op->id);
	if (!admit(op, op->tagged ? send_tagged(op, call, flags) : send_msg(op, call, flags),
		   "send"))
		return;
	TAILQ_INSERT_TAIL(&peer->inbound, op, link);
	started(op, inject || flags & FI_INJECT);
}

/*
 * A write whose bytes are there, but of whose end nobody was told, is repeated when something is refused on its
 * connection: before what follows there, but at any time of what goes another way.
 */
static bool may_come_again(const struct sim_op *before, const struct sim_op *op)
{
	return op->node->sim->options->refused && before->kind == SIM_WRITE && !before->entry &&
	       (before->from != op->from || before->to != op->to);
}

/* A slice of the peer's region that is this node's alone now. */
static struct sim_op **choose_slice(struct sim_op *op)
{
	struct sim *sim = op->node->sim;
	uint32_t s = sim_below(sim, SIM_SLICES);
	struct sim_op **holder = &op->node->holder[op->peer->index * SIM_SLICES + s];

	if (*holder && (!sim_is_over(*holder) || may_come_again(*holder, op)))
		return NULL;
	op->slice = op->peer->region + (op->node->index * SIM_SLICES + s) * sim->options->slice;
	return holder;
}

static ssize_t write_(struct sim_op *op, enum call call, uint64_t flags,
		      const struct fi_msg_rma *msg)
{
	fi_addr_t to = target(op);
	uint64_t key = op->peer->region_key, addr = (uintptr_t)op->slice;
	struct sim_buffer *buf = &op->buf;
	void *start = buf->iov[0].iov_base;
	struct fid_ep *ep = op->node->ep[op->from];

	switch (call) {
	case SEND:
		return fi_write(ep, start, op->len, buf->desc[0], to, addr, key, op);
	case SENDV:
		return fi_writev(ep, buf->iov, buf->desc, buf->count, to, addr, key, op);
	case INJECT:
		return fi_inject_write(ep, start, op->len, to, addr, key);
	case SENDDATA:
		return fi_writedata(ep, start, op->len, buf->desc[0], op->data, to, addr, key, op);
	case INJECTDATA:
		return fi_inject_writedata(ep, start, op->len, op->data, to, addr, key);
	default:
		return fi_writemsg(ep, msg, flags);
	}
}

static ssize_t read_(struct sim_op *op, enum call call, uint64_t flags,
		     const struct fi_msg_rma *msg)
{
	fi_addr_t from = target(op);
	uint64_t key = op->peer->region_key, addr = (uintptr_t)op->slice;
	struct sim_buffer *buf = &op->buf;

	switch (call) {
	case SEND:
		return fi_read(op->node->ep[op->from], buf->iov[0].iov_base, op->len, buf->desc[0], from,
			       addr, key, op);
	case SENDV:
		return fi_readv(op->node->ep[op->from], buf->iov, buf->desc, buf->count, from, addr, key, op);
	default:
		return fi_readmsg(op->node->ep[op->from], msg, flags);
	}
}

/* The slice as one remote segment, or cut in two. */
static ssize_t start_rma(struct sim_op *op, enum call call, uint64_t flags)
{
	struct sim *sim = op->node->sim;
	size_t first = sim_chance(sim, 500) ? op->len : sim_below(sim, (uint32_t)op->len + 1);
	uint64_t key = op->peer->region_key;
	struct fi_rma_iov remote[2] = {
		{(uintptr_t)op->slice, first, key},
		{(uintptr_t)op->slice + first, op->len - first, key},
	};
	struct fi_msg_rma msg = {
		.msg_iov = op->buf.iov,
		.desc = op->buf.desc,
		.iov_count = op->buf.count,
		.addr = target(op),
		.rma_iov = remote,
		.rma_iov_count = first < op->len ? 2 : 1,
		.context = op,
		.data = op->data,
	};

	return op->kind == SIM_WRITE ? write_(op, call, flags, &msg) : read_(op, call, flags, &msg);
}

void sim_start_rma(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_node *peer = choose_peer(node);
	bool write = sim_chance(sim, 600);
	struct sim_op *op = op_new(node, write ? SIM_WRITE : SIM_READ), **holder;
	enum call call = sim_below(sim, write ? CALLS : SENDMSG + 1);
	bool inject = call == INJECT || call == INJECTDATA;
	uint64_t flags = 0;

	/* Nobody knows when a silent read is over: the target might close. */
	if (!write && node->selective && (sim->options->retire || sim->options->conns))
		call = SENDMSG;
	choose_way(op, peer);
	/* What is refused ends an endpoint's connection with itself. */
	holder = peer && !(peer == node && sim->options->closing) ? choose_slice(op) : NULL;
	if (!holder || (inject && (may_fail(node, peer) || sim->options->closing))) {
		sim_op_free(op);
		return;
	}
	op->may_fail = may_fail(node, peer);
	op->len = choose_len(sim, inject && node->inject_size < sim->options->slice
					  ? node->inject_size
					  : sim->options->slice);
	op->has_data = call == SENDDATA || call == INJECTDATA ||
		       (write && call == SENDMSG && sim_chance(sim, 300));
	if (op->has_data)
		op->data = sim_random(sim) << 32 | op->id;
	op->entry = !node->selective && !inject;
	if (call == SENDMSG)
		flags = choose_flags(op, node->inject_size);
	sim_buffer_init(node, &op->buf, op->len,
			call == SENDMSG || call == SENDV ? 1 + sim_below(sim, SIM_IOV) : 1,
			!inject && !(flags & FI_INJECT) && sim_chance(sim, 400));
	if (write)
		sim_buffer_fill(&op->buf, op->id);
	if (sim->options->closing)
		sim_region_use(op);
	if (!admit(op, start_rma(op, call, flags), write ? "write" : "read"))
		return;
	*holder = op;
	started(op, inject || flags & FI_INJECT);
}

void sim_start_refused(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_node *peer = choose_peer(node);
	bool write = sim_chance(sim, 600);
	struct sim_op *op = op_new(node, write ? SIM_WRITE : SIM_READ), **holder;
	uint64_t key = peer ? peer->region_key : 0;
	struct fi_rma_iov remote[2];
	struct fi_msg_rma msg = {.rma_iov = remote, .context = op};
	size_t first;

	choose_way(op, peer);
	holder = peer ? choose_slice(op) : NULL;
	if (!holder) {
		sim_op_free(op);
		return;
	}
	op->refused = op->entry = true;
	op->may_fail = may_fail(node, peer);
	op->len = 1 + choose_len(sim, sim->options->slice - 1);
	first = sim_chance(sim, 500) ? 0 : sim_below(sim, (uint32_t)op->len);
	remote[0] = (struct fi_rma_iov){(uintptr_t)op->slice, first, key};
	remote[1] = (struct fi_rma_iov){(uintptr_t)op->slice, op->len - first, (uint32_t)key + 1};
	if (sim_chance(sim, 500))
		remote[1] = (struct fi_rma_iov){UINT64_MAX / 2, op->len - first, key};
	sim_buffer_init(node, &op->buf, op->len, 1 + sim_below(sim, SIM_IOV),
			sim_chance(sim, 400));
	if (write)
		sim_buffer_fill(&op->buf, op->id);
	msg.msg_iov = op->buf.iov;
	msg.desc = op->buf.desc;
	msg.iov_count = op->buf.count;
	msg.addr = target(op);
	msg.rma_iov_count = 2;
	if (!admit(op, write ? fi_writemsg(node->ep[op->from], &msg, FI_COMPLETION)
			     : fi_readmsg(node->ep[op->from], &msg, FI_COMPLETION),
		   write ? "refused write" : "refused read"))
		return;
	*holder = op;
	started(op, false);
}

/* A sum, by any call that adds. */
static ssize_t start_sum(struct sim_op *op, uint32_t call, uint64_t flags)
{
	fi_addr_t to = target(op);
	uint64_t key = fi_mr_key(op->peer->words_mr), addr = (uintptr_t)&op->peer->words[op->word];
	size_t count = op->node->sim->options->device ? 1 : 2;
	struct fid_ep *ep = op->node->ep[op->from];
	/* Cut in two on one side or the other. */
	struct fi_ioc iov[2] = {{&op->operand[0], 1}, {&op->operand[1], 1}};
	struct fi_ioc result[2] = {{&op->result[0], 1}, {&op->result[1], 1}};
	struct fi_rma_ioc remote[2] = {{addr, 1, key}, {addr + 8, 1, key}};
	struct fi_msg_atomic msg = {
		.msg_iov = iov,
		.iov_count = count,
		.addr = to,
		.rma_iov = remote,
		.rma_iov_count = count,
		.datatype = FI_UINT64,
		.op = FI_SUM,
		.context = op,
	};

	switch (call) {
	case 0:
		return fi_inject_atomic(ep, op->operand, count, to, addr, key, FI_UINT64, FI_SUM);
	case 1:
		return fi_atomic(ep, op->operand, count, NULL, to, addr, key, FI_UINT64, FI_SUM, op);
	case 2:
		return fi_atomicv(ep, iov, NULL, count, to, addr, key, FI_UINT64, FI_SUM, op);
	case 3:
		return fi_atomicmsg(ep, &msg, flags);
	case 4:
		return fi_fetch_atomic(ep, op->operand, count, NULL, op->result, NULL, to, addr, key,
				       FI_UINT64, FI_SUM, op);
	case 5:
		return fi_fetch_atomicv(ep, iov, NULL, count, result, NULL, count, to, addr, key, FI_UINT64,
					FI_SUM, op);
	default:
		return fi_fetch_atomicmsg(ep, &msg, result, NULL, count, flags);
	}
}

/* The id of the last swap is there, if swaps are executed in order. */
static ssize_t start_swap(struct sim_op *op, uint64_t flags)
{
	fi_addr_t to = target(op);
	struct fi_ioc iov = {&op->operand[1], 1}, compare = {&op->operand[0], 1};
	struct fi_ioc result = {&op->result[0], 1};
	struct fi_rma_ioc remote = {(uintptr_t)&op->peer->words[op->word].sum, 1,
				    fi_mr_key(op->peer->words_mr)};
	struct fi_msg_atomic msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = to,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = FI_CSWAP,
		.context = op,
	};

	return fi_compare_atomicmsg(op->node->ep[op->from], &msg, &compare, NULL, 1, &result, NULL, 1, flags);
}

void sim_start_atomic(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_node *peer = choose_peer(node);
	struct sim_op *op = op_new(node, SIM_ATOMIC);
	uint32_t call = sim_below(sim, 7);
	uint64_t flags = 0;

	if (!peer || (call == 0 && may_fail(node, peer))) {
		sim_op_free(op);
		return;
	}
	choose_way(op, peer);
	/* Nobody knows whether a device executed one whose answer was lost with its queue pair. */
	op->may_fail = may_fail(node, peer) || (sim->options->refused && sim->options->device);
	op->swap = sim_chance(sim, 300);
	/* Swaps are to be executed in order: all go one way. */
	if (op->swap)
		op->from = op->to = 0;
	op->fetch = op->swap || call >= 4;
	op->word = op->swap ? SIM_WORDS + node->index : sim_below(sim, SIM_WORDS);
	op->operand[0] = op->swap ? node->swapped[peer->index] : 1;
	op->operand[1] = op->swap ? op->id : sim_random(sim);
	if (sim->options->device && !op->swap) {
		op->operand[1] >>= 32;
		op->operand[0] |= op->operand[1] << 32;
	}
	op->entry = !node->selective && call;
	if (op->swap || call == 3 || call == 6) {
		op->entry = false;
		flags = choose_flags(op, node->inject_size);
	}
	if (!admit(op, op->swap ? start_swap(op, flags) : start_sum(op, call, flags), "atomic"))
		return;
	if (op->swap)
		node->swapped[peer->index] = op->id;
	else
		peer->added[op->word] += !op->may_fail;
	started(op, false);
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
		return fi_trecv(sim_node_rx(op->node), buf->iov[0].iov_base, op->len, buf->desc[0], from,
				op->tag, op->ignore, op);
	if (call == 1)
		return fi_trecvv(sim_node_rx(op->node), buf->iov, buf->desc, buf->count, from, op->tag,
				 op->ignore, op);
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
		return fi_recv(sim_node_rx(op->node), buf->iov[0].iov_base, op->len, buf->desc[0], from, op);
	if (call == 1)
		return fi_recvv(sim_node_rx(op->node), buf->iov, buf->desc, buf->count, from, op);
	return fi_recvmsg(sim_node_rx(op->node), &msg, flags);
}

static bool post(struct sim_op *op, uint32_t call, uint64_t flags)
{
	if (!admit(op, op->tagged ? recv_tagged(op, call, flags) : recv_msg(op, call, flags),
		   "receive"))
		return false;
	op->entry = true;
	op->node->posted++;
	return true;
}

/* What a receive or a peek asks for. */
static void choose_filter(struct sim_op *op)
{
	static const uint64_t ignores[] = {
		0, UINT32_MAX, 0xffffffffffff, UINT64_MAX, 0xffffull << 48 | UINT32_MAX,
	};
	struct sim *sim = op->node->sim;

	if (sim_chance(sim, 500)) {
		op->peer = &sim->nodes[sim_below(sim, sim->options->nodes)];
		op->from = choose_member(op->peer);
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
	op = op_new(node, SIM_RECV);
	op->tagged = sim_chance(sim, 500);
	op->multi = !op->tagged && call == 2 && sim_chance(sim, 300);
	choose_filter(op);
	op->len = sim_chance(sim, 700) ? sim->options->max_len
				       : choose_len(sim, sim->options->max_len);
	if (op->multi)
		op->len = 300 + sim_below(sim, 3 * (uint32_t)sim->options->max_len);
	sim_buffer_init(node, &op->buf, op->len,
			call && !op->multi ? 1 + sim_below(sim, SIM_IOV) : 1, sim_chance(sim, 300));
	post(op, call, op->multi ? FI_MULTI_RECV : 0);
}

void sim_start_sweep(struct sim_node *node, bool tagged)
{
	struct sim_op *op = op_new(node, SIM_RECV);

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
	op = op_new(node, SIM_PEEK);
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
	if (admit(op, op->tagged ? recv_tagged(op, 2, flags) : recv_msg(op, 2, flags), "peek")) {
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

/* Each swap expects what the one before it left: that must not be missing. */
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
