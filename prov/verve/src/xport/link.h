/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Link: one connection of a peer: the queue pair, its outstanding requests, its credits.
 *
 * Requests are numbered; a completion of request n retires all requests up to n. Until a request
 * retires, its slot says how to post it again on another queue pair (xport/post.h, xport/replay.h).
 * xport/lifetime.h opens and ends links. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_LINK_H
#define VERVE_XPORT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/link_parts.h"
#include "xport/op.h"
#include "xport/remote_key.h"
#include "xport/slot.h"

struct verve_cm_request;
struct verve_net_qp;
struct verve_offer;
struct verve_peer;
struct verve_replay;

enum {
	VERVE_LINK_DEPTH = 64, /* slots for work requests; a power of two */
	/*
	 * Requests outstanding at most. Not VERVE_LINK_DEPTH: soft-RoCE adds one and rounds up to a
	 * power of two, which would double the queue's memory.
	 */
	VERVE_LINK_REQUESTS = VERVE_LINK_DEPTH - 1,
	VERVE_LINK_SIGNAL = 16, /* one request in so many, at least, asks for a completion */
	VERVE_LINK_COPIES = 4096, /* bytes of link->copies; a power of two */
};

/* xport/quiesce.h */
enum verve_quiesce_state { VERVE_QUIESCE_OPEN, VERVE_QUIESCE_ASKED, VERVE_QUIESCE_AGREED };

struct verve_quiesce {
	enum verve_quiesce_state state;
	bool refuse;		/* the peer has asked, and the refusal is not sent yet */
	uint32_t sent, arrived; /* ASKED: the link's packet counts before the question */
	uint32_t seen;		/* produced + arrived, when the link was last examined */
	uint64_t not_before;	/* the peer is not asked again before this time, nanoseconds */
};

struct verve_link {
	/* Identity. */
	TAILQ_ENTRY(verve_link) all; /* in xport->links, or xport->broken_links */
	struct verve_peer *peer;
	struct verve_net_qp *qp;     /* NULL: the queue pair was closed */
	/* Was to continue the link, which broke first. In error; closed with it. NULL: none. */
	struct verve_net_qp *unused;
	uint32_t id;	    /* in xport->link_ids; the upper half of wr_id */
	uint64_t serial;    /* ids come back, after thousands of links; serials do not */
	uint32_t conn_id;   /* this side's id of the connection, in packets that arrive */
	uint32_t qp_num;    /* this side's queue pair, over which they arrive; 0: none (qp_num.h) */
	LIST_ENTRY(verve_link) same_list; /* in one of xport->links_of_qp; unless qp_num is 0 */
	uint32_t remote_id; /* the peer's id of the connection, in packets that leave */
	struct verve_cm_request *drop; /* gives the connection up; NULL: none, or used already */
	bool is_self;	    /* the peer is this endpoint itself: both ends are one queue pair */

	/* Agreed on in the handshake. */
	uint32_t inline_size; /* bytes of a request that may go inline */
	uint32_t eager_size; /* bytes of payload that both sides' buffers take */
	bool rma_event;	     /* the peer wants an RMA_EVENT for each RMA operation */
	bool bound_keys;     /* the peer takes RTS whose keys end with the queue pair */
	bool freed_windows;  /* one was freed while its bind might not be executed (window.h) */
	bool batches;	     /* the peer takes several messages in a packet (msg/batch.h) */
	bool immediates;     /* the peer takes remote CQ data as the immediate of a write */
	bool device_atomics; /* the peer's device executes atomics */
	bool other_order;    /* the peer's processor has the other byte order */
	bool may_send;	     /* the peer can hear this side, and the link is not suspended */
	bool listen;	     /* the peer's first packet is to be told to the manager */
	bool greets;	     /* the peer waits for a first packet of this side */
	bool overdue;	     /* was late at the last look; the next look breaks it (half_open.h) */
	uint64_t listening;  /* when the connection came up, nanoseconds */

	/* Requests, numbered from 0. Counts wrap around. */
	uint32_t produced;  /* requests posted */
	uint32_t retired;   /* requests that have ended; the number of the oldest outstanding one */
	uint32_t signaled;  /* number of the last request that asked for a completion */
	uint32_t sharing;   /* outstanding requests that tell, but do not ask (xport/transfer.h) */
	uint32_t bulk_reads; /* outstanding bulk reads (xport/bulk.h) */
	uint32_t slabs;	    /* outstanding requests that hold a slab, or whose operation does */
	uint64_t copied, copied_retired, copied_signaled; /* bytes used, freed, used at signaled */
	uint32_t sent, arrived; /* packets that were sent, and that have arrived; without RESUME */
	uint32_t arrived_before; /* arrived, when buffers came into question (xport/rx_lost.h) */

