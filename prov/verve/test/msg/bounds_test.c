/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bounds of receiving: how much a peer can make an endpoint keep, queue or handle, and that receive
 * buffers go back to the device.
 */
#include "msg/recv.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/pair.h"
#include "base/config.h"
#include "mr/region.h"
#include "msg/peek.h"
#include "msg/recv_op.h"
#include "msg/unexpected.h"
#include "xport/post.h"
#include "xport/protocols.h"
#include "xport/turn.h"

enum { ROOM = 3 * NODE_EAGER };

static char out[ROOM], in[ROOM];

static void setup(void)
{
	pair_open(out, in, sizeof(out));
}

TestSuite(bounds, .init = setup, .fini = pair_close);

/* A whole window of messages waits for receives; one more message breaks the link. */
Test(bounds, peer_that_ignores_the_window_is_cut_off)
{
	node_link(&a, &b)->credits = 1000;
	for (int i = 0; i < NODE_WINDOW; i++)
		pair_send(NODE_EAGER, 0, NULL);
	pair_send(VERVE_WIRE_SMALL, 0, NULL); /* weighs 1, which completes no credit */
	nodes_settle();
	cr_expect_eq(node_link(&b, &a)->held, NODE_WINDOW);
	pair_send(NODE_EAGER, 0, NULL);
	pair_send(NODE_EAGER, 0, NULL);
	nodes_settle();
	cr_expect_null(node_peer(&b, &a)->link, "it may go on");
	cr_expect_eq(b.proto.msg.match[0].unexpected_count, NODE_WINDOW + 1);
}

/* Small messages that cost a credit together. */
enum { GROUP = VERVE_WIRE_WEIGHT };

/* Small messages that are not received are bounded, too: a credit for each group. */
Test(bounds, peer_that_floods_with_small_messages_is_cut_off)
{
	node_link(&a, &b)->credits = 1000;
	for (int i = 0; i < NODE_WINDOW * GROUP + GROUP - 1; i++) {
		pair_send(i % (VERVE_WIRE_SMALL + 1), 0, NULL);
		nodes_settle();
		expect_comp(&a.tx_queue);
	}
	cr_expect_eq(node_link(&b, &a)->held, NODE_WINDOW);
	cr_expect_not_null(node_peer(&b, &a)->link, "less than a credit too much is not noticed");
	pair_send(1, 0, NULL);
	nodes_settle();
	cr_expect_null(node_peer(&b, &a)->link, "it may go on");
}

/*
 * Of a group of small messages, some find a receive and some wait. The credit comes back with the
 * last one, whichever that is, and however it is consumed.
 */
Test(bounds, group_of_small_messages_is_paid_back_once_all_are_consumed)
{
	enum { WAITING = 3 };
	struct verve_link *link = node_link(&b, &a);
	uint32_t *credits = &node_link(&a, &b)->credits;

	for (int i = 0; i < 3 * GROUP; i++) {
		if (i % GROUP >= WAITING)
			pair_recv(10, 0, NULL);
		pair_send(1, 0, NULL);
		nodes_settle();
		while (i % GROUP == GROUP - 1 && link->weight_kept > 1) {
			cr_expect_eq(link->held, 1);
			pair_recv(10, 0, NULL);
		}
		if (i % GROUP == GROUP - 1) {
			cr_expect_eq(link->held, 1);
			cr_expect_eq(*credits + link->owed, NODE_WINDOW - 1);
			pair_recv(10, 0, NULL);
			nodes_settle();
		}
		cr_expect_eq(link->held, 0);
		cr_expect_eq(*credits + link->owed, NODE_WINDOW);
	}
}

