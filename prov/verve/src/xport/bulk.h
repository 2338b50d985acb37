/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bulk reads: the requests that read more than attr.bulk_read bytes, of messages and of RMA.
 *
 * A device has so many reads of a queue pair under way as both sides agreed on (max_rd_atomic,
 * ibv_modify_qp(3)). One more waits in the send queue, and all requests behind it wait, too: a
 * short message would wait for megabytes. So bulk reads take three quarters of that number at most.
 * The others wait in the peer's queues, where short requests overtake them (xport/aside.h).
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_BULK_H
#define VERVE_XPORT_BULK_H

#include <stdbool.h>
#include <stddef.h>

#include "net/qp.h"
#include "xport/link.h"
#include "xport/xport.h"

static inline bool verve_bulk_is(const struct verve_xport *xport, enum verve_net_wr_op verb,
				 size_t len)
{
	return __builtin_expect(verb == VERVE_NET_READ && len > xport->attr.bulk_read, 0);
}

/* True if the link has so many bulk reads under way that another one would have to wait. */
bool verve_bulk_is_full(const struct verve_link *link);

/* True if such a request is a bulk read, and has to wait until another one has ended. */
static inline bool verve_bulk_waits(const struct verve_xport *xport, const struct verve_link *link,
				    enum verve_net_wr_op verb, size_t len)
{
	return verve_bulk_is(xport, verb, len) && verve_bulk_is_full(link);
}

#endif
