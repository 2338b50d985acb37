/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connecting: for which peers the manager is asked to connect, and when. With attr.max_conns
 * connections, a peer waits in xport->wanting until another connection ends (xport/quiesce.h). A
 * connection that is being closed keeps its place until the device lets go of it. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_XPORT_CONNECT_H
#define VERVE_XPORT_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/xport.h"

struct verve_peer;

/*
 * Asks the manager for a connection, now or when there is a place, if peer->pending is not empty,
 * the peer has no link, and no connection is under way. Operations in peer->reads or peer->control
 * alone ask for none. Without memory to ask, everything in peer->pending fails.
 */
void verve_peer_connect(struct verve_xport *xport, struct verve_peer *peer);
/* The manager's UP or FAILED has come for the peer: no connection is under way any more. */
void verve_peer_connected(struct verve_xport *xport, struct verve_peer *peer);
/* Ends everything in peer->pending with this positive FI errno. reason: a constant string. */
void verve_peer_fail_pending(struct verve_xport *xport, struct verve_peer *peer, int error,
			     const char *reason);

/* Of the connections that there may be. One that is being closed has its place until the device lets go of it. */
static inline uint32_t verve_connect_places_taken(const struct verve_xport *xport)
{
	return xport->link_count + xport->connecting_count;
}

/* A peer waits for a place, or there are too many connections. */
static inline bool verve_connect_is_due(const struct verve_xport *xport)
{
	return !TAILQ_EMPTY(&xport->wanting) ||
	       (xport->attr.max_conns && verve_connect_places_taken(xport) > xport->attr.max_conns);
}

/*
 * Lets peers that wait for a place connect: as many as there are places, and one above the limit if
 * the first has waited for 100 ms. now: nanoseconds.
 */
void verve_connect_step(struct verve_xport *xport, uint64_t now);
/* How many connections must end so that no peer waits and the limit is kept. */
uint32_t verve_connect_excess(const struct verve_xport *xport);

#endif
