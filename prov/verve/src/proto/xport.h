/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transport: what one engine's protocols share: completion queues of the device, the shared receive
 * queue and its buffers, operations, peers, connections, match tables, and where completions go.
 *
 * The engine's lock protects everything here; only the engine opens, polls and closes it.
 */
#ifndef VERVE_PROTO_XPORT_H
#define VERVE_PROTO_XPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idtab.h"
#include "base/lock.h"
#include "base/mailbox.h"
#include "base/pool.h"
#include "net/cq.h"
#include "net/qp.h"
#include "proto/comp.h"
#include "proto/lost.h"
#include "proto/match.h"
#include "proto/op.h"
#include "proto/peer.h"
#include "proto/slab.h"

struct verve_addrvec;
struct verve_cm;
struct verve_mr_cache;
struct verve_mr_keytab;
struct verve_net_channel;
struct verve_net_cq;
struct verve_net_device;
struct verve_unexpected;

/* Where completions go; any may be NULL. They outlive the transport. */
struct verve_sink {
	struct verve_comp_queue *tx_queue, *rx_queue;
	struct verve_comp_counter *send, *recv, *read, *write, *remote_read, *remote_write;
};

struct verve_xport_attr {
	struct verve_net_device *dev;
	struct verve_addrvec *addrvec;
	struct verve_mr_cache *mr_cache;
	struct verve_mr_keytab *mr_keytab; /* what peers' atomics may reach, and who counts */
	struct verve_sink sink;
	size_t tx_size;	       /* operations accepted and not finished */
	size_t inline_size;    /* bytes */
	size_t eager_size;     /* bytes of payload */
	size_t rx_buffers;     /* receive buffers */
	uint32_t max_conns;    /* above them idle ones are closed; 0: no limit */
	uint32_t window;       /* eager messages that a peer may have unconsumed here */
	size_t min_multi_recv; /* bytes */
	uint64_t keepalive;    /* nanoseconds that a peer may keep us waiting before it is asked for a sign */
	bool source;	       /* completions name the sender */
	bool rma_event;	       /* peers say what their RMA does here */
	bool app_keys;	       /* the application chooses keys: none is an rkey */
	bool device_atomics;   /* devices execute atomics, here and at peers; else processors */
	struct verve_xport *rx; /* the shared receive context that it takes receives from; NULL: none */
};

enum {
	VERVE_LINK_RESERVE = 8,	 /* work requests of a link that only control messages may use */
	VERVE_TX_SLABS = 512,	 /* buffers for what is copied on its way out */
	VERVE_SLAB_BATCH = 32,
	VERVE_POLL_BATCH = 16,
	VERVE_WATCH_POLLS = 16, /* the clock is looked at every so many polls */
};

TAILQ_HEAD(verve_link_queue, verve_link);
TAILQ_HEAD(verve_peer_queue, verve_peer);
LIST_HEAD(verve_claim_list, verve_unexpected);

/* Completions of receives that were polled; those from at on are not handled yet. */
struct verve_recv_batch {
	struct verve_net_wc wc[VERVE_POLL_BATCH];
	int at, count;
};

struct verve_xport {
	struct verve_lock *lock; /* the engine's, for assertions */
	struct verve_xport_attr attr;
	/* Has the receives: itself, or a shared context, whose match, starved, claimed, ops and peer_ids are everybody's. */
	struct verve_xport *rx;
	bool closing; /* what was posted to the endpoint ends without a completion */
	struct verve_net_channel *channel;
	struct verve_net_cq *send_cq, *recv_cq;
	struct verve_net_srq *srq;
	struct verve_slab_pool rx_slabs, tx_slabs;
	struct verve_slab *rx_free; /* to be posted again, in one batch */
	uint32_t rx_free_count;
	bool rx_refused; /* the device took none the last time */
	struct verve_lost lost;
	struct verve_recv_batch batch;
	uint64_t polled; /* completions of receives, ever */

	struct verve_cm *cm;
	struct verve_mailbox events; /* from the connection manager */
	struct verve_mail *inbox;    /* taken from it, oldest first, not yet handled */

	struct verve_pool ops;
	struct verve_idtab op_ids;
	size_t tx_used;

