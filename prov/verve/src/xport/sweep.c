/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sweeping: which peers stay. */
#include "xport/sweep.h"

#include <assert.h>

#include "xport/link.h"
#include "xport/protocols.h"

enum { PEERS_MIN = 1024 }; /* fewer peers are not worth a sweep */

static bool is_at_rest(const struct verve_peer *peer)
{
	return !peer->link && !verve_peer_has_work(peer) && TAILQ_EMPTY(&peer->active) &&
	       !peer->parting && !peer->is_waiting && !peer->is_wanting && !peer->connecting &&
	       !peer->sharers;
}

static void need_linked(const struct verve_link_queue *links)
{
	const struct verve_link *link;

	TAILQ_FOREACH(link, links, all)
		verve_peer_need(link->peer);
}

void verve_peer_sweep(struct verve_xport *xport)
{
	struct verve_peer *peer, *next;

	assert(verve_lock_held(xport->lock));
	for (peer = xport->peers; peer; peer = peer->hh.next)
		peer->is_needed = !is_at_rest(peer);
	for (size_t i = 0; i < xport->peer_of_addr.count; i++)
		if (xport->peer_of_addr.at[i])
			verve_peer_need(xport->peer_of_addr.at[i]);
	need_linked(&xport->links);
	need_linked(&xport->broken_links);
	xport->protocols->need_peers(xport);
	HASH_ITER(hh, xport->peers, peer, next) {
		if (peer->is_needed)
			continue;
		verve_peer_free(xport, peer);
	}
	xport->peers_limit = 2 * HASH_COUNT(xport->peers) + PEERS_MIN;
	if (xport->home != xport && verve_peer_sweep_is_due(xport->home))
		verve_peer_sweep(xport->home);
}
