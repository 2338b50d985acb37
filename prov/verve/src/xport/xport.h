/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transport: what one engine's protocols share: completion queues of the device, the shared receive
 * queue and its buffers, operations, peers, connections, and where completions go. The transport
 * does not know the protocols: struct verve_protocols says what it calls them for, and
 * proto/proto.h puts transport and protocols together.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_XPORT_H
#define VERVE_XPORT_XPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/idtab.h"
#include "base/lock.h"
#include "base/mailbox.h"
#include "base/pointers.h"
#include "base/pool.h"
#include "net/cq.h"
#include "xport/slab.h"

struct verve_addrvec;
struct verve_comp_counter;
struct verve_comp_queue;
struct verve_cm;
struct verve_mr_cache;
struct verve_mr_keytab;
struct verve_net_channel;
struct verve_net_cq;
struct verve_net_device;
struct verve_link;
struct verve_net_srq;
struct verve_peer;
struct verve_wire_packet;

/* Queues and counters where completions go; each may be NULL. They outlive the transport. */
struct verve_sink {
	struct verve_comp_queue *tx_queue, *rx_queue;
	struct verve_comp_counter *send, *recv, *read, *write, *remote_read, *remote_write;
};

struct verve_xport_attr {
	struct verve_net_device *dev;
	struct verve_addrvec *addrvec;
	struct verve_mr_cache *mr_cache;
	struct verve_mr_keytab *mr_keytab; /* regions of the application, by key */
	struct verve_sink sink;
	size_t tx_size;	       /* operations accepted and not finished */
	size_t inline_size;    /* bytes */
	size_t eager_size;     /* bytes of payload */
	size_t rx_buffers;     /* receive buffers */
	uint32_t max_conns;    /* more: idle connections are closed; 0: no limit */
	uint32_t window;       /* eager messages that a peer may have unconsumed here */
	size_t min_multi_recv; /* bytes */
	uint64_t keepalive;    /* nanoseconds that a peer may keep us waiting before it is asked for a sign */
	bool source;	       /* completions name the sender */
	bool rma_event;	       /* peers say what their RMA does here */
	bool app_keys;	       /* the application chooses keys: none is an rkey */
	bool device_atomics;   /* devices execute atomics, here and at peers; else processors */
	struct verve_xport *shared; /* shared receive context that has the receives; NULL: none */
};

/*
 * A packet has arrived over the link. packet is valid until the handler returns. The handler may
 * break the link; the link's memory stays until a later step of the turn.
 */
typedef void verve_packet_handler(struct verve_xport *xport, struct verve_link *link,
				  struct verve_wire_packet *packet);

/* What the transport calls the protocols for. A constant of the composition. */
struct verve_protocols {
	verve_packet_handler *const *handlers; /* by enum verve_wire_type; NULL: 0 alone */
	/*
	 * The link breaks: the protocols forget the messages that can only be fetched over this
	 * link.
	 */
	void (*forget)(struct verve_xport *xport, const struct verve_link *link);
	/*
	 * Calls verve_peer_need for each peer that a receive or a message of the protocols names.
	 */
	void (*need_peers)(struct verve_xport *xport);
};

enum {
	VERVE_LINK_RESERVE = 8,	 /* work requests of a link that only control messages may use */
	VERVE_TX_SLABS = 512,	 /* buffers for what is copied on its way out */
	VERVE_SLAB_BATCH = 32,
	VERVE_POLL_BATCH = 16,
	VERVE_OP_SIZES = 3, /* pools of operations, by size of an object */
	VERVE_WATCH_POLLS = 16, /* the clock is looked at every so many polls */
};

TAILQ_HEAD(verve_link_queue, verve_link);
TAILQ_HEAD(verve_peer_queue, verve_peer);

/* Completions of receives that were polled; entries from number at on are not handled yet. */
struct verve_recv_batch {
	struct verve_net_wc wc[VERVE_POLL_BATCH];
	int at, count;
};

/* Receive buffers that queue pairs may have taken along (xport/lost.h). */
struct verve_lost {
	uint64_t mark;	 /* what a posted buffer begins with */
	struct verve_slab **buffers; /* all of the transport's; NULL: none yet */
	uint32_t count;	 /* in question */
	uint32_t before; /* serial number: queue pairs opened from here on do not have them */
	uint32_t closed; /* queue pairs, when buffers were last looked at */
	bool pressing;	 /* silent peers were asked, or given other queue pairs: a later turn looks again */
};

struct verve_xport {
	struct verve_lock *lock; /* the engine's, for assertions */
	struct verve_xport_attr attr;
	const struct verve_protocols *protocols;
	/* Has the receives: this transport, or a context, whose ops and peer_ids serve its sharers. */
	struct verve_xport *shared;
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
	struct verve_mailbox events; /* mail of the connection manager */
	struct verve_mail *inbox;    /* taken from events, oldest first, not handled yet */

	struct verve_pool ops[VERVE_OP_SIZES]; /* by size of an object, the smallest first */
	struct verve_idtab op_ids;
	size_t tx_used;

	struct verve_peer *peers; /* uthash by address */
	size_t peers_limit;	  /* with more peers, xport/sweep.h sweeps */
	struct verve_pointers peer_of_addr; /* by fi_addr_t; NULL where not looked up yet */
	struct verve_idtab peer_ids;
	struct verve_peer_queue waiting; /* peers that the next turn looks after: verve_peer_wait */
	struct verve_peer_queue wanting; /* peers that wait for a place: xport/connect.h */
	uint64_t wanting_since; /* since when the first of wanting waits, nanoseconds */

	struct verve_idtab link_ids;
	struct verve_pointers link_of_conn; /* by index of the connection id in a packet */
	struct verve_link_queue links, broken_links;
	uint32_t link_count; /* of links and broken_links together */
	uint32_t connecting_count, quiescing_count; /* peers; links whose quiesce.state is not OPEN */
	uint32_t leaving_count, drained_count; /* links: verve_link_leave; verve_detach_step */
	uint32_t polls;	     /* since the clock was looked at */
	uint64_t watch_time; /* when links were last watched, nanoseconds */
	uint32_t wr_used, wr_limit; /* of all connections: the send CQ can never overflow */
	struct { /* relaxed statistics */
		uint64_t stale, malformed;
	} count;
};

/* The connection manager has events for xport/events.h. */
static inline bool verve_xport_has_events(const struct verve_xport *xport)
{
	return xport->inbox || !verve_mailbox_is_empty(&xport->events);
}

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
