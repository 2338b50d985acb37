/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Suspending: the first step of a replay (xport/replay.h). The link's queue pair goes to error, and the link keeps what is
 * outstanding on it. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_SUSPEND_H
#define VERVE_XPORT_SUSPEND_H

#include <stdbool.h>

struct verve_link;
struct verve_replay;
struct verve_xport;

/* Harmless if the link is suspended and has no queue pair that works. False: this link cannot go on, and must break. */
bool verve_replay_begin(struct verve_xport *xport, struct verve_link *link);
/* The marker is back, or there is none to wait for: the queue pair can be taken away (xport/detach.h). */
void verve_replay_set_drained(struct verve_xport *xport, struct verve_replay *replay);
/*
 * The device did not take a request, whose slot is the link's last. True: that is because the queue pair has failed; the
 * link is suspended, and keeps the request. False: the link must break.
 */
bool verve_replay_keep(struct verve_xport *xport, struct verve_link *link);

#endif
