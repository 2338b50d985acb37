/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Letting go: queue pairs are stopped and closed by workers (conn/worker.h), so that no call of the
 * data path waits for the device.
 *
 * A link whose queue pair a worker has (link->qps_at_workers) stays as it is: the device may use
 * its requests' memory until the worker is done. Everything here is protected by the engine's lock.
 */
#ifndef VERVE_XPORT_LET_GO_H
#define VERVE_XPORT_LET_GO_H

#include <stdbool.h>

struct verve_link;
struct verve_net_qp;
struct verve_xport;

/*
 * From here on workers close the transport's queue pairs. wake is called by a worker when a turn is
 * due; see struct verve_job_owner. A transport without that closes its queue pairs in place.
 */
void verve_let_go_open(struct verve_xport *xport, void (*wake)(void *arg), void *arg);
/*
 * The transport closes: waits, with the lock held, for workers that have begun, and closes the
 * other queue pairs that were let go of. Harmless if workers do not close the transport's queue
 * pairs.
 */
void verve_let_go_close(struct verve_xport *xport);

/*
 * Puts the link's queue pair in error: link->qp, or link->unused. If the device refuses to stop
 * link->qp, link->unmarked becomes true, maybe later.
 */
void verve_let_go_stop(struct verve_xport *xport, struct verve_link *link,
		       struct verve_net_qp *qp);
/* Lets go of a queue pair that belongs to no link. All its completions must be polled. */
void verve_let_go(struct verve_xport *xport, struct verve_net_qp *qp);
/*
 * Lets go of the link's queue pairs, which no worker has; link->qp is NULL then. No packet counts
 * as the link's any more: another queue pair may get the number. Harmless if the link has none.
 */
void verve_let_go_link(struct verve_xport *xport, struct verve_link *link);
/* Takes back what workers have done. True: there was something. */
bool verve_let_go_step(struct verve_xport *xport);

#endif
