/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Links: from the queue pair that the manager hands over to the end of the last request on it. */
#include "xport/lifetime.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conn/cm.h"
#include "net/cq.h"
#include "net/qp.h"
#include "net/sys.h"
#include "xport/conn_id.h"
#include "xport/fence.h"
#include "xport/let_go.h"
#include "xport/link.h"
#include "xport/memory.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/protocols.h"
#include "xport/qp_num.h"
#include "xport/replay_state.h"
#include "xport/report.h"
#include "xport/retire.h"
#include "xport/watched.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

_Static_assert((VERVE_LINK_DEPTH & (VERVE_LINK_DEPTH - 1)) == 0, "slots are found by masking");

int verve_link_open(struct verve_xport *xport, struct verve_peer *peer, struct verve_net_qp *qp,
		    uint32_t conn_id, uint32_t remote_id, struct verve_link **linkp)
{
	struct verve_link *link = calloc(1, sizeof(*link));

	if (!link)
		return -FI_ENOMEM;
	if (verve_idtab_alloc(&xport->link_ids, link, &link->id)) {
		free(link);
		return -FI_ENOMEM;
	}
	link->serial = xport->links_opened++;
	link->peer = peer;
	link->qp = qp;
	link->conn_id = conn_id;
	verve_qp_num_set(xport, link, verve_net_qp_num(qp));
	link->remote_id = remote_id;
	link->inline_size = verve_net_qp_inline_size(qp);
	if (link->inline_size > xport->attr.inline_size)
		link->inline_size = xport->attr.inline_size;
	link->is_self = xport->cm && verve_addr_equal(&peer->addr, verve_cm_addr(xport->cm));
	link->signaled = UINT32_MAX; /* the number before 0: no request has asked */
	TAILQ_INIT(&link->doomed);
	TAILQ_INSERT_TAIL(&xport->links, link, all);
	xport->link_count++;
	*linkp = link;
	return 0;
}

void verve_link_close(struct verve_xport *xport, struct verve_link *link)
{
	while (link->retired != link->produced)
		verve_link_release(xport, link, verve_link_slot(link, link->retired++));
	verve_replay_free(xport, link);
	verve_remote_key_drop_all(&link->keys);
	verve_cm_request_free(link->drop);
	verve_let_go_link(xport, link);
	xport->link_count--;
	verve_idtab_free(&xport->link_ids, link->id);
	verve_watched_remove(xport, link);
	TAILQ_REMOVE(link->broken ? &xport->broken_links : &xport->links, link, all);
	verve_conn_id_unmap(xport, link->conn_id, link);
	free(link);
}

static void doom(struct verve_link *link, struct verve_op_queue *queue)
{
	verve_op_move_all(&link->doomed, queue, VERVE_OP_DOOMED);
}

void verve_link_hear(struct verve_xport *xport, struct verve_link *link)
{
	if (link->replay || link->leaving || link->broken)
		return;
	if (!link->may_send)
		verve_stat_event(&xport->stat, link->peer->stat, VERVE_STAT_EVENT_HEARD,
				 link->conn_id);
	link->may_send = true;
	link->peer->lacking = 0;
	/* Without memory to tell the manager, it learns the same from the peer's READY. */
	if (link->listen && xport->cm)
		verve_cm_hear(xport->cm, link->conn_id);
	link->listen = false;
	verve_watched_update(xport, link);
}

/*
 * A request that ended well before the error and did not ask for a completion is not flushed, so no
 * completion would retire it. The marker behind it does: a write of no bytes, which does no harm if
 * the device still executes it. The marker is posted before the queue pair goes to error, because
 * bnxt_re and ionic take no request afterwards. If the device has put the queue pair in error by
 * itself, or does not put it in error when told, only closing it ends the requests.
 */
bool verve_link_stop(struct verve_xport *xport, struct verve_link *link, uint32_t *marker)
{
	struct verve_net_wr wr = {
		.wr_id = (uint64_t)link->id << 32 | link->produced,
		.op = VERVE_NET_WRITE,
		.flags = VERVE_NET_SIGNALED,
	};
	bool outstanding = link->retired != link->produced;

	if (xport->failed) {
		link->unmarked = true;
		return false;
	}
	if (outstanding && verve_net_qp_post(link->qp, &wr)) {
		link->unmarked = true;
	} else if (outstanding) {
		*marker = link->produced;
		*verve_link_slot(link, link->produced++) =
			(struct verve_slot){.kind = VERVE_SLOT_NOTHING, .asks = true};
		xport->wr_used++;
		xport->asked++;
	}
	verve_let_go_stop(xport, link, link->qp);
	return outstanding && !link->unmarked;
}

/* True if an operation waits for the end of an outstanding request. */
static bool is_awaited(struct verve_link *link)
{
	for (uint32_t number = link->retired; number != link->produced; number++)
		if (verve_link_slot(link, number)->tell)
			return true;
	return false;
}