/* The last messages of two groups wait, while a third group is consumed whole. */
Test(bounds, every_group_of_small_messages_is_paid_back)
{
	struct verve_link *link = node_link(&b, &a);

	for (int i = 0; i < 3 * GROUP; i++) {
		bool waits = i == GROUP - 1 || i == 2 * GROUP - 1;

		if (!waits)
			pair_recv(10, 0, NULL);
		pair_send(1, waits ? VERVE_OP_TAGGED : 0, NULL);
		nodes_settle();
	}
	cr_expect_eq(link->held, 1);
	pair_recv(10, VERVE_OP_TAGGED, NULL);
	pair_recv(10, VERVE_OP_TAGGED, NULL);
	nodes_settle();
	cr_expect_eq(link->held, 0);
	cr_expect_eq(node_link(&a, &b)->credits + link->owed, NODE_WINDOW);
}

/* A received message makes room in the window only after its credit was sent back. */
Test(bounds, the_window_opens_with_the_credits_that_are_sent)
{
	node_link(&a, &b)->credits = 1000;
	for (int i = 0; i < NODE_WINDOW; i++)
		pair_send(NODE_EAGER, 0, NULL);
	nodes_settle();
	for (int i = 0; i < NODE_WINDOW / 2; i++)
		pair_recv(NODE_EAGER, 0, NULL);
	nodes_settle();
	cr_expect_eq(node_link(&b, &a)->owed, 0);
	for (int i = 0; i < NODE_WINDOW / 2; i++)
		pair_send(NODE_EAGER, 0, NULL);
	nodes_settle();
	cr_expect_eq(node_link(&b, &a)->held, NODE_WINDOW);
	pair_recv(NODE_EAGER, 0, NULL);
	cr_expect_eq(node_link(&b, &a)->owed, 1);
	pair_send(NODE_EAGER, 0, NULL);
	nodes_settle();
	cr_expect_null(node_peer(&b, &a)->link);
}

/* Handles the packet as if it had come from a. */
static void handle(const struct verve_wire_packet *what)
{
	struct verve_wire_packet packet = *what;

	b.xport->protocols->handlers[packet.type](b.xport, node_link(&b, &a), &packet);
}

/*
 * a offers messages, withdraws them, and takes no answer. An honest endpoint has at most
 * VERVE_CONFIG_TX_SIZE_MAX operations, so at most as many answers wait for a.
 */
Test(bounds, peer_that_takes_no_fin_is_cut_off)
{
	struct verve_wire_packet offer = {.type = VERVE_WIRE_RTS, .op_id = 1};
	struct verve_wire_packet withdrawal = {.type = VERVE_WIRE_WITHDRAW};

	node_link(&b, &a)->may_send = false; /* a's queue takes nothing */
	for (; offer.op_id <= VERVE_CONFIG_TX_SIZE_MAX; offer.op_id++) {
		handle(&offer);
		withdrawal.op_id = offer.op_id;
		handle(&withdrawal);
	}
	cr_expect_not_null(node_peer(&b, &a)->link, "an honest peer may have so many");
	handle(&offer);
	cr_expect_null(node_peer(&b, &a)->link, "it may go on");
}

/* Messages without a receive are bounded likewise, if a waits for a FIN of each. */
Test(bounds, peer_that_offers_more_than_an_endpoint_can_is_cut_off)
{
	struct verve_wire_packet offers[] = {{.type = VERVE_WIRE_RTS},
					     {.type = VERVE_WIRE_EAGER, .flags = VERVE_WIRE_ACK}};

	/* Of whole messages, the window lets fewer come. */
	for (uint32_t i = 0; i < VERVE_CONFIG_TX_SIZE_MAX; i++) {
		offers[i < NODE_WINDOW].op_id = i + 1;
		handle(&offers[i < NODE_WINDOW]);
	}
	cr_expect_not_null(node_peer(&b, &a)->link, "an honest peer may have so many");
	handle(&offers[1]);
	cr_expect_null(node_peer(&b, &a)->link, "it may go on");
}

/*
 * a offers as many messages as it may, then asks for messages back that it did not offer. However
 * many wait, few are compared with the id.
 */
