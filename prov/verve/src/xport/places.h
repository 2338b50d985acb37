/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Places: how many connections an endpoint may have. Asks the manager to connect to peers that
 * operations wait for. If attr.max_conns places are taken, a peer waits in xport->wanting until
 * another connection ends (xport/quiesce.h). The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_PLACES_H
#define VERVE_XPORT_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/xport.h"

struct verve_peer;

/*
 * Asks the manager for a connection, now or when there is a place, if peer->pending is not empty or
 * the peer was asked for (verve_peer_try_again), the peer has no link, and no connection is under
 * way. Operations in peer->reads or peer->control alone need no connection. Without memory to ask,
 * all operations in peer->pending fail.
 */
void verve_peer_connect(struct verve_xport *xport, struct verve_peer *peer);
/*
 * There is no memory for a request of the application, which is to try again: returns -FI_EAGAIN.
 * Asks for a connection: over a connection the request may need no memory, and the peer that keeps
 * the memory may wait for this one.
 */
int verve_peer_try_again(struct verve_xport *xport, struct verve_peer *peer);
/* The manager's UP or FAILED for the peer has come: no connection is under way any more. */
void verve_peer_connected(struct verve_xport *xport, struct verve_peer *peer);
/* Ends all operations in peer->pending with this positive FI errno. reason: a constant string. */
void verve_peer_fail_pending(struct verve_xport *xport, struct verve_peer *peer, int error,
			     const char *reason);

/*
 * Places taken, of attr.max_conns: connections under way, links, and broken links, each of which
 * keeps its place until the device has let go of it.
 */
static inline uint32_t verve_places_taken(const struct verve_xport *xport)
{
	return xport->link_count + xport->connecting_count;
}

/* True if a peer waits for a place, or more places are taken than attr.max_conns. */
static inline bool verve_places_is_due(const struct verve_xport *xport)
{
	return !TAILQ_EMPTY(&xport->wanting) ||
	       (xport->attr.max_conns && verve_places_taken(xport) > xport->attr.max_conns);
}

/*
 * Lets peers that wait for a place connect: as many as places are free, and one above the limit if
 * the first peer has waited for 100 ms. now: nanoseconds.
 */
void verve_places_step(struct verve_xport *xport, uint64_t now);
/*
 * Number of connections that have to end, so that the limit holds and the first peer gets a place.
 */
uint32_t verve_places_excess(const struct verve_xport *xport);

#endif
