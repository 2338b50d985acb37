/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transport: what the protocols share, and the loop's turn. */
#include "proto/xport.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conn/cm.h"
#include "net/cq.h"
#include "net/sys.h"
#include "proto/link.h"
#include "proto/peek.h"
#include "proto/peer.h"
#include "proto/post.h"
#include "proto/quiesce.h"
#include "proto/recv.h"
#include "proto/replay.h"
#include <rdma/fi_errno.h>

enum { SEND_CQ_DEPTH = 8192, TX_SLABS_MIN = 4 };

static int open_queues(struct verve_xport *xport)
{
	const struct verve_net_limits *limits = &verve_net_device_port(xport->attr.dev)->limits;
	uint32_t depth = limits->cqe < SEND_CQ_DEPTH ? limits->cqe : SEND_CQ_DEPTH;
	int ret;

	if (xport->attr.rx_buffers > limits->srq_wr)
		xport->attr.rx_buffers = limits->srq_wr;
	if (xport->attr.rx_buffers > limits->cqe)
		xport->attr.rx_buffers = limits->cqe;
	ret = verve_net_channel_open(xport->attr.dev, &xport->channel);
	if (ret)
		return ret;
	ret = verve_net_cq_open(xport->attr.dev, depth, xport->channel, &xport->send_cq);
	if (ret)
		goto err_channel;
	xport->wr_limit = depth;
	ret = verve_net_cq_open(xport->attr.dev, xport->attr.rx_buffers, xport->channel, &xport->recv_cq);
	if (ret)
		goto err_send_cq;
	ret = verve_net_srq_open(xport->attr.dev, xport->attr.rx_buffers, &xport->srq);
	if (ret)
		goto err_recv_cq;
	return 0;

err_recv_cq:
	verve_net_cq_close(xport->recv_cq);
err_send_cq:
	verve_net_cq_close(xport->send_cq);
err_channel:
	verve_net_channel_close(xport->channel);
	return ret;
}

static void close_queues(struct verve_xport *xport)
{
	verve_net_srq_close(xport->srq);
	verve_net_cq_close(xport->recv_cq);
	verve_net_cq_close(xport->send_cq);
	verve_net_channel_close(xport->channel);
}

static int fill_receives(struct verve_xport *xport)
{
	int ret;

	while (xport->rx_free_count < xport->attr.rx_buffers) {
		struct verve_slab *slab = verve_slab_alloc(&xport->rx_slabs);

		if (!slab)
			return -FI_ENOMEM;
		slab->next = xport->rx_free;
		xport->rx_free = slab;
		xport->rx_free_count++;
	}
	ret = verve_lost_init(xport);
	return ret ? ret : verve_recv_refill(xport, true);
}

size_t verve_xport_eager_size(const struct verve_net_device *dev, size_t wanted)
{
	size_t most = verve_net_device_port(dev)->limits.msg_size - VERVE_WIRE_ATOMIC_PREFIX;

	return wanted < most ? wanted : most;
}

/* What a transport and a shared receive context have in common. */
static int init_tables(struct verve_xport *xport, const struct verve_xport_attr *attr,
		       struct verve_lock *lock)
{
	int ret;

	memset(xport, 0, sizeof(*xport));
	xport->lock = lock;
	xport->attr = *attr;
	xport->rx = attr->rx ? attr->rx : xport;
	verve_pool_init(&xport->ops, sizeof(struct verve_op), SIZE_MAX);
	verve_idtab_init(&xport->op_ids);
	verve_idtab_init(&xport->peer_ids);
	verve_idtab_init(&xport->link_ids);
	TAILQ_INIT(&xport->waiting);
	TAILQ_INIT(&xport->wanting);
	TAILQ_INIT(&xport->links);
	TAILQ_INIT(&xport->broken_links);
	LIST_INIT(&xport->claimed);
	ret = verve_match_init(&xport->match[0]);
	if (ret)
		return ret;
	ret = verve_match_init(&xport->match[1]);
	if (ret)
		verve_match_fini(&xport->match[0]);
	return ret;
}

