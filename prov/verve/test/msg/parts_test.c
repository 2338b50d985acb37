/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages that the sender offers in parts. */
#include "msg/parts.h"

#include <string.h>

#include "../proto/pair.h"
#include "../support/fake_memory.h"
#include "msg/recv_op.h"
#include "msg/send_op.h"
#include "mr/region.h"
#include "net/mr.h"
#include "proto/cancel.h"
#include "xport/stat_values.h"
#include "xport/wire.h"

/* A message of LEN bytes is offered in PARTS. The first ends behind START bytes. */
enum { PAGE = 4096, LEN = 40 * PAGE, PARTS = 4, START = 4 * PAGE };
enum { NINE = 9 }; /* id of a message that a test makes up */

static _Alignas(PAGE) char out[LEN], in[LEN];

static void setup(void)
{
	pair_open(out, in, LEN);
	a.mr_cache.crossover.stage = PAGE;
}

/* The cache keeps the registration of memory that is used a second time. */
static void setup_kept(void)
{
	fake_net_watch_allow(true);
	setup();
}

TestSuite(parts, .init = setup, .fini = pair_close);
TestSuite(parts_kept, .init = setup_kept, .fini = pair_close);

static void expect_nothing_is_left(void)
{
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
	cr_expect_eq(AO_load(&b.mr_cache.regions), 0);
}

static void expect_message(size_t len)
{
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, len);
	cr_expect(pattern_holds(in, len, 1));
	expect_comp(&a.tx_queue);
	expect_nothing_is_left();
}

static void send_and_receive(void)
{
	memset(in, 0, LEN);
	pair_recv(LEN, 0, NULL);
	pair_send(LEN, 0, NULL);
}

/* The receiver registers in stages, too, and then posts a read for each. */
Test(parts, message_is_registered_read_and_offered_in_parts)
{
	send_and_receive();
	expect_message(LEN);
	for (int both = 0; both < 2; both++) {
		struct fake_net_stats before = nodes_stats();

		b.mr_cache.crossover.stage = both ? PAGE : SIZE_MAX;
		send_and_receive();
		expect_message(LEN);
		cr_expect_eq(nodes_stats().regs - before.regs, PARTS + (both ? PARTS : 1));
		/* RTS, FIN; of each part a read, and of each but the first PART */
		cr_expect_eq(nodes_stats().requests - before.requests, 2 + PARTS + PARTS - 1);
	}
}

/* The sender's processor does all of its part in the call that sends. */
Test(parts, receiver_needs_no_progress_of_the_sender)
{
	for (int expected = 0; expected < 2; expected++) {
		memset(in, 0, LEN);
		if (expected)
			pair_recv(LEN, 0, NULL);
		pair_send(LEN, 0, NULL);
		cr_expect_eq(AO_load(&a.mr_cache.regions), PARTS);
		if (!expected)
			pair_recv(LEN, 0, NULL);
		while (verve_comp_queue_is_empty(&b.rx_queue)) {
			verve_proto_poll(&b.proto);
			cr_assert(fake_net_run_next() || !verve_comp_queue_is_empty(&b.rx_queue));
		}
		expect_message(LEN);
	}
}

/* Two long messages: registering the second one takes no time that the first does not use. */
Test(parts, only_a_message_alone_is_offered_in_parts)
{
	uint64_t before;

	pair_send(LEN, 0, NULL);
	nodes_settle();
	before = nodes_stats().regs;
	pair_send(LEN, 0, NULL);
	nodes_settle();
	cr_expect_eq(nodes_stats().regs - before, 1);
	for (int i = 0; i < 2; i++) {
		pair_recv(LEN, 0, NULL);
		nodes_settle();
		expect_comp(&b.rx_queue);
		expect_comp(&a.tx_queue);
	}
	expect_nothing_is_left();
}

