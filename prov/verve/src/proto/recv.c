/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving: from the completion queue through the match tables to a receive's completion. */
#include "proto/recv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "net/cq.h"
#include "proto/atomic.h"
#include "proto/comp_queue.h"
#include "proto/key.h"
#include "proto/link.h"
#include "proto/peek.h"
#include "proto/peer.h"
#include "proto/pull.h"
#include "proto/quiesce.h"
#include "proto/replay.h"
#include "proto/rma.h"
#include "proto/rndv.h"
#include "proto/send.h"
#include "proto/transfer.h"
#include "proto/xport.h"
#include <rdma/fi_errno.h>

struct verve_link *verve_recv_live_link(struct verve_xport *xport, uint32_t link_id)
{
	struct verve_link *link = verve_idtab_get(&xport->link_ids, link_id);

	return link && !link->broken ? link : NULL;
}

void verve_recv_return_credit(struct verve_xport *xport, uint32_t link_id, uint64_t len)
{
	struct verve_link *link = verve_recv_live_link(xport, link_id);

	if (link && verve_wire_costs_credit(len))
		verve_link_return_credit(xport, link);
}

void verve_recv_finish(struct verve_xport *xport, struct verve_op *op, int error, const char *reason)
{
	bool answer = op->recv.fin_id && op->state != VERVE_OP_DOOMED;
	struct verve_peer *peer = op->peer;

	verve_op_dequeue(op);
	if (!error && op->recv.msg_len > op->len) {
		error = FI_ETRUNC;
		reason = "the message is longer than the receive buffer";
	}
	if (error)
		verve_op_report_error(xport, op, error, op->status, reason);
	else
		verve_op_report(xport, op);
	if (answer)
		verve_peer_queue_control(xport, peer, op);
	else
		verve_op_free(xport, op);
}

/* What every message leaves in its receive. */
static void label(struct verve_xport *xport, struct verve_op *op, struct verve_peer *peer,
		  const struct verve_wire_packet *packet)
{
	op->tag = packet->tag;
	op->recv.msg_len = packet->len;
	op->recv.src = xport->attr.source ? verve_peer_fi_addr(xport, peer) : UINT64_MAX;
	if (packet->flags & VERVE_WIRE_DATA) {
		op->flags |= VERVE_OP_DATA;
		op->data = packet->data;
	}
}

/* The receive takes the message. op is in no queue and no table. */
static void deliver(struct verve_xport *xport, struct verve_op *op, struct verve_peer *peer,
		    uint32_t link_id, const struct verve_wire_packet *packet)
{
	label(xport, op, peer, packet);
	op->peer = peer;
	if (packet->type == VERVE_WIRE_RTS) {
		verve_rndv_accept(xport, peer, op, packet);
		return;
	}
	op->len = verve_iov_scatter(op->iov, op->iov_count, 0, packet->payload, packet->len);
	if (packet->flags & VERVE_WIRE_ACK && verve_recv_live_link(xport, link_id))
		op->recv.fin_id = packet->op_id;
	verve_recv_finish(xport, op, 0, NULL);
	verve_recv_return_credit(xport, link_id, packet->len);
}

/*
 * A receive of its own for one message in a multi-receive buffer. NULL: no memory. The buffer is spent
 * once less than min_multi_recv bytes are left; the caller takes a spent one out of the table.
 */
static struct verve_op *split(struct verve_xport *xport, struct verve_op *parent, uint64_t len)
{
	struct verve_op *op = verve_op_alloc(xport, VERVE_OP_RECV, parent->flags & ~VERVE_OP_MULTI);
	size_t left = parent->len - parent->recv.used;

	if (!op) {
		xport->rx->starved = true;
		return NULL;
	}
	op->context = parent->context;
	op->iov_count = 1;
	op->iov[0].iov_base = (char *) parent->iov[0].iov_base + parent->recv.used;
	op->iov[0].iov_len = op->len = len < left ? len : left;
	op->region[0] = parent->region[0];
	op->recv.parent = parent;
	parent->recv.children++;
	parent->recv.used += op->len;
	parent->recv.spent = parent->len - parent->recv.used < xport->rx->attr.min_multi_recv;
	return op;
}

