/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Nodes: the loop of the simulation, and the small engine of each node. */
#include "cm_node.h"

#include <inttypes.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "cm_world.h"

enum { WINDOW = 100 }; /* node n announces WINDOW + n */

static const uint64_t ms = 1000000;

struct node nodes[NODES];
const struct verve_auth_key *node_keys[NODES];
bool nodes_may_break, nodes_roce;
bool nodes_are_deaf, nodes_go_on;

static unsigned node_count;
static uint64_t current_seed;

void nodes_fail(const char *what, unsigned node, unsigned peer)
{
	fprintf(stderr, "VERVE_SEED=%" PRIu64 " node %u peer %u at %" PRIu64 " us: %s\n",
		current_seed, node, peer, cm_world_time / 1000, what);
	abort();
}

static void expect(bool holds, const char *what, unsigned node, unsigned peer)
{
	if (!holds)
		nodes_fail(what, node, peer);
}

static void notify(void *arg)
{
	((struct node *)arg)->notified++;
}

static void wake(void *arg)
{
	((struct node *)arg)->next = cm_world_time;
}

void nodes_set_key(const struct verve_auth_key *key)
{
	for (unsigned n = 0; n < NODES; n++)
		node_keys[n] = key;
}

void nodes_start(uint64_t seed, unsigned count)
{
	static struct fi_provider provider = {.name = "test"};

	verve_log_provider = &provider;
	memset(nodes, 0, sizeof(nodes));
	nodes_may_break = nodes_are_deaf = nodes_go_on = false;
	node_count = count;
	current_seed = seed;
	cm_world_start(seed);
	for (unsigned n = 0; n < count; n++)
		node_open(n);
}

void node_open(unsigned n)
{
	struct node *node = &nodes[n];
	struct verve_cm_attr attr = {
		.key = node_keys[n],
		.roce = nodes_roce,
		.window = WINDOW + n,
		.eager_size = 1024,
		.connect_timeout = 60000 * ms,
		.transport_timeout_ms = 1000,
		.events = &node->events,
		.notify = notify,
		.wake = wake,
		.arg = node,
	};

	cm_world_addr(n, &attr.addr);
	verve_mailbox_init(&node->events);
	node->next = UINT64_MAX;
	expect(!verve_cm_open(&attr, &node->cm), "cannot open", n, n);
	expect(verve_addr_equal(verve_cm_addr(node->cm), &attr.addr), "another address", n, n);
}

static void close_link(struct link *link)
{
	if (link->qp)
		verve_net_qp_close(link->qp);
	link->qp = NULL;
	verve_cm_request_free(link->drop);
	link->drop = NULL;
	link->may_send = false;
	link->broken_at = 0;
}

void node_close(unsigned n, bool orderly)
{
	struct node *node = &nodes[n];
	struct verve_mail *mail, *next;

	if (!orderly)
		cm_world_mute(n);
	verve_cm_close(node->cm);
	node->cm = NULL;
	node->next = UINT64_MAX;
	for (mail = verve_mailbox_take(&node->events); mail; mail = next) {
		struct verve_cm_event *event = (struct verve_cm_event *)mail;

		next = mail->next;
		if (event->qp)
			verve_net_qp_close(event->qp);
		verve_cm_event_free(event);
	}
	for (unsigned peer = 0; peer < PEERS; peer++) {
		close_link(&node->links[peer]);
		node->links[peer].asked = false;
	}
}

void nodes_stop(void)
{
	for (unsigned n = 0; n < node_count; n++)
		if (nodes[n].cm)
			node_close(n, cm_world_random() % 2);
	expect(!cm_world_stop(), "queue pairs or sockets are left", 0, 0);
}

void node_connect(unsigned n, unsigned peer)
{
	struct verve_addr addr;

	cm_world_addr(peer, &addr);
	if (!verve_cm_connect(nodes[n].cm, &addr))
		nodes[n].links[peer].asked = true;
}

void node_drop(unsigned n, unsigned peer)
{
	struct link *link = &nodes[n].links[peer];

	verve_cm_drop(nodes[n].cm, &link->drop);
	close_link(link);
}

/* The link's queue pair is closed. */
static void go_on(unsigned n, unsigned peer)
{
	struct link *link = &nodes[n].links[peer];
	struct verve_addr addr;

	cm_world_addr(peer, &addr);
	expect(!verve_cm_resume(nodes[n].cm, &addr, link->conn_id), "no memory", n, peer);
	link->asked = true;
}

