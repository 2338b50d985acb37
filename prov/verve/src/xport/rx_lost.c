/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lost receives: which receive buffers are in question, and which queue pairs may have them. */
#include "xport/rx_lost.h"

#include <atomic_ops.h>

#include "base/log.h"
#include "net/qp.h"
#include "net/srq.h"
#include "xport/cm_events.h"
#include "xport/dispatch.h"
#include "xport/rx_buffers.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/replay.h"
#include "xport/replay_state.h"
#include "xport/watched.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

enum { PER_PACKET = 4 };

/* Parts of the receive buffers. */
enum {
	TOLERATED = 8, /* one in so many may stay in question; more: silent peers are asked */
	URGENT = 2,    /* more in question than this part: silent links are renewed */
	RESERVE = 4,   /* less than this part not in question: links with own requests, too */
};

/*
 * True if the buffer is posted and has lost its mark: a queue pair has begun to write to it. The
 * load acquires, so that a completion that is polled afterwards is newer than the mark.
 */
static bool is_touched(const struct verve_rx_lost *lost, const struct verve_slab *slab)
{
	return slab->lent == VERVE_RX_LOST_BEGUN ||
	       (slab->lent == VERVE_RX_LOST_POSTED &&
		AO_load_acquire((const volatile AO_t *)slab->data) != (AO_t)lost->mark);
}

static uint32_t count_in(const struct verve_xport *xport, enum verve_rx_lost_state state)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < xport->rx_count; i++)
		count += xport->lost.buffers[i]->lent == state;
	return count;
}

static uint32_t count_asked(const struct verve_xport *xport)
{
	return count_in(xport, VERVE_RX_LOST_ASKED);
}

static uint32_t count_touched(const struct verve_xport *xport)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < xport->rx_count; i++)
		count += is_touched(&xport->lost, xport->lost.buffers[i]);
	return count;
}

/* True if the link's queue pair was open when the buffers came into question. */
static bool is_older(const struct verve_xport *xport, const struct verve_link *link)
{
	return link->qp && (int32_t)(verve_net_qp_serial(link->qp) - xport->lost.before) < 0;
}

/*
 * True if the link's queue pair has none of the buffers in question: the queue pair has completed a
 * receive since; or the peer is this endpoint itself, and each request has ended, so that each
 * packet has arrived. A stopped link proves nothing: a packet that arrives now may have come over
 * the queue pair that continues the link.
 */
static bool is_innocent(const struct verve_link *link)
{
	if (verve_replay_is_stopped(link))
		return false;
	return link->arrived != link->arrived_before ||
	       (link->is_self && link->retired == link->produced);
}

static uint32_t count_innocent(const struct verve_xport *xport,
			       const struct verve_link_queue *links)
{
	const struct verve_link *link;
	uint32_t count = 0;

	TAILQ_FOREACH(link, links, all)
		count += is_older(xport, link) && is_innocent(link);
	return count;
}

static void count_arrived(struct verve_link_queue *links)
{
	struct verve_link *link;

	TAILQ_FOREACH(link, links, all)
		link->arrived_before = link->arrived;
}

/*
 * The touched buffers are in question from here on. Every receive that has completed must be
 * handled before the packets of each link are counted: only a packet that arrives after the count
 * shows that its queue pair had none of these buffers.
 */
static void question_touched(struct verve_xport *xport)
{
	struct verve_rx_lost *lost = &xport->lost;

	for (uint32_t i = 0; i < xport->rx_count; i++)
		if (is_touched(lost, lost->buffers[i]))
			lost->buffers[i]->lent = VERVE_RX_LOST_ASKED;
	if (!count_asked(xport))
		return;
	verve_cm_events_drain(xport);
	lost->count = count_asked(xport);
	lost->before = verve_net_srq_opened(xport->srq);
	count_arrived(&xport->links);
	count_arrived(&xport->broken_links);
}

