/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fence: asking the peer, and answering it. */
#include "xport/fence_ask.h"

#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/wire.h"
#include "xport/xport.h"

/* True if FENCE was sent behind the last message: an answer to an older FENCE says too little. */
static bool is_asked(const struct verve_fence *fence, bool matched)
{
	return fence->asks && fence->asked == fence->sent && fence->asks_matched == matched;
}

bool verve_fence_is_passed(struct verve_xport *xport, struct verve_link *link,
			   const struct verve_op *op)
{
	bool matched = op->cls->is_message && op->flags & VERVE_OP_MATCH;
	struct verve_fence *fence = &link->peer->fence;
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_FENCE,
		.op_id = fence->sent,
		.status = matched,
	};

	/* The FIN of a message says that the messages before it were handled, not matched. */
	if (op->cls->is_message && !matched)
		return true;
	if (fence->sent == (matched ? fence->matched : fence->handled))
		return true;
	if (is_asked(fence, matched) || !verve_link_has_room(xport, link, true) ||
	    !verve_link_send(xport, link, &packet, NULL))
		return false;
	fence->asked = fence->sent;
	fence->asks_matched = matched;
	fence->asks = true;
	return false;
}

void verve_fence_asked(struct verve_xport *xport, struct verve_link *link,
		       struct verve_wire_packet *packet)
{
	struct verve_fence *fence = &link->peer->fence;

	fence->question = packet->op_id;
	fence->owes_matched = packet->status;
	fence->owes = true;
	verve_fence_continue(xport, link->peer);
}

void verve_fence_answered(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	struct verve_fence *fence = &link->peer->fence;

	if (!fence->asks || packet->op_id != fence->asked ||
	    packet->status != fence->asks_matched) {
		xport->count.stale++;
		return;
	}
	fence->asks = false;
	fence->handled = fence->asked;
	if (fence->asks_matched)
		fence->matched = fence->asked;
}

/* Sends FENCED. False: no room now, or the link broke. */
static bool fence_answer(struct verve_xport *xport, struct verve_link *link)
{
	const struct verve_fence *fence = &link->peer->fence;
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_FENCED,
		.op_id = fence->question,
		.status = fence->owes_matched,
	};

	return verve_link_has_room(xport, link, true) &&
	       verve_link_send(xport, link, &packet, NULL);
}

void verve_fence_continue(struct verve_xport *xport, struct verve_peer *peer)
{
	struct verve_fence *fence = &peer->fence;
	struct verve_link *link = peer->link;

	if (!fence->owes || (fence->owes_matched && fence->kept))
		return;
	if (!link || !verve_link_is_open(link))
		return;
	if (fence_answer(xport, link))
		fence->owes = false;
	else if (!link->broken)
		verve_peer_wait(xport, peer);
}
