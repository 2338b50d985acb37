/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers: addresses, events of the connection manager in every order, and memory that runs out. */
#include "xport/peer.h"

#include <string.h>

#include "../support/oom.h"
#include "base/config.h"
#include "../proto/fixture.h"
#include "xport/connect.h"
#include "msg/send.h"
#include "xport/watched.h"
#include "xport/replay.h"
#include "xport/suspended.h"

enum { ROOM = 3 * NODE_EAGER };

static struct node a, b;
static char out[ROOM], in[ROOM];

static void setup(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	pattern_fill(out, sizeof(out), 1);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(peer, .init = setup, .fini = teardown);

static void send_len(size_t len)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len,
						     .context = out}),
		     0);
}

static void recv_any(void)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM, .context = in}), 0);
}

/* An address that no endpoint has. */
static struct verve_addr stranger(uint16_t port)
{
	struct verve_addr addr = b.addr;

	verve_addr_set_port(&addr, port);
	return addr;
}

/* Puts count strangers into b's address vector, looks each up, and removes it. */
static void strangers_come_and_go(uint16_t count)
{
	for (uint16_t port = 1000; port < 1000 + count; port++) {
		struct verve_addr addr = stranger(port);
		struct verve_peer *peer;
		uint64_t fi_addr;

		cr_assert_eq(verve_addrvec_insert(&b.addrvec, &addr, &fi_addr), 0);
		cr_assert_eq(verve_peer_find(b.xport, fi_addr, &peer), 0);
		verve_peer_forget(b.xport, fi_addr);
		cr_assert_eq(verve_addrvec_remove(&b.addrvec, fi_addr), 1);
		verve_proto_poll(&b.proto);
	}
}

/* Addresses. */

Test(peer, is_the_same_for_each_of_its_names)
{
	struct verve_peer *one, *two;
	uint64_t fi_addr = node_addr(&a, &b);

	cr_assert_eq(verve_peer_find(a.xport, fi_addr, &one), 0);
	cr_assert_eq(verve_peer_find(a.xport, fi_addr, &two), 0);
	cr_expect_eq(one, two);
	cr_expect(verve_addr_equal(&one->addr, &b.addr));
	cr_expect_eq(verve_peer_fi_addr(a.xport, one), fi_addr);
	cr_expect_eq(verve_idtab_get(&a.xport->peer_ids, one->id), one);
}

Test(peer, unknown_address_is_refused)
{
	struct verve_peer *peer;

	node_addr(&a, &b);
	cr_expect_eq(verve_peer_find(a.xport, 1, &peer), -FI_EINVAL);
	cr_expect_eq(verve_peer_find(a.xport, 1ull << 30, &peer), -FI_EINVAL);
	cr_expect_eq(verve_peer_find(a.xport, 1ull << 63, &peer), -FI_EINVAL);
	cr_expect_eq(verve_peer_find(a.xport, UINT64_MAX, &peer), -FI_EINVAL);
	cr_expect_null(a.xport->peers);
}

Test(peer, table_grows_with_the_address_vector)
{
	enum { COUNT = 1000 };
	struct verve_peer *peers[COUNT], *peer;

	for (uint64_t i = 0; i < COUNT; i++) {
		struct verve_addr addr = stranger(1000 + i);
		uint64_t fi_addr;

		cr_assert_eq(verve_addrvec_insert(&a.addrvec, &addr, &fi_addr), 0);
		cr_assert_eq(fi_addr, i);
	}
	for (uint64_t i = COUNT; i-- > 0;)
		cr_assert_eq(verve_peer_find(a.xport, i, &peers[i]), 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		cr_assert_eq(verve_peer_find(a.xport, i, &peer), 0);
		cr_assert_eq(peer, peers[i]);
		cr_assert_eq(verve_addr_port(&peer->addr), 1000 + i);
	}
}

