/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lifetime of a link: opened with a connected queue pair, and broken at its end. When a link breaks, it keeps its
 * operations until the device has let go of them (every request flushed), then ends each with an error; the peer can
 * have a new link meanwhile. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_LIFETIME_H
#define VERVE_XPORT_LIFETIME_H

#include <stdbool.h>
#include <stdint.h>

struct verve_link;
struct verve_net_qp;
struct verve_peer;
struct verve_xport;

/* Takes the queue pair over. -FI_ENOMEM: the queue pair is still the caller's. */
int verve_link_open(struct verve_xport *xport, struct verve_peer *peer, struct verve_net_qp *qp,
		    uint32_t conn_id, uint32_t remote_id, struct verve_link **link);
/*
 * Frees the link, and closes its queue pair. Nothing may be outstanding, or the device's queues are
 * about to be closed. Does not end operations in link->doomed: verve_link_end does.
 */
void verve_link_close(struct verve_xport *xport, struct verve_link *link);

/* The link that a packet's destination id, or the manager, names; NULL: stale. */
struct verve_link *verve_link_of(struct verve_xport *xport, uint32_t conn_id);
/* The link of this id in xport->link_ids, if it can still carry an answer; NULL: it is gone. */
struct verve_link *verve_link_live(struct verve_xport *xport, uint32_t link_id);

/* The peer can hear us: requests may be posted from here on, unless the link is suspended or leaving. */
void verve_link_hear(struct verve_xport *xport, struct verve_link *link);

/*
 * To the error state; *marker: the request whose end says that the device has let go of all. False: there is none,
 * because nothing is outstanding, or because the device takes none (unmarked): closing the queue pair, which is the
 * caller's, ends all.
 */
bool verve_link_stop(struct verve_xport *xport, struct verve_link *link, uint32_t *marker);

/*
 * Breaks the link: error (positive FI errno) is what its operations will get, when the device has let go of
 * them (verve_link_end). The peer's queues are emptied into doomed. Harmless on a broken link. reason is a constant
 * string.
 */
void verve_link_break(struct verve_xport *xport, struct verve_link *link, int error, uint32_t status,
		      const char *reason);
/*
 * The device has let go of a broken link, or is to: closing its queue pair makes it. The link's operations end, and it
 * is closed.
 */
void verve_link_end(struct verve_xport *xport, struct verve_link *link);

/*
 * The peer has left: like verve_link_break, but what its device has executed gets a moment to be
 * acknowledged; nothing more is sent, and what is asked for from here on waits for a new connection.
 * verve_link_part breaks those links whose moment is over, or that have nothing to wait for.
 */
void verve_link_leave(struct verve_xport *xport, struct verve_link *link, int error, const char *reason);
void verve_link_part(struct verve_xport *xport);

#endif
