/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Links: room, signals, which completion retires which requests, and the ways a link ends. */
#include "xport/link.h"

#include <string.h>

#include "../proto/fixture.h"
#include "msg/peek.h"
#include "msg/recv.h"
#include "rma/rma.h"
#include "xport/complete.h"
#include "xport/post.h"
#include "xport/turn.h"

enum { ROOM = 3 * NODE_EAGER, GRACE_MS = 100 };

static struct node a, b;
static char out[ROOM], in[ROOM];
static struct verve_link *link;

static void setup(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	link = node_link(&a, &b);
	pattern_fill(out, sizeof(out), 1);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(link, .init = setup, .fini = teardown);

static void send_len(size_t len, uint32_t flags)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len,
						     .flags = flags, .context = out}),
		     0);
}

static int post(uint32_t flags)
{
	struct verve_net_wr wr = {.op = VERVE_NET_WRITE, .flags = flags};

	return verve_link_post_slot(a.xport, link, &wr, &(struct verve_slot){.op = NULL});
}

static void join_again(void)
{
	node_join(&a, &b, NODE_WINDOW);
	link = node_link(&a, &b);
}

/* Room. */

Test(link, last_places_are_for_control_and_the_very_last_for_the_marker)
{
	for (int i = 0; i < VERVE_LINK_REQUESTS - VERVE_LINK_RESERVE; i++) {
		cr_expect(verve_link_has_room(a.xport, link, false));
		cr_assert_eq(post(0), 0);
	}
	cr_expect_not(verve_link_has_room(a.xport, link, false));
	for (int i = 0; i < VERVE_LINK_RESERVE - 1; i++) {
		cr_expect(verve_link_has_room(a.xport, link, true));
		cr_assert_eq(post(0), 0);
	}
	cr_expect_not(verve_link_has_room(a.xport, link, true));
	verve_link_break(a.xport, link, FI_EIO, 0, "test");
	cr_expect_eq(link->produced - link->retired, VERVE_LINK_REQUESTS);
	nodes_settle();
	cr_expect(TAILQ_EMPTY(&a.xport->broken_links));
}

Test(link, send_queue_of_all_links_is_a_limit_too)
{
	a.xport->wr_limit = a.xport->wr_used + a.xport->link_count + VERVE_LINK_RESERVE + 1;
	cr_expect(verve_link_has_room(a.xport, link, false));
	a.xport->wr_limit--;
	cr_expect_not(verve_link_has_room(a.xport, link, false));
	cr_expect(verve_link_has_room(a.xport, link, true));
	a.xport->wr_limit -= VERVE_LINK_RESERVE - 1;
	cr_expect_not(verve_link_has_room(a.xport, link, true));
	a.xport->wr_limit = 8192;
}

/* Their markers take half of the send CQ, and requests that did not ask a half of the rest. */
Test(link, many_idle_links_leave_more_than_one_request_to_each)
{
	uint32_t limit = a.xport->wr_limit, links = a.xport->link_count, used = a.xport->wr_used;

	cr_assert_eq(post(0), 0);
	a.xport->wr_limit = 8192;
	a.xport->link_count = 4096;
	for (a.xport->wr_used = 0; !verve_xport_is_tight(a.xport); a.xport->wr_used++)
		;
	cr_expect(verve_link_has_room(a.xport, link, false));
	cr_expect(verve_link_has_room(a.xport, link, true));
	a.xport->wr_limit = limit;
	a.xport->link_count = links;
	a.xport->wr_used = used + 1;
}

Test(link, every_sixteenth_request_asks_for_a_completion)
{
	cr_assert_eq(post(0), 0);
	for (int i = 1; i < VERVE_LINK_SIGNAL - 1; i++) {
		cr_assert_eq(post(0), 0);
		cr_expect_eq(link->signaled, UINT32_MAX);
	}
	cr_assert_eq(post(0), 0);
	cr_expect_eq(link->signaled, VERVE_LINK_SIGNAL - 1);
	nodes_settle();
	cr_expect_eq(link->retired, VERVE_LINK_SIGNAL);
	cr_assert_eq(post(0), 0);
	cr_expect_eq(link->signaled, VERVE_LINK_SIGNAL - 1);
	cr_assert_eq(post(VERVE_NET_SIGNALED), 0);
	cr_expect_eq(link->signaled, VERVE_LINK_SIGNAL + 1);
	nodes_settle();
	cr_expect_eq(link->retired, VERVE_LINK_SIGNAL + 2);
}