/*
 * The receive for a message, out of the table and ready for deliver; NULL: nobody wants it, or no
 * memory to take it now.
 */
static struct verve_op *take_posted(struct verve_xport *xport, struct verve_match *match,
				    uint32_t source, const struct verve_wire_packet *packet)
{
	struct verve_match_recv *recv = verve_match_arrive(match, source, packet->tag, true);
	struct verve_op *parent, *op;

	if (!recv)
		return NULL;
	op = verve_recv_op_of(recv);
	if (!(op->flags & VERVE_OP_MULTI)) {
		verve_match_cancel(match, recv);
		return op;
	}
	/* Others wait for it; the poll sees to them, in their order. */
	if (xport->rx->starved)
		return NULL;
	parent = op;
	op = split(xport, parent, packet->len);
	if (op && parent->recv.spent)
		verve_match_cancel(match, recv);
	return op;
}

/* Its sender waits for a FIN. */
static bool is_offer(const struct verve_wire_packet *packet)
{
	return packet->type == VERVE_WIRE_RTS || packet->flags & VERVE_WIRE_ACK;
}

void verve_recv_free_unexpected(struct verve_unexpected *unexpected)
{
	if (is_offer(&unexpected->packet))
		TAILQ_REMOVE(&unexpected->peer->offers, unexpected, offer);
	free(unexpected);
}

static int keep_unexpected(struct verve_xport *xport, struct verve_link *link,
			   const struct verve_wire_packet *packet)
{
	struct verve_match *match = verve_recv_match_of(xport, packet->flags & VERVE_WIRE_TAGGED);
	size_t payload = packet->type == VERVE_WIRE_EAGER ? packet->len : 0;
	struct verve_unexpected *unexpected = malloc(sizeof(*unexpected) + payload);

	if (!unexpected)
		return -FI_ENOMEM;
	unexpected->xport = xport;
	unexpected->peer = link->peer;
	unexpected->link_id = link->id;
	unexpected->claimed = false;
	unexpected->packet = *packet;
	if (payload)
		memcpy(unexpected->payload, packet->payload, payload);
	unexpected->packet.payload = unexpected->payload;
	unexpected->match.source = link->peer->id;
	unexpected->match.tag = packet->tag;
	if (verve_match_add(match, &unexpected->match)) {
		free(unexpected);
		return -FI_ENOMEM;
	}
	if (is_offer(packet))
		TAILQ_INSERT_TAIL(&link->peer->offers, unexpected, offer);
	return 0;
}

/*
 * The messages that cost a credit and came, without those whose credits were sent back: an honest peer has no
 * more than the window.
 */
static bool exceeds_window(const struct verve_xport *xport, const struct verve_link *link,
			   const struct verve_wire_packet *packet)
{
	return packet->type == VERVE_WIRE_EAGER && verve_wire_costs_credit(packet->len) &&
	       link->held + link->owed >= xport->attr.window;
}

static void handle_message(struct verve_xport *xport, struct verve_link *link,
			   struct verve_wire_packet *packet)
{
	struct verve_match *match = verve_recv_match_of(xport, packet->flags & VERVE_WIRE_TAGGED);
	struct verve_op *op;

	if (exceeds_window(xport, link, packet)) {
		verve_link_break(xport, link, FI_EIO, 0, "the peer sends more than its window allows");
		return;
	}
	op = take_posted(xport, match, link->peer->id, packet);
	link->held += packet->type == VERVE_WIRE_EAGER && verve_wire_costs_credit(packet->len);
	if (op)
		deliver(xport, op, link->peer, link->id, packet);
	else if (keep_unexpected(xport, link, packet))
		verve_link_break(xport, link, FI_ENOMEM, 0, "no memory for an unexpected message");
}

struct verve_op *verve_recv_find_awaiting(struct verve_xport *xport, const struct verve_link *link,
					  const struct verve_wire_packet *packet)
{
	struct verve_op *op = verve_idtab_get(&xport->op_ids, packet->op_id);

	if (op && op->state == VERVE_OP_AWAIT && op->peer == link->peer)
		return op;
	xport->count.stale++;
	return NULL;
}

static void handle_fin(struct verve_xport *xport, struct verve_link *link,
		       struct verve_wire_packet *packet)
{
	struct verve_op *op = verve_recv_find_awaiting(xport, link, packet);

