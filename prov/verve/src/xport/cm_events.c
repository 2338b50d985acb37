/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events of the connection manager: connections that come up, fail, and go down. */
#include "xport/cm_events.h"

#include <assert.h>

#include "base/log.h"
#include "conn/cm.h"
#include "conn/hello.h"
#include "net/sys.h"
#include "xport/conn_id.h"
#include "xport/credit.h"
#include "xport/dispatch.h"
#include "xport/failure.h"
#include "xport/let_go.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/quiesce.h"
#include "xport/replay.h"
#include "xport/start.h"
#include "xport/watched.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * The event ends a link, or closes a queue pair: finish_event does so when all packets that have
 * arrived are handled. remote_id becomes the link's id; 0: no link ends.
 */
static void put_off(struct verve_cm_event *event, const struct verve_link *link)
{
	event->remote_id = link ? link->id : 0;
}

/* UP of a connection that continues an older one, which this side does not have any more. */
static void refuse_up(struct verve_xport *xport, const struct verve_peer *peer,
		      struct verve_cm_event *event)
{
	/* The manager gives this connection up before the peer's next one is asked for. */
	verve_cm_drop(xport->cm, &event->drop);
	verve_net_qp_error(event->qp);
	put_off(event, peer->link);
}

/*
 * The manager sends DOWN of the peer's old connection before UP of the new one. If the link is
 * still there, it is suspended, or the manager had no memory for that DOWN.
 */
static void break_replaced(struct verve_xport *xport, const struct verve_peer *peer)
{
	if (!peer->link)
		return;
	verve_quiesce_down(peer->link);
	verve_link_break(xport, peer->link, FI_ENOTCONN, 0, "replaced by a new connection");
}

/* There is no memory for the new connection, and the peer does not have the old one any more. */
static void fail_up(struct verve_xport *xport, struct verve_peer *peer,
		    struct verve_cm_event *event)
{
	verve_cm_drop(xport->cm, &event->drop);
	verve_peer_connected(xport, peer);
	break_replaced(xport, peer);
	verve_peer_fail_pending(xport, peer, FI_ENOMEM, "no memory for the connection");
}

/* What the two sides have told each other in the handshake. */
static void link_agree(const struct verve_xport *xport, struct verve_link *link,
		       const struct verve_cm_event *event)
{
	link->credits = event->window;
	link->eager_size = event->eager_size < xport->attr.eager_size ? event->eager_size :
									xport->attr.eager_size;
	link->byte_weight = verve_credit_byte_weight(link->eager_size);
	link->may_send = event->may_send;
	link->listen = event->listen;
	link->listening = verve_net_now();
	link->rma_event = event->features & VERVE_HELLO_RMA_EVENT;
	link->keys.chosen = event->features & VERVE_HELLO_APP_KEYS;
	link->batches = event->features & VERVE_HELLO_BATCHES;
	link->immediates = event->features & VERVE_HELLO_IMMEDIATES;
	link->bound_keys = event->features & VERVE_HELLO_BOUND_KEYS;
	link->device_atomics = event->features & VERVE_HELLO_DEVICE_ATOMICS;
	link->other_order = (event->features & VERVE_HELLO_BIG_ENDIAN) != VERVE_HELLO_OWN_ORDER;
}

/* False: finish_event is to be called. */
static bool handle_up(struct verve_xport *xport, struct verve_cm_event *event)
{
	struct verve_peer *peer = verve_peer_get(xport, &event->addr);
	struct verve_link *link;
	char name[VERVE_ADDR_STRLEN];

	if (peer && event->resumes) {
		verve_peer_connected(xport, peer);
		if (!peer->link || !verve_replay_expects(peer->link, event->resumes)) {
			refuse_up(xport, peer, event);
			return false;
		}
		verve_replay_join(xport, peer->link, event);
		return true;
	}
	if (!peer ||
	    verve_link_open(xport, peer, event->qp, event->conn_id, event->remote_id, &link)) {
		VERVE_WARN(EP_CTRL, "no memory for the connection with %s\n",
			   verve_addr_str(&event->addr, name));
		goto err_close;
	}
	link_agree(xport, link, event);
	verve_peer_connected(xport, peer);
	if (verve_conn_id_map(xport, link->conn_id, link))
		goto err_link;
	link->drop = event->drop;
	event->drop = NULL;
	break_replaced(xport, peer);
	peer->link = link;
	verve_places_found(xport);
	if (link->may_send)
		peer->lacking = 0;
	verve_stat_event(&xport->stat, peer->stat, VERVE_STAT_EVENT_CAME_UP, link->conn_id);
	if (link->may_send)
		verve_stat_event(&xport->stat, peer->stat, VERVE_STAT_EVENT_HEARD, link->conn_id);
	verve_watched_update(xport, link);
	if (verve_watched_may_owe(link))
		verve_watched_owe(xport, link);
	VERVE_INFO(EP_CTRL, "connection %#x to %s is up\n", link->conn_id,
		   verve_addr_str(&peer->addr, name));
	link->greets |= event->greet;
	verve_peer_kick(xport, peer);
	return true;

err_link:
	verve_link_close(xport, link);
	fail_up(xport, peer, event);
	return true;
err_close:
	verve_net_qp_error(event->qp);
	if (peer)
		fail_up(xport, peer, event);
	else
		verve_cm_drop(xport->cm, &event->drop);
	put_off(event, NULL);
	return false;
}

