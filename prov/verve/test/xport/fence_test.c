/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fences behind messages that completed when they were copied: what a delivery-complete or
 * match-complete operation says of those, over one connection and over several.
 */
#include "xport/fence.h"

#include <string.h>

#include "../proto/fixture.h"
#include "mr/region.h"
#include "msg/peek.h"
#include "proto/cancel.h"

enum { ROOM = 256, TAG = 7 };

static const uint32_t delivered = VERVE_OP_FENCE | VERVE_OP_ACK;
static const uint32_t matched = VERVE_OP_FENCE | VERVE_OP_ACK | VERVE_OP_MATCH;

static struct node a, b;
static char out[4 * NODE_EAGER], in[4 * NODE_EAGER], local[ROOM], remote[ROOM];
static struct verve_mr_region *region;
static int message, fenced;

static void setup(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	cr_assert_eq(verve_mr_region_open(b.dev, remote, ROOM,
					  VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE, &region),
		     0);
	pattern_fill(out, sizeof(out), 1);
	pattern_fill(local, sizeof(local), 2);
}

static void teardown(void)
{
	node_close(&a);
	verve_mr_region_close(region);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(fence, .init = setup, .fini = teardown);

/* A message that completes when it is copied. */
static void send_eager(size_t len)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len, .tag = TAG,
						     .context = &message,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &message);
}

static void send_fenced(uint64_t tag, uint32_t flags)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = 1, .tag = tag,
						     .context = &fenced,
						     .flags = VERVE_OP_TAGGED | flags}),
		     0);
}

static void receive(uint64_t tag)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = sizeof(in), .tag = tag,
						     .flags = VERVE_OP_TAGGED}),
		     0);
}

static void start(enum verve_rma_kind kind, uint32_t flags)
{
	struct verve_wire_segment to = {(uintptr_t)remote, ROOM, region->rkey};
	struct iovec iov = {local, ROOM};
	struct verve_request request = {
		.iov = &iov,
		.iov_count = 1,
		.addr = node_addr(&a, &b),
		.context = &fenced,
		.flags = flags | VERVE_OP_NOTIFY,
		.remote = &to,
		.remote_count = 1,
	};

	cr_assert_eq(verve_rma(a.xport, kind, &request), 0);
}

/* All that happens while b's processor does nothing. */
static void settle_without_b(void)
{
	do {
		while (verve_proto_poll(&a.proto))
			;
	} while (fake_net_run_next());
}

static void expect_fenced(void)
{
	cr_expect_eq(expect_comp(&a.tx_queue).context, &fenced);
	expect_none(&a.tx_queue);
}

static uint32_t packets(void)
{
	return node_link(&a, &b)->sent;
}

Test(fence, a_write_waits_until_the_messages_before_it_are_handled)
{
	receive(TAG);
	send_eager(10);
	start(VERVE_RMA_WRITE, delivered);
	settle_without_b();
	expect_none(&a.tx_queue);
	cr_expect_eq(remote[1], 0, "the write began");
	nodes_settle();
	expect_fenced();
	expect_comp(&b.rx_queue);
	cr_expect(pattern_holds(in, 10, 1));
	cr_expect(pattern_holds(remote, ROOM, 2));
}

Test(fence, a_read_does_so_too_and_kept_messages_are_delivered)
{
	send_eager(10);
	send_eager(NODE_EAGER);
	start(VERVE_RMA_READ, delivered);
	settle_without_b();
	expect_none(&a.tx_queue);
	nodes_settle();
	expect_fenced();
	cr_expect_eq(b.proto.msg.match[1].unexpected_count, 2);
}

/* What has no credit left is offered from a copy, and complete. */
Test(fence, a_write_waits_for_a_copy_that_the_peer_pulls)
{
	node_link(&a, &b)->credits = 0;
	send_eager(NODE_EAGER);
	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	expect_none(&a.tx_queue);
	receive(TAG);
	nodes_settle();
	expect_fenced();
	cr_expect(pattern_holds(in, NODE_EAGER, 1));
}

/* Else a write that lets the peer receive would wait for the receive. */
Test(fence, a_copy_that_is_complete_keeps_no_write_that_says_less)
{
	node_link(&a, &b)->credits = 0;
	send_eager(NODE_EAGER);
	start(VERVE_RMA_WRITE, VERVE_OP_FENCE);
	nodes_settle();
	expect_fenced();
	receive(TAG);
	nodes_settle();
	cr_expect(pattern_holds(in, NODE_EAGER, 1));
}

