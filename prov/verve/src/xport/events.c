/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events of the connection manager: connections that come up, fail, and go down. */
#include "xport/events.h"

#include <assert.h>

#include "base/log.h"
#include "conn/cm.h"
#include "comp/comp_queue.h"
#include "conn/hello.h"
#include "net/sys.h"
#include "xport/conn_id.h"
#include "xport/connect.h"
#include "xport/dispatch.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/quiesce.h"
#include "xport/replay.h"
#include "xport/start.h"
#include "xport/watched.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * Closes a queue pair that gets no link. Packets may have arrived over it, and closing may remove
 * their completions. A packet of no bytes leaves its buffer's mark alone, so xport/lost.c would not
 * find that buffer. Therefore all packets that have arrived are handled first.
 */
static void close_refused(struct verve_xport *xport, struct verve_net_qp *qp)
{
	verve_net_qp_error(qp);
	verve_events_drain(xport);
	verve_net_qp_close(qp);
}

/*
 * UP of a connection that continues an older one, which this side does not have any more. Draining
 * may handle the peer's next UP: the link of that connection stays.
 */
static void refuse_up(struct verve_xport *xport, struct verve_peer *peer,
		      struct verve_cm_event *event)
{
	struct verve_link *link = peer->link;

	/* The manager gives this connection up before the peer's next one is asked for. */
	verve_cm_drop(xport->cm, &event->drop);
	close_refused(xport, event->qp);
	if (link && peer->link == link)
		verve_link_break(xport, peer->link, FI_ENOTCONN, 0,
				 "the peer goes on with another connection");
	verve_peer_kick(xport, peer);
}

static void handle_up(struct verve_xport *xport, struct verve_cm_event *event)
{
	struct verve_peer *peer = verve_peer_get(xport, &event->addr);
	struct verve_link *link;
	char name[VERVE_ADDR_STRLEN];

	if (peer && event->resumes) {
		verve_peer_connected(xport, peer);
		if (peer->link && verve_replay_expects(peer->link, event->resumes))
			verve_replay_join(xport, peer->link, event);
		else
			refuse_up(xport, peer, event);
		return;
	}
	if (!peer || verve_link_open(xport, peer, event->qp, event->conn_id, event->remote_id,
				     &link)) {
		VERVE_WARN(EP_CTRL, "no memory for the connection with %s\n",
			   verve_addr_str(&event->addr, name));
		goto err_close;
	}
	link->credits = event->window;
	link->eager_size = event->eager_size < xport->attr.eager_size ? event->eager_size :
									xport->attr.eager_size;
	link->may_send = event->may_send;
	link->listen = event->listen;
	link->listening = verve_net_now();
	link->rma_event = event->features & VERVE_HELLO_RMA_EVENT;
	link->keys.chosen = event->features & VERVE_HELLO_APP_KEYS;
	link->device_atomics = event->features & VERVE_HELLO_DEVICE_ATOMICS;
	verve_peer_connected(xport, peer);
	if (verve_conn_id_map(xport, link->conn_id, link))
		goto err_link;
	link->drop = event->drop;
	event->drop = NULL;
	/*
	 * The manager sends DOWN of the peer's old connection before UP of the new one. If the link
	 * is still there, the manager had no memory for that DOWN.
	 */
	if (peer->link) {
		verve_quiesce_down(peer->link);
		verve_link_break(xport, peer->link, FI_ENOTCONN, 0, "replaced by a new connection");
	}
	peer->link = link;
	verve_watched_update(xport, link);
	if (verve_watched_may_owe(link))
		verve_watched_owe(xport, link);
	VERVE_INFO(EP_CTRL, "connection %#x to %s is up\n", link->conn_id,
		   verve_addr_str(&peer->addr, name));
	link->greets |= event->greet;
	verve_peer_kick(xport, peer);
	return;

err_link:
	verve_link_close(xport, link);
	verve_cm_drop(xport->cm, &event->drop);
	verve_peer_fail_pending(xport, peer, FI_ENOMEM, "no memory for the connection");
	return;
err_close:
	verve_cm_drop(xport->cm, &event->drop);
	if (peer) {
		verve_peer_connected(xport, peer);
		verve_peer_fail_pending(xport, peer, FI_ENOMEM, "no memory for the connection");
	}
	close_refused(xport, event->qp);
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
	case FI_ENODEV:
		return "cannot connect: the device of this endpoint is gone";
	default:
		return "cannot connect";
	}
}

static void handle_failed(struct verve_xport *xport, const struct verve_cm_event *event)
{
	struct verve_peer *peer = verve_peer_get(xport, &event->addr);

	if (!peer)
		return;
	verve_peer_connected(xport, peer);
	/* The manager has reported the end of each connection of the peer that it had, before. */
	assert(!peer->link || peer->link->leaving || peer->link->replay);
	if (peer->link && peer->link->replay)
		verve_link_break(xport, peer->link, event->error, 0, "cannot connect again");
	verve_peer_fail_pending(xport, peer, event->error, why_failed(event->error));
}

static const char *why_down(int error)
{
	switch (error) {
	case FI_EHOSTUNREACH:
		return "the peer's process, or its host, is gone";
	case FI_ENODEV:
		return "the device of this endpoint was removed, or failed";
	default:
		return "the peer closed its endpoint, or was started anew";
	}
}

void verve_events_drain(struct verve_xport *xport)
{
	while (!verve_dispatch_drain(xport))
		verve_events_step(xport);
}

static void handle_event(struct verve_xport *xport, struct verve_cm_event *event)
{
	struct verve_link *link = verve_link_of(xport, event->conn_id);

	switch (event->type) {
	case VERVE_CM_UP:
		handle_up(xport, event);
		break;
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
		verve_events_drain(xport);
		verve_quiesce_down(link);
		verve_link_leave(xport, link, event->error, why_down(event->error));
		break;
	}
}

/*
 * Mail moves into xport->inbox first, because this function calls itself: handling an event may
 * handle packets, which may need the next event. Each call takes the oldest event of the inbox.
 */
bool verve_events_step(struct verve_xport *xport)
{
	bool any = false;

	for (;;) {
		struct verve_mail *mail;

		if (!xport->inbox)
			xport->inbox = verve_mailbox_is_empty(&xport->events) ?
				NULL : verve_mailbox_take(&xport->events);
		mail = xport->inbox;
		if (!mail)
			return any;
		xport->inbox = mail->next;
		handle_event(xport, (struct verve_cm_event *) mail);
		verve_cm_event_free((struct verve_cm_event *) mail);
		any = true;
	}
}

bool verve_events_is_flooded(const struct verve_xport *xport)
{
	return xport->attr.sink.rx_queue && verve_comp_queue_is_flooded(xport->attr.sink.rx_queue);
}

bool verve_events_receive(struct verve_xport *xport)
{
	enum verve_dispatch_result result;

	/* More packets may mean more completions, while the application reads none. */
	if (__builtin_expect(verve_events_is_flooded(xport), 0))
		return false;
	while ((result = verve_dispatch_poll(xport)) == VERVE_DISPATCH_STALLED)
		verve_events_step(xport);
	return result == VERVE_DISPATCH_SOME;
}