/* True if no queue pair can have the buffers in question: each older one is closed or innocent. */
static bool is_decided(const struct verve_xport *xport)
{
	return verve_net_srq_older(xport->srq, xport->lost.before) ==
	       count_innocent(xport, &xport->links) + count_innocent(xport, &xport->broken_links);
}

/*
 * Posts the buffers in question again: no queue pair has them. A queue pair that has just closed
 * may have flushed some of them: such completions are polled first, and return the buffers as
 * ever.
 */
static void take_back(struct verve_xport *xport)
{
	struct verve_rx_lost *lost = &xport->lost;

	verve_cm_events_drain(xport);
	lost->count = count_asked(xport);
	VERVE_INFO(EP_DATA, "%u receive buffers come back that queue pairs took along\n",
		   lost->count);
	for (uint32_t i = 0; i < xport->rx_count; i++) {
		if (lost->buffers[i]->lent == VERVE_RX_LOST_ASKED)
			verve_rx_buffers_take_back(xport, lost->buffers[i]);
	}
	lost->count = 0;
	verve_dispatch_refill(xport);
}

/*
 * Asks the peer for a key, which it answers in any case, if only with "no such key". The answer
 * settles the question for the link's queue pair, and disturbs nothing that either side has under
 * way.
 */
static void ask_for_packet(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_KEY_QUERY, .tag = UINT64_MAX};

	if (!link->keys.asked && verve_link_is_open(link) &&
	    verve_link_has_room(xport, link, true) && verve_link_send(xport, link, &packet, NULL)) {
		link->keys.asked++;
		verve_watched_insert(xport, link);
	}
	/* The completion shows when no request of this side is under way any more. */
	if (!link->broken && link->produced != link->retired)
		verve_link_ask(xport, link);
}

/*
 * Renewing a link is the last resort for a peer that does not answer. All operations of both sides
 * wait for the next queue pair, and an atomic of the device may fail: so links with requests of
 * this side come last. missing: buffers in question.
 */
static bool is_to_be_renewed(const struct verve_xport *xport, const struct verve_link *link,
			     uint32_t missing)
{
	bool busy = link->produced != link->retired || !TAILQ_EMPTY(&link->peer->active);
	uint32_t all = verve_rx_buffers_in_use(xport);

	return missing > (busy ? all - all / RESERVE : all / URGENT);
}

/*
 * Both sides have agreed that nothing is under way, but the peer's device does not acknowledge the
 * last request. The end costs nothing: operations that wait get a new connection in any case.
 */
static void break_agreed(struct verve_xport *xport, struct verve_link *link, uint32_t missing)
{
	if (missing > verve_rx_buffers_in_use(xport) / URGENT)
		verve_link_break(xport, link, FI_ENOTCONN, 0,
				 "its queue pair may have taken receive buffers along");
}

/*
 * Asks the peer of each link whose queue pair may have the buffers in question for a packet, and
 * gives the link another queue pair if the peer does not answer. A link to this endpoint itself
 * cannot have another one: it posts a request whose completion shows that every packet has arrived.
 * A connection that the peer may not have yet is left alone, because the peer could not continue
 * it, and would take its end for a refusal; or the address is forged, and there is no peer. Such a
 * connection comes up, or times out (xport/half_open.h).
 */
static void renew_links(struct verve_xport *xport, uint32_t missing)
{
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (!is_older(xport, link) || is_innocent(link) || !verve_replay_is_mutual(link))
			continue;
		if (link->is_self)
			verve_link_ask(xport, link);
		else if (link->quiesce.state == VERVE_QUIESCE_AGREED)
			break_agreed(xport, link, missing);
		else if (is_to_be_renewed(xport, link, missing))
			verve_replay_renew(xport, link);
		else
			ask_for_packet(xport, link);
	}
}

/* A buffer that loses its mark while others are in question comes into question after them. */
static void examine(struct verve_xport *xport)
{
	struct verve_rx_lost *lost = &xport->lost;

	lost->count = count_asked(xport);
	if (lost->count && !is_decided(xport))
		return;
	if (lost->count)
		take_back(xport);
	question_touched(xport);
	if (lost->count && is_decided(xport))
		take_back(xport);
}

