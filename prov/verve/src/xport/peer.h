/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peer: another endpoint, known by its address, connected or not; it has the queues of operations
 * and the link to that endpoint. A peer outlives its links, until it is swept (xport/sweep.h).
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_PEER_H
#define VERVE_XPORT_PEER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/addr.h"
#include "xport/op.h"
#include "xport/xport.h"

/* xport/fence.h */
struct verve_fence {
	/* What we sent. */
	uint32_t sent;	  /* messages that can complete before the peer has them */
	uint32_t handled; /* messages that the peer is known to have handled */
	uint32_t matched; /* messages that the peer is known to have matched */
	uint32_t asked;	  /* sent, in our last FENCE */
	bool asks;	  /* the answer has not come */
	bool asks_matched; /* the question is whether they are matched */
	int lost;	  /* positive FI errno of a connection that may have lost some; 0: none */

	/* What the peer sent. */
	uint32_t kept;	  /* messages that have no receive yet */
	uint32_t question; /* in the peer's last FENCE; the answer repeats it */
	bool owes;	  /* the answer */
	bool owes_matched;
};

struct verve_peer {
	UT_hash_handle hh; /* by addr */
	TAILQ_ENTRY(verve_peer) waiting, wanting;
	struct verve_addr addr;
	uint64_t fi_addr;	 /* UINT64_MAX: not in the address vector, as of av_version */
	uint64_t av_version;	 /* verve_addrvec_version of the last search for fi_addr */
	uint32_t id;		 /* names the peer as a source; from xport->home->peer_ids */
	struct verve_peer *home; /* the shared receive context's peer of this id; NULL: none */
	uint32_t sharers;	 /* peers whose home is this peer */
	bool is_needed;		 /* during a sweep only: the peer stays */
	bool is_waiting;	 /* in xport->waiting */
	bool is_wanting;	 /* in xport->wanting, or xport->denied */
	bool connecting;	 /* the manager was asked to connect: UP or FAILED will come */
	bool is_kicked, kick_again; /* within verve_peer_kick; work has come meanwhile */
	bool own_is_next;	 /* the peer's messages took the last place of a bulk read */
	bool is_asked_for;	 /* a request found no memory: connects all the same */
	uint32_t denials;	 /* since lacking; stops where the pause is longest (places.c) */
	uint64_t lacking;	 /* since when it finds no connection, nanoseconds; 0: not */
	uint64_t retry_at;	 /* in xport->denied: when it is asked again, nanoseconds */
	uint32_t kept_slabs;	 /* slabs that are kept for it (xport/slab.h) */
	uint32_t parting;	 /* operations whose completions errands are to write */
	uint32_t named_receives; /* from it, that have an id (msg/recv_op.h) */
	struct verve_link *link; /* NULL: not connected */
	struct verve_op_queue pending; /* operations to be started, in order */
	struct verve_op_queue reads;   /* receives to be read or pulled; start before pending */
	struct verve_op_queue aside;   /* bulk reads of RMA (aside.h); start before pending, too */
	struct verve_op_queue control; /* operations that owe the peer a packet; sent first */
	struct verve_op_queue active;  /* operations that have started, and not ended */
	struct verve_fence fence;
	struct verve_page_entry *stat; /* xport/stat.h; never NULL */
};

/* The queue in which the operation waits to be started. */
static inline struct verve_op_queue *verve_peer_queue_of(struct verve_peer *peer,
							 const struct verve_op *op)
{
	return op->cls->is_receive ? &peer->reads : &peer->pending;
}

/* True if an operation waits to be started, or a packet to be sent. */
static inline bool verve_peer_has_work(const struct verve_peer *peer)
{
	return !TAILQ_EMPTY(&peer->control) || !TAILQ_EMPTY(&peer->reads) ||
	       !TAILQ_EMPTY(&peer->aside) || !TAILQ_EMPTY(&peer->pending);
}

/* For verve_peer_find alone: the first time that the fi_addr_t is used. */
int verve_peer_look_up(struct verve_xport *xport, uint64_t fi_addr, struct verve_peer **peer);
/*
 * The peer of this fi_addr_t. -FI_EINVAL: not in the address vector; -FI_ENOMEM; the error of
 * xport->failed.
 */
static inline int verve_peer_find(struct verve_xport *xport, uint64_t fi_addr,
				  struct verve_peer **peer)
{
	assert(verve_lock_held(xport->lock));
	*peer = verve_pointers_get(&xport->peer_of_addr, fi_addr);
	return __builtin_expect(*peer != NULL, 1) ? 0 : verve_peer_look_up(xport, fi_addr, peer);
}
/* The peer of this address, a new one if there is none. NULL: no memory. */
struct verve_peer *verve_peer_get(struct verve_xport *xport, const struct verve_addr *addr);
/* fi_addr leaves the address vector: verve_peer_find does not find the peer by it any more. */
void verve_peer_forget(struct verve_xport *xport, uint64_t fi_addr);
/* verve_peer_forget for every fi_addr. */
void verve_peer_forget_all(struct verve_xport *xport);
/* The peer's fi_addr_t; UINT64_MAX: it is not in the address vector. */
uint64_t verve_peer_fi_addr(struct verve_xport *xport, struct verve_peer *peer);
/* Frees all peers, which must have no link and nothing pending (asserted). */
void verve_peer_free_all(struct verve_xport *xport);

/* During a sweep (xport/sweep.h): this peer stays. */
static inline void verve_peer_need(struct verve_peer *peer)
{
	peer->is_needed = true;
}

/* The operation has started: moves it from its queue to peer->active. state: SENT or AWAIT. */
void verve_op_activate(struct verve_op *op, enum verve_op_state state);
/*
 * The receive, in state AWAIT, goes on: moves it to peer->reads, before those that have no id,
 * which may have to wait for its end. The caller kicks the peer.
 */
void verve_op_resume(struct verve_op *op);
/* Takes the peer out of xport->peers and frees it. No link, operation or message may name it. */
void verve_peer_free(struct verve_xport *xport, struct verve_peer *peer);

/*
 * The next turn looks after the peer: it continues a replay, sends a refusal of QUIESCE that is
 * due, and kicks the peer (xport/turn.c). For work that found no room, slab or credit. Harmless if
 * the peer waits already.
 */
void verve_peer_wait(struct verve_xport *xport, struct verve_peer *peer);

#endif
