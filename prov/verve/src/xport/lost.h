/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lost receives: a queue pair that ends in the middle of an incoming message has taken a buffer off the shared
 * receive queue, whose completion may never be seen: doc/receiving.md says why no event is waited for.
 *
 * A buffer that is posted begins with a mark that no peer can guess. One that has lost its mark, and did not
 * complete, was taken by a queue pair. It is in question until no queue pair can have it: until each that was open
 * when that was seen is closed, or has completed another receive since (a queue pair fills one after the other). If
 * so many are in question that receiving may stop, peers that say nothing are asked for a packet. If they do not
 * answer, and there are more, their connections are given other queue pairs (xport/replay.h), and all is known.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_LOST_H
#define VERVE_XPORT_LOST_H

struct verve_xport;

/* Looks for lost buffers if queue pairs were closed since the last time. Not from inside other work on links. */
void verve_lost_step(struct verve_xport *xport);

#endif