/* A peer that sends long messages without a pause would keep a fenced operation for ever. */
Test(fence, messages_of_the_peer_are_not_before_it)
{
	static char from_b[4 * NODE_EAGER];
	const struct verve_peer *peer;

	receive(TAG);
	send_eager(1); /* from then on, b may send */
	nodes_settle();
	expect_comp(&b.rx_queue);
	cr_assert_eq(node_recv(&a, &(struct message){.buf = from_b, .len = sizeof(from_b)}), 0);
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = out, .len = sizeof(out)}),
		     0);
	peer = node_peer(&a, &b);
	while (TAILQ_EMPTY(&peer->active)) {
		cr_assert(fake_net_run_next());
		verve_proto_poll(&a.proto);
	}
	start(VERVE_RMA_WRITE, VERVE_OP_FENCE);
	cr_expect(TAILQ_EMPTY(&peer->pending));
	nodes_settle();
	expect_fenced();
	expect_comp(&a.rx_queue);
	expect_comp(&b.tx_queue);
}

Test(fence, what_follows_a_fenced_operation_waits_with_it)
{
	send_eager(1);
	start(VERVE_RMA_WRITE, delivered);
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = 1,
						     .context = &message}),
		     0);
	settle_without_b();
	expect_none(&a.tx_queue);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).context, &message,
		     "the short one completes when it leaves");
	expect_fenced();
}

Test(fence, who_asks_for_less_does_not_wait)
{
	static const uint32_t flags[] = {0, VERVE_OP_FENCE, VERVE_OP_ACK,
					 VERVE_OP_FENCE | VERVE_OP_TRANSMIT};

	for (int i = 0; i < 4; i++) {
		send_eager(1);
		start(VERVE_RMA_WRITE, flags[i]);
		settle_without_b();
		expect_fenced();
	}
}

Test(fence, nothing_is_asked_twice_or_without_need)
{
	uint32_t before = packets();

	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	expect_fenced();
	cr_expect_eq(packets(), before);
	send_eager(1);
	for (int i = 0; i < 3; i++)
		start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	for (int i = 0; i < 3; i++)
		cr_expect_eq(expect_comp(&a.tx_queue).context, &fenced);
	cr_expect_eq(packets(), before + 2, "the message, one FENCE");
	/* A delivery-complete message brings its own answer, behind all before it. */
	send_eager(1);
	send_fenced(TAG, delivered);
	for (int i = 0; i < 3; i++)
		receive(TAG);
	nodes_settle();
	expect_fenced();
	cr_expect_eq(packets(), before + 4);
}

Test(fence, a_match_complete_message_waits_until_those_before_it_have_receives)
{
	receive(TAG + 1);
	send_eager(1);
	send_fenced(TAG + 1, matched);
	nodes_settle();
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
	receive(TAG);
	nodes_settle();
	expect_fenced();
	cr_expect_eq(expect_comp(&b.rx_queue).tag, TAG);
	cr_expect_eq(expect_comp(&b.rx_queue).tag, TAG + 1);
}

Test(fence, a_message_that_is_discarded_is_matched)
{
	receive(TAG + 1);
	send_eager(1);
	send_fenced(TAG + 1, matched);
	nodes_settle();
	expect_none(&a.tx_queue);
	cr_assert_eq(node_peek(&b, &(struct message){.tag = TAG, .flags = VERVE_OP_TAGGED,
						     .peek = VERVE_PEEK | VERVE_DISCARD}),
		     0);
	nodes_settle();
	expect_fenced();
}

Test(fence, delivered_is_not_yet_matched)
{
	send_eager(1);
	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	expect_fenced();
	send_fenced(TAG + 1, matched);
	receive(TAG + 1);
	nodes_settle();
	expect_none(&a.tx_queue);
	receive(TAG);
	nodes_settle();
	expect_fenced();
}

/*
 * The question whether messages are matched may stay without an answer; a later one does not wait
 * for that.
 */
Test(fence, is_cancelled_and_asked_for_less)
{
	send_eager(1);
	send_fenced(TAG + 1, matched);
	nodes_settle();
	cr_expect_eq(verve_cancel(a.xport, &fenced), 0);
	expect_error(&a.tx_queue, FI_ECANCELED);
	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	expect_fenced();
	send_eager(1);
	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	expect_fenced();
}

Test(fence, the_answer_waits_for_room)
{
	send_eager(1);
	start(VERVE_RMA_WRITE, delivered);
	b.xport->wr_limit = 0;
	nodes_settle();
	expect_none(&a.tx_queue);
	b.xport->wr_limit = 8192;
	nodes_settle();
	expect_fenced();
}

Test(fence, question_and_answer_survive_their_queue_pair)
{
	send_eager(1);
	start(VERVE_RMA_WRITE, delivered);
	settle_without_b();
	expect_none(&a.tx_queue);
	node_resume(&a, &b);
	nodes_settle();
	expect_fenced();
}

Test(fence, messages_that_a_broken_connection_took_along_are_reported_once)
{
	send_eager(1);
	verve_link_break(a.xport, node_link(&a, &b), FI_EHOSTUNREACH, 0, "test");
	verve_link_break(b.xport, node_link(&b, &a), FI_EHOSTUNREACH, 0, "test");
	nodes_settle();
	node_join(&a, &b, NODE_WINDOW);
	start(VERVE_RMA_WRITE, VERVE_OP_FENCE);
	nodes_settle();
	expect_fenced();
	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	cr_expect_eq(expect_error(&a.tx_queue, FI_EHOSTUNREACH).comp.context, &fenced);
	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	expect_fenced();
}