static void handle_ready(struct verve_xport *xport, struct verve_link *link,
			 const struct verve_cm_event *event)
{
	link->listen = false;
	verve_watched_update(xport, link);
	verve_link_hear(xport, link);
	link->greets |= event->greet;
	verve_peer_kick(xport, link->peer);
}

/* The text of err_data: tells the user where to look. */
static const char *why_failed(int error)
{
	switch (error) {
	case FI_ECONNREFUSED:
		return "cannot connect: no endpoint has the peer's port";
	case FI_ETIMEDOUT:
		return "cannot connect: no answer from the peer's host";
	case FI_EHOSTUNREACH:
	case FI_ENETUNREACH:
		return "cannot connect: there is no way to the peer's host";
	case FI_EKEYREJECTED:
		return "cannot connect: the peer has another authorization key";
	case FI_EOPNOTSUPP:
		return "cannot connect: the two devices do not fit (the log says why)";
	case FI_EBUSY:
		return "cannot connect: the peer has no queue pair for it (its log says why)";
	case FI_EREMOTEIO:
		return "cannot connect: the peer's device, or a queue of its endpoint, has failed";
	default:
		return "cannot connect";
	}
}

/* Tells the user, because the manager leaves that to the side that may try again. */
static void log_lack(const struct verve_peer *peer, const struct verve_cm_event *event)
{
	char name[VERVE_ADDR_STRLEN];

	if (event->scarce || event->error == FI_EBUSY)
		VERVE_WARN(EP_CTRL, "cannot connect to %s: %s (FI_VERVE_MAX_CONNS and the number "
			   "of processes decide how many queue pairs are used)\n",
			   verve_addr_str(&peer->addr, name), event->scarce ?
			   "this side has no queue pair left" : "the peer has no queue pair left");
}

static void handle_failed(struct verve_xport *xport, const struct verve_cm_event *event)
{
	struct verve_peer *peer = verve_peer_get(xport, &event->addr);

	if (!peer)
		return;
	verve_peer_connected(xport, peer);
	/*
	 * If the peer still has a link that is not suspended, the link is leaving, or its DOWN
	 * waits for packets (put_off): it ends by itself.
	 */
	if (peer->link && peer->link->replay)
		verve_link_break(xport, peer->link, event->error, 0, "cannot connect again");
	if ((event->scarce || event->error == FI_EBUSY) &&
	    verve_places_lack(xport, peer, event->scarce))
		return;
	log_lack(peer, event);
	verve_stat_end(&xport->stat, peer->stat, VERVE_STAT_EVENT_FAILED, 0, event->error, 0,
		       why_failed(event->error));
	verve_peer_fail_pending(xport, peer, event->error, why_failed(event->error));
}

static const char *why_down(int error)
{
	switch (error) {
	case FI_EHOSTUNREACH:
		return "the peer's process, or its host, is gone";
	case FI_EREMOTEIO:
		return "the peer's device, or a queue of its endpoint, has failed";
	case FI_EIO:
		return "the device ended the connection's queue pair with a fatal error";
	default:
		return "the peer closed its endpoint, or was started anew";
	}
}

/*
 * The endpoint has failed. Nothing of the device is waited for any more: each link ends when its
 * queue pair is closed.
 */