void node_suspend(unsigned n, unsigned peer)
{
	close_link(&nodes[n].links[peer]);
	go_on(n, peer);
}

/* Expires a connection whose peer asked for it, and sent nothing for a minute. */
static void expire(unsigned n, unsigned peer)
{
	struct link *link = &nodes[n].links[peer];

	if (!link->qp || !link->listen || link->may_send ||
	    cm_world_time - link->since < 60000 * ms)
		return;
	verve_cm_expire(nodes[n].cm, &link->drop);
	close_link(link);
}

/* A node that may send: the peer's queue pair is connected, and the peer's engine knows it. */
static void expect_partner(unsigned n, unsigned peer)
{
	const struct link *link = &nodes[n].links[peer];
	const struct verve_net_qp *partner = cm_world_partner(link->qp);

	if (nodes_may_break)
		return;
	expect(partner, "may send to nobody", n, peer);
	expect(partner == nodes[peer].links[n].qp, "may send to who has not been told", n, peer);
}

/* Sends a packet over the queue pair. */
static void greet(unsigned n, unsigned peer)
{
	struct link *theirs = &nodes[peer].links[n];

	if (!theirs->qp || theirs->qp != cm_world_partner(nodes[n].links[peer].qp) ||
	    theirs->may_send)
		return;
	expect(theirs->listen, "a packet for who does not listen", peer, n);
	theirs->may_send = theirs->told = true;
	expect_partner(peer, n);
	verve_cm_hear(nodes[peer].cm, theirs->conn_id);
}

static void take_up(unsigned n, unsigned peer, struct verve_cm_event *event)
{
	struct link *link = &nodes[n].links[peer];

	expect(!link->qp, "UP on top of a connection", n, peer);
	/* With forged datagrams the announced window may be any. */
	expect(nodes_may_break || event->window == WINDOW + peer, "wrong window", n, peer);
	expect(event->conn_id && event->remote_id && event->qp, "incomplete UP", n, peer);
	expect(event->window >= VERVE_CONFIG_WINDOW_MIN &&
	       event->eager_size >= VERVE_CONFIG_EAGER_MIN, "UP of nonsense", n, peer);
	link->qp = event->qp;
	link->drop = event->drop;
	event->drop = NULL;
	link->conn_id = event->conn_id;
	link->remote_id = event->remote_id;
	link->window = event->window;
	link->resumes = event->resumes;
	link->may_send = event->may_send;
	link->listen = event->listen;
	link->told = false;
	link->since = cm_world_time;
	link->asked = false;
	link->ups++;
	if (link->may_send)
		expect_partner(n, peer);
	if (event->greet && !nodes_are_deaf)
		greet(n, peer);
}

static void take_ready(unsigned n, unsigned peer, const struct verve_cm_event *event)
{
	struct link *link = &nodes[n].links[peer];

	expect(!link->may_send || link->told, "READY twice", n, peer);
	link->may_send = true;
	link->told = false;
	expect_partner(n, peer);
	if (event->greet && !nodes_are_deaf)
		greet(n, peer);
}

static void take_unused(unsigned n, const struct verve_cm_event *event)
{
	expect(!event->conn_id && event->qp, "malformed UNUSED", n, n);
	verve_net_qp_close(event->qp);
	nodes[n].unused++;
}

static void take_event(unsigned n, unsigned peer, struct verve_cm_event *event)
{
	struct link *link = &nodes[n].links[peer];
	bool ours = link->qp && link->conn_id == event->conn_id;

	switch (event->type) {
	case VERVE_CM_UP:
		take_up(n, peer, event);
		break;
	case VERVE_CM_READY:
		expect(ours || nodes_may_break, "READY of nothing", n, peer);
		if (ours)
			take_ready(n, peer, event);
		break;
	case VERVE_CM_FAILED:
		expect(link->asked || nodes_may_break, "FAILED without having asked", n, peer);
		expect(event->error > 0 && !event->conn_id, "malformed FAILED", n, peer);
		/* The engine fails what waits, and trusts that nothing can carry it. */
		expect(!link->qp, "FAILED while a connection is up", n, peer);
		link->asked = false;
		link->fails++;
		link->error = event->error;
		break;
	case VERVE_CM_DOWN:
		expect(ours || nodes_may_break, "DOWN of nothing", n, peer);
		expect(event->error > 0, "DOWN without a reason", n, peer);
		if (ours)
			close_link(link);
		link->downs++;
		link->suspended += event->suspended;
		if (ours && event->suspended && nodes_go_on)
			go_on(n, peer);
		link->error = event->error;
		break;
	case VERVE_CM_FATAL:
		expect(false, "FATAL, though nothing fails", n, peer);
		break;
	case VERVE_CM_SCARCE:
		break;
	case VERVE_CM_UNUSED:
		break; /* names no peer */
	}
	if (event->type == VERVE_CM_DOWN && link->wanted && !link->qp && !link->asked)
		node_connect(n, peer);
}

