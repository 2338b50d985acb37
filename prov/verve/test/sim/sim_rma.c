/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Traffic: random writes, reads and atomics by every call of fi_rma and fi_atomic. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "sim.h"
#include "sim_traffic.h"

/*
 * True if the write before this operation may be executed again. A write that has arrived, but
 * whose initiator has no answer, is repeated when another operation is refused on its connection:
 * before all that follows on that connection, but at any time of operations on another one.
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

static ssize_t write_(struct sim_op *op, enum sim_call call, uint64_t flags,
		      const struct fi_msg_rma *msg)
{
	fi_addr_t to = sim_op_target(op);
	uint64_t key = op->peer->region_key, addr = (uintptr_t)op->slice;
	struct sim_buffer *buf = &op->buf;
	void *start = buf->iov[0].iov_base;
	struct fid_ep *ep = op->node->ep[op->from];

	switch (call) {
	case SIM_CALL_SEND:
		return fi_write(ep, start, op->len, buf->desc[0], to, addr, key, op);
	case SIM_CALL_SENDV:
		return fi_writev(ep, buf->iov, buf->desc, buf->count, to, addr, key, op);
	case SIM_CALL_INJECT:
		return fi_inject_write(ep, start, op->len, to, addr, key);
	case SIM_CALL_SENDDATA:
		return fi_writedata(ep, start, op->len, buf->desc[0], op->data, to, addr, key, op);
	case SIM_CALL_INJECTDATA:
		return fi_inject_writedata(ep, start, op->len, op->data, to, addr, key);
	default:
		return fi_writemsg(ep, msg, flags);
	}
}

static ssize_t read_(struct sim_op *op, enum sim_call call, uint64_t flags,
		     const struct fi_msg_rma *msg)
{
	fi_addr_t from = sim_op_target(op);
	uint64_t key = op->peer->region_key, addr = (uintptr_t)op->slice;
	struct sim_buffer *buf = &op->buf;

	switch (call) {
	case SIM_CALL_SEND:
		return fi_read(op->node->ep[op->from], buf->iov[0].iov_base, op->len, buf->desc[0],
			       from, addr, key, op);
	case SIM_CALL_SENDV:
		return fi_readv(op->node->ep[op->from], buf->iov, buf->desc, buf->count, from, addr,
				key, op);
	default:
		return fi_readmsg(op->node->ep[op->from], msg, flags);
	}
}

/* The slice as one remote segment, or cut in two. */
static ssize_t start_rma(struct sim_op *op, enum sim_call call, uint64_t flags)
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
		.addr = sim_op_target(op),
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
	struct sim_node *peer = sim_choose_peer(node);
	bool write = sim_chance(sim, 600);
	struct sim_op *op = sim_op_new(node, write ? SIM_WRITE : SIM_READ), **holder;
	enum sim_call call = sim_below(sim, write ? SIM_CALLS : SIM_CALL_SENDMSG + 1);
	bool inject = call == SIM_CALL_INJECT || call == SIM_CALL_INJECTDATA;
	uint64_t flags = 0;

	/* Nobody knows when a silent read is over: the target might close. */
	if (!write && node->selective && (sim->options->retire || sim->options->conns))
		call = SIM_CALL_SENDMSG;
	sim_choose_way(op, peer);
	/* A refused operation ends an endpoint's connection with itself. */
	holder = peer && !(peer == node && sim->options->closing) ? choose_slice(op) : NULL;
	if (!holder || (inject && (sim_may_fail(node, peer) || sim->options->closing))) {
		sim_op_free(op);
		return;
	}
	op->may_fail = sim_may_fail(node, peer);
	op->len = sim_choose_len(sim, inject && node->inject_size < sim->options->slice
					  ? node->inject_size
					  : sim->options->slice);
	op->has_data = call == SIM_CALL_SENDDATA || call == SIM_CALL_INJECTDATA ||
		       (write && call == SIM_CALL_SENDMSG && sim_chance(sim, 300));
	if (op->has_data)
		op->data = (sim_random(sim) % 2 ? sim_random(sim) << 32 : 0) | op->id;
	op->entry = !node->selective && !inject;
	if (call == SIM_CALL_SENDMSG)
		flags = sim_choose_flags(op, node->inject_size);
	sim_buffer_init(node, &op->buf, op->len,
			call == SIM_CALL_SENDMSG || call == SIM_CALL_SENDV ?
				1 + sim_below(sim, SIM_IOV) : 1,
			!inject && !(flags & FI_INJECT) && sim_chance(sim, 400));
	if (write)
		sim_buffer_fill(&op->buf, op->id);
	if (sim->options->closing)
		sim_region_use(op);
	if (!sim_op_admit(op, start_rma(op, call, flags), write ? "write" : "read"))
		return;
	*holder = op;
	sim_op_started(op, inject || flags & FI_INJECT);
}