	if (op && op->kind == VERVE_OP_SEND)
		verve_send_finished(xport, op, packet->status);
}

static void handle_atomic(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	verve_atomic_execute(xport, link, packet);
}

static void handle_atomic_reply(struct verve_xport *xport, struct verve_link *link,
				struct verve_wire_packet *packet)
{
	struct verve_op *op = verve_recv_find_awaiting(xport, link, packet);

	link->unanswered -= link->unanswered > 0;
	if (op && (op->kind == VERVE_OP_ATOMIC || op->kind == VERVE_OP_FETCH))
		verve_atomic_finished(xport, op, packet);
}

static void handle_credit(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	(void) xport, (void) link, (void) packet; /* every packet's credits are counted already */
}

static void report_write_data(struct verve_xport *xport, struct verve_link *link,
			      const struct verve_wire_packet *packet)
{
	struct verve_sink *sink = &xport->attr.sink;
	struct verve_comp comp = {
		.flags = VERVE_COMP_RMA | VERVE_COMP_REMOTE_WRITE | VERVE_COMP_REMOTE_CQ_DATA,
		.len = packet->len,
		.data = packet->data,
		.src = xport->attr.source ? verve_peer_fi_addr(xport, link->peer) : UINT64_MAX,
	};

	if (sink->rx_queue)
		verve_comp_queue_write(sink->rx_queue, &comp);
}

static void handle_write_data(struct verve_xport *xport, struct verve_link *link,
			      struct verve_wire_packet *packet)
{
	report_write_data(xport, link, packet);
	if (xport->attr.sink.remote_write)
		verve_comp_counter_add(xport->attr.sink.remote_write, 1);
}

/* FI_RMA_EVENT: the peer has written or read; in the endpoint's counters and the regions'. */
static void handle_rma_event(struct verve_xport *xport, struct verve_link *link,
			     struct verve_wire_packet *packet)
{
	if (packet->flags & VERVE_WIRE_DATA)
		report_write_data(xport, link, packet);
	verve_rma_count(xport, packet, packet->tag == VERVE_WIRE_READ);
}

static void handle_bye(struct verve_xport *xport, struct verve_link *link,
		       struct verve_wire_packet *packet)
{
	(void) packet;
	verve_link_leave(xport, link, FI_ENOTCONN, "the peer closed its endpoint");
}

static void (*const handle[VERVE_WIRE_TYPES])(struct verve_xport *, struct verve_link *,
					      struct verve_wire_packet *) = {
	[VERVE_WIRE_EAGER] = handle_message,
	[VERVE_WIRE_RTS] = handle_message,
	[VERVE_WIRE_FIN] = handle_fin,
	[VERVE_WIRE_CREDIT] = handle_credit,
	[VERVE_WIRE_WRITE_DATA] = handle_write_data,
	[VERVE_WIRE_BYE] = handle_bye,
	[VERVE_WIRE_ATOMIC] = handle_atomic,
	[VERVE_WIRE_ATOMIC_REPLY] = handle_atomic_reply,
	[VERVE_WIRE_RMA_EVENT] = handle_rma_event,
	[VERVE_WIRE_KEY_QUERY] = verve_key_answer,
	[VERVE_WIRE_KEY_REPLY] = verve_key_learn,
	[VERVE_WIRE_KEY_REVOKE] = verve_key_forget,
	[VERVE_WIRE_QUIESCE] = verve_quiesce_receive,
	[VERVE_WIRE_WITHDRAW] = verve_recv_withdrawn,
	[VERVE_WIRE_PULL] = verve_pull_asked,
	[VERVE_WIRE_CHUNK] = verve_pull_arrived,
	[VERVE_WIRE_RESUME] = verve_replay_receive,
};