static void handle_fatal(struct verve_xport *xport, int error)
{
	const char *reason = verve_failure_reason(error);
	struct verve_link *link;
	struct verve_peer *peer;

	xport->failed = error;
	while ((link = TAILQ_FIRST(&xport->links)))
		verve_link_break(xport, link, error, 0, reason);
	TAILQ_FOREACH(link, &xport->broken_links, all)
		link->unmarked = true;
	for (peer = xport->peers; peer; peer = peer->hh.next)
		verve_peer_fail_pending(xport, peer, error, reason);
	verve_peer_forget_all(xport);
}

/* False: finish_event is to be called when all packets that have arrived are handled. */
static bool handle_event(struct verve_xport *xport, struct verve_cm_event *event)
{
	struct verve_link *link = verve_link_of(xport, event->conn_id);

	switch (event->type) {
	case VERVE_CM_UP:
		return handle_up(xport, event);
	case VERVE_CM_READY:
		if (link && link->replay) {
			verve_replay_ready(xport, link, event->conn_id);
		} else if (link && !link->may_send) {
			handle_ready(xport, link, event);
		}
		break;
	case VERVE_CM_FAILED:
		handle_failed(xport, event);
		break;
	case VERVE_CM_DOWN:
		if (!link)
			break;
		if (event->suspended && !link->broken &&
		    verve_replay_down(xport, link, event->conn_id))
			break;
		/* The peer's last packets are in the receive queue by now, and still count. */
		put_off(event, link);
		return false;
	case VERVE_CM_FATAL:
		handle_fatal(xport, event->error);
		break;
	case VERVE_CM_SCARCE:
		verve_places_make(xport);
		break;
	case VERVE_CM_UNUSED:
		verve_net_qp_error(event->qp);
		put_off(event, NULL);
		return false;
	}
	return true;
}

/*
 * All packets that have arrived are handled. This matters for a queue pair that gets no link, too:
 * closing it may remove completions. A packet of no bytes leaves its buffer's mark alone, so
 * xport/rx_lost.c would not find that buffer.
 */
static void finish_event(struct verve_xport *xport, struct verve_cm_event *event)
{
	struct verve_link *link = verve_idtab_get(&xport->link_ids, event->remote_id);
	struct verve_peer *peer;

	if (event->type == VERVE_CM_DOWN && link) {
		verve_quiesce_down(link);
		verve_link_leave(xport, link, event->error, why_down(event->error));
		return;
	}
	if (!event->qp)
		return;
	verve_let_go(xport, event->qp);
	if (link)
		verve_link_break(xport, link, FI_ENOTCONN, 0,
				 "the peer goes on with another connection");
	peer = event->resumes ? verve_peer_get(xport, &event->addr) : NULL;
	if (peer)
		verve_peer_kick(xport, peer);
}

/* Finishes the events of the list, the latest first. */
static void finish_all(struct verve_xport *xport, struct verve_mail *mail)
{
	struct verve_mail *next;

	for (; mail; mail = next) {
		next = mail->next;
		finish_event(xport, (struct verve_cm_event *)mail);
		verve_cm_event_free((struct verve_cm_event *)mail);
	}
}

/* Takes the oldest event. NULL: there is none. */
static struct verve_mail *take_mail(struct verve_xport *xport)
{
	struct verve_mail *mail;

	if (!xport->inbox)
		xport->inbox = verve_mailbox_is_empty(&xport->events) ?
				       NULL :
				       verve_mailbox_take(&xport->events);
	mail = xport->inbox;
	if (mail)
		xport->inbox = mail->next;
	return mail;
}

/*
 * An event that ends a link waits for the packets, and a packet may wait for the next event. So
 * such events are put off, without recursion: a peer decides how many there are. Without a next
 * event, no packet waits.
 */
bool verve_cm_events_step(struct verve_xport *xport)
{
	struct verve_mail *later = NULL, *mail;
	bool any = false;

	while ((mail = take_mail(xport)) || later) {
		if (mail && handle_event(xport, (struct verve_cm_event *)mail)) {
			verve_cm_event_free((struct verve_cm_event *)mail);
		} else if (mail) {
			mail->next = later;
			later = mail;
		}
		any = true;
		if (later && verve_dispatch_drain(xport)) {
			finish_all(xport, later);
			later = NULL;
		}
	}
	return any;
}

void verve_cm_events_drain(struct verve_xport *xport)
{
	while (!verve_dispatch_drain(xport))
		verve_cm_events_step(xport);
}
