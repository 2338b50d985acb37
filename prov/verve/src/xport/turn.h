/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Turn: one round of all work of a transport. Only proto/proto.c calls it. The engine's lock is
 * held.
 */
#ifndef VERVE_XPORT_TURN_H
#define VERVE_XPORT_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct verve_xport;

/*
 * Handles packets, completions and the manager's events, then looks after links and peers that had
 * to wait. True: there was a packet, a completion or an event, receive buffers were added, or
 * a failed queue pair is still to be detached: the next turn may find work, too.
 */
bool verve_turn(struct verve_xport *xport);
/* Each peer that waits gets one try: there is more of what it waits for. */
void verve_turn_look_after(struct verve_xport *xport);
/*
 * True if another turn is to be taken after verve_turn_pause, even if no event wakes the engine.
 * Takes the same time, however many links there are.
 */
bool verve_turn_is_due(struct verve_xport *xport);
/* Nanoseconds, 1 to attr.keepalive, until then. Valid if verve_turn_is_due. */
uint64_t verve_turn_pause(const struct verve_xport *xport);
/*
 * A sleep may come, which takes time: posts receive buffers that are no batch yet, and the next
 * turn does all that others leave out.
 */
void verve_turn_expect(struct verve_xport *xport);

#endif