Test(parts, short_receive_reads_no_part_that_it_does_not_need)
{
	uint64_t before = nodes_stats().regs;

	pair_recv(START, 0, NULL);
	pair_send(LEN, 0, NULL);
	nodes_settle();
	cr_expect_eq(expect_error(&b.rx_queue, FI_ETRUNC).olen, LEN - START);
	cr_expect(pattern_holds(in, START, 1));
	expect_comp(&a.tx_queue);
	cr_expect_eq(nodes_stats().regs - before, PARTS + 1);
	memset(in, 0, LEN);
	pair_recv(START + 1, 0, NULL);
	pair_send(LEN, 0, NULL);
	nodes_settle();
	expect_error(&b.rx_queue, FI_ETRUNC);
	cr_expect(pattern_holds(in, START + 1, 1));
	cr_expect_eq(in[START + 1], 0);
	expect_comp(&a.tx_queue);
	expect_nothing_is_left();
}

/* Two messages, one after the other, in one multi-receive buffer. */
Test(parts, multi_receive_buffer_takes_messages_in_parts)
{
	b.mr_cache.crossover.stage = PAGE;
	pair_recv(LEN, VERVE_OP_MULTI, NULL);
	for (int i = 0; i < 2; i++) {
		size_t len = LEN / 2;
		struct verve_comp comp;

		pair_send(len, 0, NULL);
		nodes_settle();
		comp = expect_comp(&b.rx_queue);
		cr_expect_eq(comp.len, len);
		cr_expect_eq(comp.buf, in + i * len);
		cr_expect(pattern_holds(in + i * len, len, 1));
		cr_expect_eq(!!(comp.flags & VERVE_COMP_MULTI_RECV), i == 1);
		expect_comp(&a.tx_queue);
	}
	expect_nothing_is_left();
}

/* What node has sent of these packets. */
static uint64_t sent_of(struct node *node, const struct node *to, enum verve_wire_type type)
{
	return AO_load(&node_peer(node, to)->stat->values[VERVE_STAT_PEER_SENT + type]);
}

/* Whichever registration fails, of either side: the message is pulled. */
Test(parts, message_is_pulled_if_a_part_cannot_be_registered)
{
	b.mr_cache.crossover.stage = PAGE;
	send_and_receive();
	expect_message(LEN);
	for (uint64_t nth = 1; nth <= 2 * PARTS; nth++) {
		uint64_t chunks = sent_of(&a, &b, VERVE_WIRE_CHUNK);

		fake_net_fail(FAKE_NET_MR_REG, nth, -FI_ENOMEM);
		send_and_receive();
		expect_message(LEN);
		cr_expect(fake_net_has_failed());
		cr_expect_eq(sent_of(&a, &b, VERVE_WIRE_CHUNK) - chunks, LEN / NODE_EAGER);
	}
}

/* A shortage of another name. It is no sign to try again, which would be for ever. */
Test(parts, part_that_may_not_be_registered_now_is_pulled)
{
	fake_net_fail(FAKE_NET_MR_REG, 2, -FI_EAGAIN);
	send_and_receive();
	expect_message(LEN);
	cr_expect(fake_net_has_failed());
}

/* Copying would access memory that is not there. */
Test(parts, buffer_that_cannot_be_registered_at_all_fails_both_sides)
{
	b.mr_cache.crossover.stage = PAGE;
	for (uint64_t nth = 2; nth <= 2 * PARTS; nth++) {
		send_and_receive();
		nodes_settle();
		expect_message(LEN);
		fake_net_fail(FAKE_NET_MR_REG, nth, -FI_EFAULT);
		send_and_receive();
		nodes_settle();
		cr_expect(fake_net_has_failed());
		expect_error(&b.rx_queue, FI_EFAULT);
		expect_error(&a.tx_queue, FI_EFAULT);
		expect_nothing_is_left();
	}
}

static struct verve_recv_op *receive_under_way(void)
{
	struct verve_peer *peer = node_peer(&b, &a);
	struct verve_op *op = TAILQ_FIRST(&peer->reads);

	op = op ? op : TAILQ_FIRST(&peer->active);
	return op && op->cls->is_receive ? verve_recv_op_of(op) : NULL;
}

/* Takes a's room away, as soon as the RTS has left. */
static enum verve_outcome take_room(struct verve_xport *xport, struct verve_link *link,
				    struct verve_op *op)
{
	(void)link;
	if (TAILQ_EMPTY(&op->peer->active))
		return VERVE_LATER;
	xport->wr_limit = 0;
	verve_op_dequeue(op);
	return VERVE_DONE;
}

