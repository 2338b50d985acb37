/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Suspending: which links can go on, and what becomes of their requests. */
#include "xport/suspend.h"

#include <stdlib.h>

#include "base/log.h"
#include "net/qp.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/replay_state.h"
#include "xport/watched.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

enum { TRIES = 8 }; /* suspensions in a row without a packet or a refusal between them */

void verve_replay_set_drained(struct verve_xport *xport, struct verve_replay *replay)
{
	replay->drained = true;
	xport->drained_count++;
}

/*
 * True if suspending would not help. The connection of an endpoint with itself has one queue pair,
 * which flushes the very request that it refuses: no completion tells which request was refused.
 * And a device that fails again and again, without a reason that either side hears of, is not to be
 * tried for ever.
 */
static bool is_hopeless(struct verve_link *link)
{
	uint32_t packets = link->sent + link->arrived;

	link->futile = link->futile_packets == packets ? link->futile + 1 : 0;
	link->futile_packets = packets;
	return link->futile > TRIES || link->is_self;
}

bool verve_replay_begin(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;
	char name[VERVE_ADDR_STRLEN];

	if (!xport->cm || link->leaving || link->quiesce.state == VERVE_QUIESCE_AGREED)
		return false;
	if (replay && replay->state != VERVE_REPLAY_RESUMED)
		return true;
	if (is_hopeless(link))
		return false;
	if (!replay)
		replay = calloc(1, sizeof(*replay));
	if (!replay)
		return false;
	VERVE_INFO(EP_CTRL, "connection %#x to %s is suspended, %u requests outstanding\n",
		   link->conn_id, verve_addr_str(&link->peer->addr, name),
		   link->produced - link->retired);
	verve_stat_event(&xport->stat, link->peer->stat, VERVE_STAT_EVENT_STOPPED, link->conn_id);
	/* A refusal stays true while the peer's RESUME has not settled the entries. */
	replay->refused = replay->refused && replay->at < replay->count && !replay->settled;
	replay->ready = replay->said = replay->told = replay->settled = replay->executed = false;
	replay->state = VERVE_REPLAY_STOPPED;
	replay->drained = false;
	link->replay = replay;
	link->may_send = false;
	verve_watched_owe(xport, link);
	verve_watched_update(xport, link);
	if (!verve_link_stop(xport, link, &replay->marker))
		verve_replay_set_drained(xport, replay);
	return true;
}

int verve_replay_keep(struct verve_xport *xport, struct verve_link *link, int error)
{
	if (!verve_net_qp_has_failed(link->qp))
		return error;
	return verve_replay_begin(xport, link) ? 0 : -FI_ENOTCONN;
}
