/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers: look-up, what waits for a connection, the connection manager's events. */
#define HASH_NONFATAL_OOM 1

#include "proto/peer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "conn/addrvec.h"
#include "conn/cm.h"
#include "conn/hello.h"
#include "net/sys.h"
#include "proto/atomic.h"
#include "proto/key.h"
#include "proto/link.h"
#include "proto/post.h"
#include "proto/pull.h"
#include "proto/quiesce.h"
#include "proto/recv.h"
#include "proto/replay.h"
#include "proto/rma.h"
#include "proto/rndv.h"
#include "proto/send.h"
#include "proto/xport.h"
#include <rdma/fi_errno.h>

enum { PEERS_MIN = 1024 }; /* that are not worth a sweep */

/* Starts what the head of pending is; may_start. False: no room or no slab now. */
static bool (*const start[])(struct verve_xport *, struct verve_link *, struct verve_op *) = {
	[VERVE_OP_SEND] = verve_send_start,
	[VERVE_OP_RECV] = verve_rndv_start,
	[VERVE_OP_WRITE] = verve_rma_start,
	[VERVE_OP_READ] = verve_rma_start,
	[VERVE_OP_ATOMIC] = verve_atomic_start,
	[VERVE_OP_FETCH] = verve_atomic_start,
};

static struct verve_peer *find_by_addr(struct verve_xport *xport, const struct verve_addr *addr);

/* In a shared receive context, an address is one source, whichever of its endpoints it sends to. */
static int name_source(struct verve_xport *xport, struct verve_peer *peer)
{
	if (xport->rx == xport)
		return verve_idtab_alloc(&xport->peer_ids, peer, &peer->id);
	peer->shared = find_by_addr(xport->rx, &peer->addr);
	if (!peer->shared)
		return -FI_ENOMEM;
	peer->shared->sharers++;
	peer->id = peer->shared->id;
	return 0;
}

/* In no table any more. */
static void peer_free(struct verve_xport *xport, struct verve_peer *peer)
{
	if (peer->shared)
		peer->shared->sharers--;
	else
		verve_idtab_free(&xport->peer_ids, peer->id);
	free(peer);
}

static struct verve_peer *peer_alloc(struct verve_xport *xport, const struct verve_addr *addr)
{
	struct verve_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->addr = *addr;
	if (name_source(xport, peer)) {
		free(peer);
		return NULL;
	}
	peer->fi_addr = UINT64_MAX;
	peer->av_version = UINT64_MAX;
	TAILQ_INIT(&peer->pending);
	TAILQ_INIT(&peer->reads);
	TAILQ_INIT(&peer->control);
	TAILQ_INIT(&peer->active);
	TAILQ_INIT(&peer->offers);
	HASH_ADD(hh, xport->peers, addr, sizeof(peer->addr), peer);
	if (!peer->hh.tbl) {
		peer_free(xport, peer);
		return NULL;
	}
	return peer;
}

static struct verve_peer *find_by_addr(struct verve_xport *xport, const struct verve_addr *addr)
{
	struct verve_peer *peer;

	HASH_FIND(hh, xport->peers, addr, sizeof(*addr), peer);
	return peer ? peer : peer_alloc(xport, addr);
}

static int map_addr(struct verve_xport *xport, uint64_t fi_addr, struct verve_peer *peer)
{
	if (fi_addr >= xport->peer_of_addr_count) {
		size_t count = xport->peer_of_addr_count ? xport->peer_of_addr_count : 64;
		struct verve_peer **table;

		while (count <= fi_addr)
			count *= 2;
		table = realloc(xport->peer_of_addr, count * sizeof(table[0]));
		if (!table)
			return -FI_ENOMEM;
		for (size_t i = xport->peer_of_addr_count; i < count; i++)
			table[i] = NULL;
		xport->peer_of_addr = table;
		xport->peer_of_addr_count = count;
	}
	xport->peer_of_addr[fi_addr] = peer;
	return 0;
}

