/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct: eager messages that the device takes from the application's buffer, where a copy costs
 * more than what direct sending costs (mr/costs.h). Such a message has an operation, and completes
 * when the peer's device has it. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_DIRECT_H
#define VERVE_MSG_DIRECT_H

#include <stdbool.h>
#include <stddef.h>

#include "mr/cache.h"
#include "xport/op.h"
#include "xport/request.h"
#include "xport/xport.h"

struct verve_link;
struct verve_send_op;
struct verve_wire_packet;

/* True if the peer is to read a message of this length, even if it is not above the eager size. */
static inline bool verve_direct_is_read(const struct verve_xport *xport, size_t len)
{
	return len >= xport->attr.mr_cache->crossover.rendezvous;
}

/*
 * 0: the peer is to read the message because its registration is kept: then the message has its
 * regions. -FI_ENOENT: it is not. -FI_EINPROGRESS: as verve_memory_offer_kept.
 */
int verve_direct_offer(struct verve_xport *xport, const struct verve_link *link,
		       struct verve_send_op *send);

/* True if a message of this length is copied, whatever descriptors and registrations it has. */
static inline bool verve_direct_is_short(const struct verve_xport *xport, size_t len)
{
	const struct verve_mr_crossover *crossover = &xport->attr.mr_cache->crossover;

	return len < crossover->described && len < crossover->kept && len < crossover->offer_kept &&
	       !verve_direct_is_read(xport, len);
}

/* True if a message of this length is copied in any case: it needs no look for a registration. */
static inline bool verve_direct_is_copied(const struct verve_xport *xport,
					  const struct verve_request *request, size_t len)
{
	const struct verve_mr_crossover *crossover = &xport->attr.mr_cache->crossover;

	return request->flags & VERVE_OP_INJECT ||
	       (len < (request->desc ? crossover->described : crossover->kept) &&
		!verve_direct_is_read(xport, len));
}

/*
 * 0: every piece of the message has a region, and the message can leave by verve_direct_post.
 * -FI_ENOENT: not so; a slab has the message already, or the peer's FIN may come before the device
 * has let go of the buffer (delivery complete). -FI_EINPROGRESS: as verve_memory_register.
 */
int verve_direct_register(struct verve_xport *xport, struct verve_send_op *send);
/*
 * Posts the message as an eager packet. The link has room, and a credit.
 * Then verve_send_class.done is called when the peer's device has the message. -FI_EAGAIN: no slab
 * is free for the header, and the message has no region from the cache any more; other errors: the
 * link broke.
 */
int verve_direct_post(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet, struct verve_send_op *send);

#endif