Test(link, requests_that_ask_are_counted_until_they_retire)
{
	cr_assert_eq(post(0), 0);
	cr_expect_eq(a.xport->asked, 0);
	cr_assert_eq(post(VERVE_NET_SIGNALED), 0);
	cr_assert_eq(post(VERVE_NET_SIGNALED), 0);
	cr_expect_eq(a.xport->asked, 2);
	nodes_settle();
	cr_expect_eq(a.xport->asked, 0);
	fake_net_fail(FAKE_NET_QP_POST, 1, -FI_EINVAL);
	cr_expect_eq(post(VERVE_NET_SIGNALED), -FI_EINVAL);
	cr_expect_eq(a.xport->asked, 0);
	nodes_settle();
}

Test(link, failure_of_a_request_that_does_not_ask_is_found_in_a_few_turns)
{
	cr_assert_eq(post(0), 0);
	fake_net_host_kill(1);
	while (fake_net_run_next())
		;
	for (int i = 0; i < VERVE_COMPLETE_IDLE_TURNS; i++)
		verve_proto_poll(&a.proto);
	cr_expect(link->broken);
	nodes_settle();
}

Test(link, every_request_asks_when_entries_run_low)
{
	/* 16 entries beside the marker's and the reserve: the first half asks for nothing. */
	a.xport->wr_limit = 16 + 1 + VERVE_LINK_RESERVE;
	for (int i = 0; i < 7; i++) {
		cr_assert_eq(post(0), 0);
		cr_expect_eq(link->signaled, UINT32_MAX);
	}
	cr_assert_eq(post(0), 0);
	cr_expect_eq(link->signaled, 7);
	a.xport->wr_limit = 8192;
	nodes_settle();
	cr_expect_eq(link->retired, 8);
}

Test(link, every_request_asks_when_buffers_run_low)
{
	a.xport->tx_slabs.limit = 16;
	for (int i = 0; i < 4; i++) {
		send_len(NODE_EAGER, 0);
		cr_expect_eq(link->signaled, UINT32_MAX);
	}
	node_link(&a, &b)->credits++;
	send_len(NODE_EAGER, 0);
	cr_expect_eq(link->signaled, 4);
	nodes_settle();
	cr_expect_eq(a.xport->tx_slabs.used, 0);
}

Test(link, numbers_wrap_around)
{
	nodes_settle();
	link->produced = link->retired = UINT32_MAX - 20;
	link->signaled = UINT32_MAX - 21;
	for (int i = 0; i < 50; i++) {
		send_len(NODE_EAGER, VERVE_OP_TRANSMIT);
		cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
		nodes_settle();
		expect_comp(&a.tx_queue);
		expect_comp(&b.rx_queue);
	}
	cr_expect_lt(link->produced, 1000);
	cr_expect_leq(link->produced - link->retired, VERVE_LINK_SIGNAL);
}

/* Credits in packets. */

Test(link, packet_carries_what_is_owed_as_far_as_it_can)
{
	struct verve_wire_packet packet = {0};

	link->owed = UINT16_MAX + 5;
	verve_link_address(link, &packet);
	cr_expect_eq(packet.credits, UINT16_MAX);
	cr_expect_eq(packet.dest, link->remote_id);
	cr_expect_eq(link->owed, 5);
	verve_link_address(link, &packet);
	cr_expect_eq(packet.credits, 5);
	verve_link_address(link, &packet);
	cr_expect_eq(packet.credits, 0);
}

/* A message that costs a whole credit arrives, and is consumed. */
static void consume_one(struct verve_xport *xport, struct verve_link *over)
{
	cr_assert(verve_credit_arrive(xport, over, NODE_EAGER));
	verve_credit_settle(xport, over);
}

Test(link, credit_is_returned_at_half_a_window)
{
	struct verve_link *back = node_link(&b, &a);
	uint32_t before = back->credits;

	consume_one(a.xport, link);
	cr_expect_eq(link->owed, NODE_WINDOW / 2 - 1);
	consume_one(a.xport, link);
	cr_expect_eq(link->owed, 0);
	nodes_settle();
	cr_expect_eq(back->credits, before + 2);
}