int verve_peer_find(struct verve_xport *xport, uint64_t fi_addr, struct verve_peer **peerp)
{
	struct verve_peer *peer;
	struct verve_addr addr;
	int ret;

	assert(verve_lock_held(xport->lock));
	if (fi_addr < xport->peer_of_addr_count && xport->peer_of_addr[fi_addr]) {
		*peerp = xport->peer_of_addr[fi_addr];
		return 0;
	}
	/* A shared receive context without endpoints has no address vector. */
	if (!xport->attr.addrvec || !verve_addrvec_get(xport->attr.addrvec, fi_addr, &addr))
		return -FI_EINVAL;
	peer = find_by_addr(xport, &addr);
	if (!peer)
		return -FI_ENOMEM;
	ret = map_addr(xport, fi_addr, peer);
	if (ret)
		return ret;
	peer->fi_addr = fi_addr;
	*peerp = peer;
	return 0;
}

void verve_peer_forget(struct verve_xport *xport, uint64_t fi_addr)
{
	struct verve_peer *peer;

	if (fi_addr >= xport->peer_of_addr_count)
		return;
	peer = xport->peer_of_addr[fi_addr];
	xport->peer_of_addr[fi_addr] = NULL;
	if (peer && peer->fi_addr == fi_addr) {
		peer->fi_addr = UINT64_MAX;
		peer->av_version = UINT64_MAX;
	}
}

void verve_peer_forget_all(struct verve_xport *xport)
{
	for (size_t i = 0; i < xport->peer_of_addr_count; i++)
		verve_peer_forget(xport, i);
}

uint64_t verve_peer_fi_addr(struct verve_xport *xport, struct verve_peer *peer)
{
	uint64_t version;

	if (peer->fi_addr != UINT64_MAX)
		return peer->fi_addr;
	version = verve_addrvec_version(xport->attr.addrvec);
	if (peer->av_version != version) {
		peer->fi_addr = verve_addrvec_find(xport->attr.addrvec, &peer->addr);
		peer->av_version = version;
		/* So that verve_peer_forget finds it. */
		if (peer->fi_addr != UINT64_MAX && map_addr(xport, peer->fi_addr, peer))
			peer->fi_addr = UINT64_MAX;
	}
	return peer->fi_addr;
}

void verve_peer_free_all(struct verve_xport *xport)
{
	struct verve_peer *peer, *next;

	HASH_ITER(hh, xport->peers, peer, next) {
		assert(!peer->link && TAILQ_EMPTY(&peer->pending));
		HASH_DEL(xport->peers, peer);
		peer_free(xport, peer);
	}
	free(xport->peer_of_addr);
	free(xport->link_of_conn);
}

static bool is_at_rest(const struct verve_peer *peer)
{
	return !peer->link && !verve_peer_has_work(peer) && TAILQ_EMPTY(&peer->active) &&
	       TAILQ_EMPTY(&peer->offers) && !peer->is_waiting && !peer->is_wanting &&
	       !peer->connecting && !peer->sharers;
}

static void need_sender(const struct verve_xport *rx, struct verve_unexpected *message)
{
	struct verve_peer *source = verve_idtab_get(&rx->peer_ids, message->match.source);

	message->peer->is_needed = true;
	source->is_needed = true;
}

/* Sources of receives, and of messages that wait for one. */
static void need_sources(const struct verve_xport *rx)
{
	struct verve_unexpected *claimed;

	for (int i = 0; i < 2; i++) {
		struct verve_match_recv *recv;
		struct verve_match_msg *msg;

		TAILQ_FOREACH(recv, &rx->match[i].posted, order)
			if (recv->source != VERVE_MATCH_ANY)
				((struct verve_peer *) verve_idtab_get(&rx->peer_ids, recv->source))
					->is_needed = true;
		TAILQ_FOREACH(msg, &rx->match[i].unexpected, order)
			need_sender(rx, verve_unexpected_of(msg));
	}
	LIST_FOREACH(claimed, &rx->claimed, claims)
		need_sender(rx, claimed);
}

static void need_linked(const struct verve_link_queue *links)
{
	const struct verve_link *link;

	TAILQ_FOREACH(link, links, all)
		link->peer->is_needed = true;
}

