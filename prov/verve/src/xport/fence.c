/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fence: counts messages, and what their connection may have lost. */
#include "xport/fence.h"

#include "xport/link.h"
#include "xport/peer.h"
#include "xport/report.h"

bool verve_fence_fails(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op)
{
	int error = peer->fence.lost;

	if (!error || !verve_fence_speaks(op))
		return false;
	peer->fence.lost = 0;
	verve_op_fail(xport, op, error,
		      "messages before the fence may be lost: their connection ended");
	return true;
}

void verve_fence_end(const struct verve_link *link)
{
	struct verve_fence *fence = &link->peer->fence;
	const struct verve_op *op;

	fence->owes = fence->asks = false;
	if (link->quiesce.state != VERVE_QUIESCE_AGREED && fence->handled != fence->sent)
		fence->lost = link->error;
	fence->handled = fence->sent;
	/* An operation that fails with the link says it already. */
	TAILQ_FOREACH(op, &link->doomed, link)
		if (verve_fence_speaks(op))
			fence->lost = 0;
}

void verve_fence_forget(struct verve_peer *peer)
{
	struct verve_fence *fence = &peer->fence;

	fence->handled = fence->matched = fence->sent;
	fence->asks = false;
	fence->lost = 0;
}
