/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keep-alive: a peer that owes an answer, and that nothing on the wire would find dead, is sent something to acknowledge.
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_KEEPALIVE_H
#define VERVE_XPORT_KEEPALIVE_H

#include <stdbool.h>

struct verve_link;
struct verve_xport;

/* A peer owes an answer, so somebody must poll at least once in attr.keepalive. */
bool verve_keepalive_is_needed(const struct verve_xport *xport);
/* Once in attr.keepalive: asks the peers that owe an answer; if nothing comes, the manager checks them, too. */
void verve_keepalive_step(struct verve_xport *xport);

/*
 * Asks one peer for a sign, so that the transport finds a dead one. If nothing was acknowledged since the last time, the
 * manager checks the peer, too.
 */
void verve_keepalive_probe(struct verve_xport *xport, struct verve_link *link);

#endif
