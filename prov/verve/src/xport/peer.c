/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers: the tables of peers, by address and by fi_addr_t. */
#define HASH_NONFATAL_OOM 1

#include "xport/peer.h"

#include <assert.h>
#include <stdlib.h>

#include "conn/addrvec.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * Gives the peer its id as a source. Endpoints of a shared receive context use the id of the
 * context's peer, so that an address is one source, whichever of the endpoints it sends to.
 */
static int name_source(struct verve_xport *xport, struct verve_peer *peer)
{
	if (xport->home == xport)
		return verve_idtab_alloc(&xport->peer_ids, peer, &peer->id);
	peer->home = verve_peer_get(xport->home, &peer->addr);
	if (!peer->home)
		return -FI_ENOMEM;
	peer->home->sharers++;
	peer->id = peer->home->id;
	return 0;
}

/* The peer is not in xport->peers. */
static void peer_free(struct verve_xport *xport, struct verve_peer *peer)
{
	if (xport->stat.next == peer)
		xport->stat.next = peer->hh.next;
	verve_stat_peer_close(&xport->stat, peer->stat);
	if (peer->home)
		peer->home->sharers--;
	else
		verve_idtab_free(&xport->peer_ids, peer->id);
	free(peer);
}

void verve_peer_free(struct verve_xport *xport, struct verve_peer *peer)
{
	HASH_DEL(xport->peers, peer);
	peer_free(xport, peer);
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
	peer->stat = verve_stat_peer_open(&xport->stat, addr);
	peer->fi_addr = UINT64_MAX;
	peer->av_version = UINT64_MAX;
	TAILQ_INIT(&peer->pending);
	TAILQ_INIT(&peer->reads);
	TAILQ_INIT(&peer->aside);
	TAILQ_INIT(&peer->control);
	TAILQ_INIT(&peer->active);
	HASH_ADD(hh, xport->peers, addr, sizeof(peer->addr), peer);
	if (!peer->hh.tbl) {
		peer_free(xport, peer);
		return NULL;
	}
	return peer;
}

struct verve_peer *verve_peer_get(struct verve_xport *xport, const struct verve_addr *addr)
{
	struct verve_peer *peer;

	HASH_FIND(hh, xport->peers, addr, sizeof(*addr), peer);
	return peer ? peer : peer_alloc(xport, addr);
}

int verve_peer_look_up(struct verve_xport *xport, uint64_t fi_addr, struct verve_peer **peerp)
{
	struct verve_peer *peer;
	struct verve_addr addr;
	int ret;

	assert(verve_lock_held(xport->lock));
	/* No peer is found by its address any more: see handle_fatal in xport/cm_events.c. */
	if (xport->failed)
		return -xport->failed;
	/* A shared receive context without endpoints has no address vector. */
	if (!xport->attr.addrvec || !verve_addrvec_get(xport->attr.addrvec, fi_addr, &addr))
		return -FI_EINVAL;
	peer = verve_peer_get(xport, &addr);
	if (!peer)
		return -FI_ENOMEM;
	ret = verve_pointers_set(&xport->peer_of_addr, fi_addr, peer);
	if (ret)
		return ret;
	peer->fi_addr = fi_addr;
	*peerp = peer;
	return 0;
}

void verve_peer_forget(struct verve_xport *xport, uint64_t fi_addr)
{
	struct verve_peer *peer = verve_pointers_get(&xport->peer_of_addr, fi_addr);

	if (!peer)
		return;
	verve_pointers_set(&xport->peer_of_addr, fi_addr, NULL);
	if (peer->fi_addr == fi_addr) {
		peer->fi_addr = UINT64_MAX;
		peer->av_version = UINT64_MAX;
	}
}

void verve_peer_forget_all(struct verve_xport *xport)
{
	for (size_t i = 0; i < xport->peer_of_addr.count; i++)
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
		/* verve_peer_forget finds the peer by this entry alone. */
		if (peer->fi_addr != UINT64_MAX &&
		    verve_pointers_set(&xport->peer_of_addr, peer->fi_addr, peer))
			peer->fi_addr = UINT64_MAX;
	}
	return peer->fi_addr;
}

void verve_peer_free_all(struct verve_xport *xport)
{
	struct verve_peer *peer, *next;

	HASH_ITER(hh, xport->peers, peer, next) {
		assert(!peer->link && TAILQ_EMPTY(&peer->pending));
		verve_peer_free(xport, peer);
	}
	verve_pointers_fini(&xport->peer_of_addr);
}

void verve_peer_wait(struct verve_xport *xport, struct verve_peer *peer)
{
	if (peer->is_waiting)
		return;
	peer->is_waiting = true;
	TAILQ_INSERT_TAIL(&xport->waiting, peer, waiting);
}

void verve_op_activate(struct verve_op *op, enum verve_op_state state)
{
	verve_op_dequeue(op);
	verve_op_enqueue(op, &op->peer->active, state);
}

void verve_op_resume(struct verve_op *op)
{
	struct verve_op_queue *reads = &op->peer->reads;
	struct verve_op *next;

	verve_op_dequeue(op);
	TAILQ_FOREACH(next, reads, link)
		if (!next->id)
			break;
	verve_op_set_state(op, VERVE_OP_QUEUED);
	op->queue = reads;
	if (next)
		TAILQ_INSERT_BEFORE(next, op, link);
	else
		TAILQ_INSERT_TAIL(reads, op, link);
}
