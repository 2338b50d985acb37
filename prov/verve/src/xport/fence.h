/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fence: what the completion of a fenced operation says of the messages before it (FI_FENCE,
 * fi_cq(3)).
 *
 * A message may have completed as soon as it was copied. Before an operation that is fenced and
 * delivery complete starts, the peer is asked with FENCE whether it has handled those messages:
 * each lies in the buffer of its receive, or is kept until there is one. With match complete, the
 * peer is asked whether each has its receive. FENCED answers.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_FENCE_H
#define VERVE_XPORT_FENCE_H

#include <stdbool.h>

struct verve_link;
struct verve_op;
struct verve_peer;
struct verve_xport;

/* One more message leaves that can complete before the peer has it. */
void verve_fence_count(struct verve_peer *peer);
/*
 * True: op is fenced and delivery complete, but messages before it may be lost; the operation has
 * failed. Said once.
 */
bool verve_fence_fails(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op);
/*
 * The link has broken, and has its operations in doomed: questions end with it, and messages may be
 * lost.
 */
void verve_fence_end(const struct verve_link *link);
/*
 * The peer closes its endpoint: no fence speaks of that endpoint any more, but of the next one with
 * its address.
 */
void verve_fence_forget(struct verve_peer *peer);

#endif
