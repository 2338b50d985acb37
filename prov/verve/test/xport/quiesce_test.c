/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiescing: which peers are asked, which agree, questions that cross, and that no message is lost.
 */
#include "xport/quiesce.h"

#include "../proto/fixture.h"
#include "msg/peek.h"
#include "msg/recv.h"
#include "xport/places.h"

enum { TURNS = 8 };

static struct node a, b, c;
static char out[3 * NODE_EAGER], in[3 * NODE_EAGER];

static void setup(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_open(&c, 1, NULL);
	pattern_fill(out, sizeof(out), 1);
	node_join(&a, &b, NODE_WINDOW);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	node_close(&c);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(quiesce, .init = setup, .fini = teardown);

static void send_to(struct node *from, struct node *to, size_t len)
{
	cr_assert_eq(node_send(from, &(struct message){.peer = to, .buf = out, .len = len,
						       .context = out}),
		     0);
}

static void recv_any(struct node *node)
{
	cr_assert_eq(node_recv(node, &(struct message){.buf = in, .len = sizeof(in),
						       .context = in}), 0);
}

static void turns(void)
{
	for (int i = 0; i < TURNS; i++)
		nodes_settle();
}

/* node has one place, which is taken, and sends to c, so that c waits for the place. */
static void crowd(struct node *node)
{
	node->xport->attr.max_conns = 1;
	send_to(node, &c, 10);
	cr_expect(verve_places_is_due(node->xport));
	cr_expect_eq(node->xport->connecting_count, 0);
}

/* node asks peer; the answer has not arrived. */
static void ask(struct node *node, struct node *peer)
{
	for (int i = 0; i < TURNS && !node->xport->quiescing_count; i++)
		verve_quiesce_step(node->xport);
	cr_assert_eq(node_link(node, peer)->quiesce.state, VERVE_QUIESCE_ASKED);
}

static bool is_connected(struct node *node, struct node *peer)
{
	return node_peer(node, peer)->link;
}

Test(quiesce, idle_connection_ends_for_another)
{
	crowd(&a);
	turns();
	cr_expect_not(is_connected(&a, &b));
	cr_expect_not(is_connected(&b, &a));
	cr_expect_eq(a.xport->connecting_count, 1);
	cr_expect_eq(a.xport->quiescing_count, 0);
	cr_expect_eq(b.xport->quiescing_count, 0);
	recv_any(&c);
	node_join(&a, &c, NODE_WINDOW);
	turns();
	cr_expect_eq(expect_comp(&c.rx_queue).len, 10);
	cr_expect_eq(expect_comp(&a.tx_queue).context, out);
}

Test(quiesce, what_comes_after_the_question_gets_a_new_connection)
{
	crowd(&a);
	ask(&a, &b);
	send_to(&a, &b, 20);
	expect_none(&a.tx_queue);
	turns();
	cr_expect_not(is_connected(&a, &b));
	expect_none(&a.tx_queue);
	a.xport->attr.max_conns = 0;
	turns();
	recv_any(&b);
	node_join(&a, &b, NODE_WINDOW);
	turns();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 20);
	expect_comp(&a.tx_queue);
	node_join(&a, &c, NODE_WINDOW);
	turns();
}

Test(quiesce, peer_that_waits_for_a_receive_is_not_asked)
{
	send_to(&a, &b, sizeof(out));
	turns();
	crowd(&a);
	turns();
	cr_expect(is_connected(&a, &b));
	cr_expect_eq(node_link(&a, &b)->quiesce.state, VERVE_QUIESCE_OPEN);
	/* After 100 ms, c connects above the limit. */
	fake_net_advance(200000000);
	turns();
	cr_expect_eq(a.xport->connecting_count, 1);
	recv_any(&b);
	turns();
	cr_expect_eq(expect_comp(&b.rx_queue).len, sizeof(out));
	node_join(&a, &c, NODE_WINDOW);
	turns();
}

Test(quiesce, side_that_holds_payload_does_not_ask)
{
	send_to(&a, &b, 10);
	recv_any(&b);
	turns();
	send_to(&b, &a, 100);
	turns();
	crowd(&a);
	turns();
	cr_expect_eq(node_link(&a, &b)->long_kept, 1);
	cr_expect(is_connected(&a, &b));
	recv_any(&a);
	turns();
	cr_expect_not(is_connected(&a, &b));
	node_join(&a, &c, NODE_WINDOW);
	turns();
}

/* Each program that leaves a small message would keep its link else. */
Test(quiesce, side_that_holds_a_small_message_asks)
{
	send_to(&a, &b, 10);
	recv_any(&b);
	turns();
	send_to(&b, &a, VERVE_WIRE_SMALL);
	turns();
	crowd(&a);
	turns();
	cr_expect_not(is_connected(&a, &b));
	recv_any(&a);
	turns();
	node_join(&a, &c, NODE_WINDOW);
	turns();
}