void verve_peer_sweep(struct verve_xport *xport)
{
	struct verve_peer *peer, *next;

	assert(verve_lock_held(xport->lock));
	for (peer = xport->peers; peer; peer = peer->hh.next)
		peer->is_needed = !is_at_rest(peer);
	for (size_t i = 0; i < xport->peer_of_addr_count; i++)
		if (xport->peer_of_addr[i])
			xport->peer_of_addr[i]->is_needed = true;
	need_linked(&xport->links);
	need_linked(&xport->broken_links);
	need_sources(xport->rx);
	HASH_ITER(hh, xport->peers, peer, next) {
		if (peer->is_needed)
			continue;
		HASH_DEL(xport->peers, peer);
		peer_free(xport, peer);
	}
	xport->peers_limit = 2 * HASH_COUNT(xport->peers) + PEERS_MIN;
	if (xport->rx != xport && HASH_COUNT(xport->rx->peers) > xport->rx->peers_limit)
		verve_peer_sweep(xport->rx);
}

void verve_peer_wait(struct verve_xport *xport, struct verve_peer *peer)
{
	if (peer->is_waiting)
		return;
	peer->is_waiting = true;
	TAILQ_INSERT_TAIL(&xport->waiting, peer, waiting);
}

/* Everything that waits for a connection to peer ends. */
static void fail_pending(struct verve_xport *xport, struct verve_peer *peer, int error,
			 const char *reason)
{
	struct verve_op *op;

	while ((op = TAILQ_FIRST(&peer->pending))) {
		TAILQ_REMOVE(&peer->pending, op, link);
		verve_op_set_state(op, VERVE_OP_DOOMED);
		if (!(op->flags & VERVE_OP_REPORTED))
			verve_op_report_error(xport, op, error, 0, reason);
		verve_op_free(xport, op);
	}
}

void verve_peer_cancel(struct verve_xport *xport, struct verve_peer *peer)
{
	fail_pending(xport, peer, FI_ECANCELED, "the endpoint is closed");
}

/* A FIN, what the peer is to hear of a read, or that a message is taken back. */
static bool send_fin(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	struct verve_wire_packet packet = {
		.type = op->kind == VERVE_OP_WITHDRAW ? VERVE_WIRE_WITHDRAW : VERVE_WIRE_FIN,
		.op_id = op->recv.fin_id,
		.status = op->recv.fin_status,
	};

	if (op->kind == VERVE_OP_READ)
		verve_rma_describe(op, &packet);
	if (!verve_link_has_room(xport, link, true) ||
	    !verve_link_send(xport, link, &packet, NULL))
		return false;
	TAILQ_REMOVE(&link->peer->control, op, link);
	verve_op_free(xport, op);
	return true;
}

static bool send_control(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	switch (op->kind) {
	case VERVE_OP_REPLY:
		return verve_atomic_reply(xport, link, op);
	case VERVE_OP_KEY:
		return verve_key_send(xport, link, op);
	case VERVE_OP_CHUNK:
		return verve_pull_send(xport, link, op);
	default:
		return send_fin(xport, link, op);
	}
}

static bool may_start(const struct verve_xport *xport, const struct verve_peer *peer,
		      const struct verve_op *op)
{
	return verve_link_has_room(xport, peer->link, false) &&
	       !(op->flags & VERVE_OP_FENCE && !TAILQ_EMPTY(&peer->active));
}

static void start_queue(struct verve_xport *xport, struct verve_peer *peer,
			struct verve_op_queue *queue)
{
	struct verve_op *op;

	while (peer->link && (op = TAILQ_FIRST(queue)))
		if (!may_start(xport, peer, op) || !start[op->kind](xport, peer->link, op))
			break;
}

/* A peer that listens is to have a first packet, whatever else is sent. */
static void greet(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CREDIT};

	if (link->sent || (verve_link_has_room(xport, link, true) &&
			   verve_link_send(xport, link, &packet, NULL)))
		link->greets = false;
	else if (!link->broken)
		verve_peer_wait(xport, link->peer);
}