Test(link, window_of_one_returns_each_credit)
{
	a.xport->attr.window = 1;
	consume_one(a.xport, link);
	cr_expect_eq(link->owed, 0);
	nodes_settle();
	cr_expect_eq(node_link(&b, &a)->credits, NODE_WINDOW + 1);
}

Test(link, credit_waits_where_nothing_may_be_sent)
{
	struct verve_link *back = node_link(&b, &a);

	cr_assert_not(back->may_send);
	for (int i = 0; i < NODE_WINDOW; i++)
		consume_one(b.xport, back);
	cr_expect_eq(back->owed, NODE_WINDOW);
	cr_expect_eq(back->produced, 0);
	while (verve_link_has_room(a.xport, link, true))
		cr_assert_eq(post(0), 0);
	for (int i = 0; i < NODE_WINDOW; i++)
		consume_one(a.xport, link);
	cr_expect_eq(link->owed, NODE_WINDOW);
}

Test(link, packet_without_a_slab_keeps_its_credits)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CREDIT};
	struct verve_slab *free = a.xport->tx_slabs.free;
	size_t limit = a.xport->tx_slabs.limit;

	link->inline_size = 0;
	link->owed = 3;
	a.xport->tx_slabs.free = NULL;
	a.xport->tx_slabs.limit = 0;
	cr_expect_not(verve_link_send(a.xport, link, &packet, NULL));
	cr_expect_eq(link->owed, 3);
	cr_expect_not(link->broken);
	a.xport->tx_slabs.free = free;
	a.xport->tx_slabs.limit = limit;
	cr_expect(verve_link_send(a.xport, link, &packet, NULL));
	cr_expect_eq(link->owed, 0);
	nodes_settle();
	cr_expect_eq(node_link(&b, &a)->credits, NODE_WINDOW + 3);
}

/* Completions. */

Test(link, stale_completions_are_counted)
{
	struct verve_net_wc wc = {.wr_id = (uint64_t)(link->id + 1) << 32};

	verve_complete(a.xport, &wc); /* no such link */
	wc.wr_id = (uint64_t)link->id << 32;
	verve_complete(a.xport, &wc); /* nothing was posted */
	cr_assert_eq(post(VERVE_NET_SIGNALED), 0);
	wc.wr_id = (uint64_t)link->id << 32 | 1;
	verve_complete(a.xport, &wc); /* not yet posted */
	wc.wr_id = (uint64_t)link->id << 32 | UINT32_MAX;
	verve_complete(a.xport, &wc);
	cr_expect_eq(a.xport->count.stale, 4);
	cr_expect_eq(link->retired, 0);
	nodes_settle();
	cr_expect_eq(link->retired, 1);
	cr_expect_eq(a.xport->count.stale, 4);
}

/* Breaking. */

Test(link, refused_post_breaks_and_holds_nothing)
{
	fake_net_fail(FAKE_NET_QP_POST, 1, -FI_EINVAL);
	cr_expect_eq(post(0), -FI_EINVAL);
	cr_expect(link->broken);
	cr_expect_eq(a.xport->wr_used, 0);
	cr_expect_null(node_peer(&a, &b)->link);
	verve_proto_poll(&a.proto);
	cr_expect(TAILQ_EMPTY(&a.xport->broken_links));
}

Test(link, device_that_refuses_the_marker_loses_the_queue_pair)
{
	send_len(ROOM, 0);
	fake_net_fail(FAKE_NET_QP_POST, 1, -FI_EINVAL);
	verve_link_break(a.xport, link, FI_EIO, 0, "test");
	cr_expect(fake_net_has_failed());
	verve_proto_poll(&a.proto);
	cr_expect(TAILQ_EMPTY(&a.xport->broken_links));
	cr_expect_eq(expect_error(&a.tx_queue, FI_EIO).comp.context, out);
	cr_expect_eq(a.xport->wr_used, 0);
	nodes_settle();
}