static const struct verve_op_class taker_class = {.name = "taker", .answer = take_room};
static struct verve_op taker;

static void send_without_room_for_parts(void)
{
	taker = (struct verve_op){.cls = &taker_class, .peer = node_peer(&a, &b)};
	verve_op_enqueue(&taker, &taker.peer->control, VERVE_OP_FINISH);
	send_and_receive();
	nodes_settle();
}

static void give_room(void)
{
	a.xport->wr_limit = 8192;
}

/* a's parts have no room, and the receive has read the first one. */
static void run_until_waiting(void)
{
	send_without_room_for_parts();
	cr_assert(receive_under_way());
	cr_assert_eq(receive_under_way()->op.state, VERVE_OP_AWAIT);
	cr_assert_eq(receive_under_way()->transfer.offset, START);
}

Test(parts, connection_that_breaks_meanwhile_ends_both_sides)
{
	run_until_waiting();
	give_room();
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	expect_error(&b.rx_queue, FI_ENOTCONN);
	/* There is no connection manager to tell a that b has ended the link. */
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
	expect_nothing_is_left();
}

/* A write that the device of the other node refuses: the link goes on over another queue pair. */
static void refuse(struct node *node, struct node *other)
{
	struct verve_wire_segment segment = {(uintptr_t)in, 8, 0xbad};
	struct iovec iov = {out, 8};

	cr_assert_eq(verve_rma(node->xport, VERVE_RMA_WRITE, &(struct verve_request){
			.iov = &iov,
			.iov_count = 1,
			.addr = node_addr(node, other),
			.remote = &segment,
			.remote_count = 1,
		}), 0);
}

/* The error of the refused write; sent: and, before or behind it, the send's completion. */
static void expect_refused(struct verve_comp_queue *queue, bool sent)
{
	struct verve_comp_error error;
	struct verve_comp comp;
	bool before = verve_comp_queue_read(queue, &comp, 1) == 1;

	if (before)
		expect_error(queue, FI_EACCES);
	else
		cr_assert_eq(verve_comp_queue_read_error(queue, &error), 0);
	cr_expect(sent || !before);
	if (sent && !before)
		expect_comp(queue);
}

/* After each event, by each side. */
Test(parts, other_queue_pair_goes_on_with_the_parts)
{
	uint32_t suspended = 0;

	for (int side = 0; side < 2; side++)
		for (int events = 0; events < 40; events++) {
			struct node *node = side ? &b : &a, *other = side ? &a : &b;

			b.mr_cache.crossover.stage = events & 1 ? PAGE : SIZE_MAX;
			send_and_receive();
			for (int i = 0; i < events; i++) {
				verve_proto_poll(&a.proto);
				verve_proto_poll(&b.proto);
				fake_net_run_next();
			}
			refuse(node, other);
			nodes_settle();
			suspended += node_link(node, other)->replay != NULL;
			if (node_link(node, other)->replay)
				node_resume(&a, &b);
			expect_refused(&node->tx_queue, node == &a);
			cr_expect_eq(expect_comp(&b.rx_queue).len, LEN);
			cr_expect(pattern_holds(in, LEN, 1));
			if (node == &b)
				expect_comp(&a.tx_queue);
			expect_nothing_is_left();
		}
	cr_expect_gt(suspended, 40);
}

/* Each stage is registered once, though its PART finds room later. */
Test(parts, parts_that_wait_for_room_are_registered_once)
{
	uint64_t before = nodes_stats().regs;

	run_until_waiting();
	for (int i = 0; i < 5; i++)
		verve_peer_kick(a.xport, node_peer(&a, &b));
	give_room();
	expect_message(LEN);
	cr_expect_eq(nodes_stats().regs - before, PARTS + 1);
}

/* The same of an error. */
Test(parts, error_that_waits_for_room_is_told)
{
	fake_net_fail(FAKE_NET_MR_REG, 2, -FI_EFAULT);
	send_without_room_for_parts();
	cr_expect(fake_net_has_failed());
	expect_none(&b.rx_queue);
	give_room();
	nodes_settle();
	expect_error(&b.rx_queue, FI_EFAULT);
	expect_error(&a.tx_queue, FI_EFAULT);
	expect_nothing_is_left();
}

