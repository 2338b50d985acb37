/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transport: the objects that one engine's protocols share: completion queues of the device, the
 * shared receive queue and its buffers, operations, peers, links, and the sinks of completions. The
 * transport knows the protocols by struct verve_protocols and struct verve_op_class alone;
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
#include "conn/worker.h"
#include "net/cq.h"
#include "xport/errand_state.h"
#include "xport/rx_state.h"
#include "xport/slab.h"
#include "xport/stat.h"

struct verve_addrvec;
struct verve_comp_counter;
struct verve_comp_queue;
struct verve_cm;
struct verve_mr_cache;
struct verve_mr_keytab;
struct verve_net_device;
struct verve_link;
struct verve_net_srq;
struct verve_protocols;

/* Queues and counters that take completions; each may be NULL. They outlive the transport. */
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
	size_t tx_size;	       /* operations accepted and not finished, at most */
	size_t inline_size;    /* bytes of a request that may go inline, at most */
	uint16_t dscp;	       /* of all packets: see struct verve_net_qp_attr */
	size_t eager_size;     /* bytes of an eager payload, at most */
	size_t bulk_read;      /* bytes of a read above which it is a bulk read (xport/bulk.h) */
	size_t rx_first;       /* receive buffers that are always there */
	size_t rx_uncredited;  /* that messages that have begun may bring, at most */
	size_t rx_limit;       /* at most; open lowers all three to the device's limits */
	int send_vector, recv_vector; /* completion vectors (net/cq.h); -1: the endpoint's next */
	uint32_t max_conns;    /* above it, idle connections are closed; 0: no limit */
	uint32_t window;       /* credits of one peer (xport/credit.h) */
	size_t min_multi_recv; /* bytes: a multi-receive buffer with less left is given back */
	uint64_t keepalive;    /* nanoseconds between two looks at peers that owe an answer */
	bool source;	       /* completions name the sender */
	bool rma_event;	       /* peers send RMA_EVENT for each RMA operation on this side */
	bool app_keys;	       /* the application chooses its keys: no key is an rkey */
	bool off_lock;	       /* callers do errands without the engine's lock: xport/errand.h */
	bool device_atomics;   /* devices execute atomics, here and at peers; else processors do */
	struct verve_xport *shared; /* shared receive context that has the receives; NULL: none */
};

enum {
	VERVE_LINK_RESERVE = 8,	 /* work requests of a link that only control packets may use */
	VERVE_TX_SLABS = 512,	 /* slabs for payload and packets that are sent, at most */
	VERVE_SLAB_BATCH = 32,	 /* slabs that are registered together */
	VERVE_POLL_BATCH = 16,	 /* completions that are handled, or polled of sends, together */
	VERVE_OP_SIZES = 3,	 /* pools of operations, by size of an object */
	VERVE_WATCH_POLLS = 16,	 /* turns between two looks at the clock */
	VERVE_QP_LISTS = 256,	 /* lists of links, by the numbers of their queue pairs */
};

TAILQ_HEAD(verve_link_queue, verve_link);
LIST_HEAD(verve_link_list, verve_link);
TAILQ_HEAD(verve_peer_queue, verve_peer);

/*
 * Completions of receives that were polled: as many as waited (xport/rx_buffers.h). Entries from
 * index at on are not handled yet.
 */
struct verve_recv_batch {
	struct verve_net_wc *wc; /* attr.rx_limit; from malloc; NULL: none yet */
	int at, count;
};

struct verve_xport {
	struct verve_lock *lock; /* the engine's, for assertions */
	struct verve_xport_attr attr;
	const struct verve_protocols *protocols;
	struct verve_xport *home; /* has receives, ops, peer_ids: a shared context, or this */
	bool mute;		  /* operations of the endpoint end without a completion */
	int failing, failed; /* positive FI errno: told to the manager, told by it (failure.h) */
	struct verve_net_channel *channel;
	struct verve_net_cq *send_cq, *recv_cq;
	struct verve_net_srq *srq;
	struct verve_slab_pool rx_slabs, tx_slabs;
	struct verve_slab *rx_free; /* receive buffers to be posted again, in batches */
	uint32_t rx_free_count, rx_batch; /* free buffers; so many are posted together */
	uint32_t rx_count; /* receive buffers: free, posted, put aside, not handled, in question */
	struct verve_rx_load rx_load;
	bool rx_refused; /* the last attempt to post receive buffers failed */
	struct verve_rx_lost lost;
	struct verve_recv_batch batch;
	uint64_t handled; /* completions of receives, since the transport was opened */
	struct verve_cm *cm; /* NULL: not set yet, or the endpoint closes */
	struct verve_mailbox events; /* struct verve_cm_event, from the connection manager */
	struct verve_mail *inbox;    /* events that were taken, oldest first, not handled yet */