Test(link, break_ends_operations_in_every_state_once)
{
	struct verve_mr_region *none = NULL;
	struct iovec iov = {in, 8};
	struct verve_wire_segment to = {.addr = 1, .len = 8, .key = 1};
	struct verve_request read = {.iov = &iov, .iov_count = 1, .desc = (void *const *)&none,
				     .addr = node_addr(&a, &b), .flags = VERVE_OP_NOTIFY,
				     .remote = &to, .remote_count = 1};
	struct verve_peer *peer = node_peer(&a, &b);

	send_len(ROOM, 0);		/* AWAIT */
	send_len(10, VERVE_OP_ACK);	/* AWAIT */
	send_len(10, VERVE_OP_TRANSMIT);	/* SENT */
	cr_assert_eq(verve_rma(a.xport, VERVE_RMA_READ, &read), 0); /* SENT */
	send_len(10, VERVE_OP_FENCE);	/* QUEUED */
	cr_expect_eq(TAILQ_FIRST(&peer->pending)->state, VERVE_OP_QUEUED);
	verve_link_break(a.xport, link, FI_ENOTCONN, 0, "test");
	cr_expect_null(peer->link);
	cr_expect(TAILQ_EMPTY(&peer->pending));
	cr_expect(TAILQ_EMPTY(&peer->active));
	expect_none(&a.tx_queue); /* no completion before the device has let go */
	nodes_settle();
	for (int i = 0; i < 5; i++)
		expect_error(&a.tx_queue, FI_ENOTCONN);
	expect_none(&a.tx_queue);
	cr_expect_eq(AO_load(&a.send.errors), 4);
	cr_expect_eq(AO_load(&a.read.errors), 1);
}

Test(link, break_is_harmless_on_a_broken_one)
{
	send_len(ROOM, 0);
	verve_link_break(a.xport, link, FI_ENOTCONN, 0, "first");
	verve_link_break(a.xport, link, FI_EIO, 7, "second");
	nodes_settle();
	cr_expect_eq(strncmp(expect_error(&a.tx_queue, FI_ENOTCONN).reason, "first", 5), 0);
	expect_none(&a.tx_queue);
}

Test(link, copied_message_is_lost_in_silence_once_it_was_reported)
{
	for (int i = 0; i < NODE_WINDOW; i++)
		send_len(NODE_EAGER, 0);
	send_len(100, 0); /* finds no credit: an offer from a slab */
	cr_expect_eq(link->credits, 0);
	cr_expect_not(TAILQ_EMPTY(&node_peer(&a, &b)->active));
	for (int i = 0; i < NODE_WINDOW + 1; i++)
		expect_comp(&a.tx_queue);
	verve_link_break(a.xport, link, FI_ENOTCONN, 0, "test");
	nodes_settle();
	expect_none(&a.tx_queue);
	cr_expect_eq(AO_load(&a.send.errors), 0);
}

Test(link, read_message_ends_with_its_connection)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM}), 0);
	nodes_settle();
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM, .context = in}), 0);
	cr_expect_not(TAILQ_EMPTY(&node_peer(&b, &a)->active)); /* b is reading the message */
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	cr_expect_eq(expect_error(&b.rx_queue, FI_ENOTCONN).comp.context, in);
}

Test(link, peer_connects_anew_while_the_old_connection_drains)
{
	struct verve_link *old = link;

	send_len(ROOM, 0);
	verve_link_break(a.xport, old, FI_ENOTCONN, 0, "test");
	join_again();
	cr_expect_neq(link, old);
	cr_expect_not(TAILQ_EMPTY(&a.xport->broken_links));
	send_len(10, VERVE_OP_ACK);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 10);
	/* The device decides which of the two ends first. */
	cr_expect_eq(AO_load(&a.send.value), 1);
	cr_expect_eq(AO_load(&a.send.errors), 1);
}

Test(link, messages_of_a_broken_connection_are_good_but_offers_are_not)
{
	struct verve_link *back = node_link(&b, &a);

	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM, .context = in}), 0);
	send_len(ROOM, 0);
	send_len(NODE_EAGER, 0);
	/* Both packets are in b's receive queue when b breaks the link. */
	while (fake_net_run_next())
		;
	verve_link_break(b.xport, back, FI_ENOTCONN, 0, "test");
	verve_proto_poll(&b.proto);
	cr_expect_eq(expect_comp(&b.rx_queue).len, NODE_EAGER);
	cr_expect_eq(b.xport->count.stale, 1);
}

