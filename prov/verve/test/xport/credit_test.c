/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credits: the weight of messages, and the credits that senders spend and receivers give back. */
#include "xport/credit.h"

#include "../proto/pair.h"
#include "msg/unexpected.h"
#include "xport/lifetime.h"
#include <rdma/fi_errno.h>

enum { ROOM = 2 * NODE_EAGER, LEN = 100 };

static char out[ROOM], in[ROOM];
static struct verve_link *to_b, *to_a;

static void setup(void)
{
	pair_open(out, in, sizeof(out));
	to_b = node_link(&a, &b);
	to_a = node_link(&b, &a);
}

TestSuite(credit, .init = setup, .fini = pair_close);

static const uint32_t sizes[] = {256, 1000, NODE_EAGER, 65536, (1 << 20) - 1, 1 << 20};

static uint64_t weigh(size_t len, uint32_t eager_size)
{
	struct verve_link link = {.byte_weight = verve_credit_byte_weight(eager_size)};

	return verve_credit_weight(&link, len);
}

Test(credit, small_messages_weigh_least_and_the_longest_a_credit)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cr_expect_eq(weigh(0, sizes[i]), 1);
		cr_expect_eq(weigh(VERVE_WIRE_SMALL, sizes[i]), 1);
		cr_expect_eq(weigh(sizes[i], sizes[i]), VERVE_WIRE_WEIGHT);
		/* The peer's buffers may be the smaller ones. */
		cr_expect_eq(weigh(1 << 20, sizes[i]), VERVE_WIRE_WEIGHT);
	}
}

/* Otherwise a window of short messages would be more payload than a window of long ones. */
Test(credit, bytes_that_a_credit_buys_are_never_more_than_the_eager_size)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint64_t len = VERVE_WIRE_SMALL + 1; len <= sizes[i]; len += len / 7 + 1) {
			uint64_t weight = weigh(len, sizes[i]);

			cr_expect_leq(len * VERVE_WIRE_WEIGHT, weight * sizes[i]);
			cr_expect_geq(weight, weigh(len - 1, sizes[i]));
		}
	}
}

Test(credit, shorter_messages_are_more_than_a_window)
{
	uint64_t weight = verve_credit_weight(to_b, LEN);
	uint64_t count = NODE_WINDOW * VERVE_WIRE_WEIGHT / weight;

	cr_assert_gt(count, 9 * NODE_WINDOW);
	for (uint64_t i = 0; i < count; i++) {
		cr_assert_gt(to_b->credits, 0);
		pair_send(LEN, 0, NULL);
		nodes_settle();
		expect_comp(&a.tx_queue);
	}
	cr_expect_eq(to_a->held, NODE_WINDOW - (count * weight % VERVE_WIRE_WEIGHT != 0));
	cr_expect_eq(to_a->weight_kept, count * weight);
	/* Messages of two lengths complete the last credit, and the next message is offered. */
	while (to_b->credits) {
		pair_send(LEN + 50, 0, NULL);
		nodes_settle();
		expect_comp(&a.tx_queue);
		count++;
	}
	pair_send(NODE_EAGER, VERVE_OP_TRANSMIT, NULL);
	nodes_settle();
	expect_none(&a.tx_queue);
	for (uint64_t i = 0; i <= count; i++) {
		pair_recv(ROOM, 0, NULL);
		nodes_settle();
		expect_comp(&b.rx_queue);
	}
	expect_comp(&a.tx_queue);
	cr_expect_eq(to_a->weight_kept, 0);
	cr_expect_eq(to_b->credits + to_a->owed + to_a->held, NODE_WINDOW);
	cr_expect_eq(to_a->held, 0);
}

Test(credit, messages_that_find_a_receive_are_paid_back_by_their_weight)
{
	for (int i = 0; i < 1000; i++) {
		pair_recv(ROOM, 0, NULL);
		pair_send(LEN + i % 500, 0, NULL);
		nodes_settle();
		expect_comp(&a.tx_queue);
		expect_comp(&b.rx_queue);
		cr_assert_eq(to_b->credits + to_a->owed, NODE_WINDOW);
		cr_assert_eq(to_a->held, 0);
	}
	cr_expect_gt(to_a->returned, 0);
}

/* A batch may cost several. */
Test(credit, several_may_be_spent_together)
{
	struct verve_link link = {.credits = 3, .weight_sent = 5 * VERVE_WIRE_WEIGHT - 1};

	cr_expect(verve_credit_is_left(&link, 1));
	cr_expect(verve_credit_is_left(&link, 2 * VERVE_WIRE_WEIGHT));
	cr_expect_not(verve_credit_is_left(&link, 2 * VERVE_WIRE_WEIGHT + 1));
	verve_credit_spend(&link, 2 * VERVE_WIRE_WEIGHT + 1);
	cr_expect_eq(link.credits, 0);
}

/* A peer cannot have more kept by sending shorter messages: less than a credit more. */
Test(credit, peer_that_sends_more_weight_than_its_window_is_cut_off)
{
	uint64_t weight = verve_credit_weight(to_b, LEN);
	uint64_t count = ((NODE_WINDOW + 1) * VERVE_WIRE_WEIGHT - 1) / weight;

	to_b->credits = 1000;
	for (uint64_t i = 0; i < count; i++) {
		pair_send(LEN, 0, NULL);
		nodes_settle();
	}
	cr_expect_not_null(node_peer(&b, &a)->link);
	pair_send(LEN, 0, NULL);
	nodes_settle();
	cr_expect_null(node_peer(&b, &a)->link, "it may go on");
}

/* Another link may have got the id of the link that the message came over. */
Test(credit, message_of_a_link_that_has_ended_pays_no_other_link)
{
	struct verve_unexpected *message;

	pair_send(LEN, 0, NULL);
	nodes_settle();
	message = verve_unexpected_of(TAILQ_FIRST(&b.proto.msg.match[0].unexpected));
	cr_assert_eq(verve_unexpected_link(message), to_a);
	verve_link_break(b.xport, to_a, FI_ENOTCONN, 0, "test");
	nodes_settle();
	cr_expect_null(verve_unexpected_link(message));
	node_join(&a, &b, NODE_WINDOW);
	to_a = node_link(&b, &a);
	message->link_id = to_a->id; /* as after thousands of links */
	cr_expect_null(verve_unexpected_link(message));
	pair_recv(ROOM, 0, NULL);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, LEN);
	cr_expect_eq(to_a->weight_kept, 0);
	cr_expect_eq(to_a->long_kept, 0);
}
