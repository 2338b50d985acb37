/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keep-alive: which peers are probed. */
#include "xport/keepalive.h"

#include "base/log.h"
#include "conn/cm.h"
#include "net/device.h"
#include "xport/link.h"
#include "xport/owed.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/watched.h"
#include "xport/xport.h"

/*
 * True if the peer owes an answer: to an operation, to a started part of one, or to a question; or
 * its device owes one to a request.
 */
static bool is_waiting(const struct verve_link *link)
{
	const struct verve_peer *peer = link->peer;
	bool begun = link->produced != link->retired &&
		     (!TAILQ_EMPTY(&peer->reads) || !TAILQ_EMPTY(&peer->aside) ||
		      !TAILQ_EMPTY(&peer->pending));

	return begun || !TAILQ_EMPTY(&peer->active) || verve_link_awaits(link) ||
	       verve_link_has_asked(link);
}

/*
 * True if requests are outstanding that may never end: no operation waits for the end of a message
 * that was copied, and soft-RoCE reports no dead peer.
 */
static bool may_stand_still(const struct verve_xport *xport)
{
	return xport->wr_used &&
	       verve_net_device_port(xport->attr.dev)->limits.repeats_forever;
}

bool verve_keepalive_is_needed(struct verve_xport *xport)
{
	return verve_watched_is_any_owing(xport) || may_stand_still(xport);
}

/* Links whose requests have not moved since the last look owe an answer from here on. */
static void ask_standing(struct verve_xport *xport)
{
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (link->produced == link->retired || link->is_owing)
			continue;
		if (link->heard == link->retired) {
			verve_watched_insert(xport, link);
			verve_link_ask(xport, link);
		} else {
			link->heard = link->retired;
		}
	}
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
	if (may_stand_still(xport))
		ask_standing(xport);
}
