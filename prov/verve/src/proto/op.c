/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations: allocation, the state table, registration, the single completion. */
#include "proto/op.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mr/cache.h"
#include "mr/region.h"
#include "proto/atomic_device.h"
#include "proto/comp_queue.h"
#include "proto/link.h"
#include "proto/peer.h"
#include "proto/rma.h"
#include "proto/rndv.h"
#include "proto/send.h"
#include "proto/xport.h"
#include <rdma/fi_errno.h>

#define BIT(state) (1u << VERVE_OP_##state)

/* From each state, the states that may follow. ARCHITECTURE.md draws this table. */
static const uint16_t next_states[VERVE_OP_STATES] = {
	[VERVE_OP_NEW] = BIT(QUEUED) | BIT(POSTED) | BIT(FINISH),
	[VERVE_OP_QUEUED] = BIT(SENT) | BIT(AWAIT) | BIT(FINISH) | BIT(DOOMED),
	[VERVE_OP_SENT] = BIT(AWAIT) | BIT(FINISH) | BIT(DOOMED),
	[VERVE_OP_AWAIT] = BIT(QUEUED) | BIT(FINISH) | BIT(DOOMED),
	[VERVE_OP_POSTED] = BIT(QUEUED) | BIT(FINISH),
	[VERVE_OP_FINISH] = BIT(DOOMED),
	[VERVE_OP_DOOMED] = 0,
};

static const char *const state_names[VERVE_OP_STATES] = {
	"new", "queued", "sent", "await", "posted", "finish", "doomed",
};

void verve_op_set_state(struct verve_op *op, enum verve_op_state state)
{
	bool legal = next_states[op->state] & 1u << state;

	if (__builtin_expect(!legal, 0))
		VERVE_WARN(EP_DATA, "operation %p: illegal step %s -> %s\n", (void *)op,
			   state_names[op->state], state_names[state]);
	assert(legal);
	VERVE_TRACE(EP_DATA, "operation %p id %#x: %s -> %s\n", (void *) op, op->id,
		    state_names[op->state], state_names[state]);
	op->state = state;
}

void verve_op_dequeue(struct verve_op *op)
{
	struct verve_peer *peer = op->peer;

	switch (op->state) {
	case VERVE_OP_QUEUED:
		TAILQ_REMOVE(verve_peer_queue_of(peer, op), op, link);
		break;
	case VERVE_OP_SENT:
	case VERVE_OP_AWAIT:
		TAILQ_REMOVE(&peer->active, op, link);
		break;
	case VERVE_OP_FINISH:
		TAILQ_REMOVE(&peer->control, op, link);
		break;
	case VERVE_OP_DOOMED:
		TAILQ_REMOVE(&op->via->doomed, op, link);
		break;
	}
}

void verve_op_activate(struct verve_op *op, enum verve_op_state state)
{
	verve_op_dequeue(op);
	verve_op_set_state(op, state);
	TAILQ_INSERT_TAIL(&op->peer->active, op, link);
}

struct verve_op *verve_op_alloc(struct verve_xport *xport, enum verve_op_kind kind, uint32_t flags)
{
	struct verve_op *op;

	assert(verve_lock_held(xport->lock));
	if ((flags & VERVE_OP_TX) && xport->tx_used >= xport->attr.tx_size)
		return NULL;
	op = verve_pool_alloc(&xport->rx->ops);
	if (!op)
		return NULL;
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->flags = flags;
	if (flags & VERVE_OP_TX)
		xport->tx_used++;
	return op;
}

void verve_op_fill(struct verve_op *op, const struct verve_request *request)
{
	op->context = request->context;
	op->tag = request->tag;
	op->data = request->data;
	op->iov_count = request->iov_count;
	for (size_t i = 0; i < request->iov_count; i++) {
		op->iov[i] = request->iov[i];
		op->len += request->iov[i].iov_len;
		op->region[i] = request->desc ? request->desc[i] : NULL;
	}
}

static void unregister(struct verve_xport *xport, struct verve_op *op)
{
	for (uint32_t i = 0; op->owned; i++, op->owned >>= 1) {
		if (!(op->owned & 1))
			continue;
		verve_mr_cache_put(xport->attr.mr_cache, op->region[i]);
		op->region[i] = NULL;
	}
}

