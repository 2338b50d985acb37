/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending: sizes at every threshold, the edges of the window, the moment when a send completes, and
 * the reasons for which a send is refused.
 */
#include "msg/send.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/pair.h"

enum { ROOM = 3 * NODE_EAGER };

static char out[ROOM], in[ROOM];

static void setup(void)
{
	pair_open(out, in, sizeof(out));
}

TestSuite(send, .init = setup, .fini = pair_close);

static int send_len(size_t len, uint32_t flags)
{
	return node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len, .flags = flags,
					       .context = &out});
}

static void recv_and_check(size_t len)
{
	struct verve_comp comp;

	memset(in, 0, sizeof(in));
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = sizeof(in), .context = in}),
		     0);
	nodes_settle();
	comp = expect_comp(&b.rx_queue);
	cr_assert_eq(comp.context, in);
	cr_assert_eq(comp.len, len);
	cr_assert(pattern_holds(in, len, 1));
	if (len < sizeof(in))
		cr_assert_eq(in[len], 0);
}

static uint32_t credits(void)
{
	return node_link(&a, &b)->credits;
}

Test(send, every_threshold_arrives_whole)
{
	static const size_t sizes[] = {
		0, 1, VERVE_WIRE_SMALL, VERVE_WIRE_SMALL + 1, NODE_INLINE - VERVE_WIRE_HEADER,
		NODE_INLINE - VERVE_WIRE_HEADER + 1, NODE_EAGER - 1, NODE_EAGER, NODE_EAGER + 1,
		ROOM};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cr_assert_eq(send_len(sizes[i], 0), 0);
		recv_and_check(sizes[i]);
		cr_assert_eq(expect_comp(&a.tx_queue).context, &out);
		expect_none(&a.tx_queue);
	}
	cr_expect_eq(AO_load(&a.send.value), sizeof(sizes) / sizeof(sizes[0]));
	cr_expect_eq(AO_load(&a.send.errors), 0);
}

Test(send, eager_completes_at_once_and_rendezvous_when_read)
{
	cr_assert_eq(send_len(NODE_EAGER, 0), 0);
	expect_comp(&a.tx_queue); /* before any packet has arrived */
	cr_assert_eq(send_len(NODE_EAGER + 1, 0), 0);
	nodes_settle();
	expect_none(&a.tx_queue);
	recv_and_check(NODE_EAGER);
	expect_none(&a.tx_queue);
	recv_and_check(NODE_EAGER + 1);
	expect_comp(&a.tx_queue);
}

Test(send, small_messages_cost_a_credit_together)
{
	cr_expect_eq(credits(), NODE_WINDOW);
	for (int i = 1; i < VERVE_WIRE_WEIGHT; i++) {
		cr_assert_eq(send_len(i % (VERVE_WIRE_SMALL + 1), 0), 0);
		nodes_settle();
		expect_comp(&a.tx_queue);
	}
	cr_expect_eq(credits(), NODE_WINDOW);
	cr_assert_eq(send_len(0, 0), 0);
	cr_expect_eq(credits(), NODE_WINDOW - 1);
	cr_assert_eq(send_len(VERVE_WIRE_SMALL, 0), 0);
	cr_expect_eq(credits(), NODE_WINDOW - 1);
}

Test(send, message_costs_a_credit_and_an_offer_none)
{
	cr_assert_eq(send_len(NODE_EAGER, 0), 0);
	cr_expect_eq(credits(), NODE_WINDOW - 1);
	cr_assert_eq(send_len(NODE_EAGER + 1, 0), 0); /* an offer costs no credit */
	cr_expect_eq(credits(), NODE_WINDOW - 1);
}

Test(send, last_credit_is_used_and_the_next_message_is_offered)
{
	for (int i = 0; i < NODE_WINDOW; i++)
		cr_assert_eq(send_len(NODE_EAGER, VERVE_OP_TRANSMIT), 0);
	cr_expect_eq(credits(), 0);
	cr_assert_eq(send_len(NODE_EAGER, VERVE_OP_TRANSMIT), 0);
	cr_assert_eq(send_len(VERVE_WIRE_SMALL, VERVE_OP_TRANSMIT), 0);
	nodes_settle();
	/* The eager messages have completed; the offers wait to be pulled. */
	for (int i = 0; i < NODE_WINDOW; i++)
		expect_comp(&a.tx_queue);
	expect_none(&a.tx_queue);
	for (int i = 0; i < NODE_WINDOW + 1; i++)
		recv_and_check(NODE_EAGER);
	recv_and_check(VERVE_WIRE_SMALL);
	expect_comp(&a.tx_queue);
	expect_comp(&a.tx_queue);
	cr_expect_eq(credits() + node_link(&b, &a)->owed, NODE_WINDOW);
}

