/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Detaching: the second step of a replay (xport/replay.h). A failed queue pair that the device has
 * let go of is closed, and its outstanding requests become a list of requests to be posted again.
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_DETACH_H
#define VERVE_XPORT_DETACH_H

#include <stdbool.h>

struct verve_xport;

/*
 * Detaches the links for which verve_replay_set_drained was called, and asks the manager for the
 * connections that continue them, or resumes over connections made already. A link whose packets
 * are stalled (xport/dispatch.h) is detached in a later turn. Without memory, the link breaks. Not
 * from inside other work on links.
 */
void verve_detach_step(struct verve_xport *xport);
/*
 * Workers have stopped queue pairs: a suspended link whose queue pair the device did not stop is
 * drained, because its marker may never come.
 */
void verve_detach_unmarked(struct verve_xport *xport);
/*
 * Called every attr.keepalive. irdma may forget what is posted to a queue pair that the device
 * itself has put in error (its library and kernel look so). So a marker that has not come back at
 * the fourth call is given up: a suspended link is drained then, a broken one ends in a later turn.
 */
void verve_detach_watch(struct verve_xport *xport);
/* True if a link waits for the next turn, and for no worker. */
bool verve_detach_is_due(const struct verve_xport *xport);

#endif