void verve_op_free(struct verve_xport *xport, struct verve_op *op)
{
	if (op->id)
		verve_idtab_free(&xport->op_ids, op->id);
	if (op->slab)
		verve_slab_free(&xport->tx_slabs, op->slab);
	unregister(xport, op);
	if (op->kind == VERVE_OP_REPLY)
		free(op->reply.values);
	if (op->flags & VERVE_OP_TX)
		xport->tx_used--;
	verve_pool_free(&xport->rx->ops, op);
}

int verve_op_name(struct verve_xport *xport, struct verve_op *op)
{
	return verve_idtab_alloc(&xport->op_ids, op, &op->id);
}

/*
 * A descriptor serves if it covers the memory with the access that this use needs. Where a peer is to be told the
 * key, none does: it opens all of the application's region, for as long as that is open.
 */
static bool serves(const struct verve_mr_region *region, const struct iovec *iov, unsigned access)
{
	const char *start = region->addr, *from = iov->iov_base;

	return from >= start && from + iov->iov_len <= start + region->len &&
	       (region->access & access) == access && !(access & VERVE_NET_REMOTE_READ);
}

int verve_op_register(struct verve_xport *xport, struct verve_op *op, unsigned access)
{
	for (uint32_t i = 0; i < op->iov_count; i++) {
		int ret;

		if (op->owned & 1u << i || !op->iov[i].iov_len ||
		    (op->region[i] && serves(op->region[i], &op->iov[i], access)))
			continue;
		ret = verve_mr_cache_get(xport->attr.mr_cache, op->iov[i].iov_base,
					 op->iov[i].iov_len, access, &op->region[i]);
		if (ret) {
			unregister(xport, op);
			return ret;
		}
		op->owned |= 1u << i;
	}
	return 0;
}

static void (*const done[])(struct verve_xport *, struct verve_op *) = {
	[VERVE_OP_SEND] = verve_send_done,
	[VERVE_OP_RECV] = verve_rndv_done,
	[VERVE_OP_WRITE] = verve_rma_done,
	[VERVE_OP_READ] = verve_rma_done,
	[VERVE_OP_ATOMIC] = verve_atomic_device_done,
	[VERVE_OP_FETCH] = verve_atomic_device_done,
};

void verve_op_done(struct verve_xport *xport, struct verve_op *op)
{
	done[op->kind](xport, op);
}

static uint64_t comp_flags(const struct verve_op *op)
{
	uint64_t message = op->flags & VERVE_OP_TAGGED ? VERVE_COMP_TAGGED : VERVE_COMP_MSG;

	switch (op->kind) {
	case VERVE_OP_SEND:
		return VERVE_COMP_SEND | message;
	case VERVE_OP_RECV:
		return VERVE_COMP_RECV | message |
		       (op->flags & VERVE_OP_DATA ? VERVE_COMP_REMOTE_CQ_DATA : 0);
	case VERVE_OP_WRITE:
		return VERVE_COMP_RMA | VERVE_COMP_WRITE;
	case VERVE_OP_READ:
		return VERVE_COMP_RMA | VERVE_COMP_READ;
	case VERVE_OP_ATOMIC:
		return VERVE_COMP_ATOMIC | VERVE_COMP_WRITE;
	case VERVE_OP_FETCH:
		return VERVE_COMP_ATOMIC | VERVE_COMP_READ;
	default:
		return 0;
	}
}

/*
 * A closed endpoint's operations end without a word: fi_close, fi_endpoint(3). A receive of a shared context is
 * the context's, which lives on.
 */
static const struct verve_sink *sink_of(const struct verve_xport *xport, const struct verve_op *op)
{
	static const struct verve_sink none;
	bool foreign = op->kind == VERVE_OP_RECV && xport->rx != xport;

	return xport->closing && !foreign ? &none : &xport->attr.sink;
}

