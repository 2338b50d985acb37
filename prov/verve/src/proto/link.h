/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Link: one connection of a peer: the queue pair, what is outstanding on it, its credits.
 *
 * Requests are numbered; a completion of number n retires all up to n. Until then a request's slot says how to
 * post it again, on another queue pair: proto/post.h, proto/replay.h. When a link breaks, it keeps its operations until the
 * hardware has let go of them (every request flushed), then ends each with an error; the peer can have
 * a new link meanwhile. The engine's lock protects everything here.
 */
#ifndef VERVE_PROTO_LINK_H
#define VERVE_PROTO_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "net/cq.h"
#include "net/qp.h"
#include "proto/key.h"
#include "proto/op.h"
#include "proto/quiesce.h"
#include "proto/slot.h"
#include "proto/xport.h"

struct verve_cm_request;
struct verve_replay;

enum {
	VERVE_LINK_DEPTH = 64, /* slots for work requests; a power of two */
	/* Outstanding at most. soft-RoCE adds one and rounds up to a power of two: twice the memory. */
	VERVE_LINK_REQUESTS = VERVE_LINK_DEPTH - 1,
	VERVE_LINK_SIGNAL = 16, /* at least every so many-th asks for a completion */
	VERVE_LINK_COPIES = 4096, /* bytes of inline packets that are kept until they retire; a power of two */
};

struct verve_link {
	TAILQ_ENTRY(verve_link) all; /* in xport->links, or xport->broken_links */
	struct verve_peer *peer;
	struct verve_net_qp *qp;
	uint32_t id;	    /* upper half of wr_id */
	uint32_t conn_id;   /* ours, in packets that arrive */
	uint32_t qp_num;    /* ours, on which they arrive */
	uint32_t remote_id; /* the peer's, in packets that leave */
	uint32_t inline_size;
	struct verve_cm_request *drop; /* what gives the connection up; NULL: it has none, or did */
	uint32_t produced;  /* requests posted */
	uint32_t retired;   /* of those, done */
	uint32_t signaled;  /* number of the last one that asked for a completion */
	uint32_t eager_size; /* bytes of payload that both sides' buffers take */
	uint32_t credits;   /* eager messages that may be sent */
	uint32_t owed;	    /* credits to give back */
	uint32_t held;	    /* messages of the peer that cost it one and are not consumed */
	uint32_t unanswered; /* atomics that the peer has not answered */
	uint32_t replies;   /* to the peer's atomics, not sent yet */
	uint32_t sent;	    /* packets */
	uint32_t arrived;   /* packets */
	uint32_t arrived_before; /* when receives were last in question: proto/lost.h */
	uint64_t copied, copied_retired; /* bytes of copies: used, and free again */
	uint64_t copied_signaled; /* when a completion was last asked for */
	bool may_send, listen; /* listen: the manager is to hear of the peer's first packet */
	bool greets;	/* the peer waits for a packet of ours */
	bool overdue;	/* we have listened long enough, but its packet may be on its way into our buffers */
	uint64_t listening; /* since when we listen, nanoseconds */
	bool is_self;	/* the peer is this endpoint: both ends are one queue pair */
	bool rma_event; /* the peer wants to hear of RMA */
	bool app_keys;	/* the peer's keys are its application's: none is an rkey */
	bool device_atomics; /* the peer's device executes atomics */
	bool broken;
	bool unmarked; /* in error, and no flush will tell when: closing the queue pair ends its requests */
	bool failed; /* a request has, so those from retired on did not end well */
	bool doubted; /* failed, but all that the device said is that the first of them was done */
	bool said_bye;
	uint32_t heard; /* requests acknowledged when the peer was last looked after */
	bool silent; /* none since the time before that, and the manager checks it */
	uint64_t leaving; /* since when the peer has left, nanoseconds; 0: it has not */
	int error;	 /* why it broke: positive FI errno */
	uint32_t status; /* ibv_wc_status, or 0 */
	const char *reason;
	struct verve_key_cache keys;
	struct verve_quiesce quiesce;
	struct verve_replay *replay; /* it is suspended; NULL: it is not */
	uint32_t futile, futile_packets; /* suspended in vain, so often; with how many packets */
	struct verve_op_queue doomed;
	struct verve_slot slots[VERVE_LINK_DEPTH];
	unsigned char copies[VERVE_LINK_COPIES];
};

