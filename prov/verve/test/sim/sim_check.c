/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks every completion against the operation that it ends. */
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "sim_check.h"
#include "sim_identify.h"

enum { BATCH = 8 };

const char *const sim_kind_names[] = {"send", "receive", "write", "read", "peek", "atomic"};

static uint64_t message_flag(const struct sim_op *op)
{
	return op->tagged ? FI_TAGGED : FI_MSG;
}

static void expect_flags(const struct sim_op *op, const struct fi_cq_tagged_entry *entry,
			 uint64_t flags)
{
	if (entry->flags != flags)
		sim_fail(op->node->sim, "%s %lu: completion flags %#lx, not %#lx",
			 sim_kind_names[op->kind], op->id, entry->flags, flags);
}

bool sim_op_takes(const struct sim_op *recv, const struct sim_op *send)
{
	return recv->tagged == send->tagged &&
	       (!recv->peer || (recv->peer == send->node && recv->from == send->from)) &&
	       (!recv->tagged || !((recv->tag ^ send->tag) & ~recv->ignore));
}

static struct sim_op *op_of(struct sim_node *node, void *context)
{
	struct sim_op *op = context;

	if (op->magic[0] != SIM_OP_MAGIC || op->magic[1] != SIM_OP_MAGIC)
		sim_fail(node->sim, "node %u: the provider wrote to a context", node->index);
	if (op->node != node)
		sim_fail(node->sim, "node %u: a completion of node %u", node->index,
			 op->node->index);
	if (op->done)
		sim_fail(node->sim, "node %u: %s %lu completes twice", node->index,
			 sim_kind_names[op->kind], op->id);
	return op;
}

bool sim_has_failures(const struct sim *sim)
{
	const struct sim_options *options = sim->options;

	return options->late || options->abandon || options->kill ||
	       (options->refused && options->device);
}

int sim_cntr_of(const struct sim_op *op)
{
	switch (op->kind) {
	case SIM_SEND:
		return SIM_CNTR_SEND;
	case SIM_WRITE:
		return SIM_CNTR_WRITE;
	case SIM_ATOMIC:
		return op->fetch ? SIM_CNTR_READ : SIM_CNTR_WRITE;
	default:
		return SIM_CNTR_READ;
	}
}

static uint64_t flags_of(const struct sim_op *op)
{
	switch (op->kind) {
	case SIM_SEND:
		return FI_SEND | message_flag(op);
	case SIM_WRITE:
		return FI_RMA | FI_WRITE;
	case SIM_ATOMIC:
		return FI_ATOMIC | (op->fetch ? FI_READ : FI_WRITE);
	default:
		return FI_RMA | FI_READ;
	}
}

/* Without failures each swap finds the value that the swap before it stored. */
static void check_swap(const struct sim_op *op)
{
	if (!sim_has_failures(op->node->sim) && !op->may_fail && op->result[0] != op->operand[0])
		sim_fail(op->node->sim, "swap %lu of node %u at node %u found %lu, not %lu", op->id,
			 op->node->index, op->peer->index, op->result[0], op->operand[0]);
}

/* A cancelled operation must have had no effect, and must have none later. */
static void end_cancelled(struct sim_op *op)
{
	if (op->received && !sim_give_back(op))
		sim_fail(op->node->sim, "node %u: %s %lu is cancelled, and arrived all the same",
			 op->node->index, sim_kind_names[op->kind], op->id);
	if (op->kind == SIM_SEND)
		TAILQ_REMOVE(&op->peer->inbound, op, link);
	if (op->kind == SIM_ATOMIC)
		op->peer->added[op->word] -= !op->may_fail;
	op->withdrawn = true;
	sim_buffer_fini(&op->buf);
}

void sim_put_aside(struct sim_op *op)
{
	if (op->kind == SIM_SEND && !op->received) {
		TAILQ_REMOVE(&op->peer->inbound, op, link);
		TAILQ_INSERT_TAIL(&op->peer->strays, op, link);
		op->stray = true;
	}
	sim_buffer_fini(&op->buf);
}

