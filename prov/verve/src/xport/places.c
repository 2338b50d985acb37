/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connecting: places, and the peers that wait for one. */
#include "xport/places.h"

#include "conn/cm.h"
#include "net/sys.h"
#include "xport/failure.h"
#include "xport/peer.h"
#include "xport/report.h"
#include <rdma/fi_errno.h>

/* Nanoseconds that a peer waits for a place before it connects above the limit. */
static const uint64_t patience = 100000000;

static void set_connecting(struct verve_xport *xport, struct verve_peer *peer, bool connecting)
{
	xport->connecting_count += connecting - peer->connecting;
	peer->connecting = connecting;
}

void verve_peer_connected(struct verve_xport *xport, struct verve_peer *peer)
{
	set_connecting(xport, peer, false);
	peer->is_asked_for = false;
}

void verve_peer_fail_pending(struct verve_xport *xport, struct verve_peer *peer, int error,
			     const char *reason)
{
	struct verve_op *op;

	while ((op = TAILQ_FIRST(&peer->pending))) {
		op->status = 0;
		verve_op_fail(xport, op, error, reason);
	}
}

static bool has_place(const struct verve_xport *xport)
{
	return !xport->attr.max_conns || verve_places_taken(xport) < xport->attr.max_conns;
}

/* True: there is a place. False: the peer is in xport->wanting; verve_places_step connects it. */
static bool admit(struct verve_xport *xport, struct verve_peer *peer)
{
	if (peer->is_wanting)
		return false;
	if (TAILQ_EMPTY(&xport->wanting) && has_place(xport))
		return true;
	if (TAILQ_EMPTY(&xport->wanting))
		xport->wanting_since = verve_net_now();
	peer->is_wanting = true;
	TAILQ_INSERT_TAIL(&xport->wanting, peer, wanting);
	return false;
}

static bool needs_link(const struct verve_peer *peer)
{
	return !TAILQ_EMPTY(&peer->pending) || peer->is_asked_for;
}

static void ask_manager(struct verve_xport *xport, struct verve_peer *peer)
{
	int ret;

	if (!needs_link(peer) || peer->connecting)
		return;
	peer->is_asked_for = false;
	if (xport->failed) {
		verve_peer_fail_pending(xport, peer, xport->failed,
					verve_failure_reason(xport->failed));
		return;
	}
	ret = verve_cm_connect(xport->cm, &peer->addr);
	if (ret)
		verve_peer_fail_pending(xport, peer, -ret, "no memory to connect");
	else
		set_connecting(xport, peer, true);
	if (!ret)
		verve_stat_event(&xport->stat, peer->stat, VERVE_STAT_EVENT_ASKED, 0);
}

void verve_peer_connect(struct verve_xport *xport, struct verve_peer *peer)
{
	if (!peer->link && needs_link(peer) && !peer->connecting && admit(xport, peer))
		ask_manager(xport, peer);
}

int verve_peer_try_again(struct verve_xport *xport, struct verve_peer *peer)
{
	if (!peer->link && !peer->connecting && xport->cm) {
		peer->is_asked_for = true;
		verve_peer_connect(xport, peer);
	}
	return -FI_EAGAIN;
}

static void give_place(struct verve_xport *xport, uint64_t now)
{
	struct verve_peer *peer = TAILQ_FIRST(&xport->wanting);

	TAILQ_REMOVE(&xport->wanting, peer, wanting);
	peer->is_wanting = false;
	xport->wanting_since = now;
	/* The peer may have connected to this endpoint meanwhile. */
	if (!peer->link)
		ask_manager(xport, peer);
}

void verve_places_step(struct verve_xport *xport, uint64_t now)
{
	/* The work that keeps the other connections busy may itself wait for this peer. */
	if (!TAILQ_EMPTY(&xport->wanting) && now - xport->wanting_since > patience)
		give_place(xport, now);
	while (!TAILQ_EMPTY(&xport->wanting) && has_place(xport))
		give_place(xport, now);
}

uint32_t verve_places_excess(const struct verve_xport *xport)
{
	if (!verve_places_is_due(xport))
		return 0;
	return verve_places_taken(xport) - xport->attr.max_conns + !TAILQ_EMPTY(&xport->wanting);
}