void sim_start_refused(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_node *peer = sim_choose_peer(node);
	bool write = sim_chance(sim, 600);
	struct sim_op *op = sim_op_new(node, write ? SIM_WRITE : SIM_READ), **holder;
	uint64_t key = peer ? peer->region_key : 0;
	struct fi_rma_iov remote[2];
	struct fi_msg_rma msg = {.rma_iov = remote, .context = op};
	size_t first;

	sim_choose_way(op, peer);
	holder = peer ? choose_slice(op) : NULL;
	if (!holder) {
		sim_op_free(op);
		return;
	}
	op->refused = op->entry = true;
	op->may_fail = sim_may_fail(node, peer);
	op->len = 1 + sim_choose_len(sim, sim->options->slice - 1);
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
	msg.addr = sim_op_target(op);
	msg.rma_iov_count = 2;
	if (!sim_op_admit(op, write ? fi_writemsg(node->ep[op->from], &msg, FI_COMPLETION)
			     : fi_readmsg(node->ep[op->from], &msg, FI_COMPLETION),
		   write ? "refused write" : "refused read"))
		return;
	*holder = op;
	sim_op_started(op, false);
}

/* A sum, by any call that adds. */
static ssize_t start_sum(struct sim_op *op, uint32_t call, uint64_t flags)
{
	fi_addr_t to = sim_op_target(op);
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
		return fi_atomic(ep, op->operand, count, NULL, to, addr, key, FI_UINT64, FI_SUM,
				 op);
	case 2:
		return fi_atomicv(ep, iov, NULL, count, to, addr, key, FI_UINT64, FI_SUM, op);
	case 3:
		return fi_atomicmsg(ep, &msg, flags);
	case 4:
		return fi_fetch_atomic(ep, op->operand, count, NULL, op->result, NULL, to, addr,
				       key, FI_UINT64, FI_SUM, op);
	case 5:
		return fi_fetch_atomicv(ep, iov, NULL, count, result, NULL, count, to, addr, key,
					FI_UINT64, FI_SUM, op);
	default:
		return fi_fetch_atomicmsg(ep, &msg, result, NULL, count, flags);
	}
}

/* The id of the last swap is there, if swaps are executed in order. */
static ssize_t start_swap(struct sim_op *op, uint64_t flags)
{
	fi_addr_t to = sim_op_target(op);
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

	return fi_compare_atomicmsg(op->node->ep[op->from], &msg, &compare, NULL, 1, &result, NULL,
				    1, flags);
}

void sim_start_atomic(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_node *peer = sim_choose_peer(node);
	struct sim_op *op = sim_op_new(node, SIM_ATOMIC);
	uint32_t call = sim_below(sim, 7);
	uint64_t flags = 0;

	if (!peer || (call == 0 && sim_may_fail(node, peer))) {
		sim_op_free(op);
		return;
	}
	sim_choose_way(op, peer);
	/* Nobody knows whether a device executed one whose answer was lost with its queue pair. */
	op->may_fail = sim_may_fail(node, peer) || (sim->options->refused && sim->options->device);
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
		flags = sim_choose_flags(op, node->inject_size);
	}
	if (!sim_op_admit(op, op->swap ? start_swap(op, flags) : start_sum(op, call, flags),
			  "atomic"))
		return;
	if (op->swap)
		node->swapped[peer->index] = op->id;
	else
		peer->added[op->word] += !op->may_fail;
	sim_op_started(op, false);
}