Test(peer, forgotten_address_reaches_nobody_and_may_become_another)
{
	uint64_t fi_addr = node_addr(&a, &b), other;
	struct verve_peer *peer = node_peer(&a, &b), *next;
	struct verve_addr addr = stranger(1);

	verve_peer_forget(a.xport, fi_addr);
	cr_assert_eq(verve_addrvec_remove(&a.addrvec, fi_addr), 1);
	cr_expect_eq(verve_peer_find(a.xport, fi_addr, &next), -FI_EINVAL);
	cr_expect_eq(verve_peer_fi_addr(a.xport, peer), UINT64_MAX);
	cr_assert_eq(verve_addrvec_insert(&a.addrvec, &addr, &other), 0);
	cr_assert_eq(other, fi_addr);
	cr_assert_eq(verve_peer_find(a.xport, fi_addr, &next), 0);
	cr_expect_neq(next, peer);
	cr_expect(verve_addr_equal(&next->addr, &addr));
	cr_expect_eq(verve_peer_fi_addr(a.xport, peer), UINT64_MAX);
	/* The removed address again, under another fi_addr_t. */
	cr_expect_neq(node_addr(&a, &b), fi_addr);
	cr_expect_eq(node_peer(&a, &b), peer);
	cr_expect_eq(verve_peer_fi_addr(a.xport, peer), node_addr(&a, &b));
}

Test(peer, who_comes_and_goes_does_not_stay)
{
	struct verve_peer *known = node_peer(&b, &a);

	strangers_come_and_go(20000);
	cr_expect_lt(HASH_COUNT(b.xport->peers), 2000);
	cr_expect_eq(node_peer(&b, &a), known);
}

static void receive_from_a(void)
{
	cr_assert_eq(node_recv(&b, &(struct message){.peer = &a, .buf = in, .len = ROOM,
						     .context = in}),
		     0);
}

static void forget_a(void)
{
	uint64_t fi_addr = node_addr(&b, &a);

	verve_peer_forget(b.xport, fi_addr);
	cr_assert_eq(verve_addrvec_remove(&b.addrvec, fi_addr), 1);
}

Test(peer, who_is_waited_for_stays)
{
	receive_from_a();
	forget_a();
	strangers_come_and_go(5000);
	node_connect(&a, &b, NODE_WINDOW);
	send_len(100);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 100);
}

Test(peer, who_left_a_message_stays)
{
	node_join(&a, &b, NODE_WINDOW);
	send_len(100);
	nodes_settle();
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	forget_a();
	strangers_come_and_go(5000);
	receive_from_a();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 100);
}

Test(peer, forgetting_what_was_never_looked_up_is_harmless)
{
	verve_peer_forget(a.xport, 0);
	verve_peer_forget(a.xport, 12345);
	verve_peer_forget(a.xport, UINT64_MAX);
	node_peer(&a, &b);
	verve_peer_forget(a.xport, 63);
	cr_expect_eq(verve_peer_fi_addr(a.xport, node_peer(&a, &b)), node_addr(&a, &b));
}

Test(peer, sender_outside_the_address_vector_has_no_number_until_it_is_put_there)
{
	struct verve_peer *peer;

	node_connect(&a, &b, NODE_WINDOW);
	nodes_settle();
	peer = b.xport->peers;
	cr_assert_not_null(peer);
	cr_expect_eq(verve_peer_fi_addr(b.xport, peer), UINT64_MAX);
	recv_any();
	send_len(1);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).src, UINT64_MAX);
	cr_expect_eq(verve_peer_fi_addr(b.xport, peer), UINT64_MAX);
	cr_expect_eq(node_addr(&b, &a), 0); /* now a is in b's address vector */
	cr_expect_eq(verve_peer_fi_addr(b.xport, peer), 0);
	recv_any();
	send_len(1);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).src, node_addr(&b, &a));
}

/* The connection manager. */

Test(peer, first_message_asks_for_a_connection_once)
{
	struct verve_peer *peer = node_peer(&a, &b);

	cr_expect_not(peer->connecting);
	send_len(1);
	cr_expect(peer->connecting);
	send_len(ROOM);
	nodes_settle();
	expect_none(&a.tx_queue);
	cr_expect(verve_peer_has_work(peer));
	node_join(&a, &b, NODE_WINDOW);
	cr_expect_not(peer->connecting);
	cr_expect_not(verve_peer_has_work(peer));
	recv_any();
	recv_any();
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 1);
	cr_expect_eq(expect_comp(&b.rx_queue).len, ROOM);
	expect_comp(&a.tx_queue);
	expect_comp(&a.tx_queue);
}

Test(peer, failed_connection_ends_what_waits_for_it_with_its_reason)
{
	static const int errors[] = {FI_ECONNREFUSED, FI_ETIMEDOUT, FI_ENOMEM};

	for (int i = 0; i < 3; i++) {
		send_len(1);
		send_len(ROOM);
		node_event(&a, VERVE_CM_FAILED, &b, 0, errors[i]);
		cr_expect(verve_events_step(a.xport));
		cr_expect_eq(expect_error(&a.tx_queue, errors[i]).comp.context, out);
		cr_expect_eq(expect_error(&a.tx_queue, errors[i]).comp.context, out);
		expect_none(&a.tx_queue);
		/* The next message asks for a connection again. */
		cr_expect_not(node_peer(&a, &b)->connecting);
	}
	cr_expect_eq(AO_load(&a.send.errors), 6);
	cr_expect_not(verve_events_step(a.xport));
}

