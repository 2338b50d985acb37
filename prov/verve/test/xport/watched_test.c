/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links that are looked after: with a thousand connections, arming and the keep-alive look only at
 * those that need it.
 */
#include <stdint.h>

#include "../proto/fixture.h"
#include "xport/turn.h"
#include "xport/watched.h"

enum { MANY = 1000, FEW = 16 };

static struct node a, b;
static char out[NODE_EAGER];

static void setup(void)
{
	struct verve_xport_attr attr;

	/* An endpoint with more links than half of its buffers looks after the buffers, too. */
	node_attr(&attr);
	attr.rx_uncredited = 4 * MANY;
	node_open(&a, 0, NULL);
	node_open(&b, 1, &attr);
	node_join(&b, &a, NODE_WINDOW);
	nodes_settle();
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(watched, .init = setup, .fini = teardown);

/* A peer of b that no test opens; only its address exists. */
static struct node *stranger(uint16_t i)
{
	static struct node node;

	node.addr = a.addr;
	verve_addr_set_port(&node.addr, 1000 + i);
	return &node;
}

/* The strangers connect to b. heard: their connections are complete; else they are half-open. */
static void connect_many(bool heard)
{
	for (uint16_t i = 0; i < MANY; i++) {
		node_ask(&b, stranger(i));
		if (heard)
			node_event(&b, VERVE_CM_READY, stranger(i), b.next_conn, 0);
		verve_cm_events_step(b.xport);
	}
}

/* Links that b looked at since the last call. */
static uint64_t looks(void)
{
	static uint64_t before;
	uint64_t looked = b.xport->count.looks - before;

	before = b.xport->count.looks;
	return looked;
}

static void expect_looks(uint64_t most)
{
	uint64_t looked = looks();

	cr_expect_leq(looked, most, "%llu of %u links were examined",
		      (unsigned long long)looked, b.xport->link_count);
}

/* A turn in which b looks after its links, because their time has come. */
static void look_after(void)
{
	fake_net_advance(2 * b.xport->attr.keepalive);
	verve_turn_expect(b.xport);
	verve_proto_poll(&b.proto);
}

/* b sends a message that a must answer. */
static void ask(void)
{
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = out, .len = 1,
						     .flags = VERVE_OP_ACK}),
		     0);
}

static void answer(void)
{
	static char in[1];

	cr_assert_eq(node_recv(&a, &(struct message){.buf = in, .len = 1}), 0);
	nodes_settle();
	expect_comp(&b.tx_queue);
}

Test(watched, arming_looks_at_no_idle_connection)
{
	connect_many(true);
	look_after();
	looks();
	cr_expect_not(verve_proto_is_waiting(&b.proto));
	expect_looks(0);
	look_after();
	expect_looks(0);
}

Test(watched, arming_finds_the_one_peer_that_owes_an_answer)
{
	connect_many(true);
	ask();
	look_after();
	looks();
	cr_expect(verve_proto_is_waiting(&b.proto));
	expect_looks(1);
	look_after();
	expect_looks(1);
	answer();
	cr_expect_not(verve_proto_is_waiting(&b.proto));
	expect_looks(1);
	cr_expect_not(verve_proto_is_waiting(&b.proto));
	expect_looks(0);
}

Test(watched, a_half_open_connection_is_looked_after_alone)
{
	connect_many(true);
	node_ask(&b, stranger(MANY));
	look_after();
	looks();
	cr_expect(verve_proto_is_waiting(&b.proto));
	look_after();
	expect_looks(2);
	verve_link_break(b.xport, node_link(&b, stranger(MANY)), FI_ECONNRESET, 0, "test");
	cr_expect(verve_proto_is_waiting(&b.proto), "for the end of the broken one");
	expect_looks(0);
	nodes_settle();
	cr_expect_not(verve_proto_is_waiting(&b.proto));
	expect_looks(2);
}

/* Many peers have answered since the last look: arming examines few of them, the next look all. */
Test(watched, arming_examines_few_of_the_peers_that_have_answered)
{
	connect_many(true);
	for (uint16_t i = 0; i < MANY; i++)
		verve_watched_owe(b.xport, node_link(&b, stranger(i)));
	looks();
	cr_expect(verve_proto_is_waiting(&b.proto), "no turn would examine the others");
	expect_looks(FEW);
	look_after();
	looks();
	cr_expect_not(verve_proto_is_waiting(&b.proto));
	expect_looks(0);
}
