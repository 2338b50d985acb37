/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Link: one connection of a peer: the queue pair, what is outstanding on it, its credits.
 *
 * Requests are numbered; a completion of number n retires all up to n. Until then a request's slot says how to
 * post it again, on another queue pair: xport/post.h, xport/replay.h. xport/lifetime.h opens and ends links.
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_LINK_H
#define VERVE_XPORT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/op.h"
#include "xport/remote_key.h"
#include "xport/slot.h"

struct verve_cm_request;
struct verve_net_qp;
struct verve_peer;
struct verve_replay;

enum {
	VERVE_LINK_DEPTH = 64, /* slots for work requests; a power of two */
	/* Outstanding at most. soft-RoCE adds one and rounds up to a power of two: twice the memory. */
	VERVE_LINK_REQUESTS = VERVE_LINK_DEPTH - 1,
	VERVE_LINK_SIGNAL = 16, /* at least every so many-th asks for a completion */
	VERVE_LINK_COPIES = 4096, /* bytes of inline packets that are kept until they retire; a power of two */
};

/* xport/quiesce.h */
enum verve_quiesce_state { VERVE_QUIESCE_OPEN, VERVE_QUIESCE_ASKED, VERVE_QUIESCE_AGREED };

struct verve_quiesce {
	enum verve_quiesce_state state;
	bool refuse;		/* the peer asked; it is to hear that we are not idle */
	uint32_t sent, arrived; /* packets, when we asked: ours and the peer's */
	uint32_t seen;		/* requests and packets, when the link was last looked at */
	uint64_t not_before;	/* when the peer may be asked again, nanoseconds: it has refused */
};

struct verve_link {
	/* Identity. */
	TAILQ_ENTRY(verve_link) all; /* in xport->links, or xport->broken_links */
	struct verve_peer *peer;
	struct verve_net_qp *qp;     /* NULL: the queue pair was closed */
	/* In error: it was to continue the link, which broke first. NULL: there is none. */
	struct verve_net_qp *unused;
	uint32_t id;	    /* upper half of wr_id */
	uint32_t conn_id;   /* ours, in packets that arrive */
	uint32_t qp_num;    /* ours, on which they arrive */
	uint32_t remote_id; /* the peer's, in packets that leave */
	struct verve_cm_request *drop; /* gives the connection up; NULL: none, or used already */
	bool is_self;	    /* the peer is this endpoint: both ends are one queue pair */

	/* What both sides agreed on. */
	uint32_t inline_size;
	uint32_t eager_size; /* bytes of payload that both sides' buffers take */
	bool rma_event;	     /* the peer wants to hear of RMA */
	bool device_atomics; /* the peer's device executes atomics */
	bool may_send;	     /* the peer can hear us */
	bool listen;	     /* the manager is to hear of the peer's first packet */
	bool greets;	     /* the peer waits for a packet of ours */
	bool overdue;	     /* late at the last look; the next look breaks (half_open.h) */
	uint64_t listening;  /* since when we listen, nanoseconds */

	/* Requests, numbered from 0. */
	uint32_t produced;  /* posted */
	uint32_t retired;   /* of those, ended */
	uint32_t signaled;  /* number of the last one that asked for a completion */
	uint32_t slabs;	    /* of those outstanding, those that have a slab, or whose operation has one */
	uint64_t copied, copied_retired; /* bytes of copies: used, and free again */
	uint64_t copied_signaled; /* copied when a completion was last asked for */
	uint32_t sent;	    /* packets */
	uint32_t arrived;   /* packets */
	uint32_t arrived_before; /* packets, when receives were last in question (xport/lost.h) */

	/* Credits, in messages. */
	uint32_t credits;   /* eager messages that may be sent */
	uint32_t owed;	    /* credits to give back */
	uint32_t held;	    /* messages of the peer that cost it one and are not consumed */
	uint32_t unanswered_messages; /* of the peer that wait for a FIN of ours (msg/fin.h) */

	/* Atomics by the processor (rma/atomic.h). */
	uint32_t unanswered; /* atomics of ours that the peer has not answered */
	uint32_t replies;    /* replies to the peer's atomics that are not sent yet */

	/* Looking after a peer that owes an answer (xport/keepalive.h). */
	uint32_t heard;	    /* requests retired when the peer was last looked after */
	bool silent;	    /* none has retired between two looks: the manager checks the peer */

	/* Its end. */
	bool broken;
	bool unmarked;	    /* in error, and no flush will tell when: closing the queue pair ends its requests */
	bool said_bye;
	uint64_t leaving;   /* since when the peer has left, nanoseconds; 0: it has not */
	int error;	    /* why it broke: positive FI errno */
	uint32_t status;    /* ibv_wc_status, or 0 */
	const char *reason; /* a constant string */
	struct verve_op_queue doomed;

	/* Another queue pair in place of a failed one (xport/replay.h). */
	bool failed;	    /* a request failed: requests from number retired on did not end well */
	bool doubted;	    /* failed, but the device says that request number retired is done */
	uint32_t futile, futile_packets; /* suspended in vain, so often; with how many packets */
	struct verve_replay *replay; /* the link is suspended; NULL: it is not */

	struct verve_remote_keys keys;
	struct verve_quiesce quiesce;
	struct verve_slot slots[VERVE_LINK_DEPTH];
	unsigned char copies[VERVE_LINK_COPIES];
};

/* Requests may be posted. */
static inline bool verve_link_is_open(const struct verve_link *link)
{
	return link->may_send && link->quiesce.state == VERVE_QUIESCE_OPEN;
}

/* We wait for the first packet of a peer that may not exist: its address may be forged. */
static inline bool verve_link_is_half_open(const struct verve_link *link)
{
	return link->listen && !link->may_send;
}

static inline struct verve_slot *verve_link_slot(struct verve_link *link, uint32_t number)
{
	return &link->slots[number & (VERVE_LINK_DEPTH - 1)];
}

#endif