/* Sends, writes, reads and atomics. */
static void end_initiator(struct sim_op *op, const struct sim_completion *end)
{
	struct sim *sim = op->node->sim;

	op->done = true;
	op->node->live -= op->entry;
	op->error = end->err;
	if (op->before)
		sim_region_check(op, end->err);
	if (end->err) {
		if (op->cancelled && end->err == FI_ECANCELED) {
			end_cancelled(op);
			return;
		}
		/*
		 * A silent operation may fail long after the application has forgotten it: its peer
		 * may be gone when its acknowledgement, lost once, is asked for again.
		 */
		if (!op->may_fail && !((op->refused || op->may_miss) && end->err == FI_EACCES) &&
		    (op->entry || !op->peer->closing))
			sim_fail(sim, "node %u: %s %lu of %zu bytes to node %u fails: %s",
				 op->node->index, sim_kind_names[op->kind], op->id, op->len,
				 op->peer->index, fi_strerror(end->err));
		sim_put_aside(op);
		return;
	}
	if (!op->entry)
		sim_fail(sim, "node %u: %s %lu completes that should be silent", op->node->index,
			 sim_kind_names[op->kind], op->id);
	if (op->refused)
		sim_fail(sim, "%s %lu succeeds with a wrong key", sim_kind_names[op->kind], op->id);
	op->node->counted[sim_cntr_of(op)]++;
	expect_flags(op, end->entry, flags_of(op));
	if (op->kind == SIM_ATOMIC && op->swap)
		check_swap(op);
	if (op->kind == SIM_READ && (sim_buffer_start(&op->buf, op->len) != 0 || op->len) &&
	    !sim_buffer_is_untouched(&op->buf, op->len))
		sim_fail(sim, "read %lu wrote outside of its buffer", op->id);
	if (op->kind == SIM_READ && !op->before) {
		size_t at = 0;

		for (size_t i = 0; i < op->buf.count; i++) {
			if (op->buf.iov[i].iov_len &&
			    memcmp(op->buf.iov[i].iov_base, op->slice + at, op->buf.iov[i].iov_len))
				sim_fail(sim, "read %lu of %zu bytes brought other bytes", op->id,
					 op->len);
			at += op->buf.iov[i].iov_len;
		}
	}
	if (op->kind == SIM_WRITE && op->delivery_complete && !op->before &&
	    !sim_bytes_hold(op->slice, op->id, op->len))
		sim_fail(sim, "write %lu is complete, but not delivered", op->id);
	if (op->kind == SIM_SEND && op->delivery_complete && !op->received)
		TAILQ_INSERT_TAIL(&sim->delivered, op, delivery);
	sim_buffer_fini(&op->buf);
}

static void check_message(struct sim_op *recv, const struct sim_op *send,
			  const struct sim_completion *end, size_t room)
{
	const struct fi_cq_tagged_entry *entry = end->entry;
	struct sim *sim = recv->node->sim;
	size_t placed = send->len < room ? send->len : room;

	if (!sim_op_takes(recv, send))
		sim_fail(sim,
			 "node %u: receive %lu (tag %#lx, ignore %#lx) took message %lu (tag %#lx) "
			 "from node %u",
			 recv->node->index, recv->id, recv->tag, recv->ignore, send->id, send->tag,
			 send->node->index);
	if (entry->len != placed || end->olen != send->len - placed ||
	    end->err != (send->len > room ? FI_ETRUNC : 0))
		sim_fail(sim,
			 "node %u: message %lu of %zu bytes in %zu: len %zu, olen %zu, error %s",
			 recv->node->index, send->id, send->len, room, entry->len, end->olen,
			 fi_strerror(end->err));
	if (!sim_looks_like(send, recv, entry, send->len))
		sim_fail(sim,
			 "node %u: message %lu arrives with tag %#lx, data %#lx, flags %#lx; sent "
			 "tag %#lx, data %#lx",
			 recv->node->index, send->id, entry->tag, entry->data, entry->flags,
			 send->tag, send->data);
	if (!sim_is_from(send, end))
		sim_fail(sim, "node %u: message %lu comes from %lu, not node %u", recv->node->index,
			 send->id, end->src, send->node->index);
}

void sim_recv_over(struct sim_op *op)
{
	struct sim_node *node = op->node;

	op->done = true;
	node->posted--;
	if (op->sweep)
		node->sweeps[op->tagged]--;
	sim_buffer_fini(&op->buf);
}

/* A message in a multi-receive buffer. */
static void end_multi(struct sim_op *op, const struct sim_completion *end)
{
	const struct fi_cq_tagged_entry *entry = end->entry;
	struct sim *sim = op->node->sim;
	uint64_t flags = entry->flags & ~(FI_MULTI_RECV | FI_REMOTE_CQ_DATA);
	struct sim_buffer piece = {.count = 1, .iov = {{entry->buf, entry->len}}};
	uint8_t *start = op->buf.iov[0].iov_base;
	struct sim_op *send;
	size_t offset = (size_t)((uint8_t *)entry->buf - start);

	if (!entry->buf || offset > op->len || entry->len > op->len - offset)
		sim_fail(sim, "multi-receive %lu: a message outside of it", op->id);
	expect_flags(op, &(struct fi_cq_tagged_entry){.flags = flags}, FI_RECV | FI_MSG);
	send = sim_identify(op, &piece, end);
	check_message(op, send, end, end->err ? entry->len : op->len - offset);
	if (!sim_bytes_hold(entry->buf, send->id, entry->len))
		sim_fail(sim, "multi-receive %lu: message %lu arrives damaged", op->id, send->id);
	sim_take(op, send, offset);
	op->used += entry->len;
	op->node->counted[SIM_CNTR_RECV] += !end->err;
	if (entry->flags & FI_MULTI_RECV) {
		if (!sim_buffer_is_untouched(&op->buf, op->used))
			sim_fail(sim, "multi-receive %lu: written outside of its messages", op->id);
		sim_recv_over(op);
	}
}