/* A buffer of which the cache has a registration is offered as a whole. */
Test(parts_kept, memory_that_stays_registered_is_offered_at_once)
{
	a.mr_cache.keeps_remote = true;
	for (int i = 0; i < 3; i++) {
		uint64_t parts = sent_of(&a, &b, VERVE_WIRE_PART);

		memset(in, 0, LEN);
		pair_recv(LEN, 0, NULL);
		pair_send(LEN, 0, NULL);
		nodes_settle();
		cr_expect_eq(expect_comp(&b.rx_queue).len, LEN);
		cr_expect(pattern_holds(in, LEN, 1));
		expect_comp(&a.tx_queue);
		cr_expect_eq(sent_of(&a, &b, VERVE_WIRE_PART) - parts, i ? 0 : PARTS - 1);
	}
}

static void send_raw(struct node *from, struct node *to, struct verve_wire_packet packet)
{
	unsigned char bytes[VERVE_WIRE_RTS_MAX];

	packet.dest = node_link(from, to)->remote_id;
	node_send_raw(from, to, bytes, verve_wire_encode(&packet, bytes));
}

static uint32_t id_of_send(void)
{
	return TAILQ_FIRST(&node_peer(&a, &b)->active)->id;
}

/* b ends the message while a part waits to be sent. */
Test(parts, message_may_end_before_its_parts_go)
{
	struct verve_wire_packet fin = {.type = VERVE_WIRE_FIN};

	run_until_waiting();
	fin.op_id = id_of_send();
	send_raw(&b, &a, fin);
	expect_comp(&a.tx_queue);
	give_room();
	nodes_settle();
	cr_expect_not_null(node_peer(&a, &b)->link);
	cr_expect(TAILQ_EMPTY(&node_peer(&a, &b)->control));
	expect_none(&b.rx_queue);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
	cr_expect_eq(sent_of(&a, &b, VERVE_WIRE_PART), 0);
}

/* b pulls the message while a part waits to be sent: nothing of it stays open to b. */
Test(parts, pulled_message_is_offered_no_more)
{
	struct verve_wire_packet pull = {.type = VERVE_WIRE_PULL, .status = 5, .len = 10};

	run_until_waiting();
	pull.op_id = id_of_send();
	cr_expect_gt(AO_load(&a.mr_cache.regions), 0);
	send_raw(&b, &a, pull);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
	give_room();
	nodes_settle();
	cr_expect_not_null(node_peer(&a, &b)->link);
	cr_expect_eq(sent_of(&a, &b, VERVE_WIRE_PART), 0);
	cr_expect_eq(sent_of(&a, &b, VERVE_WIRE_CHUNK), 1);
}

/* a is hostile: it offers START bytes of LEN, and b waits for the others. */
static struct verve_mr_region *offer_a_part(void)
{
	struct verve_wire_packet rts = {.type = VERVE_WIRE_RTS, .op_id = NINE, .len = LEN,
					.segment_count = 1};
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_region_open(a.dev, out, START, VERVE_NET_REMOTE_READ, &region), 0);
	rts.segment[0] = (struct verve_wire_segment){(uintptr_t)out, START, region->rkey};
	pair_recv(LEN, 0, NULL);
	send_raw(&a, &b, rts);
	cr_assert(receive_under_way());
	cr_assert_eq(receive_under_way()->op.state, VERVE_OP_AWAIT);
	return region;
}

Test(parts, parts_that_are_not_of_the_message_end_the_connection)
{
	static const struct verve_wire_packet parts[] = {
		{.segment_count = 1, .segment = {{0x2000, LEN - START + 1, 1}}},
		{.segment_count = 1, .segment = {{0x2000, UINT64_MAX, 1}}},
		{.segment_count = 1, .segment = {{0x2000, 0, 1}}},
		{.segment_count = 2, .segment = {{0x2000, LEN - START, 1}, {0x2000, 1, 1}}},
		{.segment_count = 4, .segment = {{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1}}},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct verve_mr_region *region = offer_a_part();
		struct verve_wire_packet part = parts[i];

		part.type = VERVE_WIRE_PART;
		part.op_id = NINE;
		send_raw(&a, &b, part);
		expect_error(&b.rx_queue, FI_EIO);
		nodes_settle();
		verve_mr_region_close(region);
		expect_nothing_is_left();
		node_join(&b, &a, NODE_WINDOW);
	}
}