/* A flooded completion queue takes no packets, and searching would have to poll packets. */
static void search(struct verve_xport *xport)
{
	struct verve_rx_lost *lost = &xport->lost;
	uint32_t missing;
	bool scarce;

	xport->count.searches++;
	lost->closed = verve_net_srq_closed(xport->srq);
	verve_cm_events_drain(xport);
	lost->handled = xport->handled;
	examine(xport);
	missing = lost->count + count_touched(xport);
	scarce = missing > verve_rx_buffers_in_use(xport) / TOLERATED;
	/* One buffer that is missing keeps its step, and each older one, from being freed. */
	lost->pressing = xport->cm && lost->count && (scarce || xport->rx_load.shrinking);
	if (!lost->pressing)
		return;
	/* Free buffers that are no batch may be the last, and a peer's answer wait for them. */
	verve_dispatch_refill(xport);
	/* Buffers put aside serve at once, and only packets in many others would free them. */
	if (scarce && xport->rx_load.shrinking) {
		verve_rx_buffers_stop_shrinking(xport);
		verve_dispatch_refill(xport);
	}
	/* Other queue pairs for honest peers are dearer than buffers, while these may be added. */
	if (scarce && verve_rx_buffers_reinforce(xport)) {
		verve_dispatch_refill(xport);
		return;
	}
	renew_links(xport, missing);
}

/*
 * A search looks at every buffer. What it finds changes with a packet, or with a queue pair. While
 * few buffers are in question, packets can wait for each other, and for the next watch: so that
 * they cost PER_PACKET looks each.
 */
static bool has_news(const struct verve_xport *xport)
{
	const struct verve_rx_lost *lost = &xport->lost;
	uint64_t packets = xport->handled - lost->handled;

	return verve_net_srq_closed(xport->srq) != lost->closed ||
	       (lost->count && packets && (lost->pressing ||
					   packets >= xport->rx_count / PER_PACKET));
}

void verve_rx_lost_step(struct verve_xport *xport)
{
	if (has_news(xport) && !verve_dispatch_is_flooded(xport))
		search(xport);
}

/*
 * A peer that has begun a message and does not go on keeps a buffer as long as it likes: a
 * responder has no timer. A buffer that stays begun between two watches is no busy peer's.
 */
static bool is_held_up(struct verve_xport *xport)
{
	uint32_t tolerated = verve_rx_buffers_in_use(xport) / TOLERATED;

	if (count_in(xport, VERVE_RX_LOST_BEGUN) <= tolerated)
		return false;
	/* The last part may have come, and the completion was not handled. */
	verve_cm_events_drain(xport);
	return count_in(xport, VERVE_RX_LOST_BEGUN) > tolerated;
}

static void remember_begun(struct verve_xport *xport)
{
	for (uint32_t i = 0; i < xport->rx_count; i++)
		if (is_touched(&xport->lost, xport->lost.buffers[i]))
			xport->lost.buffers[i]->lent = VERVE_RX_LOST_BEGUN;
}

void verve_rx_lost_watch(struct verve_xport *xport)
{
	if (verve_dispatch_is_flooded(xport))
		return;
	/* A link with this endpoint itself may have ended its requests without a packet. */
	if (is_held_up(xport) || xport->lost.count || has_news(xport))
		search(xport);
	/* No poll finds long messages that have begun, however many come at the same time. */
	if (count_touched(xport) > verve_rx_buffers_in_use(xport) / URGENT &&
	    verve_rx_buffers_reinforce(xport))
		verve_dispatch_refill(xport);
	remember_begun(xport);
}

bool verve_rx_lost_is_to_be_watched(const struct verve_xport *xport)
{
	return xport->link_count > verve_rx_buffers_in_use(xport) / URGENT;
}