Test(peer, failure_is_another_peers_business_alone)
{
	struct node c;

	node_open(&c, 1, NULL);
	send_len(1);
	cr_assert_eq(node_send(&a, &(struct message){.peer = &c, .buf = out, .len = 1}), 0);
	node_event(&a, VERVE_CM_FAILED, &c, 0, FI_ECONNREFUSED);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECONNREFUSED);
	expect_none(&a.tx_queue);
	node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	expect_comp(&a.tx_queue);
	node_close(&c);
}

Test(peer, injected_message_that_cannot_be_sent_is_an_error_entry)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = 1,
		.quiet = true,
						     .flags = VERVE_OP_INJECT}),
		     0);
	node_event(&a, VERVE_CM_FAILED, &b, 0, FI_ECONNREFUSED);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECONNREFUSED);
}

Test(peer, passive_side_sends_after_ready)
{
	struct verve_link *link;

	node_join(&a, &b, NODE_WINDOW);
	link = node_link(&b, &a);
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = out, .len = 1}), 0);
	nodes_settle();
	expect_none(&b.tx_queue);
	node_event(&b, VERVE_CM_READY, &a, link->conn_id + 1, 0); /* of another connection */
	nodes_settle();
	expect_none(&b.tx_queue);
	node_event(&b, VERVE_CM_READY, &a, link->conn_id, 0);
	node_event(&b, VERVE_CM_READY, &a, link->conn_id, 0);
	nodes_settle();
	expect_comp(&b.tx_queue);
}

static void greet(uint32_t messages)
{
	struct verve_link *link;

	node_join(&a, &b, NODE_WINDOW);
	link = node_link(&b, &a);
	for (uint32_t i = 0; i < messages; i++)
		cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = out, .len = 1}), 0);
	node_greet(&b, &a, link->conn_id);
	nodes_settle();
	for (uint32_t i = 0; i < messages; i++)
		expect_comp(&b.tx_queue);
}

Test(peer, who_listens_hears)
{
	greet(0);
	cr_assert_eq(node_link(&b, &a)->sent, 1);
	cr_assert_eq(node_link(&a, &b)->arrived, 1);
}

Test(peer, a_message_is_enough_for_who_listens)
{
	greet(2);
	cr_assert_eq(node_link(&b, &a)->sent, 2);
	cr_assert_eq(node_link(&a, &b)->arrived, 2);
}

static void wait_and_poll(uint64_t ns)
{
	fake_net_advance(ns);
	for (int i = 0; i < VERVE_WATCH_POLLS; i++)
		verve_proto_poll(&b.proto);
}

/* A peer that asks to connect and sends no packet keeps its link until the timeout, no longer. */
Test(peer, who_only_began_to_connect_is_forgotten)
{
	uint64_t timeout = verve_config.connect_timeout * 1000000ull;

	node_ask(&b, &a);
	cr_assert(verve_proto_is_waiting(&b.proto), "nobody would look");
	wait_and_poll(timeout - 1000000);
	cr_expect_not_null(node_peer(&b, &a)->link);
	wait_and_poll(2000000000);
	cr_expect_not_null(node_peer(&b, &a)->link, "its packet may wait for a buffer");
	wait_and_poll(2000000000);
	cr_expect_null(node_peer(&b, &a)->link);
}

/* A packet that arrived in time counts, however late it is polled. */
Test(peer, who_was_heard_in_time_is_not)
{
	uint64_t timeout = verve_config.connect_timeout * 1000000ull;

	struct node c;

	node_open(&c, 0, NULL);
	node_join(&c, &b, NODE_WINDOW);
	node_join(&a, &b, NODE_WINDOW);
	node_link(&b, &a)->listen = true;
	verve_watched_update(b.xport, node_link(&b, &a));
	for (int i = 0; i < 2 * VERVE_POLL_BATCH; i++)
		cr_assert_eq(node_send(&c, &(struct message){.peer = &b, .buf = out, .len = 1}), 0);
	while (fake_net_run_next())
		;
	send_len(7);
	while (fake_net_run_next())
		;
	/* c's packets come first, and the first turn looks for half-open links. */
	node_link(&b, &a)->overdue = true;
	b.xport->polls = VERVE_WATCH_POLLS - 1;
	fake_net_advance(2 * timeout);
	verve_proto_poll(&b.proto);
	cr_expect_not_null(node_peer(&b, &a)->link);
	wait_and_poll(2 * timeout);
	wait_and_poll(2 * timeout);
	cr_expect_not_null(node_peer(&b, &a)->link);
	cr_expect_not(verve_link_is_half_open(node_link(&b, &a)));
	node_close(&c);
}