static void set_connecting(struct verve_xport *xport, struct verve_peer *peer, bool connecting)
{
	xport->connecting_count += connecting - peer->connecting;
	peer->connecting = connecting;
}

void verve_peer_connect(struct verve_xport *xport, struct verve_peer *peer)
{
	int ret;

	if (TAILQ_EMPTY(&peer->pending) || peer->connecting)
		return;
	ret = verve_cm_connect(xport->cm, &peer->addr);
	if (ret)
		fail_pending(xport, peer, -ret, "no memory to connect");
	else
		set_connecting(xport, peer, true);
}

void verve_peer_kick(struct verve_xport *xport, struct verve_peer *peer)
{
	struct verve_op *op;

	assert(verve_lock_held(xport->lock));
	if (!peer->link) {
		if (!TAILQ_EMPTY(&peer->pending) && !peer->connecting &&
		    verve_quiesce_admit(xport, peer))
			verve_peer_connect(xport, peer);
		return;
	}
	if (peer->link->replay)
		verve_replay_continue(xport, peer->link);
	if (!peer->link || !verve_link_is_open(peer->link))
		return;
	if (peer->link->quiesce.refuse && !verve_quiesce_refuse(xport, peer->link)) {
		if (peer->link)
			verve_peer_wait(xport, peer);
		return;
	}
	/* A link that breaks under way empties both queues and leaves peer->link NULL. */
	while (peer->link && (op = TAILQ_FIRST(&peer->control)))
		if (!send_control(xport, peer->link, op))
			break;
	start_queue(xport, peer, &peer->reads);
	start_queue(xport, peer, &peer->pending);
	if (peer->link && verve_peer_has_work(peer))
		verve_peer_wait(xport, peer);
	if (peer->link && peer->link->greets)
		greet(xport, peer->link);
}

void verve_peer_queue(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op)
{
	struct verve_op_queue *queue = verve_peer_queue_of(peer, op);
	bool first = TAILQ_EMPTY(queue);

	op->peer = peer;
	verve_op_set_state(op, VERVE_OP_QUEUED);
	TAILQ_INSERT_TAIL(queue, op, link);
	if (first)
		verve_peer_kick(xport, peer);
}

void verve_peer_queue_control(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op)
{
	verve_op_set_state(op, VERVE_OP_FINISH);
	TAILQ_INSERT_TAIL(&peer->control, op, link);
	verve_peer_kick(xport, peer);
}

struct verve_link *verve_peer_link_of(struct verve_xport *xport, uint32_t conn_id)
{
	uint32_t index = verve_idtab_index(conn_id);
	struct verve_link *link;

	if (index >= xport->link_of_conn_count)
		return NULL;
	link = xport->link_of_conn[index];
	return link && (link->conn_id == conn_id || verve_replay_is_next(link, conn_id)) ? link : NULL;
}

void verve_peer_unmap(struct verve_xport *xport, const struct verve_link *link, uint32_t conn_id)
{
	uint32_t index = verve_idtab_index(conn_id);

	if (index < xport->link_of_conn_count && xport->link_of_conn[index] == link)
		xport->link_of_conn[index] = NULL;
}

int verve_peer_map(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id)
{
	uint32_t index = verve_idtab_index(conn_id);

	if (index >= xport->link_of_conn_count) {
		size_t count = xport->link_of_conn_count ? xport->link_of_conn_count : 64;
		struct verve_link **table;

		while (count <= index)
			count *= 2;
		table = realloc(xport->link_of_conn, count * sizeof(table[0]));
		if (!table)
			return -FI_ENOMEM;
		for (size_t i = xport->link_of_conn_count; i < count; i++)
			table[i] = NULL;
		xport->link_of_conn = table;
		xport->link_of_conn_count = count;
	}
	xport->link_of_conn[index] = link;
	return 0;
}

/*
 * A queue pair without a link, over which something may have come. Closing may take completions along, and of those
 * of messages of nothing no buffer would tell (proto/lost.h).
 */