Test(send, credits_come_back_at_half_a_window)
{
	for (int i = 0; i < NODE_WINDOW; i++)
		cr_assert_eq(send_len(NODE_EAGER, 0), 0);
	recv_and_check(NODE_EAGER);
	cr_expect_eq(credits(), 0);
	recv_and_check(NODE_EAGER);
	cr_expect_eq(credits(), 2);
	recv_and_check(NODE_EAGER);
	recv_and_check(NODE_EAGER);
	cr_expect_eq(credits(), NODE_WINDOW);
}

Test(send, copied_offer_completes_while_its_peer_does_not_receive)
{
	char *message = malloc(200);

	for (int i = 0; i < NODE_WINDOW; i++)
		cr_assert_eq(send_len(NODE_EAGER, 0), 0);
	/* The buffer is the application's again with the completion. */
	pattern_fill(message, 200, 1);
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = message, .len = 200}), 0);
	for (int i = 0; i < NODE_WINDOW + 1; i++)
		expect_comp(&a.tx_queue);
	free(message);
	for (int i = 0; i < NODE_WINDOW; i++)
		recv_and_check(NODE_EAGER);
	recv_and_check(200);
}

Test(send, delivery_complete_waits_for_the_receive)
{
	static const size_t sizes[] = {0, VERVE_WIRE_SMALL, 100, NODE_EAGER, NODE_EAGER + 1};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cr_assert_eq(send_len(sizes[i], VERVE_OP_ACK), 0);
		nodes_settle();
		expect_none(&a.tx_queue);
		recv_and_check(sizes[i]);
		expect_comp(&a.tx_queue);
	}
}

Test(send, transmit_complete_waits_for_the_device_but_not_for_the_receive)
{
	cr_assert_eq(send_len(100, VERVE_OP_TRANSMIT), 0);
	expect_none(&a.tx_queue);
	nodes_settle();
	expect_comp(&a.tx_queue);
	recv_and_check(100);
}

Test(send, inject_leaves_the_buffer_to_the_application)
{
	static const uint32_t flags[] = {VERVE_OP_INJECT, VERVE_OP_INJECT | VERVE_OP_ACK,
					 VERVE_OP_INJECT | VERVE_OP_TRANSMIT};

	for (size_t i = 0; i < 3; i++) {
		char *message = malloc(NODE_EAGER);

		pattern_fill(message, NODE_EAGER, 1);
		cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = message,
							     .len = NODE_EAGER, .flags = flags[i]}),
			     0);
		free(message);
		recv_and_check(NODE_EAGER);
		expect_comp(&a.tx_queue);
	}
}

Test(send, without_notify_only_the_counter_tells)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = 100,
						     .quiet = true}),
		     0);
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = 100,
						     .flags = VERVE_OP_ACK, .quiet = true}),
		     0);
	recv_and_check(100);
	recv_and_check(100);
	expect_none(&a.tx_queue);
	cr_expect_eq(AO_load(&a.send.value), 2);
}

Test(send, gathers_as_many_segments_as_there_may_be)
{
	static const size_t totals[] = {40, 200, NODE_EAGER, ROOM};

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		size_t quarter = totals[i] / 4;
		struct iovec iov[VERVE_IOV_LIMIT] = {
			{out, quarter},
			{out + quarter, 0},
			{out + quarter, 2 * quarter},
			{out + 3 * quarter, totals[i] - 3 * quarter},
		};

		cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .iov = iov,
							     .iov_count = VERVE_IOV_LIMIT}),
			     0);
		recv_and_check(totals[i]);
	}
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .iov = (struct iovec[1]){{0}},
						     .iov_count = 0}),
		     0);
	recv_and_check(0);
}