/* A peer that only answered waits for a first packet, which is sent as soon as there is room. */
Test(peer, greeting_waits_for_room)
{
	struct verve_link *link;
	uint32_t limit = b.xport->wr_limit;

	node_join(&a, &b, NODE_WINDOW);
	link = node_link(&b, &a);
	b.xport->wr_limit = 0;
	node_greet(&b, &a, link->conn_id);
	nodes_settle();
	cr_expect_eq(link->sent, 0);
	b.xport->wr_limit = limit;
	nodes_settle();
	cr_expect_eq(link->sent, 1);
	nodes_settle();
	cr_expect_eq(link->sent, 1);
}

Test(peer, packet_that_overtakes_its_connection_is_not_lost)
{
	node_connect(&a, &b, NODE_WINDOW);
	verve_events_step(a.xport);
	recv_any();
	send_len(7);
	while (fake_net_run_next())
		;
	/* b polls the packet first, and finds that the event of its connection has come. */
	verve_proto_poll(&b.proto);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 7);
	cr_expect_eq(b.xport->count.stale, 0);
}

Test(peer, message_sent_before_the_peer_went_down_counts)
{
	node_join(&a, &b, NODE_WINDOW);
	recv_any();
	recv_any();
	send_len(7);
	while (fake_net_run_next())
		;
	node_event(&b, VERVE_CM_DOWN, &a, node_link(&b, &a)->conn_id, FI_ENOTCONN);
	verve_events_step(b.xport);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 7);
	expect_none(&b.rx_queue); /* the other receive takes messages of any peer */
	cr_expect_null(node_peer(&b, &a)->link);
}

Test(peer, down_ends_what_is_under_way_and_the_next_message_connects)
{
	node_join(&a, &b, NODE_WINDOW);
	send_len(ROOM);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id + 1, FI_EIO); /* stale */
	nodes_settle();
	expect_none(&a.tx_queue);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ECONNRESET);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECONNRESET);
	cr_expect_not(node_peer(&a, &b)->connecting);
	send_len(1);
	cr_expect(node_peer(&a, &b)->connecting);
	node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	expect_comp(&a.tx_queue);
}

Test(peer, new_connection_replaces_one_whose_end_was_not_told)
{
	node_join(&a, &b, NODE_WINDOW);
	send_len(ROOM);
	nodes_settle();
	node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
	send_len(5);
	recv_any();
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 5);
	cr_expect_eq(a.xport->link_count, 1);
	cr_expect_eq(b.xport->link_count, 1);
}

Test(peer, connection_ids_are_looked_up_exactly)
{
	struct verve_link *link;

	cr_expect_null(verve_link_of(a.xport, 0));
	cr_expect_null(verve_link_of(a.xport, 1));
	a.next_conn = 5000; /* far behind the end of link_of_conn */
	node_join(&a, &b, NODE_WINDOW);
	link = node_link(&a, &b);
	cr_assert_eq(link->conn_id, 5001);
	cr_expect_eq(verve_link_of(a.xport, 5001), link);
	cr_expect_null(verve_link_of(a.xport, 5000));
	cr_expect_null(verve_link_of(a.xport, 5001 | 1u << VERVE_IDTAB_INDEX_BITS));
	cr_expect_null(verve_link_of(a.xport, UINT32_MAX));
}

Test(peer, cancel_ends_what_waits)
{
	send_len(1);
	send_len(ROOM);
	verve_peer_fail_pending(a.xport, node_peer(&a, &b), FI_ECANCELED, "the endpoint is closed");
	expect_error(&a.tx_queue, FI_ECANCELED);
	expect_error(&a.tx_queue, FI_ECANCELED);
	cr_expect_eq(a.xport->tx_used, 0);
}

/* Memory that runs out. No message may be lost, and the process goes on. */

