/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peer: another endpoint, known by its address, connected or not: what waits to be sent to it, and the
 * connection that carries it. Outlives its connections, until it is swept.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_PROTO_PEER_H
#define VERVE_PROTO_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/addr.h"
#include "proto/op.h"

struct verve_cm_event;
struct verve_link;
struct verve_unexpected;
struct verve_xport;

struct verve_peer {
	UT_hash_handle hh; /* by addr */
	TAILQ_ENTRY(verve_peer) waiting, wanting;
	struct verve_addr addr;
	uint64_t fi_addr;	 /* UINT64_MAX: not in the address vector, as of av_version */
	uint64_t av_version;
	uint32_t id;		 /* as a source in match tables: of xport->rx->peer_ids */
	struct verve_peer *shared; /* whose id that is: the shared receive context's; NULL: its own */
	uint32_t sharers;	 /* peers whose id is this one's */
	bool is_needed;		 /* verve_peer_sweep's */
	bool is_waiting;	 /* in xport->waiting */
	bool is_wanting;	 /* in xport->wanting: a place, to be connected */
	bool connecting;	 /* asked for; UP or FAILED will come */
	struct verve_link *link; /* NULL: not connected */
	struct verve_op_queue pending; /* to be started, in order */
	struct verve_op_queue reads;   /* rendezvous to be read: what the peer waits for waits for no send */
	struct verve_op_queue control; /* FINs, replies, chunks, RMA events of reads and what is said of keys */
	struct verve_op_queue active;  /* started, not finished */
	TAILQ_HEAD(, verve_unexpected) offers; /* messages of its that wait here, and that it wants to hear of */
};

/* Where an operation waits to be started. */
static inline struct verve_op_queue *verve_peer_queue_of(struct verve_peer *peer,
							 const struct verve_op *op)
{
	return op->kind == VERVE_OP_RECV ? &peer->reads : &peer->pending;
}

static inline bool verve_peer_has_work(const struct verve_peer *peer)
{
	return !TAILQ_EMPTY(&peer->control) || !TAILQ_EMPTY(&peer->reads) ||
	       !TAILQ_EMPTY(&peer->pending);
}

/* The peer behind a fi_addr_t. -FI_EINVAL: not in the address vector; -FI_ENOMEM. */
int verve_peer_find(struct verve_xport *xport, uint64_t fi_addr, struct verve_peer **peer);
/* fi_addr is being removed from the address vector: what follows does not reach the peer by it. */
void verve_peer_forget(struct verve_xport *xport, uint64_t fi_addr);
/* The same for every one. */
void verve_peer_forget_all(struct verve_xport *xport);
/* Its fi_addr_t; UINT64_MAX if it is not in the address vector. */
uint64_t verve_peer_fi_addr(struct verve_xport *xport, struct verve_peer *peer);
/* The endpoint closes: ends what waits for a connection. */
void verve_peer_cancel(struct verve_xport *xport, struct verve_peer *peer);
void verve_peer_free_all(struct verve_xport *xport);
/*
 * Frees those that nothing refers to any more: whose connection ended and that are not in the address vector.
 * Not from inside other work on peers. verve_xport_poll calls it now and then, so that clients that come and go do
 * not add up.
 */
void verve_peer_sweep(struct verve_xport *xport);

/* Puts an operation at the end of pending, or reads, and starts what can be started; connects if need be. */
void verve_peer_queue(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op);
/* Puts an operation that is to end with a packet to the peer (peer->control) there and sends what can be sent. */
void verve_peer_queue_control(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op);
/* The connection manager has events for verve_peer_events. */
bool verve_peer_has_events(struct verve_xport *xport);
/* Starts what room, credits and the connection allow: control, then reads, then pending, each in order. */
void verve_peer_kick(struct verve_xport *xport, struct verve_peer *peer);

/* Room is missing: it is kicked again in a later turn. */
void verve_peer_wait(struct verve_xport *xport, struct verve_peer *peer);

/* Asks the manager, if something is pending. What is fails if there is no memory. */
void verve_peer_connect(struct verve_xport *xport, struct verve_peer *peer);

/* All events of the connection manager that wait. True if there was any. */
bool verve_peer_events(struct verve_xport *xport);

/* The connection that a packet's destination id names; NULL: stale. */
struct verve_link *verve_peer_link_of(struct verve_xport *xport, uint32_t conn_id);
/* It names this one from here on; -FI_ENOMEM. Or no more. */
int verve_peer_map(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id);
void verve_peer_unmap(struct verve_xport *xport, const struct verve_link *link, uint32_t conn_id);

#endif