static void owe(struct verve_link *link, int what, bool on)
{
	switch (what) {
	case 0:
		link->keys.asked = on;
		break;
	case 1:
		link->keys.answers = on;
		break;
	case 2:
		link->peer->fence.asks = on;
		break;
	case 3:
		link->peer->fence.owes = on;
		break;
	case 4:
		link->quiesce.refuse = on;
		break;
	}
}

Test(quiesce, side_that_owes_or_awaits_an_answer_does_not_ask)
{
	send_to(&a, &b, 10);
	recv_any(&b);
	turns();
	crowd(&a);
	for (int what = 0; what < 5; what++) {
		owe(node_link(&a, &b), what, true);
		for (int i = 0; i < TURNS; i++)
			verve_quiesce_step(a.xport);
		cr_expect_eq(a.xport->quiescing_count, 0, "debt %d", what);
		owe(node_link(&a, &b), what, false);
	}
	turns();
	cr_expect_not(is_connected(&a, &b));
	recv_any(&c);
	node_join(&a, &c, NODE_WINDOW);
	turns();
}

Test(quiesce, busy_side_refuses)
{
	send_to(&a, &b, 10);
	recv_any(&b);
	turns();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 10);
	send_to(&b, &a, sizeof(out));
	turns();
	crowd(&a);
	ask(&a, &b);
	send_to(&a, &b, 30);
	recv_any(&b);
	turns();
	cr_expect(is_connected(&a, &b));
	cr_expect_gt(node_link(&a, &b)->quiesce.not_before, 0);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 30);
	recv_any(&a);
	turns();
	cr_expect_eq(expect_comp(&a.rx_queue).len, sizeof(out));
	fake_net_advance(10000000);
	turns();
	cr_expect_not(is_connected(&a, &b));
	node_join(&a, &c, NODE_WINDOW);
	turns();
}

/* A peer that agreed with packets under way would leave payload here that no credit bounds. */
Test(quiesce, side_with_packets_under_way_refuses)
{
	send_to(&a, &b, 10);
	recv_any(&b);
	turns();
	send_to(&b, &a, 100);
	crowd(&a);
	ask(&a, &b);
	turns();
	cr_expect(is_connected(&a, &b));
	cr_expect(is_connected(&b, &a));
	cr_expect_eq(node_link(&a, &b)->long_kept, 1);
	recv_any(&a);
	node_join(&a, &c, NODE_WINDOW);
	turns();
}

Test(quiesce, questions_that_cross_are_answers)
{
	send_to(&a, &b, 10);
	recv_any(&b);
	turns();
	crowd(&a);
	crowd(&b);
	ask(&a, &b);
	ask(&b, &a);
	turns();
	cr_expect_not(is_connected(&a, &b));
	cr_expect_not(is_connected(&b, &a));
	cr_expect_eq(a.xport->connecting_count, 1);
	cr_expect_eq(b.xport->connecting_count, 1);
	node_join(&a, &c, NODE_WINDOW);
	node_join(&b, &c, NODE_WINDOW);
	turns();
}

Test(quiesce, questions_that_cross_a_message_change_nothing)
{
	send_to(&a, &b, 10);
	recv_any(&b);
	turns();
	expect_comp(&b.rx_queue);
	send_to(&b, &a, 40);
	crowd(&a);
	crowd(&b);
	ask(&a, &b);
	ask(&b, &a);
	recv_any(&a);
	turns();
	cr_expect(is_connected(&a, &b));
	cr_expect(is_connected(&b, &a));
	cr_expect_eq(expect_comp(&a.rx_queue).len, 40);
	fake_net_advance(10000000);
	turns();
	cr_expect_not(is_connected(&a, &b));
	cr_expect_not(is_connected(&b, &a));
	node_join(&a, &c, NODE_WINDOW);
	node_join(&b, &c, NODE_WINDOW);
	turns();
}

Test(quiesce, news_of_the_end_is_an_answer)
{
	uint32_t conn_id = node_link(&a, &b)->conn_id;

	crowd(&a);
	ask(&a, &b);
	send_to(&a, &b, 50);
	node_event(&a, VERVE_CM_DOWN, &b, conn_id, FI_ENOTCONN);
	verve_proto_poll(&a.proto);
	cr_expect_not(is_connected(&a, &b));
	node_event(&b, VERVE_CM_DOWN, &a, node_link(&b, &a)->conn_id, FI_ENOTCONN);
	a.xport->attr.max_conns = 0;
	turns();
	recv_any(&b);
	node_join(&a, &b, NODE_WINDOW);
	turns();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 50);
	node_join(&a, &c, NODE_WINDOW);
	turns();
}

Test(quiesce, too_many_connections_become_fewer)
{
	node_join(&c, &a, NODE_WINDOW);
	send_to(&c, &a, 10);
	recv_any(&a);
	turns();
	a.xport->attr.max_conns = 1;
	turns();
	cr_expect_eq(a.xport->link_count, 1);
}

