/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving: a message arrives or a receive is posted; the match table finds its counterpart. */
#include "msg/recv.h"

#include <assert.h>

#include "base/config.h"
#include "base/log.h"
#include "comp/comp.h"
#include "msg/fin.h"
#include "msg/msg.h"
#include "msg/parts.h"
#include "msg/recv_op.h"
#include "msg/rndv.h"
#include "msg/unexpected.h"
#include "xport/credit.h"
#include "xport/failure.h"
#include "xport/fence_ask.h"
#include "xport/iov.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/op_pool.h"
#include "xport/peer.h"
#include "xport/report.h"
#include "xport/request.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

_Static_assert(sizeof(struct verve_recv_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

const struct verve_op_class verve_recv_class = {
	.name = "receive",
	.size = sizeof(struct verve_recv_op),
	.cleared = sizeof(struct verve_op),
	.memory_at = offsetof(struct verve_recv_op, memory),
	.move_at = offsetof(struct verve_recv_op, transfer),
	.comp_flags = VERVE_COMP_RECV,
	.counter_at = offsetof(struct verve_sink, recv),
	.is_message = true,
	.is_receive = true,
	.start = verve_rndv_start,
	.answer = verve_recv_answer,
	.done = verve_rndv_done,
	.fail = verve_recv_fail,
	.restart = verve_rndv_restart,
	.describe = verve_recv_describe,
	.blame = verve_recv_blame,
	.release = verve_recv_release,
};

static inline __attribute__((always_inline)) struct verve_recv_op *
recv_alloc(struct verve_xport *xport, uint32_t flags)
{
	struct verve_recv_op *recv =
		verve_recv_op_of(verve_op_alloc(xport, &verve_recv_class, flags));

	if (recv)
		verve_memory_init(&recv->memory);
	return recv;
}

struct verve_recv_op *verve_recv_alloc(struct verve_xport *xport, uint32_t flags)
{
	return recv_alloc(xport, flags);
}

static uint64_t source_of(struct verve_xport *xport, struct verve_peer *peer)
{
	return xport->attr.source ? verve_peer_fi_addr(xport, peer) : UINT64_MAX;
}

/* Stores in the receive what its completion says about the message. */
static void recv_label(struct verve_xport *xport, struct verve_recv_op *recv,
		       struct verve_peer *peer, const struct verve_wire_packet *packet)
{
	recv->tag = packet->tag;
	recv->msg_len = packet->len;
	recv->src = source_of(xport, peer);
	if (packet->flags & VERVE_WIRE_DATA) {
		recv->op.flags |= VERVE_OP_DATA;
		recv->data = packet->data;
	}
}

/*
 * True if the receive ends with the message: the message is here and fits, and neither the sender
 * nor a multi-receive buffer waits for the receive's end.
 */
static bool ends_at_once(const struct verve_xport *xport, const struct verve_recv_op *recv,
			 const struct verve_wire_packet *packet)
{
	return packet->type == VERVE_WIRE_EAGER && !(packet->flags & VERVE_WIRE_ACK) &&
	       packet->len <= recv->op.len && !recv->parent && !xport->mute;
}

/*
 * Ends the receive as verve_recv_finish would: copies, frees, reports. There is no registration to
 * give back, because an eager message needs none.
 */
static inline void end_at_once(struct verve_xport *xport, struct verve_recv_op *recv,
			       struct verve_peer *peer, const struct verve_wire_packet *packet)
{
	const struct verve_memory *memory = &recv->memory;
	const struct verve_sink *sink = &xport->attr.sink;
	bool data = packet->flags & VERVE_WIRE_DATA;
	struct verve_comp comp = {
		.context = recv->op.context,
		.flags = VERVE_COMP_RECV | (data ? VERVE_COMP_REMOTE_CQ_DATA : 0) |
			 (recv->op.flags & VERVE_OP_TAGGED ? VERVE_COMP_TAGGED : VERVE_COMP_MSG),
		.len = packet->len,
		.buf = memory->iov_count ? memory->iov[0].iov_base : NULL,
		.data = data ? packet->data : 0,
		.tag = packet->tag,
		.src = source_of(xport, peer),
	};
	bool notify = recv->op.flags & VERVE_OP_NOTIFY;

	verve_iov_scatter(memory->iov, memory->iov_count, 0, packet->payload, packet->len);
	assert(!memory->slab && !memory->owned);
	verve_op_free_bare(xport, &verve_recv_class, &recv->op);
	verve_report_now(sink->rx_queue, sink->recv, notify, &comp);
}

/* The receive takes a message, and ends later, or owes an answer. */
static void begin(struct verve_xport *xport, struct verve_recv_op *recv, struct verve_peer *peer,
		  uint32_t link_id, const struct verve_wire_packet *packet)
{
	const struct verve_memory *memory = &recv->memory;

	recv_label(xport, recv, peer, packet);
	recv->op.peer = peer;
	if (packet->type == VERVE_WIRE_RTS) {
		verve_rndv_accept(xport, peer, link_id, recv, packet);
		return;
	}
	recv->op.len = verve_iov_scatter(memory->iov, memory->iov_count, 0, packet->payload,
					 packet->len);
	if (packet->flags & VERVE_WIRE_ACK && verve_link_live(xport, link_id))
		recv->fin.id = packet->op_id;
	verve_recv_finish(xport, recv, 0, NULL);
}

/* The receive takes the message. The receive is in no queue and no table. */
static inline __attribute__((always_inline)) void
deliver(struct verve_xport *xport, struct verve_recv_op *recv, struct verve_peer *peer,
	uint32_t link_id, const struct verve_wire_packet *packet)
{
	if (ends_at_once(xport, recv, packet))
		end_at_once(xport, recv, peer, packet);
	else
		begin(xport, recv, peer, link_id, packet);
}

/*
 * Makes a separate receive for one message of len bytes in the multi-receive buffer parent. NULL:
 * no memory. The buffer is spent once fewer than min_multi_recv bytes are left; the caller then
 * takes it out of the table.
 */
static struct verve_recv_op *split(struct verve_xport *xport, struct verve_recv_op *parent,
				   uint64_t len)
{
	struct verve_recv_op *recv = verve_recv_alloc(xport, (parent->op.flags & ~VERVE_OP_MULTI) |
							VERVE_OP_UNINVITED);
	size_t left = parent->op.len - parent->used;

	if (!recv) {
		verve_msg_of(xport)->starved = true;
		return NULL;
	}
	verve_recv_begin(recv, 0);
	recv->op.context = parent->op.context;
	recv->op.len = len < left ? len : left;
	recv->memory.iov_count = 1;
	recv->memory.iov[0].iov_base = (char *)parent->memory.iov[0].iov_base + parent->used;
	recv->memory.iov[0].iov_len = recv->op.len;
	recv->memory.region[0] = parent->memory.region[0];
	recv->parent = parent;
	/* The last completion gives the buffer back: an errand's may not come after it. */
	recv->memory.in_place = true;
	parent->children++;
	parent->used += recv->op.len;
	parent->spent = parent->op.len - parent->used < xport->home->attr.min_multi_recv;
	return recv;
}

/*
 * While messages wait for memory: true if the message must wait, too. It would go to a buffer, or
 * to a receive that an older message may need: the buffer of that one may be spent by then.
 */
static __attribute__((noinline, cold)) bool must_wait(struct verve_match *match, uint32_t source,
						      uint64_t tag)
{
	const struct verve_match_recv *posted = verve_match_expect(match, source, tag);

	return posted && (posted->stays || verve_match_find(match, posted->source, posted->tag,
							    posted->ignore));
}

/*
 * The receive that takes the message; it is out of the table and ready for deliver. NULL: no posted
 * receive matches, or there is no memory to place the message in a multi-receive buffer now, or
 * older messages come first.
 */
static inline __attribute__((always_inline)) struct verve_recv_op *
take_posted(struct verve_xport *xport, struct verve_match *match, uint32_t source,
	    const struct verve_wire_packet *packet)
{
	struct verve_match_recv *posted;
	struct verve_recv_op *parent, *recv;

	/* verve_recv_feed goes on with the messages that wait. */
	if (__builtin_expect(verve_msg_of(xport)->starved, 0) &&
	    must_wait(match, source, packet->tag))
		return NULL;
	posted = verve_match_arrive(match, source, packet->tag);
	if (!posted)
		return NULL;
	recv = verve_recv_op_of_match(posted);
	if (!posted->stays) {
		verve_recv_begin(recv, posted->tag);
		return recv;
	}
	parent = recv;
	recv = split(xport, parent, packet->len);
	if (recv && parent->spent)
		verve_match_cancel(match, posted);
	return recv;
}

/*
 * The sender has one operation for each message that waits for a FIN, and at most
 * VERVE_CONFIG_TX_SIZE_MAX operations.
 */
static bool exceeds_queue(const struct verve_link *link, const struct verve_wire_packet *packet)
{
	return verve_fin_is_wanted(packet) && link->unanswered_messages >= VERVE_CONFIG_TX_SIZE_MAX;
}

/*
 * A message that came cannot be received. The link breaks, if it has not broken before; and none
 * that came behind the message may overtake it.
 */
static void lose(struct verve_xport *xport, struct verve_link *link, int error, const char *reason)
{
	link->lossy = true;
	verve_link_break(xport, link, error, 0, reason);
}

void verve_recv_arrived(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet)
{
	struct verve_match *match = verve_msg_match_of(xport, packet->flags & VERVE_WIRE_TAGGED);
	bool eager = packet->type == VERVE_WIRE_EAGER;
	struct verve_recv_op *recv;
	int ret;

	if (eager && !verve_credit_arrive(xport, link, packet->len)) {
		lose(xport, link, FI_EIO, "the peer sends more than its window allows");
		return;
	}
	if (exceeds_queue(link, packet)) {
		lose(xport, link, FI_EIO, "the peer has more messages under way than it can");
		return;
	}
	if (!eager)
		verve_parts_expect(link, packet);
	recv = take_posted(xport, match, link->peer->id, packet);
	link->unanswered_messages += verve_fin_is_wanted(packet);
	if (recv) {
		deliver(xport, recv, link->peer, link->id, packet);
		if (eager)
			verve_credit_settle(xport, link);
		return;
	}
	ret = verve_unexpected_keep(xport, link, packet);
	if (ret == -FI_ENOMEM)
		lose(xport, link, FI_ENOMEM, "no memory for an unexpected message");
	else if (ret)
		lose(xport, link, FI_EIO, "the peer names two messages alike");
}

/* Fills the receive in from the request. Returns its match table; NULL: *ret is the error. */
static struct verve_match *recv_prepare(struct verve_xport *xport,
					const struct verve_request *request,
					struct verve_recv_op *recv, int *ret)
{
	struct verve_match_recv *match = &recv->match;
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
	match->stays = request->flags & VERVE_OP_MULTI;
	verve_op_fill(&recv->op, request);
	return verve_msg_match_of(xport, request->flags & VERVE_OP_TAGGED);
}

void verve_recv_consume(struct verve_op *op, struct verve_unexpected *unexpected)
{
	struct verve_xport *xport = unexpected->xport;
	struct verve_link *link = verve_unexpected_link(unexpected);
	struct verve_peer *peer = unexpected->peer;

	verve_unexpected_take(unexpected);
	deliver(xport, verve_recv_op_of(op), peer, link ? link->id : 0, &unexpected->packet);
	verve_unexpected_pay_back(unexpected);
	verve_unexpected_free(unexpected);
	verve_fence_continue(xport, peer);
}

/* Places the waiting messages that match in the posted multi-receive buffer parent. */
static void fill_multi(struct verve_xport *xport, struct verve_match *match,
		       struct verve_recv_op *parent)
{
	struct verve_match_recv *posted = &parent->match;
	struct verve_match_msg *msg;

	while ((msg = verve_match_find(match, posted->source, posted->tag, posted->ignore))) {
		struct verve_unexpected *unexpected = verve_unexpected_of(msg);
		struct verve_recv_op *recv = split(xport, parent, unexpected->packet.len);
		bool spent = parent->spent;

		if (!recv)
			return;
		verve_match_remove(match, msg);
		if (spent)
			verve_match_cancel(match, posted);
		/* From here on parent may be freed: the last message of a spent buffer frees it. */
		verve_recv_consume(&recv->op, unexpected);
		if (spent)
			return;
	}
}

/*
 * Gives the waiting messages, the oldest first, to the posted receives, as if they came now. Stops
 * at a message that finds no memory.
 */
static void feed(struct verve_xport *xport, struct verve_match *match)
{
	const struct verve_msg *msg = verve_msg_of(xport);
	struct verve_match_msg *waiting;

	match->next = TAILQ_FIRST(&match->unexpected);
	while (match->posted_count && (waiting = match->next)) {
		struct verve_unexpected *unexpected = verve_unexpected_of(waiting);
		struct verve_recv_op *recv = take_posted(xport, match, waiting->source,
							 &unexpected->packet);

		if (msg->starved)
			break;
		match->next = TAILQ_NEXT(waiting, order);
		if (!recv)
			continue;
		verve_match_remove(match, waiting);
		/* A link may break here, and take messages along. */
		verve_recv_consume(&recv->op, unexpected);
	}
	match->next = NULL;
}

static void feed_all(struct verve_xport *xport)
{
	struct verve_msg *msg = verve_msg_of(xport);

	msg->starved = false;
	for (int i = 0; i < 2 && !msg->starved; i++)
		feed(xport, &msg->match[i]);
}

/* Without memory, each poll would look through all messages that wait in vain. */
static bool is_memory_back(struct verve_xport *xport)
{
	struct verve_recv_op *recv = verve_recv_alloc(xport, 0);

	if (recv)
		verve_op_free(xport, &recv->op);
	return recv;
}

bool verve_recv_feed(struct verve_xport *xport)
{
	if (xport->home->failed || !is_memory_back(xport))
		return false;
	feed_all(xport);
	return !verve_msg_of(xport)->starved;
}

int verve_recv(struct verve_xport *xport, const struct verve_request *request)
{
	struct verve_match_msg *msg = NULL;
	struct verve_recv_op *recv;
	struct verve_match *match;
	int ret;

	/* The new receive must not take a message that waits for an older buffer. */
	if (__builtin_expect(verve_msg_of(xport)->starved, 0) && !verve_recv_feed(xport))
		return xport->home->failed ? -xport->home->failed : -FI_EAGAIN;
	recv = recv_alloc(xport, request->flags);
	if (!recv)
		return -FI_EAGAIN;
	match = recv_prepare(xport, request, recv, &ret);
	if (ret)
		goto err_free;
	if (!(recv->op.flags & VERVE_OP_MULTI))
		msg = verve_match_find(match, recv->match.source, recv->match.tag,
				       recv->match.ignore);
	if (msg) {
		verve_match_remove(match, msg);
		verve_recv_begin(recv, request->tag);
		verve_recv_consume(&recv->op, verve_unexpected_of(msg));
		return 0;
	}
	if (recv->op.flags & VERVE_OP_MULTI)
		verve_recv_begin(recv, request->tag);
	if (verve_match_post(match, &recv->match)) {
		ret = -FI_EAGAIN;
		goto err_free;
	}
	verve_op_set_state(&recv->op, VERVE_OP_POSTED);
	if (recv->op.flags & VERVE_OP_MULTI)
		fill_multi(xport, match, recv);
	return 0;

err_free:
	verve_op_free(xport, &recv->op);
	return ret;
}

/*
 * Ends a receive that the caller has taken out of its table, with an error. A multi-receive buffer
 * in which messages are still being placed ends with the last of these messages.
 */
static void recv_end(struct verve_xport *xport, struct verve_recv_op *recv, int error,
		     const char *reason)
{
	if (!(recv->op.flags & VERVE_OP_MULTI)) {
		verve_recv_begin(recv, recv->match.tag);
	} else if (recv->children) {
		recv->spent = true;
		return;
	}
	recv->op.len = 0;
	verve_op_report_error(xport, &recv->op, error, 0, reason);
	verve_op_free(xport, &recv->op);
}

int verve_recv_cancel(struct verve_xport *xport, const void *context)
{
	for (int i = 0; i < 2; i++) {
		struct verve_match *match = verve_msg_match_of(xport, i);
		struct verve_match_recv *posted;

		TAILQ_FOREACH(posted, &match->posted, order) {
			struct verve_recv_op *recv = verve_recv_op_of_match(posted);
			bool stays = posted->stays;

			if (recv->op.context != context)
				continue;
			verve_match_cancel(match, posted);
			recv_end(xport, recv, FI_ECANCELED, "cancelled");
			/* The next receive may need no memory for what waited for this buffer. */
			if (stays && verve_msg_of(xport)->starved && !xport->home->failed)
				feed_all(xport);
			return 0;
		}
	}
	return -FI_ENOENT;
}

/*
 * Receives on a shared context stay posted when an endpoint of it ends: its other endpoints still
 * match them. True: there was any.
 */
static bool end_posted(struct verve_xport *xport, int error, const char *reason)
{
	struct verve_msg *own = (struct verve_msg *)xport;
	bool any = false;

	for (int i = 0; i < 2; i++) {
		struct verve_match_recv *posted;

		while ((posted = TAILQ_FIRST(&own->match[i].posted))) {
			verve_match_cancel(&own->match[i], posted);
			recv_end(xport, verve_recv_op_of_match(posted), error, reason);
			any = true;
		}
	}
	return any;
}

void verve_recv_cancel_all(struct verve_xport *xport)
{
	end_posted(xport, FI_ECANCELED, "cancelled");
	verve_unexpected_forget_all(xport);
}

bool verve_recv_fail_all(struct verve_xport *home, int error)
{
	home->failed = error;
	/* verve_recv looks at failed only where it must look at starved in any case. */
	verve_msg_of(home)->starved = true;
	return end_posted(home, error, verve_failure_reason(error));
}

void verve_recv_need_peers(struct verve_xport *xport)
{
	for (int i = 0; i < 2; i++) {
		struct verve_match_recv *posted;

		TAILQ_FOREACH(posted, &verve_msg_match_of(xport, i)->posted, order)
			if (posted->source != VERVE_MATCH_ANY)
				verve_peer_need(
					verve_idtab_get(&xport->home->peer_ids, posted->source));
	}
	verve_unexpected_need_peers(xport);
}
