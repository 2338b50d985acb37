/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connecting: which peers the manager is asked for, and when. Above attr.max_conns connections, a peer waits in
 * xport->wanting for the place of another one (xport/quiesce.h); connections that are being closed have their place
 * until the device lets go of them. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_CONNECT_H
#define VERVE_XPORT_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/xport.h"

struct verve_peer;

/*
 * Sees to it that the peer gets a connection, if it has work, no link, and none is under way: asks the manager now, or
 * when there is a place. Without memory for that, the work fails.
 */
void verve_peer_connect(struct verve_xport *xport, struct verve_peer *peer);
/* UP or FAILED has come for a peer. */
void verve_peer_connected(struct verve_xport *xport, struct verve_peer *peer);
/* Ends everything that waits for a connection with this positive FI errno. */
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
/* Gives out the places that there are, and one more to a peer that has waited long. now: nanoseconds. */
void verve_connect_step(struct verve_xport *xport, uint64_t now);
/* So many connections must end for the others to have their place. */
uint32_t verve_connect_excess(const struct verve_xport *xport);

#endif