static void take_stranger(unsigned n, const struct verve_cm_event *event)
{
	if (event->type != VERVE_CM_UP)
		return;
	verve_net_qp_close(event->qp);
	nodes[n].strangers++;
}

static void step_node(unsigned n)
{
	struct node *node = &nodes[n];
	struct verve_mail *mail, *next;
	unsigned notified = node->notified;

	node->next = UINT64_MAX;
	node->next = verve_cm_step(node->cm, cm_world_time);
	mail = verve_mailbox_take(&node->events);
	expect((node->notified == notified + 1) == (mail != NULL), "notify without events", n, n);
	for (; mail; mail = next) {
		struct verve_cm_event *event = (struct verve_cm_event *)mail;

		unsigned peer = verve_addr_port(&event->addr) - CM_WORLD_PORT;

		next = mail->next;
		if (event->type == VERVE_CM_UNUSED)
			take_unused(n, event);
		else if (peer < PEERS)
			take_event(n, peer, event);
		else
			take_stranger(n, event);
		verve_cm_event_free(event);
	}
}

/*
 * Stands in for transport and application: a link that may send but has no partner is dropped after
 * a while, and a failed connection is asked for again.
 */
static void step_transport(void)
{
	for (unsigned n = 0; n < node_count; n++) {
		for (unsigned peer = 0; nodes[n].cm && peer < PEERS; peer++)
			expire(n, peer);
		for (unsigned peer = 0; peer < node_count; peer++) {
			struct link *link = &nodes[n].links[peer];

			if (nodes[n].cm && link->wanted && !link->qp && !link->asked)
				node_connect(n, peer);
			if (!link->qp || !link->may_send || cm_world_partner(link->qp)) {
				link->broken_at = 0;
			} else if (!link->broken_at) {
				link->broken_at = cm_world_time;
			} else if (cm_world_time - link->broken_at > 200 * ms) {
				node_drop(n, peer);
				if (link->wanted)
					node_connect(n, peer);
			}
		}
	}
}

void nodes_run(uint64_t until)
{
	uint64_t next_transport = cm_world_time;

	for (;;) {
		uint64_t next = cm_world_next();
		unsigned n = NODES;

		for (unsigned i = 0; i < node_count; i++) {
			if (nodes[i].cm && nodes[i].next < next) {
				next = nodes[i].next;
				n = i;
			}
		}
		if (nodes_may_break && next_transport < next) {
			next = next_transport;
			n = NODES + 1;
		}
		if (cm_world_next_thread() < next) {
			if (cm_world_next_thread() >= until)
				break;
			cm_world_run_thread();
			continue;
		}
		if (next >= until)
			break;
		if (next > cm_world_time)
			cm_world_time = next;
		if (n == NODES + 1) {
			step_transport();
			next_transport = cm_world_time + 100 * ms;
			continue;
		}
		if (n == NODES)
			n = cm_world_deliver();
		if (n < node_count && nodes[n].cm)
			step_node(n);
	}
	if (until != UINT64_MAX)
		cm_world_time = until;
}

struct verve_cm_stats node_stats(unsigned n)
{
	struct verve_cm_stats stats;

	verve_cm_stats_get(nodes[n].cm, &stats);
	return stats;
}

uint64_t nodes_sent(unsigned count)
{
	uint64_t sent = 0;

	for (unsigned n = 0; n < count; n++)
		sent += node_stats(n).sent;
	return sent;
}

void nodes_expect_connected(unsigned n, unsigned peer)
{
	const struct link *ours = &nodes[n].links[peer], *theirs = &nodes[peer].links[n];

	expect(ours->qp && theirs->qp, "not connected", n, peer);
	expect(ours->may_send && theirs->may_send, "connected, but may not send", n, peer);
	expect(cm_world_partner(ours->qp) == theirs->qp, "connected elsewhere", n, peer);
	expect(ours->conn_id == theirs->remote_id && theirs->conn_id == ours->remote_id,
	       "do not agree on ids", n, peer);
}
