/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Turn: one round of everything that a transport has to do. Only proto/proto.c calls it. The
 * engine's lock is held.
 */
#ifndef VERVE_XPORT_TURN_H
#define VERVE_XPORT_TURN_H

#include <stdbool.h>

struct verve_xport;

/*
 * Handles packets, completions and the manager's events, then looks after links and peers that had
 * to wait. True: there was a packet, completion or event, or a queue pair is still to be taken
 * away.
 */
bool verve_turn(struct verve_xport *xport);
/* Somebody should take another turn within attr.keepalive, even if nothing happens. */
bool verve_turn_is_due(const struct verve_xport *xport);

#endif
