/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lifetime of a link: opened with a connected queue pair, broken at its end, and freed later. A
 * broken link keeps its operations until the device has let go of them (every request has ended),
 * then ends each operation with an error. The peer can have a new link meanwhile. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_XPORT_LIFETIME_H
#define VERVE_XPORT_LIFETIME_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/conn_id.h"
#include "xport/link.h"
#include "xport/replay_state.h"

struct verve_net_qp;
struct verve_peer;

/*
 * Opens a link in xport->links that owns the queue pair; peer->link is the caller's to set.
 * conn_id, remote_id: the two sides' ids of the connection. -FI_ENOMEM: the queue pair is still the
 * caller's.
 */
int verve_link_open(struct verve_xport *xport, struct verve_peer *peer, struct verve_net_qp *qp,
		    uint32_t conn_id, uint32_t remote_id, struct verve_link **link);
/*
 * Frees the link and lets go of its queue pair. No request may be outstanding, unless the device
 * has let go of all, or its queues are about to be closed. Operations in link->doomed are not
 * ended: verve_link_end does that.
 */
void verve_link_close(struct verve_xport *xport, struct verve_link *link);

/* The link, broken or not, of connection conn_id, or the next one's (replay). NULL: stale. */
static inline struct verve_link *verve_link_of(struct verve_xport *xport, uint32_t conn_id)
{
	struct verve_link *link = verve_conn_id_find(xport, conn_id);

	if (!link || __builtin_expect(link->conn_id == conn_id, 1))
		return link;
	return verve_replay_is_next(link, conn_id) ? link : NULL;
}
/* The unbroken link of this id in xport->link_ids. NULL: it is gone, or has broken. */
struct verve_link *verve_link_live(struct verve_xport *xport, uint32_t link_id);

/*
 * The peer can hear this side: requests may be posted from here on. Harmless if the link is
 * suspended, leaving or broken.
 */
void verve_link_hear(struct verve_xport *xport, struct verve_link *link);

/*
 * Posts a marker behind the link's requests, and has the queue pair put in error: when request
 * *marker has ended, the device has let go of all. False: there is no marker to wait for, because
 * no request is outstanding, or because the device did not take it, did not go to error, or has
 * failed (link->unmarked, which may become true later, too: xport/let_go.h): then the caller closes
 * the queue pair, which ends all requests.
 */
bool verve_link_stop(struct verve_xport *xport, struct verve_link *link, uint32_t *marker);

/*
 * Breaks the link: the operations in the peer's queues move to link->doomed. verve_link_end ends
 * them with error (positive FI errno), status (ibv_wc_status, or 0) and reason (a constant string).
 * If the link had agreed to quiesce, or was leaving, peer->pending stays and gets a new connection.
 * Harmless on a broken link.
 */
void verve_link_break(struct verve_xport *xport, struct verve_link *link, int error,
		      uint32_t status, const char *reason);
/*
 * Lets go of the queue pair of a broken link. If a worker closes it, returns: to be called again
 * when link->qps_at_workers is 0. Then ends the link's operations and closes the link.
 */
void verve_link_end(struct verve_xport *xport, struct verve_link *link);

enum { VERVE_LINK_GRACE = 100000000 }; /* nanoseconds: 100 ms */

/*
 * The peer has left. Like verve_link_break, but requests that the peer's device has executed get
 * VERVE_LINK_GRACE to be acknowledged. Nothing more is sent; later operations wait for a new
 * connection.
 */
void verve_link_leave(struct verve_xport *xport, struct verve_link *link, int error,
		      const char *reason);
/* Breaks the links that leave, if no operation waits for an acknowledgement or time is over. */
void verve_link_part(struct verve_xport *xport);

#endif