Test(send, tag_and_data_arrive_by_every_protocol)
{
	static const size_t sizes[] = {0, 64, 200, NODE_EAGER, NODE_EAGER + 1};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct verve_comp comp;

		cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out,
							     .len = sizes[i], .tag = UINT64_MAX - i,
							     .data = 1ull << 63 | i,
							     .flags = VERVE_OP_TAGGED |
								      VERVE_OP_DATA}),
			     0);
		cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = sizeof(in),
							     .tag = UINT64_MAX - i,
							     .flags = VERVE_OP_TAGGED}),
			     0);
		nodes_settle();
		comp = expect_comp(&b.rx_queue);
		cr_expect_eq(comp.tag, UINT64_MAX - i);
		cr_expect_eq(comp.data, 1ull << 63 | i);
		cr_expect_eq(comp.flags, VERVE_COMP_RECV | VERVE_COMP_TAGGED |
						 VERVE_COMP_REMOTE_CQ_DATA);
		cr_expect_eq(comp.src, node_addr(&b, &a));
		comp = expect_comp(&a.tx_queue);
		cr_expect_eq(comp.flags, VERVE_COMP_SEND | VERVE_COMP_TAGGED);
	}
}

Test(send, unknown_address_is_refused)
{
	struct verve_request request = {.addr = 12345};

	cr_expect_eq(verve_send(a.xport, &request), -FI_EINVAL);
	request.addr = UINT64_MAX;
	cr_expect_eq(verve_send(a.xport, &request), -FI_EINVAL);
	cr_expect_eq(a.xport->tx_used, 0);
	expect_none(&a.tx_queue);
}

Test(send, transmit_queue_is_as_long_as_it_says)
{
	/* No receive is posted, so each send with delivery complete stays in the queue. */
	for (int i = 0; i < NODE_TX_SIZE; i++)
		cr_assert_eq(send_len(1, VERVE_OP_ACK), 0);
	cr_expect_eq(send_len(1, VERVE_OP_ACK), -FI_EAGAIN);
	nodes_settle();
	cr_expect_eq(send_len(1, VERVE_OP_ACK), -FI_EAGAIN);
	recv_and_check(1);
	cr_expect_eq(send_len(1, VERVE_OP_ACK), 0);
	cr_expect_eq(send_len(1, VERVE_OP_ACK), -FI_EAGAIN);
}

Test(send, inject_takes_no_more_buffers_than_may_be_kept)
{
	int sent = 0;

	a.xport->attr.tx_size = SIZE_MAX;
	while (sent <= VERVE_TX_SLABS && send_len(1, VERVE_OP_INJECT | VERVE_OP_ACK) == 0)
		sent++;
	cr_expect_leq(sent, VERVE_TX_SLABS);
	cr_expect_gt(sent, VERVE_LINK_DEPTH);
	cr_expect_eq(send_len(1, VERVE_OP_INJECT | VERVE_OP_ACK), -FI_EAGAIN);
	cr_expect_eq(send_len(1, VERVE_OP_ACK), 0); /* a send without inject needs no such buffer */
	sent++;
	for (int i = 0; i < sent; i++)
		recv_and_check(1);
	for (int i = 0; i < sent; i++)
		expect_comp(&a.tx_queue);
	expect_none(&a.tx_queue);
}

Test(send, fence_waits_for_what_is_active)
{
	cr_assert_eq(send_len(NODE_EAGER + 1, 0), 0);
	cr_assert_eq(send_len(1, VERVE_OP_FENCE), 0);
	nodes_settle();
	expect_none(&a.tx_queue);
	recv_and_check(NODE_EAGER + 1);
	recv_and_check(1);
	expect_comp(&a.tx_queue);
	expect_comp(&a.tx_queue);
}

Test(send, buffer_that_cannot_be_registered_is_this_sends_error_alone)
{
	cr_assert_eq(send_len(1, VERVE_OP_TRANSMIT), 0); /* allocates the slabs */
	nodes_settle();
	expect_comp(&a.tx_queue);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EFAULT);
	cr_assert_eq(send_len(NODE_EAGER + 1, 0), 0);
	cr_expect_eq(expect_error(&a.tx_queue, FI_EFAULT).comp.context, &out);
	cr_expect_eq(AO_load(&a.send.errors), 1);
	cr_assert_eq(send_len(NODE_EAGER + 1, 0), 0);
	recv_and_check(1);
	recv_and_check(NODE_EAGER + 1);
	expect_comp(&a.tx_queue);
}