/*
 * Every order of a few steps: sends of either side, with and without acknowledgement, its polls,
 * and time on the wire. Both sides ask as soon as they may. In every order, both sides have a
 * connection or neither has, and each message arrives once and in order.
 */
enum step { A_SENDS, B_SENDS, A_SENDS_ACK, B_SENDS_ACK, A_POLLS, B_POLLS, TIME_PASSES, STEPS };

enum { DEPTH = 6, MESSAGES = DEPTH };

struct side {
	struct node *node;
	struct side *other;
	unsigned sent, received, completed;
	unsigned char out[MESSAGES], in[MESSAGES];
};

static struct side sides[2] = {{.node = &a, .other = &sides[1]}, {.node = &b, .other = &sides[0]}};

static void side_send(struct side *side, uint32_t flags)
{
	unsigned char *byte = &side->out[side->sent];

	*byte = (unsigned char)side->sent++;
	cr_assert_eq(node_send(side->node, &(struct message){.peer = side->other->node, .len = 1,
							     .buf = byte, .context = byte,
							     .flags = flags}),
		     0);
}

static void side_take(struct side *side)
{
	struct verve_comp comp;

	while (verve_comp_queue_read(&side->node->rx_queue, &comp, 1) == 1) {
		unsigned char *byte = comp.context;

		cr_assert_eq(*byte, side->received, "message %u comes when %u is to", *byte,
			     side->received);
		side->received++;
	}
	while (verve_comp_queue_read(&side->node->tx_queue, &comp, 1) == 1)
		side->completed++;
}

static void side_begin(struct side *side)
{
	struct verve_link *link = node_link(side->node, side->other->node);

	side->sent = side->received = side->completed = 0;
	side->node->xport->attr.max_conns = 1;
	link->may_send = true; /* as after READY */
	link->quiesce.not_before = 0;
	link->quiesce.seen = link->produced + link->arrived;
	for (int i = 0; i < MESSAGES; i++)
		cr_assert_eq(node_recv(side->node, &(struct message){.buf = &side->in[i], .len = 1,
								     .context = &side->in[i]}),
			     0);
}

static void take_step(enum step step)
{
	switch (step) {
	case A_SENDS:
	case B_SENDS:
		side_send(&sides[step - A_SENDS], 0);
		break;
	case A_SENDS_ACK:
	case B_SENDS_ACK:
		side_send(&sides[step - A_SENDS_ACK], VERVE_OP_ACK);
		break;
	case A_POLLS:
	case B_POLLS:
		verve_proto_poll(&sides[step - A_POLLS].node->proto);
		break;
	default:
		fake_net_advance(20000);
	}
}

static void side_end(struct side *side)
{
	cr_assert_eq(side->received, side->other->sent);
	cr_assert_eq(side->completed, side->sent);
	/* The receives that no message has taken. */
	for (unsigned i = side->received; i < MESSAGES; i++)
		cr_assert_eq(verve_recv_cancel(side->node->xport, &side->in[i]), 0);
	while (side->received < MESSAGES) {
		expect_error(&side->node->rx_queue, FI_ECANCELED);
		side->received++;
	}
}

static bool try_order(unsigned order)
{
	bool closed;

	for (int i = 0; i < 2; i++)
		side_begin(&sides[i]);
	for (int i = 0; i < DEPTH; i++, order /= STEPS)
		take_step(order % STEPS);
	nodes_settle();
	nodes_settle();
	closed = !is_connected(&a, &b);
	cr_assert_eq(closed, !is_connected(&b, &a), "one side has a connection, the other has not");
	for (int i = 0; i < 2; i++)
		sides[i].node->xport->attr.max_conns = 0;
	/* A side with operations that wait for a connection gets one. */
	if (closed && verve_peer_has_work(node_peer(&b, &a)))
		node_join(&b, &a, NODE_WINDOW);
	else if (closed)
		node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	for (int i = 0; i < 2; i++)
		side_take(&sides[i]);
	for (int i = 0; i < 2; i++)
		side_end(&sides[i]);
	return closed;
}

/* Gives node a second connection, which is never idle, so that there is one too many. */
static void keep_busy(struct node *node)
{
	node_join(node, &c, NODE_WINDOW);
	node_link(node, &c)->held = 1;
}

Test(quiesce, every_order_of_steps)
{
	unsigned orders = 1, closed = 0;

	for (int i = 0; i < DEPTH; i++)
		orders *= STEPS;
	keep_busy(&a);
	keep_busy(&b);
	for (unsigned order = 0; order < orders; order++)
		closed += try_order(order);
	cr_log_info("%u orders, %u connections closed", orders, closed);
	cr_expect_gt(closed, orders / 10);
	cr_expect_lt(closed, orders);
}