Test(peer, no_memory_for_a_peer_is_told)
{
	uint64_t fi_addr = node_addr(&a, &b);
	struct verve_peer *peer;
	long failed, nth = 0;

	do {
		int ret;

		oom_fail(nth++ / 2, false); /* each twice: a table may have grown the first time */
		ret = verve_peer_find(a.xport, fi_addr, &peer);
		failed = oom_stop();
		cr_assert_eq(ret, failed ? -FI_ENOMEM : 0);
	} while (failed);
	cr_expect_gt(nth, 7); /* the peer, its id, the hash twice, its entry by fi_addr_t */
	cr_expect(verve_addr_equal(&peer->addr, &b.addr));
	cr_expect_eq(HASH_COUNT(a.xport->peers), 1);
}

Test(peer, no_memory_to_ask_for_a_connection_ends_the_message)
{
	node_peer(&a, &b);
	send_len(1); /* allocates the pool of operations */
	node_event(&a, VERVE_CM_FAILED, &b, 0, FI_ECONNREFUSED);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECONNREFUSED);
	oom_fail(0, false);
	send_len(1);
	cr_expect_eq(oom_stop(), 1);
	expect_error(&a.tx_queue, FI_ENOMEM);
	cr_expect_not(node_peer(&a, &b)->connecting);
}

Test(peer, no_memory_for_a_connection_closes_it)
{
	recv_any();
	/* Three allocations: the link, its id, its place in link_of_conn. */
	for (long nth = 0; nth < 3; nth++) {
		send_len(1);
		node_connect(&a, &b, NODE_WINDOW);
		oom_fail(nth, false);
		verve_events_step(a.xport);
		cr_assert_eq(oom_stop(), 1);
		expect_error(&a.tx_queue, FI_ENOMEM);
		cr_expect_null(node_peer(&a, &b)->link);
		cr_expect_not(node_peer(&a, &b)->connecting);
		cr_expect_eq(a.xport->link_count, 0);
		/* b's manager reports the end. */
		verve_events_step(b.xport);
		node_event(&b, VERVE_CM_DOWN, &a, b.next_conn, FI_ENOTCONN);
		nodes_settle();
	}
	send_len(1);
	node_connect(&a, &b, NODE_WINDOW);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 1);
}

/*
 * a's link is suspended when b starts anew: b does not have the old connection. a has no memory for
 * the new one. nth: the allocation that fails.
 */
static void have_no_memory_for_the_next(long nth)
{
	node_join(&a, &b, NODE_WINDOW);
	verve_replay_renew(a.xport, node_link(&a, &b));
	nodes_settle();
	cr_assert_eq(node_link(&a, &b)->replay->state, VERVE_REPLAY_DETACHED);
	send_len(1);
	b.next_conn += 5000;
	a.next_conn += 5000; /* the table of connections has to grow */
	node_connect(&a, &b, NODE_WINDOW);
	oom_fail(nth, false);
	verve_events_step(a.xport);
	cr_assert_eq(oom_stop(), 1);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
	cr_expect_null(node_peer(&a, &b)->link);
	cr_expect_eq(a.xport->link_count, 0);
}

Test(peer, no_memory_for_a_connection_after_a_suspended_one)
{
	have_no_memory_for_the_next(0); /* the link */
}

Test(peer, no_memory_for_the_place_of_a_connection_after_a_suspended_one)
{
	have_no_memory_for_the_next(1);
}

enum { RESTARTS = 100000 };

/*
 * A peer connects and leaves, again and again, while the application does not poll. Meanwhile a
 * packet has come that may belong to a connection which is still to be announced.
 */
Test(peer, leaves_often_while_a_packet_waits_for_its_connection)
{
	struct verve_link *link;

	node_join(&a, &b, NODE_WINDOW);
	link = node_link(&a, &b);
	link->remote_id += 1000; /* a connection that b does not know */
	send_len(1);
	while (fake_net_run_next())
		;
	cr_assert_eq(fake_net_cq_count(b.xport->recv_cq), 1);
	for (int i = 0; i < RESTARTS; i++)
		node_event(&b, VERVE_CM_DOWN, &a, node_link(&b, &a)->conn_id, FI_ENOTCONN);
	cr_expect(verve_events_step(b.xport));
	cr_expect_null(node_peer(&b, &a)->link);
	cr_expect_eq(b.xport->count.stale, 1);
	node_event(&a, VERVE_CM_DOWN, &b, link->conn_id, FI_ENOTCONN);
	nodes_settle();
	expect_comp(&a.tx_queue);
}