void verve_link_leave(struct verve_xport *xport, struct verve_link *link, int error,
		      const char *reason)
{
	if (link->broken || link->leaving)
		return;
	if (link->replay || !is_awaited(link)) {
		verve_link_break(xport, link, error, 0, reason);
		return;
	}
	verve_stat_event(&xport->stat, link->peer->stat, VERVE_STAT_EVENT_LEFT, link->conn_id);
	link->leaving = verve_net_now();
	link->may_send = false;
	verve_watched_update(xport, link);
	link->error = error;
	link->reason = reason;
	xport->leaving_count++;
	/*
	 * The peer cannot execute operations that have not started. Operations that are queued
	 * from here on start over a new connection.
	 */
	doom(link, &link->peer->control);
	doom(link, &link->peer->reads);
	doom(link, &link->peer->aside);
	doom(link, &link->peer->pending);
}

void verve_link_part(struct verve_xport *xport)
{
	uint64_t now = verve_net_now();
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (link->leaving && (!is_awaited(link) || now - link->leaving > VERVE_LINK_GRACE))
			verve_link_break(xport, link, link->error, 0, link->reason);
	}
}

/*
 * The peer gave up a connection that carried nothing: it lacked a queue pair when this side's
 * answer came.
 */
static bool is_stillborn(const struct verve_link *link, int error)
{
	return error == FI_ENOTCONN && !link->may_send && !link->replay && !link->produced &&
	       !link->arrived;
}

/*
 * True: pending operations do not end with the link, but wait for the next connection. may_wait:
 * the link was stillborn, and FI_VERVE_CONNECT_TIMEOUT is not over.
 */
static bool keeps_pending(const struct verve_link *link, bool may_wait)
{
	return link->leaving || link->quiesce.state == VERVE_QUIESCE_AGREED || may_wait;
}

void verve_link_break(struct verve_xport *xport, struct verve_link *link, int error,
		      uint32_t status, const char *reason)
{
	bool is_stopped = verve_replay_is_stopped(link), stillborn = is_stillborn(link, error);
	struct verve_peer *peer = link->peer;
	char name[VERVE_ADDR_STRLEN];
	uint32_t marker;

	if (link->broken)
		return;
	verve_addr_str(&peer->addr, name);
	VERVE_INFO(EP_CTRL,
		   "connection %#x to %s ends: %s (%s), %u requests outstanding "
		   "(verve_stat --events %s tells what came before)\n",
		   link->conn_id, name, reason, fi_strerror(error),
		   link->produced - link->retired, name);
	verve_stat_end(&xport->stat, peer->stat, VERVE_STAT_EVENT_BROKE, link->conn_id, error,
		       status, reason);
	if (link->leaving)
		xport->leaving_count--;
	if (link->quiesce.state != VERVE_QUIESCE_OPEN)
		xport->quiescing_count--;
	link->broken = true;
	link->error = error;
	link->status = status;
	link->reason = reason;
	xport->protocols->forget(xport, link);
	doom(link, &peer->control);
	doom(link, &peer->reads);
	doom(link, &peer->aside);
	doom(link, &peer->active);
	if (!keeps_pending(link, stillborn && verve_places_note_lack(peer)))
		doom(link, &peer->pending);
	verve_fence_end(link);
	peer->link = NULL;
	verve_watched_remove(xport, link);
	TAILQ_REMOVE(&xport->links, link, all);
	TAILQ_INSERT_TAIL(&xport->broken_links, link, all);
	verve_replay_free(xport, link);
	if (link->qp && !is_stopped)
		verve_link_stop(xport, link, &marker);
	if (xport->cm)
		verve_cm_drop(xport->cm, &link->drop);
	/* A peer that lacks queue pairs is not asked again at once. */
	if (xport->cm && !(stillborn && verve_places_lack(xport, peer, false)))
		verve_peer_connect(xport, peer);
}

void verve_link_end(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_op *op;

	/*
	 * The queue pair closes first: a completion tells the application that the device does not
	 * use its memory any more.
	 */
	if (!link->qps_at_workers) {
		verve_memory_free_windows(xport, &link->doomed);
		verve_let_go_link(xport, link);
	}
	if (link->qps_at_workers)
		return;
	while ((op = TAILQ_FIRST(&link->doomed))) {
		/* It waited for the end of its windows, which have ended now. */
		if (op->flags & VERVE_OP_ANSWERED) {
			op->cls->done(xport, op);
			continue;
		}
		if (!op->error) {
			op->error = link->error;
			op->status = link->status;
		}
		verve_op_fail(xport, op, op->error, link->reason);
	}
	verve_link_close(xport, link);
}

struct verve_link *verve_link_live(struct verve_xport *xport, uint32_t link_id)
{
	struct verve_link *link = verve_idtab_get(&xport->link_ids, link_id);

	return link && !link->broken ? link : NULL;
}