	struct verve_pool ops[VERVE_OP_SIZES]; /* by size of an object, the smallest first */
	struct verve_idtab op_ids;
	size_t tx_used; /* operations with VERVE_OP_TX */
	struct verve_errands errands;
	uint32_t errand_count; /* this transport's: wait, or are under way */

	struct verve_peer *peers; /* uthash by address */
	size_t peers_limit;	  /* with more peers, xport/sweep.h sweeps */
	struct verve_pointers peer_of_addr; /* by fi_addr_t; NULL: not looked up yet */
	struct verve_idtab peer_ids;
	struct verve_peer_queue waiting; /* peers that the next turn looks after: verve_peer_wait */
	struct verve_peer_queue wanting; /* peers that wait for a place: xport/places.h */
	struct verve_peer_queue denied;	 /* peers that had no queue pair, by retry_at */
	uint32_t scarce_limit; /* places that there are queue pairs for; UINT32_MAX: plenty */
	uint64_t scarce_until; /* scarce_limit holds until this time, nanoseconds */
	uint64_t spared_until; /* caches gave way to queue pairs: not again before, nanoseconds */
	uint64_t wanting_since; /* when the first of wanting became the first, nanoseconds */

	struct verve_idtab link_ids;
	struct verve_pointers link_of_conn; /* by index of the connection id: xport/conn_id.h */
	struct verve_link_list links_of_qp[VERVE_QP_LISTS]; /* zeros are empty lists: qp_num.h */
	struct verve_link_queue links, broken_links;
	uint64_t links_opened; /* ever */
	struct verve_link_queue owing, half_open; /* of links, some: xport/watched.h */
	uint32_t link_count;	   /* links and broken_links together */
	uint32_t connecting_count; /* peers for which the manager makes a connection */
	uint32_t quiescing_count;  /* links whose quiesce.state is not OPEN */
	uint32_t leaving_count, drained_count; /* links: verve_link_leave; verve_detach_step */
	struct verve_job_owner closers; /* stops and closes queue pairs by workers: let_go.h */
	uint32_t qps_at_workers;	/* queue pairs that workers stop or close: xport/let_go.h */
	uint32_t polls;	     /* turns since the last look at the clock */
	uint64_t watch_time; /* when links were last watched, nanoseconds */
	uint32_t wr_used, wr_limit; /* requests of all links: the send CQ never overflows */
	uint32_t asked;		    /* requests at the device that ask for a completion */
	uint32_t unpolled;	    /* turns since the last poll of the send CQ: complete.h */
	struct verve_stat stat;
	struct { uint64_t stale, malformed, looks, searches; } count; /* of packets, of looks */
};

/* True if the connection manager has events for xport/cm_events.h. */
static inline bool verve_xport_has_events(const struct verve_xport *xport)
{
	return xport->inbox || !verve_mailbox_is_empty(&xport->events);
}

/*
 * True if slabs or send queue entries run low: every request asks for its completion then. A
 * request that does not ask keeps its slab and its entry until the link is used again. So requests
 * of idle links hold at most half of the entries that verve_link_has_room gives, and half of the
 * slabs that verve_slab_alloc_kept gives.
 */
static inline bool verve_xport_is_tight(const struct verve_xport *xport)
{
	uint32_t kept = 2 * (xport->wr_used + 1) + xport->link_count + VERVE_LINK_RESERVE;

	return kept >= xport->wr_limit || xport->tx_slabs.used > xport->tx_slabs.limit / 4;
}

#endif