static struct verve_comp_counter *counter_of(const struct verve_sink *sink, const struct verve_op *op)
{
	switch (op->kind) {
	case VERVE_OP_SEND:
		return sink->send;
	case VERVE_OP_RECV:
		return sink->recv;
	case VERVE_OP_WRITE:
	case VERVE_OP_ATOMIC:
		return sink->write;
	case VERVE_OP_READ:
	case VERVE_OP_FETCH:
		return sink->read;
	default:
		return NULL;
	}
}

/*
 * The last message in a multi-receive buffer gives the buffer back (FI_MULTI_RECV, fi_msg(3)); a buffer
 * that ends without one, cancelled, gives itself back.
 */
static void fill_recv(const struct verve_op *op, struct verve_comp *comp)
{
	struct verve_op *parent = op->recv.parent;

	comp->tag = op->tag;
	comp->data = op->data;
	comp->src = op->recv.src;
	comp->buf = op->iov_count ? op->iov[0].iov_base : NULL;
	if ((parent && --parent->recv.children == 0 && parent->recv.spent) ||
	    op->flags & VERVE_OP_MULTI)
		comp->flags |= VERVE_COMP_MULTI_RECV;
}

void verve_op_report(struct verve_xport *xport, struct verve_op *op)
{
	const struct verve_sink *sink = sink_of(xport, op);
	struct verve_comp_queue *queue = op->kind == VERVE_OP_RECV ? sink->rx_queue : sink->tx_queue;
	struct verve_comp_counter *counter = counter_of(sink, op);
	struct verve_comp comp = {
		.context = op->context,
		.flags = comp_flags(op),
		.len = op->len,
		.src = UINT64_MAX,
	};

	assert(!(op->flags & VERVE_OP_REPORTED));
	op->flags |= VERVE_OP_REPORTED;
	if (op->kind == VERVE_OP_RECV)
		fill_recv(op, &comp);
	/* Giving a multi-receive buffer back is never suppressed. */
	if (queue && (op->flags & VERVE_OP_NOTIFY || comp.flags & VERVE_COMP_MULTI_RECV))
		verve_comp_queue_write(queue, &comp);
	if (counter)
		verve_comp_counter_add(counter, 1);
	if (comp.flags & VERVE_COMP_MULTI_RECV && op->recv.parent)
		verve_op_free(xport, op->recv.parent);
}

void verve_op_report_error(struct verve_xport *xport, struct verve_op *op, int error, uint32_t status,
			   const char *reason)
{
	const struct verve_sink *sink = sink_of(xport, op);
	struct verve_comp_queue *queue = op->kind == VERVE_OP_RECV ? sink->rx_queue : sink->tx_queue;
	struct verve_comp_counter *counter = counter_of(sink, op);
	struct verve_comp_error entry = {
		.comp = {
			.context = op->context,
			.flags = comp_flags(op),
			.src = UINT64_MAX,
		},
		.err = error,
		.prov_errno = status,
	};
	char name[VERVE_ADDR_STRLEN];

	/* The application asked for no access: it is the message that went, with the peer's process mostly. */
	if (op->kind == VERVE_OP_RECV && error == FI_EACCES) {
		entry.err = FI_ENOTCONN;
		reason = "the peer's device does not let the message be read any more";
	}
	assert(!(op->flags & VERVE_OP_REPORTED) && error > 0);
	op->flags |= VERVE_OP_REPORTED;
	if (op->kind == VERVE_OP_RECV) {
		fill_recv(op, &entry.comp);
		entry.comp.len = op->len;
		entry.olen = op->recv.msg_len > op->len ? op->recv.msg_len - op->len : 0;
	}
	snprintf(entry.reason, sizeof(entry.reason), "%s%s%s", reason, op->peer ? ", peer " : "",
		 op->peer ? verve_addr_str(&op->peer->addr, name) : "");
	if (queue)
		verve_comp_queue_write_error(queue, &entry);
	if (counter)
		verve_comp_counter_add_error(counter, 1);
	if (entry.comp.flags & VERVE_COMP_MULTI_RECV && op->recv.parent)
		verve_op_free(xport, op->recv.parent);
}

void verve_op_fail(struct verve_xport *xport, struct verve_op *op, int error, const char *reason)
{
	verve_op_dequeue(op);
	verve_op_report_error(xport, op, error, op->status, reason);
	verve_op_free(xport, op);
}