Test(bounds, withdrawing_messages_never_offered_costs_little)
{
	struct verve_wire_packet offer = {.type = VERVE_WIRE_RTS};
	struct verve_wire_packet withdrawal = {.type = VERVE_WIRE_WITHDRAW};
	const UT_hash_table *table;
	uint32_t longest = 0;

	/* As the ids of an honest peer: the same index, another generation. */
	for (uint32_t i = 1; i <= VERVE_CONFIG_TX_SIZE_MAX; i++) {
		offer.op_id = i << (i % 2 ? 0 : 12);
		handle(&offer);
	}
	cr_assert_not_null(node_peer(&b, &a)->link, "an honest peer may have so many");
	table = node_link(&b, &a)->offers->hh.tbl;
	cr_expect_eq(table->num_items, VERVE_CONFIG_TX_SIZE_MAX);
	for (uint32_t i = 0; i < table->num_buckets; i++)
		if (table->buckets[i].count > longest)
			longest = table->buckets[i].count;
	cr_expect_leq(longest, 32, "%u messages are compared", longest);
	for (uint32_t i = 0; i < VERVE_CONFIG_TX_SIZE_MAX; i++) {
		withdrawal.op_id = UINT32_MAX - i;
		handle(&withdrawal);
	}
	cr_expect_eq(table->num_items, VERVE_CONFIG_TX_SIZE_MAX);
}

/* No honest peer has two operations of one id. */
Test(bounds, peer_that_names_two_messages_alike_is_cut_off)
{
	struct verve_wire_packet offer = {.type = VERVE_WIRE_RTS, .op_id = 5};

	handle(&offer);
	cr_expect_not_null(node_peer(&b, &a)->link);
	handle(&offer);
	cr_expect_null(node_peer(&b, &a)->link);
}

/* More receives than a peer's may have an id. */
enum { OFFERED = VERVE_RECV_NAMED + 50 };

/*
 * a offers messages, and does not go on with them. Each has a receive. Those that wait for a have
 * ids; but all peers share the ids.
 */
static void offer_and_rest(const struct verve_wire_packet *what)
{
	struct verve_wire_packet offer = *what;

	pair_recv(ROOM, 0, in);
	pair_send(0, 0, NULL); /* b may send from here on */
	nodes_settle();
	expect_comp(&b.rx_queue);
	for (offer.op_id = 1; offer.op_id <= OFFERED; offer.op_id++) {
		pair_recv(ROOM, 0, in);
		handle(&offer);
		nodes_settle();
	}
	cr_expect_eq(b.xport->op_ids.used, VERVE_RECV_NAMED, "%u are in use", b.xport->op_ids.used);
	verve_link_break(b.xport, node_link(&b, &a), FI_EIO, 0, "test");
	nodes_settle();
	for (int i = 0; i < OFFERED; i++)
		expect_error(&b.rx_queue, FI_EIO);
	cr_expect_eq(b.xport->op_ids.used, 0);
	cr_expect_eq(node_peer(&b, &a)->named_receives, 0);
}

Test(bounds, peer_that_offers_and_lets_nothing_be_pulled_has_few_ids)
{
	offer_and_rest(&(struct verve_wire_packet){.type = VERVE_WIRE_RTS, .len = 1});
}

Test(bounds, peer_that_offers_first_parts_only_has_few_ids)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_region_open(a.dev, out, ROOM, VERVE_NET_REMOTE_READ, &region), 0);
	offer_and_rest(&(struct verve_wire_packet){
		.type = VERVE_WIRE_RTS, .len = ROOM, .segment_count = 1,
		.segment = {{.addr = (uintptr_t)out, .len = 1, .key = region->rkey}}});
	verve_mr_region_close(region);
}

/* Each message is counted until its one answer, whichever way the message goes. */
Test(bounds, answered_messages_are_no_burden)
{
	static const size_t sizes[] = {0, 64, NODE_EAGER, NODE_EAGER + 1, ROOM};

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (i % 2)
			pair_recv(ROOM, 0, in);
		pair_send(sizes[i / 2], VERVE_OP_ACK, NULL);
		nodes_settle();
		if (!(i % 2)) {
			cr_expect_eq(node_link(&b, &a)->unanswered_messages, 1);
			pair_recv(ROOM, 0, in);
			nodes_settle();
		}
		expect_comp(&a.tx_queue);
		expect_comp(&b.rx_queue);
		cr_expect_eq(node_link(&b, &a)->unanswered_messages, 0);
	}
}