static void fini_tables(struct verve_xport *xport)
{
	verve_match_fini(&xport->match[0]);
	verve_match_fini(&xport->match[1]);
	verve_idtab_fini(&xport->link_ids);
	verve_idtab_fini(&xport->peer_ids);
	verve_idtab_fini(&xport->op_ids);
	verve_pool_fini(&xport->ops);
}

int verve_xport_init_shared(struct verve_xport *xport, const struct verve_xport_attr *attr,
			    struct verve_lock *lock)
{
	return init_tables(xport, attr, lock);
}

void verve_xport_fini_shared(struct verve_xport *xport)
{
	verve_peer_free_all(xport);
	fini_tables(xport);
}

int verve_xport_init(struct verve_xport *xport, const struct verve_xport_attr *attr,
		     struct verve_lock *lock)
{
	size_t slab_size;
	int ret;

	ret = init_tables(xport, attr, lock);
	if (ret)
		return ret;
	xport->attr.eager_size = verve_xport_eager_size(attr->dev, attr->eager_size);
	slab_size = VERVE_WIRE_ATOMIC_PREFIX + xport->attr.eager_size;
	if (slab_size < VERVE_WIRE_RTS_MAX)
		slab_size = VERVE_WIRE_RTS_MAX;
	ret = open_queues(xport);
	if (ret)
		goto err_tables;
	verve_slab_pool_init(&xport->rx_slabs, attr->dev, slab_size, xport->attr.rx_buffers,
			     xport->attr.rx_buffers);
	verve_slab_pool_init(&xport->tx_slabs, attr->dev, slab_size, VERVE_SLAB_BATCH, VERVE_TX_SLABS);
	verve_mailbox_init(&xport->events);
	ret = fill_receives(xport);
	if (ret)
		goto err_queues;
	/* With none at all, and no memory later, what needs one would wait for ever. */
	ret = verve_slab_reserve(&xport->tx_slabs, TX_SLABS_MIN);
	if (ret)
		goto err_queues;
	return 0;

err_queues:
	verve_lost_fini(xport);
	close_queues(xport);
	verve_slab_pool_fini(&xport->rx_slabs);
	verve_slab_pool_fini(&xport->tx_slabs);
err_tables:
	fini_tables(xport);
	return ret;
}

void verve_xport_fini(struct verve_xport *xport)
{
	struct verve_link *link;

	assert(TAILQ_EMPTY(&xport->links));
	/* Broken connections still delivered what had arrived; nobody may find it in a shared context any more. */
	verve_recv_cancel_all(xport);
	while ((link = TAILQ_FIRST(&xport->broken_links)))
		verve_link_close(xport, link);
	verve_peer_free_all(xport);
	close_queues(xport);
	verve_lost_fini(xport);
	verve_slab_pool_fini(&xport->rx_slabs);
	verve_slab_pool_fini(&xport->tx_slabs);
	fini_tables(xport);
}

/* Buffers come back with completions, which nobody may have asked for; more of them there cannot be. */
static void reclaim_slabs(struct verve_xport *xport)
{
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (link->retired != link->produced)
			verve_link_ask(xport, link);
	}
}

/* Everybody who waited gets one try; who still does not fit is back in the queue by then. */
static void kick_waiting(struct verve_xport *xport)
{
	struct verve_peer_queue waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct verve_peer *peer;

	TAILQ_CONCAT(&waiting, &xport->waiting, waiting);
	while ((peer = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, peer, waiting);
		peer->is_waiting = false;
		verve_peer_kick(xport, peer);
	}
	if (__builtin_expect(xport->tx_slabs.failures && !xport->tx_slabs.free, 0))
		reclaim_slabs(xport);
}

bool verve_xport_is_waiting(const struct verve_xport *xport)
{
	const struct verve_link *link;

	if (!TAILQ_EMPTY(&xport->wanting) || xport->rx_refused || xport->rx->starved ||
	    xport->lost.count)
		return true;
	TAILQ_FOREACH(link, &xport->links, all)
		if (verve_link_is_waiting(link) || verve_link_is_half_open(link))
			return true;
	return false;
}