/* Takes the queue pair over. -FI_ENOMEM. */
int verve_link_open(struct verve_xport *xport, struct verve_peer *peer, struct verve_net_qp *qp,
		    uint32_t conn_id, uint32_t remote_id, struct verve_link **link);
/* Nothing may be outstanding, or the queues are about to be destroyed. */
void verve_link_close(struct verve_xport *xport, struct verve_link *link);

/* Requests may be posted. */
static inline bool verve_link_is_open(const struct verve_link *link)
{
	return link->may_send && link->quiesce.state == VERVE_QUIESCE_OPEN;
}

/* The peer owes us something, so it is looked after. */
bool verve_link_is_waiting(const struct verve_link *link);

/* We wait for the first packet of a peer that may not exist: its address may be forged. */
static inline bool verve_link_is_half_open(const struct verve_link *link)
{
	return link->listen && !link->may_send;
}
/*
 * Now and then: ends half-open ones that have waited for FI_VERVE_CONNECT_TIMEOUT, at the second look, after taking what
 * has arrived. now: nanoseconds. Not from inside other work on links.
 */
void verve_link_expire(struct verve_xport *xport, uint64_t now);

/*
 * Looks after a peer that owes an answer: asks, so that the transport finds a dead one. If nothing was
 * acknowledged since the last time, the manager checks the peer, too.
 */
void verve_link_probe(struct verve_xport *xport, struct verve_link *link);

/* The peer can hear us: requests may be posted from here on, unless the link is suspended or leaving. */
void verve_link_hear(struct verve_xport *xport, struct verve_link *link);

/*
 * To the error state; *marker: whose end says that all is off the hardware. False: there is none, because nothing is
 * outstanding, or because the device takes none (unmarked): closing the queue pair, which is the caller's, ends all.
 */
bool verve_link_stop(struct verve_xport *xport, struct verve_link *link, uint32_t *marker);
/* The oldest outstanding request ended; status: ibv_wc_status. */
void verve_link_retire(struct verve_xport *xport, struct verve_link *link, uint32_t status);
static inline struct verve_slot *verve_link_slot(struct verve_link *link, uint32_t number)
{
	return &link->slots[number & (VERVE_LINK_DEPTH - 1)];
}

/* A completion of the send queue. */
void verve_link_completed(struct verve_xport *xport, const struct verve_net_wc *wc);
/* Some of those that wait. False: there was none. */
bool verve_link_poll(struct verve_xport *xport);
/* All that wait now. */
void verve_link_poll_all(struct verve_xport *xport);

/*
 * Ends the link: error (positive FI errno) is what its operations will get. The peer's queues are
 * emptied into doomed. Harmless on a broken link. reason is a constant string.
 */
void verve_link_break(struct verve_xport *xport, struct verve_link *link, int error, uint32_t status,
		      const char *reason);

/*
 * The peer has left: like verve_link_break, but what its device has executed gets a moment to be
 * acknowledged; nothing more is sent, and what is asked for from here on waits for a new connection.
 * verve_link_part ends those whose moment is over, or that have nothing to wait for.
 */
void verve_link_leave(struct verve_xport *xport, struct verve_link *link, int error, const char *reason);
void verve_link_part(struct verve_xport *xport);

/* Ends the broken links that the hardware has let go of. Not from inside other work on links. */
void verve_link_reap(struct verve_xport *xport);
/* The receiver consumed an eager message that came over it. */
void verve_link_return_credit(struct verve_xport *xport, struct verve_link *link);

#endif
