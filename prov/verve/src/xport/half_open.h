/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Half-open links: a peer has asked for the connection, and was answered, but no packet has proved
 * that the peer exists and hears this side. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_HALF_OPEN_H
#define VERVE_XPORT_HALF_OPEN_H

#include <stdbool.h>
#include <stdint.h>

struct verve_xport;

/* True if a link is half-open: the engine must take a turn at least once in attr.keepalive. */
bool verve_half_open_is_any(const struct verve_xport *xport);
/*
 * Called every attr.keepalive: handles the packets that have arrived, then breaks the half-open
 * links that have waited longer than FI_VERVE_CONNECT_TIMEOUT. A link breaks only at the second
 * call that finds it late: its packet may wait for a buffer, which the first call freed. now:
 * nanoseconds. Not from inside other work on links.
 */
void verve_half_open_expire(struct verve_xport *xport, uint64_t now);

#endif