/*
 * A receive that got nothing. Of a multi-receive buffer it may be one message alone that failed:
 * only the flag says that the buffer is the application's again, or that it was cancelled before
 * any came.
 */
static void fail_recv(struct sim_op *op, const struct sim_completion *end)
{
	struct sim *sim = op->node->sim;
	bool cancelled = end->err == FI_ECANCELED && (op->cancelled || op->node->closing);

	if (!cancelled && !sim_has_failures(sim))
		sim_fail(sim, "node %u: receive %lu fails: %s", op->node->index, op->id,
			 fi_strerror(end->err));
	if (cancelled && !op->multi && !end->entry->len && !sim_has_failures(sim) &&
	    !sim_buffer_is_untouched(&op->buf, 0))
		sim_fail(sim, "receive %lu was cancelled and yet written to", op->id);
	if (!op->multi || end->entry->flags & FI_MULTI_RECV)
		sim_recv_over(op);
	else if (cancelled)
		op->over = true;
}

static void end_recv(struct sim_op *op, const struct sim_completion *end)
{
	struct sim *sim = op->node->sim;
	struct sim_op *send;

	op->error = end->err;
	if (end->err && end->err != FI_ETRUNC) {
		fail_recv(op, end);
		return;
	}
	if (op->multi) {
		end_multi(op, end);
		return;
	}
	expect_flags(op, end->entry,
		     FI_RECV | message_flag(op) | (end->entry->flags & FI_REMOTE_CQ_DATA));
	send = sim_identify(op, &op->buf, end);
	check_message(op, send, end, op->len);
	if (!sim_buffer_holds(&op->buf, send->id, end->entry->len))
		sim_fail(sim, "node %u: message %lu of %zu bytes arrives damaged", op->node->index,
			 send->id, send->len);
	if (op->claimed && (send->tag != op->claim_tag || send->len != op->claim_len ||
			    (send->has_data && send->data != op->claim_data)))
		sim_fail(sim, "node %u: claim %lu got message %lu, which is not the one peeked at",
			 op->node->index, op->id, send->id);
	sim_take(op, send, 0);
	op->node->counted[SIM_CNTR_RECV] += !end->err;
	sim_recv_over(op);
}

/* The oldest message that the peek can have seen. */
static struct sim_op *find_peeked(struct sim_op *peek, const struct sim_completion *end)
{
	struct sim *sim = peek->node->sim;
	size_t len = end->entry->len;
	struct sim_op *op;

	TAILQ_FOREACH(op, &peek->node->inbound, link)
		if (sim_is_from(op, end) && sim_looks_like(op, peek, end->entry, len))
			return op;
	TAILQ_FOREACH(op, &peek->node->strays, link)
		if (sim_is_from(op, end) && sim_looks_like(op, peek, end->entry, len))
			return op;
	for (size_t i = 0; i < sim->op_count; i++) {
		op = sim->ops[i];
		/* A receive without room for its bytes got it, or its sender took it back. */
		if (op->kind == SIM_SEND && op->peer == peek->node && sim_is_from(op, end) &&
		    sim_looks_like(op, peek, end->entry, len) &&
		    (sim_give_back(op) || sim_may_be_gone(op, peek)))
			return op;
	}
	return NULL;
}

static void end_peek(struct sim_op *op, const struct sim_completion *end)
{
	struct sim *sim = op->node->sim;
	struct sim_op *send;

	op->done = true;
	op->node->live--;
	if (op->peek_flags & FI_CLAIM)
		op->node->claiming = false;
	if (end->err == FI_ENOMSG)
		return;
	if (end->err)
		sim_fail(sim, "peek %lu fails: %s", op->id, fi_strerror(end->err));
	send = find_peeked(op, end);
	if (!send)
		sim_fail(sim,
			 "node %u: peek %lu found a message of %zu bytes, tag %#lx, that nobody "
			 "sent",
			 op->node->index, op->id, end->entry->len, end->entry->tag);
	if (op->peek_flags & FI_DISCARD) {
		sim_take(op, send, 0);
	} else if (op->peek_flags & FI_CLAIM) {
		op->claim_tag = end->entry->tag;
		op->claim_len = end->entry->len;
		op->claim_data = end->entry->data;
		op->node->claim = op;
	}
}

