/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keep-alive: finds dead peers. A peer that owes us an answer is sent a request that its device
 * must acknowledge, if no such request is under way. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_KEEPALIVE_H
#define VERVE_XPORT_KEEPALIVE_H

#include <stdbool.h>

struct verve_link;
struct verve_xport;

/* A peer owes an answer, so somebody must poll at least once in attr.keepalive. */
bool verve_keepalive_is_needed(const struct verve_xport *xport);
/* Once in attr.keepalive: verve_keepalive_probe for each link whose peer owes an answer. */
void verve_keepalive_step(struct verve_xport *xport);

/*
 * Sends the peer a request to acknowledge. If the peer has acknowledged nothing since the last
 * call, the manager checks the peer's port, too.
 */
void verve_keepalive_probe(struct verve_xport *xport, struct verve_link *link);

#endif
