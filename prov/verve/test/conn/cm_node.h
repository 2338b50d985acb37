/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nodes: connection managers in the fake world. Each node has a small engine that reads the events,
 * and checks the contracts of conn/cm.h at every step. A violation prints the seed and aborts.
 */
#ifndef VERVE_TEST_CONN_CM_NODE_H
#define VERVE_TEST_CONN_CM_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "conn/auth.h"
#include "conn/cm.h"

enum {
	NODES = 64,
	PEERS = 129, /* peers that a node may ask for: every port, and an impossible one */
};

/* A node's view of one peer. */
struct link {
	bool wanted;	/* asks again after DOWN and FAILED */
	bool asked;	/* UP or FAILED will come */
	bool may_send; /* as in struct verve_cm_event */
	bool listen;
	bool told; /* may send because a packet came; READY may still come, too */
	struct verve_net_qp *qp; /* NULL: no connection */
	struct verve_cm_request *drop;
	uint32_t conn_id, remote_id, window;
	unsigned ups, downs, fails, suspended;
	uint32_t resumes; /* of the last UP */
	int error;	  /* of the last DOWN or FAILED */
	uint64_t since;	  /* time of the last UP */
	uint64_t broken_at; /* time when the partner was first missing; 0: it is there */
};

struct node {
	struct verve_cm *cm;
	struct verve_mailbox events;
	uint64_t next; /* time of the manager's next step */
	unsigned notified; /* calls of notify */
	unsigned strangers; /* connections with ports that no node has: closed at once */
	unsigned unused; /* queue pairs that got no connection: closed at once */
	struct link links[PEERS];
};

extern struct node nodes[NODES];

/* The key that each node opens with; NULL: no key. Stays until it is changed. */
extern const struct verve_auth_key *node_keys[NODES];
/* Sets the same key for all nodes; the default is NULL. */
void nodes_set_key(const struct verve_auth_key *key);

/* The nodes that open are on RoCE. Stays until it is changed. */
extern bool nodes_roce;

/* The test injects faults: partners may be gone, connections may end. */
extern bool nodes_may_break;
/* The engines continue what their peers suspend. */
extern bool nodes_go_on;
/* The nodes' engines do not run: no packet is sent or read. */
extern bool nodes_are_deaf;

/* Starts a run of count nodes. A failure prints seed. */
void nodes_start(uint64_t seed, unsigned count);
void nodes_stop(void);
_Noreturn void nodes_fail(const char *what, unsigned node, unsigned peer);

void node_open(unsigned n);
/* orderly: with BYE; else as a killed process. The engine's queue pairs are closed, too. */
void node_close(unsigned n, bool orderly);

void node_connect(unsigned n, unsigned peer);
/* The engine gives the connection up. Nothing happens if there is no memory. */
void node_drop(unsigned n, unsigned peer);

/* The engine continues the connection with another queue pair. */
void node_suspend(unsigned n, unsigned peer);

/* Runs until the time until, or until no event is left before it. */
void nodes_run(uint64_t until);

struct verve_cm_stats node_stats(unsigned n);
/* The datagrams that the first count nodes have sent. */
uint64_t nodes_sent(unsigned count);

/* Asserts that n and peer have the same connection, and that both may send. */
void nodes_expect_connected(unsigned n, unsigned peer);

#endif