/* The data of another's write. */
static void end_remote(struct sim_node *node, const struct sim_completion *end)
{
	const struct fi_cq_tagged_entry *entry = end->entry;
	uint32_t id = (uint32_t)entry->data;
	struct sim *sim = node->sim;
	struct sim_op *op = id && id <= sim->op_count ? sim->ops[id - 1] : NULL;

	if (!op || op->kind != SIM_WRITE || op->peer != node || op->data != entry->data)
		sim_fail(sim, "node %u: remote data %#lx that nobody wrote", node->index,
			 entry->data);
	if (op->withdrawn)
		sim_fail(sim, "node %u: remote data of write %lu comes, which was cancelled",
			 node->index, op->id);
	if (op->received)
		sim_fail(sim, "node %u: remote data of write %lu comes twice", node->index, op->id);
	if (entry->flags != (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) || entry->len != op->len)
		sim_fail(sim, "node %u: remote data of write %lu: flags %#lx, length %zu of %zu",
			 node->index, op->id, entry->flags, entry->len, op->len);
	if (!op->exposed && !sim_bytes_hold(op->slice, op->id, op->len))
		sim_fail(sim, "node %u: remote data of write %lu comes before the write",
			 node->index, op->id);
	op->received = true;
	node->counted[SIM_CNTR_REMOTE_WRITE]++;
}

static void handle(struct sim_node *node, const struct sim_completion *end)
{
	struct sim_op *op;

	node->sim->completions++;
	node->sim->last_progress = fake_net_time();
	if (end->entry->flags & FI_REMOTE_WRITE) {
		end_remote(node, end);
		return;
	}
	if (node->hushed && !(node->srx && end->entry->flags & FI_RECV))
		sim_fail(node->sim, "node %u: a completion after its endpoints were closed",
			 node->index);
	if (!end->entry->op_context) {
		if (!end->err)
			sim_fail(node->sim, "node %u: an injected message completes", node->index);
		node->counted[end->entry->flags & FI_SEND  ? SIM_CNTR_SEND :
			      end->entry->flags & FI_WRITE ? SIM_CNTR_WRITE :
							     SIM_CNTR_READ]--;
		return;
	}
	op = op_of(node, end->entry->op_context);
	sim_trace("node %u: %s %lu ends: flags %#lx, %zu bytes, tag %#lx, error %d", node->index,
		  sim_kind_names[op->kind], op->id, end->entry->flags, end->entry->len,
		  end->entry->tag, end->err);
	switch (op->kind) {
	case SIM_RECV:
		end_recv(op, end);
		break;
	case SIM_PEEK:
		end_peek(op, end);
		break;
	default:
		end_initiator(op, end);
		break;
	}
}

static void read_error(struct sim_node *node, struct fid_cq *cq)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry entry;
	ssize_t ret = fi_cq_readerr(cq, &err, 0);

	if (ret != 1)
		sim_fail(node->sim, "node %u: fi_cq_readerr: %s", node->index,
			 fi_strerror((int)-ret));
	if (err.err <= 0)
		sim_fail(node->sim, "node %u: an error entry with error %d", node->index, err.err);
	entry = (struct fi_cq_tagged_entry){
		.op_context = err.op_context,
		.flags = err.flags,
		.len = err.len,
		.buf = err.buf,
		.data = err.data,
		.tag = err.tag,
	};
	handle(node, &(struct sim_completion){.entry = &entry, .err = err.err, .olen = err.olen});
}

static uint32_t read_cq(struct sim_node *node, struct fid_cq *cq, uint32_t max)
{
	struct fi_cq_tagged_entry entries[BATCH];
	fi_addr_t src[BATCH];
	uint32_t count = 0;

	while (count < max) {
		size_t want = 1 + sim_below(node->sim, max - count < BATCH ? max - count : BATCH);
		ssize_t ret = fi_cq_readfrom(cq, entries, want, src);

		if (ret == -FI_EAGAIN)
			break;
		if (ret == -FI_EAVAIL) {
			read_error(node, cq);
			count++;
			continue;
		}
		if (ret <= 0)
			sim_fail(node->sim, "node %u: fi_cq_readfrom: %zd", node->index, ret);
		for (ssize_t i = 0; i < ret; i++)
			handle(node,
			       &(struct sim_completion){.entry = &entries[i],
							.src = src[i],
							.source = entries[i].flags & FI_RECV});
		count += (uint32_t)ret;
	}
	return count;
}

uint32_t sim_progress(struct sim_node *node, uint32_t max)
{
	uint32_t count = read_cq(node, node->tx_cq, max);

	if (node->rx_cq != node->tx_cq)
		count += read_cq(node, node->rx_cq, max);
	return count;
}