Test(fence, a_fenced_operation_that_its_connection_takes_along_has_said_it)
{
	send_eager(1);
	start(VERVE_RMA_WRITE, delivered);
	settle_without_b();
	verve_link_break(a.xport, node_link(&a, &b), FI_EHOSTUNREACH, 0, "test");
	verve_link_break(b.xport, node_link(&b, &a), FI_EHOSTUNREACH, 0, "test");
	nodes_settle();
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
	node_join(&a, &b, NODE_WINDOW);
	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	expect_fenced();
}

Test(fence, an_endpoint_that_was_closed_is_not_the_next_one)
{
	send_eager(1);
	nodes_settle();
	verve_proto_say_bye(&b.proto);
	nodes_settle();
	cr_assert_null(node_peer(&a, &b)->link);
	if (node_peer(&b, &a)->link)
		verve_link_break(b.xport, node_link(&b, &a), FI_ECANCELED, 0, "test");
	nodes_settle();
	node_join(&a, &b, NODE_WINDOW);
	start(VERVE_RMA_WRITE, delivered);
	nodes_settle();
	expect_fenced();
}

/* b is hostile, or late. */
Test(fence, answers_that_nobody_asked_for_say_nothing)
{
	unsigned char bytes[VERVE_WIRE_PREFIX];
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_FENCED,
		.dest = node_link(&b, &a)->remote_id,
	};

	send_eager(1);
	packet.op_id = node_peer(&a, &b)->fence.sent;
	node_send_raw(&b, &a, bytes, verve_wire_encode(&packet, bytes));
	start(VERVE_RMA_WRITE, delivered);
	settle_without_b();
	expect_none(&a.tx_queue);
	packet.op_id++;
	node_send_raw(&b, &a, bytes, verve_wire_encode(&packet, bytes));
	cr_expect_eq(a.xport->count.stale, 2);
	expect_fenced();
}

enum { STEPS = 3000, FENCES = 256 };

static struct promise {
	uint32_t before; /* messages that were sent before it, without a FIN of their own */
	bool matched;
} promises[FENCES];
static uint32_t promised, kept_promises, sent, received;

static bool chance(unsigned percent)
{
	return fake_net_random() % 100 < percent;
}

static void send_more(void)
{
	size_t len = chance(50) ? 10 : NODE_EAGER;
	int ret = node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len, .tag = TAG,
						  .flags = VERVE_OP_TAGGED});

	cr_assert(!ret || ret == -FI_EAGAIN);
	sent += !ret;
}

static void fence(void)
{
	struct promise *promise = &promises[promised];
	uint64_t before = a.xport->tx_used;

	if (promised == FENCES || before >= NODE_TX_SIZE)
		return;
	*promise = (struct promise){sent, chance(30)};
	if (promise->matched) {
		receive(TAG + 1);
		cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = 1,
							     .tag = TAG + 1, .context = promise,
							     .flags = VERVE_OP_TAGGED | matched}),
			     0);
	} else {
		struct verve_wire_segment to = {(uintptr_t)remote, 8, region->rkey};
		struct iovec iov = {local, 8};
		struct verve_request request = {
			.iov = &iov, .iov_count = 1, .addr = node_addr(&a, &b), .context = promise,
			.flags = delivered | VERVE_OP_NOTIFY, .remote = &to, .remote_count = 1,
		};

		cr_assert_eq(verve_rma(a.xport, chance(50) ? VERVE_RMA_WRITE : VERVE_RMA_READ,
				       &request),
			     0);
	}
	promised++;
}

static void check_promises(void)
{
	while (!verve_comp_queue_is_empty(&b.rx_queue))
		received += expect_comp(&b.rx_queue).tag == TAG;
	while (!verve_comp_queue_is_empty(&a.tx_queue)) {
		const struct promise *promise = expect_comp(&a.tx_queue).context;

		if (!promise)
			continue;
		kept_promises++;
		cr_assert_geq(received + (promise->matched ? 0 : node_peer(&b, &a)->fence.kept),
			      promise->before);
	}
}

/* Polling, receiving and the device's steps come in any order; so do new queue pairs. */
Test(fence, promises_hold_in_any_order_of_events)
{
	for (int i = 0; i < STEPS; i++) {
		unsigned what = fake_net_random() % 100;

		if (what < 10)
			send_more();
		else if (what < 20)
			receive(TAG);
		else if (what < 26)
			fence();
		else if (what < 45)
			verve_proto_poll(&a.proto);
		else if (what < 50)
			verve_proto_poll(&b.proto);
		else if (what < 99)
			fake_net_run_next();
		else if (chance(20))
			node_resume(&a, &b);
		check_promises();
	}
	nodes_settle();
	check_promises();
	while (received < sent) {
		receive(TAG);
		nodes_settle();
		check_promises();
	}
	cr_expect_eq(kept_promises, promised);
	cr_expect_gt(promised, 50);
}