/* A peer that we wait for, and that nothing on the wire would find dead, is sent something to acknowledge. */
static void watch_links(struct verve_xport *xport)
{
	uint64_t now = verve_net_now();
	struct verve_link *link, *next;

	xport->polls = 0;
	if (now - xport->watch_time < xport->attr.keepalive)
		return;
	xport->watch_time = now;
	verve_link_expire(xport, now);
	verve_lost_step(xport);
	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (verve_link_is_waiting(link))
			verve_link_probe(xport, link);
	}
}

bool verve_xport_poll(struct verve_xport *xport)
{
	bool any;

	assert(verve_lock_held(xport->lock));
	any = verve_recv_poll(xport);
	any |= verve_link_poll(xport);
	any |= verve_peer_events(xport);
	if (__builtin_expect(xport->drained_count, 0))
		verve_replay_step(xport);
	if (__builtin_expect(xport->leaving_count, 0))
		verve_link_part(xport);
	if (__builtin_expect(!TAILQ_EMPTY(&xport->broken_links), 0))
		verve_link_reap(xport);
	if (!TAILQ_EMPTY(&xport->waiting))
		kick_waiting(xport);
	if (__builtin_expect(xport->rx->starved, 0))
		verve_recv_feed(xport);
	if (__builtin_expect(verve_quiesce_is_due(xport), 0))
		verve_quiesce_step(xport);
	if (__builtin_expect(++xport->polls >= VERVE_WATCH_POLLS, 0))
		watch_links(xport);
	if (__builtin_expect(HASH_COUNT(xport->peers) > xport->peers_limit, 0))
		verve_peer_sweep(xport);
	return any || xport->drained_count;
}

void verve_xport_arm(struct verve_xport *xport)
{
	verve_net_channel_drain(xport->channel);
	verve_net_cq_arm(xport->send_cq);
	verve_net_cq_arm(xport->recv_cq);
}

static bool is_awaiting(const struct verve_peer *peer)
{
	const struct verve_op *op;

	TAILQ_FOREACH(op, &peer->active, link)
		if (op->state != VERVE_OP_AWAIT)
			return false;
	return true;
}

bool verve_xport_is_busy(const struct verve_xport *xport, bool await)
{
	const struct verve_peer *peer;

	for (peer = xport->peers; peer; peer = peer->hh.next)
		if (verve_peer_has_work(peer) || (peer->link && peer->link->replay) ||
		    (!TAILQ_EMPTY(&peer->active) && (await || !is_awaiting(peer))))
			return true;
	return false;
}

bool verve_xport_say_bye(struct verve_xport *xport)
{
	struct verve_link *link, *next;
	bool done = TAILQ_EMPTY(&xport->broken_links);

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		struct verve_wire_packet packet = {.type = VERVE_WIRE_BYE};

		next = TAILQ_NEXT(link, all);
		/* It says nothing now: it ends by itself, or goes on later. */
		if (link->quiesce.state == VERVE_QUIESCE_AGREED || link->replay) {
			done = false;
			continue;
		}
		/* A passive side that never heard from its peer has nothing in flight. */
		if (!link->may_send)
			continue;
		if (!link->said_bye && verve_link_has_room(xport, link, true))
			link->said_bye = verve_link_send(xport, link, &packet, NULL);
		done &= link->said_bye && link->retired == link->produced;
	}
	return done;
}

void verve_xport_begin_close(struct verve_xport *xport)
{
	assert(verve_lock_held(xport->lock));
	xport->closing = true;
	verve_recv_cancel_all(xport);
}

void verve_xport_cancel(struct verve_xport *xport)
{
	struct verve_link *link;
	struct verve_peer *peer;

	/* Once more: messages that came meanwhile are forgotten, too. */
	verve_xport_begin_close(xport);
	while ((link = TAILQ_FIRST(&xport->links)))
		verve_link_break(xport, link, FI_ECANCELED, 0, "the endpoint is closed");
	for (peer = xport->peers; peer; peer = peer->hh.next)
		verve_peer_cancel(xport, peer);
}