/* Two segments in one PART, and an error of which there is no text. */
Test(parts, segments_may_come_together_and_errors_may_be_any_number)
{
	struct verve_wire_packet part = {.type = VERVE_WIRE_PART, .op_id = NINE};
	struct verve_mr_region *region = offer_a_part();

	part.segment_count = 2;
	part.segment[0] = part.segment[1] =
		(struct verve_wire_segment){(uintptr_t)out, START, region->rkey};
	send_raw(&a, &b, part);
	cr_expect_eq(receive_under_way()->transfer.offset, 3 * START);
	part.segment_count = 0;
	part.status = 1000000;
	send_raw(&a, &b, part);
	expect_error(&b.rx_queue, FI_EIO);
	verve_mr_region_close(region);
}

/* It is an errand's result, for which a receive waits. */
Test(parts, an_error_that_asks_for_patience_ends_the_receive)
{
	struct verve_wire_packet part = {.type = VERVE_WIRE_PART, .op_id = NINE,
					 .status = FI_EINPROGRESS};
	struct verve_mr_region *region = offer_a_part();

	send_raw(&a, &b, part);
	expect_error(&b.rx_queue, FI_EIO);
	verve_mr_region_close(region);
}

/* The second one's parts would find no place behind the first one's segments. */
Test(parts, two_messages_of_one_name_do_not_mix)
{
	struct verve_mr_region *region = offer_a_part();
	struct verve_wire_packet rts = {.type = VERVE_WIRE_RTS, .op_id = NINE, .len = LEN,
					.segment_count = 3};
	struct verve_wire_packet part = {.type = VERVE_WIRE_PART, .op_id = NINE};

	for (int i = 0; i < 3; i++)
		rts.segment[i] = part.segment[i] =
			(struct verve_wire_segment){(uintptr_t)out, PAGE, region->rkey};
	pair_recv(LEN, 0, NULL);
	send_raw(&a, &b, rts);
	rts.segment_count = 1;
	pair_recv(LEN, 0, NULL);
	send_raw(&a, &b, rts);
	part.segment_count = 3;
	send_raw(&a, &b, part);
	cr_expect_not_null(node_peer(&b, &a)->link);
	expect_none(&b.rx_queue);
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	for (int i = 0; i < 3; i++)
		expect_error(&b.rx_queue, FI_ENOTCONN);
	verve_mr_region_close(region);
}

Test(parts, part_that_nobody_waits_for_is_dropped)
{
	struct verve_wire_packet part = {.type = VERVE_WIRE_PART, .op_id = NINE, .segment_count = 1,
					 .segment = {{0x2000, 1, 1}}};

	send_raw(&a, &b, part);
	cr_expect_eq(b.xport->count.stale, 1);
	pair_send(LEN, 0, NULL);
	nodes_settle();
	send_raw(&a, &b, part);
	cr_expect_eq(b.xport->count.stale, 2, "another message is offered in parts");
	pair_recv(LEN, 0, NULL);
	expect_message(LEN);
}

/* If the receive took the chunk, its bytes would overwrite a part that RDMA reads bring. */
Test(parts, chunk_of_a_message_that_is_read_ends_the_connection)
{
	unsigned char bytes[VERVE_WIRE_RTS_MAX + 8] = {0};
	struct verve_mr_region *region = offer_a_part();
	struct verve_wire_packet chunk = {
		.type = VERVE_WIRE_CHUNK,
		.dest = node_link(&a, &b)->remote_id,
		.op_id = receive_under_way()->op.id,
	};

	node_send_raw(&a, &b, bytes, verve_wire_encode(&chunk, bytes) + 8);
	expect_error(&b.rx_queue, FI_EIO);
	verve_mr_region_close(region);
}
