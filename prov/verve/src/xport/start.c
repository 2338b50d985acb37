/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Starting: the queues of a peer, and its greeting. */
#include "xport/start.h"

#include <assert.h>

#include "xport/aside.h"
#include "xport/bulk.h"
#include "xport/fence.h"
#include "xport/fence_ask.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/post.h"
#include "xport/watched.h"
#include "xport/xport.h"

/*
 * True if op, which is fenced, must wait for started (FI_FENCE, fi_cq(3)). Only operations of this
 * side count: the peer's messages may come without a pause. A message that has completed, because
 * it was copied, counts only if op's own completion says that it is delivered (verve_fence_speaks).
 */
static bool is_before(const struct verve_op *started, const struct verve_op *op)
{
	if (started->cls->is_receive)
		return false;
	return !started->cls->is_message || !(started->flags & VERVE_OP_REPORTED) ||
	       verve_fence_speaks(op);
}

static bool is_fenced_off(const struct verve_peer *peer, const struct verve_op *op)
{
	const struct verve_op *started;

	TAILQ_FOREACH(started, &peer->active, link)
		if (is_before(started, op))
			return true;
	return peer->parting || !TAILQ_EMPTY(&peer->aside);
}

static bool may_start(const struct verve_xport *xport, const struct verve_peer *peer,
		      const struct verve_op *op)
{
	return verve_link_has_room(xport, peer->link, false) &&
	       !(op->flags & VERVE_OP_FENCE && is_fenced_off(peer, op));
}

/*
 * Returns what became of the operation that is now at the head; VERVE_DONE: there is none, or other
 * work has come that is to be looked at first.
 */
static enum verve_outcome start_queue(struct verve_xport *xport, struct verve_peer *peer,
				       struct verve_op_queue *queue)
{
	enum verve_outcome outcome = VERVE_DONE;
	struct verve_op *op;

	/* If start breaks the link, verve_link_break empties the queue and peer->link is NULL. */
	while (outcome == VERVE_DONE && peer->link && !peer->kick_again &&
	       (op = TAILQ_FIRST(queue))) {
		if (!may_start(xport, peer, op))
			return VERVE_LATER;
		if (!verve_fence_fails(xport, peer, op))
			outcome = op->cls->start(xport, peer->link, op);
	}
	return outcome;
}

static void peer_answer(struct verve_xport *xport, struct verve_peer *peer)
{
	struct verve_op *op = TAILQ_FIRST(&peer->control);

	while (peer->link && op) {
		enum verve_outcome outcome = op->cls->answer(xport, peer->link, op);

		if (outcome == VERVE_DONE)
			op = TAILQ_FIRST(&peer->control);
		else if (outcome == VERVE_PASS)
			op = TAILQ_NEXT(op, link);
		else
			break;
	}
}

/* The peer waits for a first packet of any type: sends a CREDIT, if no packet was sent yet. */
static void link_greet(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CREDIT};

	if (link->sent || (verve_link_has_room(xport, link, true) &&
			   verve_link_send(xport, link, &packet, NULL)))
		link->greets = false;
	else if (!link->broken)
		verve_peer_wait(xport, link->peer);
}

/* Starts this side's operations: the long reads of RMA that stepped aside, then peer->pending. */
static void start_own(struct verve_xport *xport, struct verve_peer *peer)
{
	start_queue(xport, peer, &peer->aside);
	while (start_queue(xport, peer, &peer->pending) == VERVE_LATER &&
	       verve_aside_step(xport, peer))
		;
}

static uint32_t bulk_reads(const struct verve_peer *peer)
{
	return peer->link ? peer->link->bulk_reads : 0;
}

/* True if something of this side waits, and no place of a bulk read is free. */
static bool lacks_place(const struct verve_peer *peer)
{
	return peer->link && verve_bulk_is_full(peer->link) &&
	       (!TAILQ_EMPTY(&peer->aside) || !TAILQ_EMPTY(&peer->pending));
}

/*
 * The peer's messages are read first. But where they took the place of a bulk read (xport/bulk.h),
 * the next one is this side's: a peer that sends without a pause would take each that becomes free.
 */
static void start_all(struct verve_xport *xport, struct verve_peer *peer)
{
	bool own_first = peer->own_is_next;
	uint32_t before = bulk_reads(peer);

	if (own_first)
		start_own(xport, peer);
	/* Until a place is free it is this side's, however often it is kicked before. */
	if (bulk_reads(peer) > before || !lacks_place(peer))
		peer->own_is_next = false;
	before = bulk_reads(peer);
	start_queue(xport, peer, &peer->reads);
	if (bulk_reads(peer) > before)
		peer->own_is_next = true;
	if (!own_first)
		start_own(xport, peer);
}

static void kick(struct verve_xport *xport, struct verve_peer *peer)
{
	if (!peer->link) {
		verve_peer_connect(xport, peer);
		return;
	}
	if (!verve_link_is_open(peer->link))
		return;
	if (peer->link->quiesce.refuse) {
		verve_peer_wait(xport, peer);
		return;
	}
	verve_fence_continue(xport, peer);
	peer_answer(xport, peer);
	start_all(xport, peer);
	if (peer->link && verve_peer_has_work(peer))
		verve_peer_wait(xport, peer);
	if (peer->link && peer->link->greets)
		link_greet(xport, peer->link);
}

/*
 * An operation that starts or ends may queue others, as a receive does that fails and owes a FIN.
 * These wait until it returns: else a peer could make each of many operations end within the one
 * before, until the stack is full.
 */
void verve_peer_kick(struct verve_xport *xport, struct verve_peer *peer)
{
	assert(verve_lock_held(xport->lock));
	peer->kick_again = peer->is_kicked;
	if (peer->is_kicked)
		return;
	peer->is_kicked = true;
	do {
		peer->kick_again = false;
		kick(xport, peer);
	} while (peer->kick_again);
	peer->is_kicked = false;
}

void verve_peer_queue(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op)
{
	struct verve_op_queue *queue = verve_peer_queue_of(peer, op);
	bool first = TAILQ_EMPTY(queue);

	op->peer = peer;
	verve_op_enqueue(op, queue, VERVE_OP_QUEUED);
	if (peer->link)
		verve_watched_owe(xport, peer->link);
	if (first)
		verve_peer_kick(xport, peer);
}

void verve_peer_queue_control(struct verve_xport *xport, struct verve_peer *peer,
			      struct verve_op *op)
{
	verve_op_enqueue(op, &peer->control, VERVE_OP_FINISH);
	verve_peer_kick(xport, peer);
}