static void close_refused(struct verve_xport *xport, struct verve_net_qp *qp)
{
	verve_net_qp_error(qp);
	verve_recv_drain(xport);
	verve_net_qp_close(qp);
}

/* It continues a connection that we do not have any more. */
static void refuse_up(struct verve_xport *xport, struct verve_peer *peer,
		      struct verve_cm_event *event)
{
	close_refused(xport, event->qp);
	/* Before anybody asks for the next one. */
	verve_cm_drop(xport->cm, &event->drop);
	if (peer->link)
		verve_link_break(xport, peer->link, FI_ENOTCONN, 0,
				 "the peer goes on with another connection");
	verve_peer_kick(xport, peer);
}

static void handle_up(struct verve_xport *xport, struct verve_cm_event *event)
{
	struct verve_peer *peer = find_by_addr(xport, &event->addr);
	struct verve_link *link;
	char name[VERVE_ADDR_STRLEN];

	if (peer && event->resumes) {
		set_connecting(xport, peer, false);
		if (peer->link && verve_replay_expects(peer->link, event->resumes))
			verve_replay_join(xport, peer->link, event);
		else
			refuse_up(xport, peer, event);
		return;
	}
	if (!peer || verve_link_open(xport, peer, event->qp, event->conn_id, event->remote_id, &link)) {
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
	link->app_keys = event->features & VERVE_HELLO_APP_KEYS;
	link->device_atomics = event->features & VERVE_HELLO_DEVICE_ATOMICS;
	set_connecting(xport, peer, false);
	if (verve_peer_map(xport, link, link->conn_id))
		goto err_link;
	link->drop = event->drop;
	event->drop = NULL;
	/* The manager ends the old one first; a break here is its DOWN that found no memory. */
	if (peer->link) {
		verve_quiesce_down(peer->link);
		verve_link_break(xport, peer->link, FI_ENOTCONN, 0, "replaced by a new connection");
	}
	peer->link = link;
	VERVE_INFO(EP_CTRL, "connection %#x to %s is up\n", link->conn_id,
		   verve_addr_str(&peer->addr, name));
	link->greets |= event->greet;
	verve_peer_kick(xport, peer);
	return;

err_link:
	verve_link_close(xport, link);
	verve_cm_drop(xport->cm, &event->drop);
	fail_pending(xport, peer, FI_ENOMEM, "no memory for the connection");
	return;
err_close:
	close_refused(xport, event->qp);
	verve_cm_drop(xport->cm, &event->drop);
	if (peer) {
		set_connecting(xport, peer, false);
		fail_pending(xport, peer, FI_ENOMEM, "no memory for the connection");
	}
}

static void handle_ready(struct verve_xport *xport, struct verve_link *link,
			 const struct verve_cm_event *event)
{
	link->listen = false;
	verve_link_hear(xport, link);
	link->greets |= event->greet;
	verve_peer_kick(xport, link->peer);
}

/* For who reads err_data: what to look at. */
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
	struct verve_peer *peer = find_by_addr(xport, &event->addr);

	if (!peer)
		return;
	set_connecting(xport, peer, false);
	if (peer->link && peer->link->replay)
		verve_link_break(xport, peer->link, event->error, 0, "cannot connect again");
	fail_pending(xport, peer, event->error, why_failed(event->error));
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

static void handle_event(struct verve_xport *xport, struct verve_cm_event *event)
{
	struct verve_link *link = verve_peer_link_of(xport, event->conn_id);

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
		if (event->suspended && !link->broken && verve_replay_down(xport, link, event->conn_id))
			break;
		/* What the peer sent before it ended counts; it is all in the queue by now. */
		verve_recv_drain(xport);
		verve_quiesce_down(link);
		verve_link_leave(xport, link, event->error, why_down(event->error));
		break;
	}
}

bool verve_peer_has_events(struct verve_xport *xport)
{
	return xport->inbox || !verve_mailbox_is_empty(&xport->events);
}

/*
 * Mail moves into an inbox first: handling one event may receive packets, which may need the next
 * event; whoever comes takes the oldest.
 */
bool verve_peer_events(struct verve_xport *xport)
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
