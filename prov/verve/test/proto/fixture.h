/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the protocol tests: nodes, each a transport on the fake net with its queues and
 * counters. Nothing steps the connection manager behind a node: the test itself puts the manager's
 * events (node_join, node_event). One thread; every node's lock is held from open to close.
 */
#ifndef VERVE_TEST_PROTO_FIXTURE_H
#define VERVE_TEST_PROTO_FIXTURE_H

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../support/fake_net.h"
#include "base/lock.h"
#include "comp/comp_queue.h"
#include "comp/counter.h"
#include "conn/addrvec.h"
#include "conn/cm.h"
#include "mr/cache.h"
#include "proto/proto.h"
#include "rma/rma.h"
#include "xport/cm_events.h"
#include "xport/complete.h"
#include "xport/credit.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/memory.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/rx_lost.h"
#include "xport/start.h"
#include "xport/sweep.h"
#include "xport/xport.h"

/* Bytes, operations and messages that node_open uses unless the test gives other values. */
enum { NODE_INLINE = 128, NODE_EAGER = 1024, NODE_TX_SIZE = 64, NODE_WINDOW = 4,
	NODE_MIN_MULTI = 64 };

struct node {
	struct verve_lock lock;
	struct verve_proto proto;
	struct verve_xport *xport; /* the transport inside proto */
	struct verve_net_device *dev;
	struct verve_addrvec addrvec;
	struct verve_mr_cache mr_cache;
	struct verve_comp_queue tx_queue, rx_queue;
	struct verve_comp_counter send, recv, read, write, remote_write;
	struct verve_addr addr;
	uint32_t next_conn;
	struct node *next; /* next open node */
};

/*
 * Starts the fake net anew, with devices whose requests move at most len bytes. Before any node is
 * open.
 */
void nodes_limit(size_t len);
/*
 * Opens a node on a host of the fake net. Device, tables and sink of attr are filled in. attr NULL:
 * the values above.
 */
void node_open(struct node *node, uint32_t host, const struct verve_xport_attr *attr);
void node_attr(struct verve_xport_attr *attr);
/* Ends all operations as an endpoint's close does, and expects that nothing is left behind. */
void node_close(struct node *node);
/* The same, but at once: the device has not let go of what is posted, as one that never does. */
void node_drop(struct node *node);

/* The fi_addr_t of to in node's address vector. Inserts to if it is not there. */
uint64_t node_addr(struct node *node, const struct node *to);
/* The peer to of node. */
struct verve_peer *node_peer(struct node *node, const struct node *to);
/* The link of node to to. There must be one. */
struct verve_link *node_link(struct node *node, const struct node *to);
/*
 * Puts an event of the connection manager about a peer into node's mailbox, without a turn. conn_id
 * 0: the event names no connection.
 */
void node_event(struct node *node, enum verve_cm_event_type type, const struct node *about,
		uint32_t conn_id, int error);
/*
 * Makes b believe that a, or another host in a's name, asked for a connection: b gets an UP that
 * listens. The other end of b's queue pair is connected to nothing.
 */
void node_ask(struct node *b, const struct node *a);
/* READY of the peer about comes to a node that listens. */
void node_greet(struct node *node, const struct node *about, uint32_t conn_id);
/*
 * Connects a queue pair of a with one of b, and puts an UP into each mailbox, with window as the
 * window of the other. a began the handshake and may send at once; b may send after READY or a's
 * first packet.
 */
void node_connect(struct node *a, struct node *b, uint32_t window);
/* As node_connect, and both nodes handle their UP. */
void node_join(struct node *a, struct node *b, uint32_t window);
/*
 * Gives new queue pairs to the connection of a and b, which at least one of them has suspended;
 * settles. a may send at once, b after a's first packet.
 */
void node_resume(struct node *a, struct node *b);
/* As node_connect, but a says that it goes on with a connection that b never had. */
void node_claim(struct node *a, struct node *b, uint32_t window);
/* As node_connect, but b's manager gave its queue pair up after a's packets could come over it. */
void node_fail_to_connect(struct node *a, struct node *b);
/* Leaves so many entries of the send CQ, 2 or more, to a link that has none: xport->wr_limit. */
void node_leave_room(struct node *node, uint32_t requests);
/* Polls all nodes until nothing happens any more. Takes no real time. */
void nodes_settle(void);
/* What the fake net has counted since it started. */
struct fake_net_stats nodes_stats(void);

/* One message, as an application gives it. peer NULL, for a receive: from any peer. */
struct message {
	const struct node *peer;
	void *buf;
	size_t len;
	const struct iovec *iov; /* if not NULL, used in the place of buf */
	size_t iov_count;
	void *const *desc;
	uint64_t tag, ignore, data;
	void *context;
	uint32_t flags; /* VERVE_OP_*; without quiet, NOTIFY is added */
	bool quiet;
	unsigned peek; /* VERVE_PEEK, VERVE_CLAIM, VERVE_DISCARD */
};

int node_send(struct node *node, const struct message *message);
int node_recv(struct node *node, const struct message *message);
int node_peek(struct node *node, const struct message *message);
/* Sends any bytes as one packet; settles. */
void node_send_raw(struct node *node, const struct node *to, const void *bytes, size_t len);

/* Takes the next completion. There must be one. */
struct verve_comp expect_comp(struct verve_comp_queue *queue);
/* Takes the next completion, which must be an error. err: positive FI errno. */
struct verve_comp_error expect_error(struct verve_comp_queue *queue, int err);
void expect_none(struct verve_comp_queue *queue);
/*
 * Expects of the next completion of each queue: when it is there, the node has nothing registered
 * for operations.
 */
void node_watch(struct node *node);

/* Fills buf with bytes that depend on their place and on seed. */
void pattern_fill(void *buf, size_t len, unsigned seed);
bool pattern_holds(const void *buf, size_t len, unsigned seed);

#endif
