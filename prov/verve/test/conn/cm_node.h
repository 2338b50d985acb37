/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nodes: connection managers in the fake world, each with a small engine that takes its events and
 * checks, at every step, what conn/cm.h promises. A violation names the seed and aborts.
 */
#ifndef VERVE_TEST_CONN_CM_NODE_H
#define VERVE_TEST_CONN_CM_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "conn/auth.h"
#include "conn/cm.h"

enum {
	NODES = 64,
	PEERS = 129, /* whom they may ask for: every port, and one that cannot be */
};

/* A node's view of one peer. */
struct link {
	bool wanted;	/* asks again after DOWN and FAILED */
	bool asked;	/* UP or FAILED will come */
	bool may_send;
	bool listen;
	bool told; /* may send because of a packet: READY may come, too */
	struct verve_net_qp *qp; /* NULL: no connection */
	struct verve_cm_request *drop;
	uint32_t conn_id, remote_id, window;
	unsigned ups, downs, fails, suspended;
	uint32_t resumes; /* of the last UP */
	int error; /* of the last DOWN or FAILED */
	uint64_t since; /* UP */
	uint64_t broken_at; /* since when the transport would find nobody; 0: it is well */
};

struct node {
	struct verve_cm *cm;
	struct verve_mailbox events;
	uint64_t next; /* when the manager wants to be stepped */
	unsigned notified;
	unsigned strangers; /* connections with ports that are nobody's: their queue pairs are closed */
	struct link links[PEERS];
};

extern struct node nodes[NODES];

/* What each opens with; NULL: no key. Stays until changed. */
extern const struct verve_auth_key *node_keys[NODES];
/* The same for all; by default none. */
void nodes_set_key(const struct verve_auth_key *key);

/* Faults are part of the test: partners may be gone, connections may end. */
extern bool nodes_may_break;
/* Their engines do not run: no packet comes. */
extern bool nodes_are_deaf;

/* The run that fails is to be named. */
void nodes_start(uint64_t seed, unsigned count);
void nodes_stop(void);
_Noreturn void nodes_fail(const char *what, unsigned node, unsigned peer);

void node_open(unsigned n);
/* orderly: with BYE. What the engine has goes, too. */
void node_close(unsigned n, bool orderly);

void node_connect(unsigned n, unsigned peer);
/* The engine's queue pair failed, or so it says. Nothing happens if there is no memory. */
void node_drop(unsigned n, unsigned peer);

/* The engine wants to go on with another queue pair. */
void node_suspend(unsigned n, unsigned peer);

/* Runs until the time, or until nothing is left to happen before it. */
void nodes_run(uint64_t until);

/* Both sides of n and peer have the same connection, and may use it. */
void nodes_expect_connected(unsigned n, unsigned peer);

#endif
