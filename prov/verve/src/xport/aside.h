/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stepping aside: a long read of RMA that has to wait (xport/bulk.h) lets the operations behind it
 * start. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_ASIDE_H
#define VERVE_XPORT_ASIDE_H

#include <stdbool.h>

struct verve_peer;
struct verve_xport;

/*
 * The operation at the head of peer->pending, if there is one, could not start. True: it is a long
 * read, the link has all its bulk reads under way, and the read was moved to peer->aside, because
 * no order is promised between a read and what comes behind it (fi_endpoint(3), message ordering).
 */
bool verve_aside_step(const struct verve_xport *xport, struct verve_peer *peer);

#endif
