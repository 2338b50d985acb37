/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completions of the send CQ. */
#include "xport/complete.h"

#include "net/cq.h"
#include "xport/dispatch.h"
#include "xport/failure.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/post.h"
#include "xport/quiesce.h"
#include "xport/replay.h"
#include "xport/retire.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

void verve_complete(struct verve_xport *xport, const struct verve_net_wc *wc)
{
	struct verve_link *link = verve_idtab_get(&xport->link_ids, wc->wr_id >> 32);
	uint32_t number = (uint32_t)wc->wr_id, status;

	if (!link || number - link->retired >= link->produced - link->retired) {
		xport->count.stale++;
		return;
	}
	status = verve_replay_judge(xport, link, number, wc->status);
	while (link->retired != number && verve_replay_believes(xport, link, status))
		verve_link_retire(xport, link, VERVE_NET_WC_OK);
	if (status && !link->broken && verve_replay_take(xport, link, number, status))
		return;
	while (link->retired != number)
		verve_link_retire(xport, link, VERVE_NET_WC_FLUSHED);
	if (status == VERVE_NET_WC_FLUSHED && !link->broken)
		/* No request of this side failed: the device refused a request of the peer. */
		verve_link_break(xport, link, FI_ENOTCONN, status,
				 "the device ended the connection: "
				 "it refused a request of the peer");
	else if (status && !link->broken)
		verve_link_break(xport, link, verve_net_wc_errno(status), status,
				 verve_net_wc_str(status));
	verve_link_retire(xport, link, status);
	/* The last requests of a burst may not have asked. */
	if (__builtin_expect(link->sharing, 0) && !link->broken)
		verve_link_ask(xport, link);
	if (link->broken)
		return;
	verve_quiesce_end(xport, link);
	verve_replay_completed(xport, link, number);
}

bool verve_complete_poll(struct verve_xport *xport)
{
	struct verve_net_wc wc[VERVE_POLL_BATCH];
	int count = verve_net_cq_poll(xport->send_cq, VERVE_POLL_BATCH, wc);

	xport->unpolled = 0;
	for (int i = 0; i < count; i++)
		verve_complete(xport, &wc[i]);
	if (__builtin_expect(count < 0, 0))
		verve_failure_tell(xport, -count);
	return count > 0;
}

void verve_complete_poll_all(struct verve_xport *xport)
{
	/*
	 * Each outstanding request has one completion at most. The bound keeps requests that are
	 * posted meanwhile from making this loop endless.
	 */
	uint32_t most = xport->wr_used + VERVE_POLL_BATCH;

	for (uint32_t i = 0; i < most && verve_complete_poll(xport); i += VERVE_POLL_BATCH)
		;
}

static bool has_unmarked(const struct verve_xport *xport)
{
	const struct verve_link *link;

	TAILQ_FOREACH(link, &xport->broken_links, all)
		if (link->unmarked && !link->qps_at_workers && link->retired != link->produced)
			return true;
	return false;
}

/* True if the device has let go of the link's queue pair, or never will. */
static bool can_end(const struct verve_link *link)
{
	if (link->qps_at_workers)
		return false;
	return link->retired == link->produced || !link->qp || link->unmarked;
}

static bool any_can_end(const struct verve_xport *xport)
{
	const struct verve_link *link;

	TAILQ_FOREACH(link, &xport->broken_links, all)
		if (can_end(link))
			return true;
	return false;
}

void verve_complete_broken(struct verve_xport *xport)
{
	struct verve_link *link, *next;

	/*
	 * A link without a marker ends now. Closing its queue pair removes its completions, so all
	 * that have arrived are handled before; requests without one are taken as flushed.
	 */
	if (has_unmarked(xport))
		verve_complete_poll_all(xport);
	/* While the device takes its time, a flood must not be drained at each turn. */
	if (!any_can_end(xport))
		return;
	/* Closing a queue pair may remove completions of receives, and lose their buffers. */
	if (!verve_dispatch_drain(xport))
		return;
	for (link = TAILQ_FIRST(&xport->broken_links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (can_end(link))
			verve_link_end(xport, link);
	}
}
