/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fence: what the completion of a fenced operation says of the messages before it (FI_FENCE,
 * fi_cq(3)).
 *
 * A message may have completed as soon as it was copied. Before an operation that is fenced and
 * delivery complete starts, the peer is asked with FENCE whether it has handled those messages:
 * each lies in the buffer of its receive, or is kept until there is one. With match complete, the
 * peer is asked whether each has its receive. The peer answers with FENCED.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_FENCE_H
#define VERVE_XPORT_FENCE_H

#include <stdbool.h>

#include "xport/op.h"
#include "xport/peer.h"

struct verve_link;
struct verve_xport;

/* True: op is fenced, and its completion says that messages before it were delivered. */
static inline bool verve_fence_speaks(const struct verve_op *op)
{
	return op->flags & VERVE_OP_FENCE && op->flags & VERVE_OP_ACK;
}

/* One more message leaves that can complete before the peer has it. */
static inline void verve_fence_count(struct verve_peer *peer)
{
	peer->fence.sent++;
}

/*
 * True: op speaks for the messages before it, but some may be lost; the operation has failed. Said
 * once.
 */
bool verve_fence_fails(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op);
/*
 * The link has broken. Ends its question, and remembers that messages may be lost. Its operations
 * are in link->doomed already.
 */
void verve_fence_end(const struct verve_link *link);
/*
 * The peer closes its endpoint: no fence speaks of that endpoint any more, but of the next one with
 * its address.
 */
void verve_fence_forget(struct verve_peer *peer);

#endif