/*
 * A peer writes with remote CQ data without end, while the application reads no completions. The
 * packets wait, and none is lost.
 */
Test(bounds, completions_that_nobody_asked_for_are_bounded)
{
	enum { RING = 64, BUFFERS = 64, COUNT = RING + VERVE_COMP_UNINVITED + BUFFERS };
	struct verve_wire_packet packet = {.type = VERVE_WIRE_WRITE_DATA, .flags = VERVE_WIRE_DATA,
					   .dest = node_link(&b, &a)->conn_id};
	unsigned char bytes[VERVE_WIRE_RTS_MAX];
	struct verve_comp comp;

	cr_assert_eq(b.xport->attr.rx_uncredited, BUFFERS);
	for (uint64_t i = 0; i < COUNT; i++) {
		packet.data = i;
		node_send_raw(&a, &b, bytes, verve_wire_encode(&packet, bytes));
	}
	cr_expect_lt(AO_load(&b.rx_queue.count), COUNT - BUFFERS + VERVE_POLL_BATCH);
	cr_expect_eq(AO_load(&b.remote_write.value), AO_load(&b.rx_queue.count));
	for (uint64_t i = 0; i < COUNT; i++) {
		comp = expect_comp(&b.rx_queue);
		cr_assert_eq(comp.data, i);
		nodes_settle();
	}
	expect_none(&b.rx_queue);
	node_send_raw(&a, &b, bytes, verve_wire_encode(&packet, bytes));
	expect_comp(&b.rx_queue);
}

/*
 * A peer sends empty messages without end, which use nothing up of a multi-receive buffer. Each is
 * a completion that the application does not know of when it posts the buffer.
 */
Test(bounds, messages_in_one_multi_receive_buffer_are_bounded)
{
	enum { RING = 64, BUFFERS = 64, COUNT = RING + VERVE_COMP_UNINVITED + BUFFERS };
	struct verve_wire_packet packet = {.type = VERVE_WIRE_EAGER,
					   .dest = node_link(&b, &a)->conn_id};
	unsigned char bytes[VERVE_WIRE_RTS_MAX];
	size_t len = verve_wire_encode(&packet, bytes);

	pair_recv(ROOM, VERVE_OP_MULTI, in);
	for (int i = 0; i < COUNT; i++)
		node_send_raw(&a, &b, bytes, len);
	cr_expect_lt(AO_load(&b.rx_queue.count), COUNT - BUFFERS + VERVE_POLL_BATCH);
	for (int i = 0; i < COUNT; i++) {
		expect_comp(&b.rx_queue);
		nodes_settle();
	}
	expect_none(&b.rx_queue);
	cr_expect_eq(AO_load(&b.rx_queue.uninvited), 0);
}

/* No event tells a sleeper, such as a progress thread, that the application has read some. */
Test(bounds, sleeper_looks_after_a_flood_by_itself)
{
	cr_assert_not(verve_turn_is_due(b.xport));
	AO_store(&b.rx_queue.uninvited, VERVE_COMP_UNINVITED);
	cr_expect(verve_turn_is_due(b.xport));
	cr_expect_leq(verve_turn_pause(b.xport), 10000000);
	AO_store(&b.rx_queue.uninvited, VERVE_COMP_UNINVITED - 1);
	cr_expect_not(verve_turn_is_due(b.xport));
	AO_store(&b.rx_queue.uninvited, 0);
}

static unsigned flood_left;

