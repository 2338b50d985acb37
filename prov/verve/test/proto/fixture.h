/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the protocol tests: nodes, each a transport on the fake net with its queues and
 * counters. The connection manager behind a node is never stepped: the test says what it would have
 * said (node_join, node_event). One thread; every node's lock is held from open to close.
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
#include "conn/addrvec.h"
#include "conn/cm.h"
#include "mr/cache.h"
#include "comp/comp_queue.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "proto/proto.h"
#include "rma/rma.h"
#include "xport/complete.h"
#include "xport/credit.h"
#include "xport/events.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/lost.h"
#include "xport/memory.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/start.h"
#include "xport/sweep.h"
#include "xport/xport.h"

/* Bytes; what node_open uses unless the test says otherwise. */
enum { NODE_INLINE = 128, NODE_EAGER = 1024, NODE_TX_SIZE = 64, NODE_WINDOW = 4,
	NODE_MIN_MULTI = 64 };

struct node {
	struct verve_lock lock;
	struct verve_proto proto;
	struct verve_xport *xport; /* proto's */
	struct verve_net_device *dev;
	struct verve_addrvec addrvec;
	struct verve_mr_cache mr_cache;
	struct verve_comp_queue tx_queue, rx_queue;
	struct verve_comp_counter send, recv, read, write, remote_write;
	struct verve_addr addr;
	uint32_t next_conn;
	struct node *next; /* open ones */
};

/* attr's device, tables and sink are filled in; NULL: as above. host: of the fake net. */
void node_open(struct node *node, uint32_t host, const struct verve_xport_attr *attr);
void node_attr(struct verve_xport_attr *attr);
/* Ends everything as an endpoint's close does, and expects that nothing is left behind. */
void node_close(struct node *node);
/* The same, but at once: the device has not let go of what is posted, as one that never does. */
void node_drop(struct node *node);

/* The fi_addr_t of to in node's table, where it is put if it is not there. */
uint64_t node_addr(struct node *node, const struct node *to);
/* node's peer for to. */
struct verve_peer *node_peer(struct node *node, const struct node *to);
/* node's connection with to, which there is. */
struct verve_link *node_link(struct node *node, const struct node *to);
/* What the connection manager says; conn_id 0: none. */
void node_event(struct node *node, enum verve_cm_event_type type, const struct node *about,
		uint32_t conn_id, int error);
/*
 * b was asked for a connection by a, or by somebody in its name: UP that listens. Its end of the queue pair is
 * connected to nothing.
 */
void node_ask(struct node *b, const struct node *a);
/* READY of a peer that listens. */
void node_greet(struct node *node, const struct node *about, uint32_t conn_id);
/*
 * Connects queue pairs of both; UP with that window of the other's waits in each mailbox. a, who
 * began, may send at once; b may not before a's first packet, or READY.
 */
void node_connect(struct node *a, struct node *b, uint32_t window);
/* The same, and both have read it. */
void node_join(struct node *a, struct node *b, uint32_t window);
/*
 * Gives their connection, which one of them has suspended at least, other queue pairs; settles. a may send at once,
 * b after a's first packet.
 */
void node_resume(struct node *a, struct node *b);
/* The same as node_connect, but a says that it goes on with a connection that b never had. */
void node_claim(struct node *a, struct node *b, uint32_t window);
/* Polls all nodes until nothing happens any more. Takes no real time. */
void nodes_settle(void);

/* One message, as seen by the application; peer NULL on a receive: from any. */
struct message {
	const struct node *peer;
	void *buf;
	size_t len;
	const struct iovec *iov; /* instead of buf */
	size_t iov_count;
	void *const *desc;
	uint64_t tag, ignore, data;
	void *context;
	uint32_t flags; /* VERVE_OP_*; NOTIFY is added unless quiet */
	bool quiet;
	unsigned peek; /* VERVE_PEEK ... */
};

int node_send(struct node *node, const struct message *message);
int node_recv(struct node *node, const struct message *message);
int node_peek(struct node *node, const struct message *message);
/* Any bytes, as one packet; settles. */
void node_send_raw(struct node *node, const struct node *to, const void *bytes, size_t len);

/* The next completion, which there is. */
struct verve_comp expect_comp(struct verve_comp_queue *queue);
/* The next completion, which is an error with this positive FI errno. */
struct verve_comp_error expect_error(struct verve_comp_queue *queue, int err);
void expect_none(struct verve_comp_queue *queue);
/* Expects of the next completion of each queue: when it is there, the node has nothing registered for operations. */
void node_watch(struct node *node);

/* A byte for each place and seed. */
void pattern_fill(void *buf, size_t len, unsigned seed);
bool pattern_holds(const void *buf, size_t len, unsigned seed);

#endif