	struct verve_match match[2]; /* untagged, tagged: index by VERVE_OP_TAGGED set or not */
	bool starved; /* messages wait that a posted multi-receive buffer had no memory to take */
	struct verve_claim_list claimed;

	struct verve_peer *peers; /* uthash by address */
	size_t peers_limit;	  /* above it they are swept */
	struct verve_peer **peer_of_addr; /* by fi_addr_t; NULL where not looked up yet */
	size_t peer_of_addr_count;
	struct verve_idtab peer_ids;
	struct verve_peer_queue waiting; /* have something to send that did not fit */
	struct verve_peer_queue wanting; /* a place among the connections; proto/quiesce.h */
	uint64_t wanting_since; /* the first of them, nanoseconds */

	struct verve_idtab link_ids;
	struct verve_link **link_of_conn; /* by index of the connection id in a packet */
	size_t link_of_conn_count;
	struct verve_link_queue links, broken_links;
	uint32_t link_count; /* of both */
	uint32_t connecting_count, quiescing_count; /* peers; links that are being closed in agreement */
	uint32_t leaving_count, drained_count; /* of links: whose peer, or whose queue pair, has left */
	uint32_t polls;	     /* since the clock was looked at */
	uint64_t watch_time; /* when links were last watched, nanoseconds */
	uint32_t wr_used, wr_limit; /* of all connections: the send CQ can never overflow */
	struct { uint64_t stale, malformed; } count; /* relaxed statistics */
};

/* Most bytes of an eager payload, if so many are wanted: a packet is one request of the device. */
size_t verve_xport_eager_size(const struct verve_net_device *dev, size_t wanted);

/* Opens everything but the connection manager, which needs the queues and which the engine adds. */
int verve_xport_init(struct verve_xport *xport, const struct verve_xport_attr *attr,
		     struct verve_lock *lock);
/* After the connection manager is closed and verve_xport_cancel. */
void verve_xport_fini(struct verve_xport *xport);

/*
 * A shared receive context: receives, and the messages that wait for them, of all transports that are
 * opened with it as their attr.rx, under one lock. It has no device, and is never polled. Of attr, mr_cache,
 * min_multi_recv, addrvec and sink count; the last two are those of any of its transports, and change with
 * them. 0 or -FI_ENOMEM.
 */
int verve_xport_init_shared(struct verve_xport *xport, const struct verve_xport_attr *attr,
			    struct verve_lock *lock);
/* After verve_recv_cancel_all; its transports are closed. */
void verve_xport_fini_shared(struct verve_xport *xport);

/* One turn: events, arrived messages, finished work. True if there was any. */
bool verve_xport_poll(struct verve_xport *xport);
/* Somebody should poll again within attr.keepalive, even if nothing happens. */
bool verve_xport_is_waiting(const struct verve_xport *xport);
/* Asks the device for a wake-up. The caller polls once more. */
void verve_xport_arm(struct verve_xport *xport);
/* Accepted work is under way; await: also what waits for nothing but the peer's answer. */
bool verve_xport_is_busy(const struct verve_xport *xport, bool await);
/* Says BYE on every connection, once; true when all that was sent is acknowledged. Call until true. */
bool verve_xport_say_bye(struct verve_xport *xport);
/* The endpoint closes: receives posted to it end now, and nothing that was posted to it is reported any more. */
void verve_xport_begin_close(struct verve_xport *xport);
/* The same, and ends all else. What a connection has ends in verve_xport_poll, when the hardware has let go. */
void verve_xport_cancel(struct verve_xport *xport);

/*
 * Buffers or queue entries run low: every request asks for its completion. A request that does not ask
 * keeps what it holds until its connection is used again; so those of idle connections hold at most
 * half of the entries that verve_link_has_room gives, and of the buffers that may be kept.
 */
static inline bool verve_xport_is_tight(const struct verve_xport *xport)
{
	return 2 * (xport->wr_used + 1) + xport->link_count + VERVE_LINK_RESERVE >= xport->wr_limit ||
	       xport->tx_slabs.used > xport->tx_slabs.limit / 4;
}

#endif