/* For each packet that the transport handles, another one arrives. */
static void flood(void *arg)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_WRITE_DATA, .flags = VERVE_WIRE_DATA,
					   .dest = node_link(&b, &a)->conn_id};
	struct verve_link *link = node_link(&a, &b);
	unsigned char bytes[VERVE_WIRE_RTS_MAX];
	struct verve_outgoing out_packet;
	size_t len = verve_wire_encode(&packet, bytes);

	(void)arg;
	if (!flood_left)
		return;
	flood_left--;
	cr_assert(verve_link_reserve(a.xport, link, len, &out_packet));
	memcpy(out_packet.data, bytes, len);
	cr_assert_eq(verve_link_post_packet(a.xport, link, &out_packet, len, true, NULL), 0);
	while (fake_net_run_next())
		;
	verve_proto_poll(&a.proto);
	verve_comp_queue_arm(&b.rx_queue, AO_load(&b.rx_queue.count) + 1);
}

/*
 * When a connection ends, the packets that arrived before are handled. Packets that arrive
 * meanwhile do not prolong that.
 */
Test(bounds, a_flood_does_not_hold_the_receiving_call)
{
	uint32_t conn_id = node_link(&b, &a)->conn_id;

	flood_left = 1000;
	b.rx_queue.wake = flood;
	verve_comp_queue_arm(&b.rx_queue, 1);
	flood(NULL);
	node_event(&b, VERVE_CM_DOWN, &a, conn_id, FI_ENOTCONN);
	verve_cm_events_step(b.xport);
	cr_expect_leq(AO_load(&b.rx_queue.count), b.xport->attr.rx_uncredited,
		      "%zu packets were taken", (size_t)AO_load(&b.rx_queue.count));
	cr_expect_gt(AO_load(&b.rx_queue.count), 0);
	flood_left = 0;
}

/*
 * Nobody reads what completes, and a connection ends: what has arrived is taken when its queue pair
 * can be closed, once.
 */
Test(bounds, a_connection_that_ends_slowly_takes_no_part_of_a_flood)
{
	struct verve_link *link;
	struct node c;

	node_open(&c, 0, NULL);
	node_join(&b, &c, NODE_WINDOW);
	for (int i = 0; i < 3; i++)
		pair_send(1, 0, NULL);
	do
		cr_assert(fake_net_run_next());
	while (fake_net_cq_count(b.xport->recv_cq) < 3);
	AO_store(&b.rx_queue.uninvited, VERVE_COMP_UNINVITED);
	link = node_link(&b, &c);
	cr_assert_eq(verve_link_post_nothing(b.xport, link, NULL), 0);
	verve_link_break(b.xport, link, FI_EIO, 0, "test");
	for (int i = 0; i < 3; i++)
		verve_turn(b.xport);
	cr_expect_not(TAILQ_EMPTY(&b.xport->broken_links));
	cr_expect_eq(fake_net_cq_count(b.xport->recv_cq), 3);
	nodes_settle();
	cr_expect(TAILQ_EMPTY(&b.xport->broken_links));
	cr_expect_eq(fake_net_cq_count(b.xport->recv_cq), 0);
	AO_store(&b.rx_queue.uninvited, 0);
	node_close(&c);
}

Test(bounds, buffers_go_back_to_the_device_however_many_arrive)
{
	size_t count = 5 * b.xport->attr.rx_uncredited;

	for (size_t i = 0; i < count; i++) {
		pair_send(1, 0, NULL);
		pair_recv(10, 0, NULL);
		nodes_settle();
		expect_comp(&b.rx_queue);
		expect_comp(&a.tx_queue);
	}
	cr_expect_eq(b.xport->rx_slabs.count, b.xport->attr.rx_uncredited);
	cr_expect_lt(b.xport->rx_free_count, VERVE_POLL_BATCH);
}

Test(bounds, refused_buffers_are_posted_later)
{
	fake_net_fail(FAKE_NET_SRQ_POST, 1, -FI_ENOMEM);
	for (int i = 0; i < 3 * VERVE_POLL_BATCH; i++) {
		pair_send(1, 0, NULL);
		pair_recv(10, 0, NULL);
		nodes_settle();
		expect_comp(&b.rx_queue);
	}
	cr_expect(fake_net_has_failed());
	cr_expect_lt(b.xport->rx_free_count, VERVE_POLL_BATCH);
}