Test(link, request_that_failed_tells_its_own_operation_why)
{
	struct iovec iov = {in, 8};
	struct verve_wire_segment to = {.addr = 1, .len = 8, .key = 1};
	struct verve_request read = {.iov = &iov, .iov_count = 1, .addr = node_addr(&a, &b),
				     .context = in, .flags = VERVE_OP_NOTIFY, .remote = &to,
				     .remote_count = 1};

	cr_assert_eq(verve_rma(a.xport, VERVE_RMA_READ, &read), 0);
	verve_link_break(a.xport, link, FI_ENOTCONN, 0, "test");
	/* The device had refused the request before the link broke. */
	verve_complete(a.xport, &(struct verve_net_wc){
		.wr_id = (uint64_t)link->id << 32, .status = VERVE_NET_WC_REMOTE_ACCESS});
	nodes_settle();
	cr_expect_eq(expect_error(&a.tx_queue, FI_EACCES).prov_errno, VERVE_NET_WC_REMOTE_ACCESS);
}

/* Leaving. */

static void leave(void)
{
	verve_link_leave(a.xport, link, FI_ENOTCONN, "the peer left");
}

Test(link, leaving_with_nothing_to_wait_for_is_a_break)
{
	send_len(ROOM, 0); /* waits for a FIN that will not come, not for the device */
	leave();
	cr_expect(link->broken);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
	cr_expect_eq(a.xport->leaving_count, 0);
}

Test(link, what_the_device_executed_gets_a_moment_to_be_acknowledged)
{
	send_len(10, VERVE_OP_TRANSMIT);
	send_len(ROOM, 0);
	leave();
	cr_expect_not(link->broken);
	cr_expect_eq(a.xport->leaving_count, 1);
	leave(); /* the second call has no effect */
	cr_expect_eq(a.xport->leaving_count, 1);
	verve_link_part(a.xport);
	cr_expect_not(link->broken);
	cr_expect(verve_turn_is_due(a.xport), "nothing else tells a sleeper that it is over");
	cr_expect_leq(verve_turn_pause(a.xport), GRACE_MS * 1000000ull);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).context, out);
	expect_error(&a.tx_queue, FI_ENOTCONN);
	cr_expect_eq(a.xport->leaving_count, 0);
	cr_expect_null(node_peer(&a, &b)->link);
}

/* The old queue pair would still take the message, but the peer would not read it. */
Test(link, what_comes_after_the_leave_goes_over_a_new_connection)
{
	send_len(10, VERVE_OP_TRANSMIT);
	leave();
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	send_len(20, 0);
	cr_expect_eq(link->produced, 1);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).len, 10);
	expect_none(&a.tx_queue);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 10);
	cr_expect_null(node_peer(&a, &b)->link);
	cr_expect(node_peer(&a, &b)->connecting);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	node_connect(&a, &b, NODE_WINDOW);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).len, 20);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 20);
}

Test(link, moment_of_a_leaving_peer_ends)
{
	fake_net_link(1, false); /* nothing is acknowledged */
	send_len(10, VERVE_OP_TRANSMIT);
	leave();
	link->leaving -= GRACE_MS * 1000000ull;
	verve_link_part(a.xport);
	cr_expect_not(link->broken); /* exactly 100 ms: not yet */
	link->leaving--;
	verve_link_part(a.xport);
	cr_expect(link->broken);
	cr_expect_eq(a.xport->leaving_count, 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
}

Test(link, break_of_a_leaving_one_is_counted_once)
{
	send_len(10, VERVE_OP_TRANSMIT);
	leave();
	verve_link_break(a.xport, link, FI_EIO, 0, "test");
	cr_expect_eq(a.xport->leaving_count, 0);
	leave(); /* no effect on a broken link */
	cr_expect_eq(a.xport->leaving_count, 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EIO);
}

Test(link, bye_makes_the_link_leave)
{
	struct verve_wire_packet bye = {.type = VERVE_WIRE_BYE};

	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	send_len(10, 0);
	cr_expect(verve_link_send(a.xport, link, &bye, NULL));
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 10); /* the message before BYE counts */
	cr_expect_null(node_peer(&b, &a)->link);
}