Test(send, order_holds_across_protocols)
{
	static const size_t sizes[] = {ROOM, 0, 100, NODE_EAGER + 1, 65, 64, ROOM, 1};

	for (size_t i = 0; i < 8; i++)
		cr_assert_eq(send_len(sizes[i], i % 2 ? VERVE_OP_ACK : 0), 0);
	nodes_settle();
	for (size_t i = 0; i < 8; i++)
		recv_and_check(sizes[i]);
}

Test(send, passive_side_waits_for_the_first_packet)
{
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = out, .len = 300}), 0);
	nodes_settle();
	expect_none(&b.tx_queue);
	cr_assert_eq(send_len(1, 0), 0);
	nodes_settle();
	expect_comp(&b.tx_queue);
}

/* c is silent: it takes packets, but never fetches what a offers it. b is honest. */
static struct node c;

static void open_silent(void)
{
	struct verve_xport_attr attr;

	node_close(&a);
	node_attr(&attr);
	attr.tx_size = 2 * VERVE_TX_SLABS;
	node_open(&a, 0, &attr);
	node_open(&c, 1, NULL);
	node_join(&a, &c, 0);
}

static int inject_to(const struct node *to)
{
	return node_send(&a, &(struct message){.peer = to, .buf = out, .len = 100,
					       .flags = VERVE_OP_INJECT});
}

Test(send, injects_to_a_silent_peer_leave_memory_for_others)
{
	uint32_t sent = 0;

	open_silent();
	while (sent <= VERVE_TX_SLABS && !inject_to(&c)) {
		nodes_settle();
		expect_comp(&a.tx_queue);
		sent++;
	}
	cr_expect_eq(inject_to(&c), -FI_EAGAIN);
	cr_expect_gt(sent, VERVE_TX_SLABS / 4);
	cr_expect_eq(inject_to(&b), 0, "%u messages to another peer wait", sent);
	cr_expect(node_peer(&a, &b)->connecting);
	node_join(&a, &b, NODE_WINDOW);
	recv_and_check(100);
	expect_comp(&a.tx_queue);
	node_close(&c);
}

/* All slabs are taken. Over a connection, a message may need none that is kept. */
Test(send, inject_without_memory_asks_for_a_connection)
{
	struct verve_slab *slabs[VERVE_TX_SLABS];

	node_close(&a);
	node_open(&a, 0, NULL);
	for (int i = 0; i < VERVE_TX_SLABS; i++)
		cr_assert_not_null(slabs[i] = verve_slab_alloc(&a.xport->tx_slabs));
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(inject_to(&b), -FI_EAGAIN);
		cr_expect(node_peer(&a, &b)->connecting);
	}
	node_join(&a, &b, NODE_WINDOW);
	cr_expect_not(node_peer(&a, &b)->connecting);
	cr_expect_eq(inject_to(&b), 0, "it goes inline");
	recv_and_check(100);
	expect_comp(&a.tx_queue);
	for (int i = 0; i < VERVE_TX_SLABS; i++)
		verve_slab_free(&a.xport->tx_slabs, slabs[i]);
}

/* The same where another connection has to end first. */
Test(send, inject_without_memory_asks_for_a_place)
{
	struct verve_slab *slabs[VERVE_TX_SLABS];

	open_silent();
	a.xport->attr.max_conns = 1;
	for (int i = 0; i < VERVE_TX_SLABS; i++)
		cr_assert_not_null(slabs[i] = verve_slab_alloc(&a.xport->tx_slabs));
	cr_expect_eq(inject_to(&b), -FI_EAGAIN);
	cr_expect(node_peer(&a, &b)->is_wanting);
	cr_expect_not(node_peer(&a, &b)->connecting);
	fake_net_advance(200000000);
	verve_proto_poll(&a.proto);
	cr_expect(node_peer(&a, &b)->connecting, "it has waited long enough");
	for (int i = 0; i < VERVE_TX_SLABS; i++)
		verve_slab_free(&a.xport->tx_slabs, slabs[i]);
	node_close(&c);
}
