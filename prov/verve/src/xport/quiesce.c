/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Quiescing: which peers are asked, what a QUIESCE packet means, and when a link ends. */
#include "xport/quiesce.h"

#include <assert.h>

#include "base/log.h"
#include "conn/cm.h"
#include "net/sys.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/owed.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/post.h"
#include "xport/start.h"
#include "xport/watched.h"
#include "xport/wire_status.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

enum {
	LOOKS = 16, /* links examined in one turn, at most */
	ASKED = 8,  /* links that quiesce at the same time, at most */
};

/* Nanoseconds after a refusal during which the peer is not asked again. */
static const uint64_t respite = 2000000;

/* True if neither side owes the other anything, as far as this side knows. */
static bool is_idle(const struct verve_link *link)
{
	const struct verve_peer *peer = link->peer;

	return link->may_send && !link->broken && !link->leaving && !link->said_bye &&
	       TAILQ_EMPTY(&peer->active) && !verve_peer_has_work(peer) &&
	       !verve_link_awaits(link) && !verve_link_owes(link);
}

/* Sends QUIESCE with this status. False: the queue has no room now, or the link broke. */
static bool quiesce_send(struct verve_xport *xport, struct verve_link *link, uint32_t status)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_QUIESCE,
		.op_id = link->arrived,
		.status = status,
	};

	return verve_link_has_room(xport, link, true) &&
	       verve_link_send(xport, link, &packet, NULL);
}

static void set_state(struct verve_xport *xport, struct verve_link *link,
		      enum verve_quiesce_state state)
{
	xport->quiescing_count += (state != VERVE_QUIESCE_OPEN) -
				  (link->quiesce.state != VERVE_QUIESCE_OPEN);
	link->quiesce.state = state;
	verve_stat_event(&xport->stat, link->peer->stat,
			 state == VERVE_QUIESCE_OPEN ? VERVE_STAT_EVENT_REOPENED :
						       VERVE_STAT_EVENT_QUIESCED,
			 link->conn_id);
	if (state != VERVE_QUIESCE_OPEN)
		verve_watched_owe(xport, link);
}

static void quiesce_ask(struct verve_xport *xport, struct verve_link *link)
{
	link->quiesce.sent = link->sent;
	link->quiesce.arrived = link->arrived;
	if (quiesce_send(xport, link, VERVE_WIRE_ASK))
		set_state(xport, link, VERVE_QUIESCE_ASKED);
}

/* One side is not idle: the link is open again, and its queues go on. */
static void quiesce_resume(struct verve_xport *xport, struct verve_link *link)
{
	set_state(xport, link, VERVE_QUIESCE_OPEN);
	link->quiesce.not_before = verve_net_now() + respite;
	verve_peer_kick(xport, link->peer);
}

/* Both sides have agreed: the link ends when its last request has retired. */
static void quiesce_agree(struct verve_xport *xport, struct verve_link *link)
{
	set_state(xport, link, VERVE_QUIESCE_AGREED);
	verve_quiesce_end(xport, link);
}

void verve_quiesce_end(struct verve_xport *xport, struct verve_link *link)
{
	if (link->quiesce.state == VERVE_QUIESCE_AGREED && link->retired == link->produced)
		verve_link_break(xport, link, FI_ENOTCONN, 0, "idle, and others need its place");
}

void verve_quiesce_down(struct verve_link *link)
{
	/* quiescing_count stays: it counts ASKED and AGREED alike. */
	if (link->quiesce.state == VERVE_QUIESCE_ASKED)
		link->quiesce.state = VERVE_QUIESCE_AGREED;
}

void verve_quiesce_continue(struct verve_xport *xport, struct verve_link *link)
{
	if (!link->quiesce.refuse || !verve_link_is_open(link))
		return;
	if (quiesce_send(xport, link, VERVE_WIRE_REFUSE))
		link->quiesce.refuse = false;
	else if (!link->broken)
		verve_peer_wait(xport, link->peer);
}

/*
 * The peer asks. heard: the number of packets from this side that the peer had received.
 * link->arrived counts the peer's QUIESCE already. Where both sides have asked, both compare the
 * same numbers, so both come to the same decision without a further packet.
 */
static void receive_question(struct verve_xport *xport, struct verve_link *link, uint32_t heard)
{
	struct verve_quiesce *quiesce = &link->quiesce;

	if (quiesce->state == VERVE_QUIESCE_ASKED) {
		if (heard == quiesce->sent && quiesce->arrived == link->arrived - 1)
			quiesce_agree(xport, link);
		else
			quiesce_resume(xport, link);
		return;
	}
	if (quiesce->state == VERVE_QUIESCE_OPEN && is_idle(link) && heard == link->sent &&
	    quiesce_send(xport, link, VERVE_WIRE_AGREE)) {
		quiesce_agree(xport, link);
		return;
	}
	if (link->broken || link->leaving)
		return;
	quiesce->refuse = true;
	verve_quiesce_continue(xport, link);
}

void verve_quiesce_receive(struct verve_xport *xport, struct verve_link *link,
			   struct verve_wire_packet *packet)
{
	bool asked = link->quiesce.state == VERVE_QUIESCE_ASKED;

	if (link->leaving)
		return;
	if (packet->status == VERVE_WIRE_ASK)
		receive_question(xport, link, packet->op_id);
	else if (asked && packet->status == VERVE_WIRE_AGREE)
		quiesce_agree(xport, link);
	else if (asked)
		quiesce_resume(xport, link);
}

/*
 * True if no request was posted and no packet has arrived since the link was last examined. This is
 * the clock algorithm: using a link costs nothing, and a link is closed only if it stayed unused
 * for a whole round.
 */
static bool is_unused(struct verve_link *link)
{
	uint32_t seen = link->produced + link->arrived;
	bool unused = link->quiesce.seen == seen;

	link->quiesce.seen = seen;
	return unused;
}

static bool may_ask(struct verve_xport *xport, struct verve_link *link, uint64_t now)
{
	return link->quiesce.state == VERVE_QUIESCE_OPEN && is_idle(link) && is_unused(link) &&
	       now >= link->quiesce.not_before &&
	       !verve_addr_equal(&link->peer->addr, verve_cm_addr(xport->cm));
}

/*
 * Examines the next few links, and asks over those that may be closed. xport->links serves as a
 * circle: an examined link moves to the end.
 */
static void ask_some(struct verve_xport *xport, uint32_t wanted, uint64_t now)
{
	struct verve_link *link;

	for (int i = 0; i < LOOKS && xport->quiescing_count < wanted; i++) {
		link = TAILQ_FIRST(&xport->links);
		if (!link)
			return;
		TAILQ_REMOVE(&xport->links, link, all);
		TAILQ_INSERT_TAIL(&xport->links, link, all);
		if (may_ask(xport, link, now))
			quiesce_ask(xport, link);
	}
}

void verve_quiesce_step(struct verve_xport *xport)
{
	uint64_t now = verve_net_now();
	uint32_t wanted;

	if (!xport->cm)
		return; /* the endpoint is being closed */
	verve_places_step(xport, now);
	wanted = verve_places_excess(xport);
	ask_some(xport, wanted < ASKED ? wanted : ASKED, now);
}
