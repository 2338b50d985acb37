/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers: events of the connection manager, in every order. */
#include "base/config.h"
#include "peer_fixture.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/qp_num.h"
#include "xport/watched.h"

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

/*
 * The peer was first, and the application has not polled since. A request for a connection, which
 * the manager reads late, would be for another one: it may have suspended this one by then.
 */
Test(peer, no_connection_is_asked_for_while_events_wait)
{
	struct verve_peer *peer = node_peer(&a, &b);

	node_connect(&a, &b, NODE_WINDOW);
	send_len(1);
	cr_expect_not(peer->connecting);
	recv_any();
	nodes_settle();
	cr_expect_not(peer->connecting);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 1);
	expect_comp(&a.tx_queue);
}

/* The event was about another peer: then the next turn asks. */
Test(peer, next_turn_asks_for_the_connection)
{
	struct verve_peer *peer = node_peer(&a, &b);

	node_event(&a, VERVE_CM_FAILED, &a, 0, FI_ECONNREFUSED);
	send_len(1);
	cr_expect_not(peer->connecting);
	verve_proto_poll(&a.proto);
	cr_expect(peer->connecting);
}

Test(peer, failed_connection_ends_what_waits_for_it_with_its_reason)
{
	static const int errors[] = {FI_ECONNREFUSED, FI_ETIMEDOUT, FI_ENOMEM};

	for (int i = 0; i < 3; i++) {
		send_len(1);
		send_len(ROOM);
		node_event(&a, VERVE_CM_FAILED, &b, 0, errors[i]);
		cr_expect(verve_cm_events_step(a.xport));
		cr_expect_eq(expect_error(&a.tx_queue, errors[i]).comp.context, out);
		cr_expect_eq(expect_error(&a.tx_queue, errors[i]).comp.context, out);
		expect_none(&a.tx_queue);
		/* The next message asks for a connection again. */
		cr_expect_not(node_peer(&a, &b)->connecting);
	}
	cr_expect_eq(AO_load(&a.send.errors), 6);
	cr_expect_not(verve_cm_events_step(a.xport));
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

Test(peer, listening_link_hears)
{
	greet(0);
	cr_assert_eq(node_link(&b, &a)->sent, 1);
	cr_assert_eq(node_link(&a, &b)->arrived, 1);
}

Test(peer, a_message_is_enough_for_a_listening_link)
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
Test(peer, peer_that_only_began_to_connect_is_forgotten)
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
Test(peer, peer_that_was_heard_in_time_is_kept)
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
	verve_cm_events_step(a.xport);
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
	verve_cm_events_step(b.xport);
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

/* c's new connection has an id in the place of a's, because the manager knows that a is gone. */
static void connect_in_place_of_a(struct node *c)
{
	uint32_t conn_id = node_link(&b, &a)->conn_id;

	node_event(&b, VERVE_CM_DOWN, &a, conn_id, FI_ENOTCONN);
	b.next_conn = (conn_id | 1u << VERVE_IDTAB_INDEX_BITS) - 1;
	node_connect(c, &b, NODE_WINDOW);
	cr_assert_eq(verve_idtab_index(b.next_conn), verve_idtab_index(conn_id));
}

/*
 * A packet that names no connection waits for none, if the connection over which it came is known.
 * Else its sender decides how long the last messages of a peer that has left wait, and the peer's
 * place may be another one's by then.
 */
Test(peer, last_messages_count_whatever_another_peer_sends_before)
{
	struct node c;
	uint32_t remote_id;

	node_open(&c, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	node_join(&c, &b, NODE_WINDOW);
	remote_id = node_link(&c, &b)->remote_id;
	node_link(&c, &b)->remote_id += 1000;
	cr_assert_eq(node_send(&c, &(struct message){.peer = &b, .buf = out, .len = 1}), 0);
	while (fake_net_run_next())
		;
	send_len(7);
	while (fake_net_run_next())
		;
	recv_any();
	node_link(&c, &b)->remote_id = remote_id;
	connect_in_place_of_a(&c);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 7);
	cr_expect_eq(b.xport->count.malformed, 1);
	cr_expect_eq(b.xport->count.stale, 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_comp(&c.tx_queue);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ENOTCONN);
	nodes_settle();
	node_close(&c);
}

/* The end of a's connection waits for a packet; the next connection has failed meanwhile. */
Test(peer, failure_comes_while_the_last_end_is_put_off)
{
	node_join(&a, &b, NODE_WINDOW);
	node_link(&a, &b)->remote_id += 1000; /* a connection that b does not know, */
	verve_qp_num_set(b.xport, node_link(&b, &a), 0); /* nor its queue pair */
	send_len(1);
	while (fake_net_run_next())
		;
	node_event(&b, VERVE_CM_DOWN, &a, node_link(&b, &a)->conn_id, FI_ENOTCONN);
	node_event(&b, VERVE_CM_FAILED, &a, 0, FI_ETIMEDOUT);
	cr_expect(verve_cm_events_step(b.xport));
	cr_expect_null(node_peer(&b, &a)->link);
	cr_expect_eq(b.xport->count.stale, 1);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ENOTCONN);
	nodes_settle();
	expect_comp(&a.tx_queue);
}

/* The same for a packet over a queue pair that is still to be announced. */
Test(peer, last_messages_find_their_connection_though_its_place_is_taken)
{
	struct node c;

	node_open(&c, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	node_connect(&c, &b, NODE_WINDOW);
	verve_cm_events_step(c.xport);
	cr_assert_eq(node_send(&c, &(struct message){.peer = &b, .buf = out, .len = 1}), 0);
	while (fake_net_run_next())
		;
	send_len(7);
	while (fake_net_run_next())
		;
	recv_any();
	recv_any();
	connect_in_place_of_a(&c);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 1);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 7);
	cr_expect_eq(b.xport->count.malformed, 0);
	cr_expect_eq(b.xport->count.stale, 0);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ENOTCONN);
	nodes_settle();
	node_close(&c);
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
	link->remote_id += 1000; /* a connection that b does not know, */
	verve_qp_num_set(b.xport, node_link(&b, &a), 0); /* nor its queue pair */
	send_len(1);
	while (fake_net_run_next())
		;
	cr_assert_eq(fake_net_cq_count(b.xport->recv_cq), 1);
	for (int i = 0; i < RESTARTS; i++)
		node_event(&b, VERVE_CM_DOWN, &a, node_link(&b, &a)->conn_id, FI_ENOTCONN);
	cr_expect(verve_cm_events_step(b.xport));
	cr_expect_null(node_peer(&b, &a)->link);
	cr_expect_eq(b.xport->count.stale, 1);
	node_event(&a, VERVE_CM_DOWN, &b, link->conn_id, FI_ENOTCONN);
	nodes_settle();
	expect_comp(&a.tx_queue);
}