	/* Credits (xport/credit.h). weight_sent, weight_arrived and returned only grow, from 0. */
	uint32_t credits;   /* of this side */
	uint32_t owed;	    /* credits to be returned to the peer */
	uint32_t held;	    /* credits that the peer has spent and that are not owed yet */
	uint64_t byte_weight; /* of a byte of a message, times 2^32 */
	uint64_t weight_sent, weight_arrived; /* of eager messages of this side, and of the peer */
	uint64_t weight_kept; /* of eager messages of the peer that wait for a receive */
	uint32_t long_kept; /* messages of the peer that wait for a receive, but for small ones */
	uint64_t returned;  /* credits that became owed, in all */
	uint32_t unanswered_messages; /* of the peer; this side still owes each a FIN (msg/fin.h) */
	struct verve_offer *offers; /* of these, those without a receive (msg/unexpected.h) */
	struct verve_link_parts parts; /* of these, the last one whose RTS offers its beginning */

	/* Atomics by the processor (rma/atomic.h). */
	uint32_t unanswered; /* atomics of this side that the peer has not answered */
	uint32_t replies;    /* replies to the peer's atomics that are not sent yet */

	/* Looking after a peer that owes an answer (xport/keepalive.h). */
	uint32_t heard;	    /* retired, when the link was last probed, or looked at */
	bool silent;	    /* no request has retired between two probes */
	bool is_owing, is_half_open; /* in these lists of xport/watched.h */
	TAILQ_ENTRY(verve_link) owing, half_open;

	/* The link's end. */
	bool broken, lossy; /* lossy: a message that came is lost, and with it all behind it */
	bool unmarked;	    /* no marker to wait for: the requests end with the queue pair */
	uint32_t qps_at_workers, marker_looks; /* xport/let_go.h, xport/detach.h */
	bool said_bye;	    /* BYE was sent */
	uint64_t leaving;   /* when the peer left (verve_link_leave), nanoseconds; 0: it has not */
	int error;	    /* positive FI errno for the operations in doomed */
	uint32_t status;    /* ibv_wc_status, or 0 */
	const char *reason; /* a constant string */
	struct verve_op_queue doomed; /* operations that end with the link */

	/* Another queue pair in place of a failed one (xport/replay.h). */
	bool failed;	    /* request number retired did not end well; later ones neither */
	bool doubted;	    /* failed, though the device says that request number retired is done */
	uint32_t futile;    /* suspensions in a row without a packet or a refusal between them */
	uint32_t futile_packets; /* sent + arrived, at the last suspension */
	struct verve_replay *replay; /* state of a suspended link; NULL: it is not suspended */

	struct verve_remote_keys keys;
	struct verve_quiesce quiesce;
	struct verve_slot slots[VERVE_LINK_DEPTH]; /* verve_link_slot */
	unsigned char copies[VERVE_LINK_COPIES]; /* ring of inline packets that have not retired */
};

/* True if requests may be posted. */
static inline bool verve_link_is_open(const struct verve_link *link)
{
	return link->may_send && link->quiesce.state == VERVE_QUIESCE_OPEN;
}

/*
 * True if many requests are outstanding, and a completion that tells of some will come soon: not
 * while a bulk read takes its time, and with it the requests behind it, which end in order.
 */
static inline bool verve_link_is_busy(const struct verve_link *link)
{
	uint32_t has = link->produced - link->retired;

	return has >= VERVE_LINK_SIGNAL && link->signaled - link->retired < has &&
	       !link->bulk_reads;
}

/*
 * True if a request whose end is to be told need not ask for its completion: many requests are
 * outstanding, and fewer than a quarter of them were posted since the last one that asked. So four
 * of them ask at least, and the application hears of their ends in time.
 */
static inline bool verve_link_may_share(const struct verve_link *link)
{
	uint32_t has = link->produced - link->retired;

	return has >= VERVE_LINK_SIGNAL / 2 && link->produced - link->signaled < has / 4;
}

/* True if no packet of the peer has arrived: the peer may not exist, its address may be forged. */
static inline bool verve_link_is_half_open(const struct verve_link *link)
{
	return link->listen && !link->may_send;
}

/* The slot of an outstanding request, by its number. */
static inline struct verve_slot *verve_link_slot(struct verve_link *link, uint32_t number)
{
	return &link->slots[number & (VERVE_LINK_DEPTH - 1)];
}

#endif
