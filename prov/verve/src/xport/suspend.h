/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Suspending: the first step of a replay (xport/replay.h). The link's queue pair goes to error, and
 * the link keeps the requests that are outstanding on it. The engine's lock protects everything
 * here.
 */
#ifndef VERVE_XPORT_SUSPEND_H
#define VERVE_XPORT_SUSPEND_H

#include <stdbool.h>

struct verve_link;
struct verve_replay;
struct verve_xport;

/*
 * Suspends the link: allocates link->replay, puts the queue pair in error with a marker behind its
 * requests. Harmless on a suspended link that has not resumed yet. False: the link cannot go on (it
 * closes already, fails again and again, or there is no memory), and the caller must break it.
 */
bool verve_replay_begin(struct verve_xport *xport, struct verve_link *link);
/*
 * The marker has come back, or there is no marker: xport/detach.h may close the queue pair. At most
 * once for each suspension.
 */
void verve_replay_set_drained(struct verve_xport *xport, struct verve_replay *replay);
/*
 * The device did not take the link's last request, but gave this negative error. 0: the queue pair
 * has failed; the link is suspended, and repeats the request. Otherwise the request is still the
 * caller's, which must break the link: -FI_ENOTCONN: the queue pair has failed; error: the device
 * refused the request itself.
 */
int verve_replay_keep(struct verve_xport *xport, struct verve_link *link, int error);

#endif
