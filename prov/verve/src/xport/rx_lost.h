/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lost receives: a queue pair that ends in the middle of an incoming message has taken a buffer off
 * the shared receive queue, and the buffer's completion may never be seen. doc/receiving.md says
 * why no event of the device is waited for.
 *
 * Each posted buffer begins with a mark that no peer can guess. A buffer that has lost its mark and
 * has not completed was taken by a queue pair: the buffer is in question. It comes back when no
 * queue pair can have it: each queue pair that was open when the loss was seen is closed, or has
 * completed another receive since (a queue pair fills one buffer after the other). If so many
 * buffers are in question that receiving may stop, peers from which no packet arrives are asked for
 * one. If they do not answer, and more buffers are in question, their links get other queue pairs
 * (xport/replay.h), and the older queue pairs are closed.
 *
 * A queue pair that stays open can keep a buffer, too: its peer sends the beginning of a message
 * and no end. Where more than an eighth of the buffers are kept so, they come into question.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_RX_LOST_H
#define VERVE_XPORT_RX_LOST_H

#include <stdbool.h>

struct verve_xport;

/*
 * Looks for lost buffers if a queue pair was closed since the last call, or buffers are in question
 * and packets have arrived: any packet if too many buffers are in question, else a quarter as many
 * packets as there are buffers. Posts again the buffers that no queue pair can have. Handles
 * packets and events, may break links or suspend them: not from inside other work on links.
 */
void verve_rx_lost_step(struct verve_xport *xport);
/*
 * Called every attr.keepalive: as verve_rx_lost_step, but looks in any case if buffers are in
 * question, or if messages have begun to arrive in more than an eighth of the buffers, and had
 * begun when this was called last.
 */
void verve_rx_lost_watch(struct verve_xport *xport);
/*
 * True if there are links enough to keep more than half of the buffers with messages that begin and
 * do not end. No event tells a sleeper of that: the engine must take a turn at least once in
 * attr.keepalive.
 */
bool verve_rx_lost_is_to_be_watched(const struct verve_xport *xport);

#endif
