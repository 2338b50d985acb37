/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sweeping: frees unused peers, so that clients that come and go use no more and more memory. The
 * engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_SWEEP_H
#define VERVE_XPORT_SWEEP_H

#include <stdbool.h>

#include "xport/peer.h"
#include "xport/xport.h"

/* True if there are so many peers that a sweep is worth its time. */
static inline bool verve_peer_sweep_is_due(const struct verve_xport *xport)
{
	return HASH_COUNT(xport->peers) > xport->peers_limit;
}
/*
 * Frees each peer that has no link, no operation, no fi_addr_t that was looked up, and that the
 * protocols do not need (verve_peer_need). Then sweeps the shared receive context, if its sweep is
 * due. Not from inside other work on peers.
 */
void verve_peer_sweep(struct verve_xport *xport);

#endif
