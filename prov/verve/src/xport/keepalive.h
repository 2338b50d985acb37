/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keep-alive: finds dead peers. A peer that owes an answer is sent a request that its device
 * must acknowledge, if no such request is under way. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_KEEPALIVE_H
#define VERVE_XPORT_KEEPALIVE_H

#include <stdbool.h>

struct verve_link;
struct verve_xport;

/*
 * True if a peer may owe an answer or, where the device repeats for ever (limits.repeats_forever),
 * requests are outstanding: the engine must take a turn at least once in attr.keepalive.
 * Takes the same time, however many links there are (verve_watched_is_any_owing).
 */
bool verve_keepalive_is_needed(struct verve_xport *xport);
/*
 * Called every attr.keepalive: probes each link whose peer owes an answer. Where the device repeats
 * for ever, it looks at every link.
 */
void verve_keepalive_step(struct verve_xport *xport);

/*
 * Posts a request that the peer's device must acknowledge, if none is outstanding. If no request
 * has been acknowledged since the last call, the manager checks the peer's port, too. May break the
 * link.
 */
void verve_keepalive_probe(struct verve_xport *xport, struct verve_link *link);

#endif
