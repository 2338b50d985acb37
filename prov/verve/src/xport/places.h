/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Places: how many connections an endpoint may have. Asks the manager to connect to peers that
 * operations wait for. If attr.max_conns places are taken, a peer waits in xport->wanting until
 * another connection ends (xport/quiesce.h).
 *
 * Queue pairs may be fewer than attr.max_conns. Then the places that are taken are all that there
 * are, for a second, or until one more connection comes up. A peer that has no queue pair is asked
 * again after a pause, which grows from 50 ms to a second, less a random part. Both go on for
 * FI_VERVE_CONNECT_TIMEOUT.
 *
 * The engine's lock protects everything here.
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
/*
 * There was no queue pair for the connection with the peer: here, on this side, or else on the
 * peer's. True: its operations wait, and the peer is asked again. False: they have waited too long,
 * and are to fail.
 */
bool verve_places_lack(struct verve_xport *xport, struct verve_peer *peer, bool here);
/*
 * Notes that the peer has found no connection. True: for less than FI_VERVE_CONNECT_TIMEOUT,
 * counted from the first note since it had one, or needed none.
 */
bool verve_places_note_lack(struct verve_peer *peer);
/* A peer has asked, and there was no queue pair here: one idle connection is to end. */
void verve_places_make(struct verve_xport *xport);
/* One more connection is up. */
void verve_places_found(struct verve_xport *xport);
/* Asks again for the peers of xport->denied whose pause is over. now: nanoseconds. */
void verve_places_retry(struct verve_xport *xport, uint64_t now);

/*
 * When a peer is to be asked again, or goes above the limit: a thread that sleeps must take a turn
 * then. Nanoseconds; UINT64_MAX: no peer waits.
 */
uint64_t verve_places_next(const struct verve_xport *xport);

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

/* Places that there are. */
static inline uint32_t verve_places_limit(const struct verve_xport *xport)
{
	uint32_t allowed = xport->attr.max_conns - 1; /* 0 is no limit */

	return allowed < xport->scarce_limit ? allowed + 1 : xport->scarce_limit;
}

/* True if a peer waits for a place, or more places are taken than there are. */
static inline bool verve_places_is_due(const struct verve_xport *xport)
{
	return !TAILQ_EMPTY(&xport->wanting) ||
	       verve_places_taken(xport) > verve_places_limit(xport);
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
