/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keep-alive: which peers are probed. */
#include "xport/keepalive.h"

#include "base/log.h"
#include "conn/cm.h"
#include "xport/link.h"
#include "xport/owed.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/watched.h"
#include "xport/xport.h"

/* True if the peer owes an answer: to an operation, to a started part of one, or to a question. */
static bool is_waiting(const struct verve_link *link)
{
	const struct verve_peer *peer = link->peer;
	bool begun = link->produced != link->retired &&
		     (!TAILQ_EMPTY(&peer->reads) || !TAILQ_EMPTY(&peer->aside) ||
		      !TAILQ_EMPTY(&peer->pending));

	return begun || !TAILQ_EMPTY(&peer->active) || verve_link_awaits(link);
}

bool verve_keepalive_is_needed(struct verve_xport *xport)
{
	return verve_watched_is_any_owing(xport);
}

void verve_keepalive_probe(struct verve_xport *xport, struct verve_link *link)
{
	/* soft-RoCE repeats requests for ever and never reports a dead peer: its port must tell. */
	if (link->heard != link->retired)
		link->silent = false;
	else if (xport->cm && verve_cm_check(xport->cm, link->conn_id, !link->silent))
		VERVE_WARN(EP_CTRL, "no memory to check connection %#x\n", link->conn_id);
	else
		link->silent = true;
	link->heard = link->retired;
	verve_link_ask(xport, link);
}

void verve_keepalive_step(struct verve_xport *xport)
{
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->owing); link; link = next) {
		next = TAILQ_NEXT(link, owing);
		xport->count.looks++;
		if (!verve_watched_may_owe(link))
			verve_watched_forgive(xport, link);
		else if (is_waiting(link))
			verve_keepalive_probe(xport, link);
	}
}
