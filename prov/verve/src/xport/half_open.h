/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Half-open links: a peer has asked for the connection, and was answered, but nothing proves that
 * the peer hears us. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_HALF_OPEN_H
#define VERVE_XPORT_HALF_OPEN_H

#include <stdbool.h>
#include <stdint.h>

struct verve_xport;

/* There is a half-open link, so somebody must poll at least once in attr.keepalive. */
bool verve_half_open_is_any(const struct verve_xport *xport);
/*
 * Called every attr.keepalive: takes the packets that have arrived, then breaks half-open links
 * that have waited for FI_VERVE_CONNECT_TIMEOUT, at the second look at which they are late. now:
 * nanoseconds. Not from inside other work on links.
 */
void verve_half_open_expire(struct verve_xport *xport, uint64_t now);

#endif