/* False, and nothing is done: its connection is not known, and may be among the manager's events. */
static bool handle_packet(struct verve_xport *xport, const void *buf, size_t len, uint32_t qp_num)
{
	struct verve_wire_packet packet;
	struct verve_link *link;

	packet.segment_count = 0;
	if (verve_wire_decode(buf, len, &packet)) {
		xport->count.malformed++;
		VERVE_INFO(EP_DATA, "dropped a malformed packet of %zu bytes\n", len);
		return true;
	}
	link = verve_peer_link_of(xport, packet.dest);
	if (!link && verve_peer_has_events(xport))
		return false;
	/* Nobody speaks for another. */
	if (link && link->qp_num != qp_num &&
	    !verve_replay_is_from(link, packet.dest, qp_num)) {
		xport->count.malformed++;
		VERVE_INFO(EP_DATA, "dropped a packet for connection %#x from another queue pair\n",
			   packet.dest);
		return true;
	}
	/* What a broken connection still delivers is good; but there is no way back. */
	if (!link || (link->broken && packet.type != VERVE_WIRE_EAGER)) {
		xport->count.stale++;
		return true;
	}
	link->credits += packet.credits;
	if (__builtin_expect(!link->may_send, 0))
		verve_link_hear(xport, link);
	link->arrived++;
	handle[packet.type](xport, link, &packet);
	if (verve_peer_has_work(link->peer))
		verve_peer_kick(xport, link->peer);
	return true;
}

/* Buffers that are worth a doorbell: never so many that the queue could be empty meanwhile, some of them being lost. */
static uint32_t refill_size(const struct verve_xport *xport)
{
	return xport->attr.rx_buffers < 2 * VERVE_POLL_BATCH ? (xport->attr.rx_buffers + 1) / 2 :
							       VERVE_POLL_BATCH;
}

/*
 * Handling the manager's events polls as well, and goes on with the batch where it stands: packets are
 * handled in their order, whoever polls.
 */
static bool poll_batch(struct verve_xport *xport)
{
	struct verve_recv_batch *batch = &xport->batch;

	if (batch->at == batch->count) {
		batch->at = 0;
		batch->count = verve_net_cq_poll(xport->recv_cq, VERVE_POLL_BATCH, batch->wc);
		if (batch->count <= 0) {
			batch->count = 0;
			/* If it had none left, no packet would come, ever, behind which to try again. */
			if (__builtin_expect(xport->rx_refused, 0))
				verve_recv_refill(xport, false);
			return false;
		}
		xport->polled += batch->count;
	}
	while (batch->at < batch->count) {
		const struct verve_net_wc *wc = &batch->wc[batch->at++];
		struct verve_slab *slab = (struct verve_slab *) (uintptr_t) wc->wr_id;

		if (!wc->status && wc->opcode == VERVE_NET_WC_RECV &&
		    !handle_packet(xport, slab->data, wc->byte_len, wc->qp_num)) {
			batch->at--;
			verve_peer_events(xport);
			continue;
		}
		slab->lent = VERVE_LOST_HERE;
		slab->next = xport->rx_free;
		xport->rx_free = slab;
		xport->rx_free_count++;
	}
	if (xport->rx_free_count >= refill_size(xport))
		verve_recv_refill(xport, false);
	return true;
}

bool verve_recv_is_flooded(const struct verve_xport *xport)
{
	return xport->attr.sink.rx_queue && verve_comp_queue_is_flooded(xport->attr.sink.rx_queue);
}

bool verve_recv_poll(struct verve_xport *xport)
{
	/* What would come next may be more of the same, and the application reads none of it. */
	if (__builtin_expect(verve_recv_is_flooded(xport), 0))
		return false;
	return poll_batch(xport);
}

void verve_recv_drain(struct verve_xport *xport)
{
	uint64_t end = xport->polled + xport->attr.rx_buffers;

	while (xport->polled < end && poll_batch(xport))
		;
}

int verve_recv_refill(struct verve_xport *xport, bool force)
{
	while (xport->rx_free_count >= (force ? 1 : refill_size(xport))) {
		struct verve_net_recv recv[VERVE_POLL_BATCH];
		struct verve_slab *slab = xport->rx_free;
		uint32_t count = 0, posted;
		int ret;

		for (; slab && count < VERVE_POLL_BATCH; slab = slab->next, count++) {
			verve_lost_mark(&xport->lost, slab);
			recv[count] = (struct verve_net_recv) {
				.wr_id = (uintptr_t) slab,
				.sge = {(uintptr_t) slab->data, xport->rx_slabs.size, slab->lkey},
			};
		}
		ret = verve_net_srq_post(xport->srq, recv, count, &posted);
		xport->rx_free_count -= posted;
		for (; posted; posted--) {
			xport->rx_free->lent = VERVE_LOST_POSTED;
			xport->rx_free = xport->rx_free->next;
		}
		if (ret && !xport->rx_refused)
			VERVE_WARN(EP_DATA, "posting %u receive buffers failed: %s\n", count,
				   fi_strerror(-ret));
		xport->rx_refused = ret;
		if (ret)
			return ret;
	}
	return 0;
}

