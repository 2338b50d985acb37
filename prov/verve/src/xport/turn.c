/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Turn: the order of the work in one round. */
#include "xport/turn.h"

#include <assert.h>

#include "net/sys.h"
#include "xport/cm_events.h"
#include "xport/complete.h"
#include "xport/detach.h"
#include "xport/dispatch.h"
#include "xport/half_open.h"
#include "xport/keepalive.h"
#include "xport/let_go.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/post.h"
#include "xport/publish.h"
#include "xport/quiesce.h"
#include "xport/replay.h"
#include "xport/rx_buffers.h"
#include "xport/rx_lost.h"
#include "xport/start.h"
#include "xport/sweep.h"
#include "xport/xport.h"

static const uint64_t flood_pause = 10000000; /* nanoseconds */

/* No slab is left: asks for completions on each link, so that requests give their slabs back. */
static void reclaim_slabs(struct verve_xport *xport)
{
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (link->retired != link->produced)
			verve_link_ask(xport, link);
	}
}

static void look_after(struct verve_xport *xport, struct verve_peer *peer)
{
	if (peer->link)
		verve_replay_continue(xport, peer->link);
	if (peer->link)
		verve_quiesce_continue(xport, peer->link);
	verve_peer_kick(xport, peer);
	/* The link's slabs and entries come back only with a completion, so ask for one. */
	if (peer->link && peer->is_waiting && verve_link_has_share(xport, peer->link))
		verve_link_ask(xport, peer->link);
}

/* A peer that must wait again is back in the queue by then. */
void verve_turn_look_after(struct verve_xport *xport)
{
	struct verve_peer_queue waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct verve_peer *peer;

	TAILQ_CONCAT(&waiting, &xport->waiting, waiting);
	while ((peer = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, peer, waiting);
		peer->is_waiting = false;
		look_after(xport, peer);
	}
	if (__builtin_expect(xport->tx_slabs.failures && !xport->tx_slabs.free, 0))
		reclaim_slabs(xport);
}

bool verve_turn_is_due(struct verve_xport *xport)
{
	return verve_dispatch_is_flooded(xport) || xport->leaving_count ||
	       !TAILQ_EMPTY(&xport->wanting) || !TAILQ_EMPTY(&xport->broken_links) ||
	       !TAILQ_EMPTY(&xport->denied) || xport->rx_refused || xport->lost.pressing ||
	       verve_rx_lost_is_to_be_watched(xport) || verve_keepalive_is_needed(xport) ||
	       verve_half_open_is_any(xport);
}

uint64_t verve_turn_pause(const struct verve_xport *xport)
{
	uint64_t now = verve_net_now(), next = verve_places_next(xport);
	uint64_t most = xport->attr.keepalive;

	/* The application reads without telling a sleeper, such as a progress thread. */
	if (verve_dispatch_is_flooded(xport) && most > flood_pause)
		most = flood_pause;
	if (xport->leaving_count && most > VERVE_LINK_GRACE)
		most = VERVE_LINK_GRACE;
	if (next <= now)
		return 1;
	return next - now < most ? next - now : most;
}

void verve_turn_expect(struct verve_xport *xport)
{
	xport->polls = VERVE_WATCH_POLLS;
	xport->unpolled = VERVE_COMPLETE_IDLE_TURNS;
	/* The free buffers, though no batch yet, may be the last that no queue pair keeps. */
	if (xport->rx_free_count)
		verve_dispatch_refill(xport);
}

/* What can wait is done in one turn of VERVE_WATCH_POLLS: reading the clock takes time. */
static void turn_seldom(struct verve_xport *xport)
{
	uint64_t now = verve_net_now();

	xport->polls = 0;
	if (verve_peer_sweep_is_due(xport))
		verve_peer_sweep(xport);
	verve_publish_step(xport, now);
	verve_places_retry(xport, now);
	if (now - xport->watch_time < xport->attr.keepalive)
		return;
	xport->watch_time = now;
	verve_half_open_expire(xport, now);
	verve_dispatch_refill(xport);
	verve_rx_lost_watch(xport);
	verve_rx_buffers_watch(xport, now);
	verve_keepalive_step(xport);
	verve_detach_watch(xport);
}

/* Here and in end_broken, queue pairs close, which may take receive buffers along. */
static void turn_detach(struct verve_xport *xport)
{
	verve_detach_step(xport);
	verve_rx_lost_step(xport);
}

static void end_broken(struct verve_xport *xport)
{
	verve_complete_broken(xport);
	verve_rx_lost_step(xport);
}

/* Workers have stopped or closed queue pairs. */
static bool take_back(struct verve_xport *xport)
{
	bool any = verve_let_go_step(xport);

	if (any)
		verve_detach_unmarked(xport);
	return any;
}

bool verve_turn(struct verve_xport *xport)
{
	bool any;

	assert(verve_lock_held(xport->lock));
	xport->rx_load.grown = false;
	any = __builtin_expect(xport->qps_at_workers, 0) && take_back(xport);
	any |= verve_cm_events_receive(xport);
	any |= verve_complete_step(xport);
	if (verve_xport_has_events(xport))
		any |= verve_cm_events_step(xport);
	if (__builtin_expect(xport->drained_count, 0))
		turn_detach(xport);
	if (__builtin_expect(xport->leaving_count, 0))
		verve_link_part(xport);
	if (__builtin_expect(!TAILQ_EMPTY(&xport->broken_links), 0))
		end_broken(xport);
	if (!TAILQ_EMPTY(&xport->waiting))
		verve_turn_look_after(xport);
	if (__builtin_expect(verve_places_is_due(xport), 0))
		verve_quiesce_step(xport);
	if (__builtin_expect(++xport->polls >= VERVE_WATCH_POLLS, 0))
		turn_seldom(xport);
	/* Without work, a thread that closes the endpoint lets workers run. */
	return any || (__builtin_expect(xport->drained_count, 0) && verve_detach_is_due(xport));
}
