/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connecting: places, and the peers that wait for one. */
#include "xport/places.h"

#include "base/config.h"
#include "conn/cm.h"
#include "mr/monitor.h"
#include "net/sys.h"
#include "xport/failure.h"
#include "xport/peer.h"
#include "xport/report.h"
#include <rdma/fi_errno.h>

/* Nanoseconds that a peer waits for a place before it connects above the limit. */
static const uint64_t patience = 100000000;
/* Nanoseconds for which queue pairs are thought to be missing, once one could not be opened. */
static const uint64_t scarcity = 1000000000;
/*
 * Nanoseconds until a peer that had no queue pair is asked again, at most: after the first time,
 * and after many.
 */
static const uint64_t pause_first = 50000000, pause_last = 1000000000;

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

	peer->lacking = 0;
	while ((op = TAILQ_FIRST(&peer->pending))) {
		op->status = 0;
		verve_op_fail(xport, op, error, reason);
	}
}

static bool has_place(const struct verve_xport *xport)
{
	return verve_places_taken(xport) < verve_places_limit(xport);
}

static void want(struct verve_xport *xport, struct verve_peer *peer, uint64_t now)
{
	if (TAILQ_EMPTY(&xport->wanting))
		xport->wanting_since = now;
	peer->is_wanting = true;
	TAILQ_INSERT_TAIL(&xport->wanting, peer, wanting);
}

/* True: there is a place. False: the peer is in xport->wanting; verve_places_step connects it. */
static bool admit(struct verve_xport *xport, struct verve_peer *peer)
{
	if (peer->is_wanting)
		return false;
	if (TAILQ_EMPTY(&xport->wanting) && has_place(xport))
		return true;
	want(xport, peer, verve_net_now());
	return false;
}

static bool needs_link(const struct verve_peer *peer)
{
	return !TAILQ_EMPTY(&peer->pending) || peer->is_asked_for;
}

/* A peer that needs no link lacks none, so that its next lack counts anew. */
static bool still_needs_link(struct verve_peer *peer)
{
	if (needs_link(peer))
		return true;
	peer->lacking = 0;
	return false;
}

static void ask_manager(struct verve_xport *xport, struct verve_peer *peer)
{
	int ret;

	if (!still_needs_link(peer) || peer->connecting)
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
	/* An endpoint that closes has no manager any more. */
	if (!xport->cm)
		return;
	if (!still_needs_link(peer) || peer->link || peer->connecting)
		return;
	/*
	 * One event may be the peer's UP. If that connection is suspended by now, the manager would
	 * take the request for one that is not to continue it.
	 */
	if (!verve_mailbox_is_empty(&xport->events)) {
		verve_peer_wait(xport, peer);
		return;
	}
	if (admit(xport, peer))
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

static void limit_places(struct verve_xport *xport, uint32_t limit, uint64_t now)
{
	xport->scarce_limit = limit;
	xport->scarce_until = now + scarcity;
}

/*
 * Twice as long after each denial, less a random part: of many endpoints that are denied at the
 * same moment, a few come back at a time, and to a peer that goes on denying they come seldom.
 */
static uint64_t next_pause(struct verve_peer *peer)
{
	uint64_t pause = pause_last;

	if (pause_first << peer->denials < pause_last)
		pause = pause_first << peer->denials++;
	return pause / 2 + verve_net_random64() % (pause / 2);
}

static void deny(struct verve_xport *xport, struct verve_peer *peer, uint64_t now)
{
	struct verve_peer *before;

	peer->retry_at = now + next_pause(peer);
	peer->is_wanting = true;
	TAILQ_FOREACH_REVERSE(before, &xport->denied, verve_peer_queue, wanting)
		if (before->retry_at <= peer->retry_at)
			break;
	if (before)
		TAILQ_INSERT_AFTER(&xport->denied, before, peer, wanting);
	else
		TAILQ_INSERT_HEAD(&xport->denied, peer, wanting);
}

bool verve_places_note_lack(struct verve_peer *peer)
{
	uint64_t now = verve_net_now();

	if (!peer->lacking) {
		peer->lacking = now;
		peer->denials = 0;
	}
	return now - peer->lacking < verve_config.connect_timeout * 1000000ull;
}

/*
 * There was no queue pair here. Some drivers pin its memory (mlx5, bnxt_re): where the process may
 * not pin all that it likes, registrations that nobody uses give way before it is asked for again;
 * once a second, as peers can cause this, and the device may be what has no queue pair.
 */
static void spare_memory(struct verve_xport *xport, uint64_t now)
{
	if (verve_config.locked == SIZE_MAX || now < xport->spared_until)
		return;
	xport->spared_until = now + scarcity;
	verve_mr_monitor_spare(NULL);
}

bool verve_places_lack(struct verve_xport *xport, struct verve_peer *peer, bool here)
{
	uint64_t now = verve_net_now();

	if (here)
		spare_memory(xport, now);
	if (!xport->cm || xport->failed || peer->link || peer->is_wanting || !needs_link(peer))
		return false;
	if (!verve_places_note_lack(peer))
		return false;
	/* Without a connection of its own, it depends on other endpoints and processes. */
	if (here && verve_places_taken(xport)) {
		limit_places(xport, verve_places_taken(xport), now);
		want(xport, peer, now);
	} else {
		deny(xport, peer, now);
	}
	return true;
}

void verve_places_make(struct verve_xport *xport)
{
	uint32_t taken = verve_places_taken(xport);

	spare_memory(xport, verve_net_now());
	/* One at a time: the peer asks again, and so do others. */
	if (taken && taken <= verve_places_limit(xport))
		limit_places(xport, taken - 1, verve_net_now());
}

void verve_places_found(struct verve_xport *xport)
{
	if (verve_places_taken(xport) > xport->scarce_limit)
		xport->scarce_limit = verve_places_taken(xport);
}

void verve_places_retry(struct verve_xport *xport, uint64_t now)
{
	struct verve_peer *peer;

	while ((peer = TAILQ_FIRST(&xport->denied)) && peer->retry_at <= now) {
		TAILQ_REMOVE(&xport->denied, peer, wanting);
		peer->is_wanting = false;
		verve_peer_connect(xport, peer);
	}
}

uint64_t verve_places_next(const struct verve_xport *xport)
{
	const struct verve_peer *denied = TAILQ_FIRST(&xport->denied);
	uint64_t next = denied ? denied->retry_at : UINT64_MAX;

	if (!TAILQ_EMPTY(&xport->wanting) && xport->wanting_since + patience < next)
		next = xport->wanting_since + patience + 1;
	return next;
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
	if (now >= xport->scarce_until)
		xport->scarce_limit = UINT32_MAX;
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
	return verve_places_taken(xport) - verve_places_limit(xport) +
	       !TAILQ_EMPTY(&xport->wanting);
}