static struct verve_match *prepare_recv(struct verve_xport *xport, const struct verve_request *request,
					struct verve_op *op, int *ret)
{
	struct verve_match_recv *match = &op->recv.match;
	struct verve_peer *peer;

	*ret = 0;
	match->source = VERVE_MATCH_ANY;
	if (request->addr != UINT64_MAX) {
		*ret = verve_peer_find(xport, request->addr, &peer);
		if (*ret)
			return NULL;
		match->source = peer->id;
	}
	match->tag = request->tag;
	match->ignore = request->ignore;
	verve_op_fill(op, request);
	return verve_recv_match_of(xport, request->flags & VERVE_OP_TAGGED);
}

void verve_recv_consume(struct verve_op *op, struct verve_unexpected *unexpected)
{
	deliver(unexpected->xport, op, unexpected->peer, unexpected->link_id, &unexpected->packet);
	verve_recv_free_unexpected(unexpected);
}

/* Messages that wait already go into a multi-receive buffer that has just been posted. */
static void fill_multi(struct verve_xport *xport, struct verve_match *match, struct verve_op *parent)
{
	struct verve_match_recv *recv = &parent->recv.match;
	struct verve_match_msg *msg;

	while ((msg = verve_match_find(match, recv->source, recv->tag, recv->ignore))) {
		struct verve_unexpected *unexpected = verve_unexpected_of(msg);
		struct verve_op *op = split(xport, parent, unexpected->packet.len);
		bool spent = parent->recv.spent;

		if (!op)
			return;
		verve_match_remove(match, msg);
		if (spent)
			verve_match_cancel(match, recv);
		/* The last message of a spent buffer frees it. */
		verve_recv_consume(op, unexpected);
		if (spent)
			return;
	}
}

bool verve_recv_feed(struct verve_xport *xport)
{
	struct verve_xport *rx = xport->rx;

	rx->starved = false;
	for (int i = 0; i < 2; i++) {
		struct verve_match_recv *recv = TAILQ_FIRST(&rx->match[i].posted), *next;

		for (; recv && !rx->starved; recv = next) {
			struct verve_op *op = verve_recv_op_of(recv);

			next = TAILQ_NEXT(recv, order);
			if (op->flags & VERVE_OP_MULTI)
				fill_multi(xport, &rx->match[i], op);
		}
	}
	return !rx->starved;
}

int verve_recv(struct verve_xport *xport, const struct verve_request *request)
{
	struct verve_match_msg *msg = NULL;
	struct verve_match *match;
	struct verve_op *op;
	int ret;

	/* What waits for an earlier one is not for this one. */
	if (__builtin_expect(xport->rx->starved, 0) && !verve_recv_feed(xport))
		return -FI_EAGAIN;
	op = verve_op_alloc(xport, VERVE_OP_RECV, request->flags);
	if (!op)
		return -FI_EAGAIN;
	match = prepare_recv(xport, request, op, &ret);
	if (ret)
		goto err_free;
	if (!(op->flags & VERVE_OP_MULTI))
		msg = verve_match_find(match, op->recv.match.source, op->recv.match.tag,
				       op->recv.match.ignore);
	if (msg) {
		verve_match_remove(match, msg);
		verve_recv_consume(op, verve_unexpected_of(msg));
		return 0;
	}
	if (verve_match_post(match, &op->recv.match)) {
		ret = -FI_EAGAIN;
		goto err_free;
	}
	verve_op_set_state(op, VERVE_OP_POSTED);
	if (op->flags & VERVE_OP_MULTI)
		fill_multi(xport, match, op);
	return 0;

err_free:
	verve_op_free(xport, op);
	return ret;
}
