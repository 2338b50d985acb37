/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages that the sender offers in parts. */
#include "msg/parts.h"

#include <string.h>

#include "../proto/pair.h"
#include "msg/recv_op.h"
#include "msg/send_op.h"
#include "mr/region.h"
#include "net/mr.h"
#include "proto/cancel.h"
#include "xport/wire.h"

/* A message of LEN bytes is offered in PARTS. The first ends behind START bytes. */
enum { PAGE = 4096, LEN = 40 * PAGE, PARTS = 4, START = 4 * PAGE };

static _Alignas(PAGE) char out[LEN], in[LEN];

static void setup(void)
{
	pair_open(out, in, LEN);
	a.mr_cache.crossover.stage = PAGE;
}

TestSuite(parts, .init = setup, .fini = pair_close);

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
		/* RTS, FIN; of each part a read, and of each but the first MORE and PART */
		cr_expect_eq(nodes_stats().requests - before.requests, 2 + PARTS + 2 * (PARTS - 1));
	}
}

Test(parts, message_is_offered_before_it_is_received)
{
	pair_send(LEN, 0, NULL);
	nodes_settle();
	cr_expect_eq(AO_load(&a.mr_cache.regions), 1, "the first part");
	pair_recv(LEN, 0, NULL);
	expect_message(LEN);
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

Test(parts, short_receive_asks_for_no_part_that_it_does_not_need)
{
	uint64_t before = nodes_stats().regs;

	pair_recv(START, 0, NULL);
	pair_send(LEN, 0, NULL);
	nodes_settle();
	cr_expect_eq(expect_error(&b.rx_queue, FI_ETRUNC).olen, LEN - START);
	cr_expect(pattern_holds(in, START, 1));
	expect_comp(&a.tx_queue);
	cr_expect_eq(nodes_stats().regs - before, 2);
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

/* Whichever registration fails, of either side: the message is pulled. */
Test(parts, message_is_pulled_if_a_part_cannot_be_registered)
{
	b.mr_cache.crossover.stage = PAGE;
	send_and_receive();
	expect_message(LEN);
	for (uint64_t nth = 1; nth <= 2 * PARTS; nth++) {
		fake_net_fail(FAKE_NET_MR_REG, nth, -FI_ENOMEM);
		send_and_receive();
		expect_message(LEN);
		cr_expect(fake_net_has_failed());
	}
}

/* The PART that was asked for comes before both sides end. */
Test(parts, receive_buffer_that_cannot_be_registered_fails_both_sides)
{
	send_and_receive();
	verve_proto_poll(&a.proto);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EFAULT);
	nodes_settle();
	cr_expect(fake_net_has_failed());
	expect_error(&b.rx_queue, FI_EFAULT);
	expect_error(&a.tx_queue, FI_EFAULT);
	expect_nothing_is_left();
}

static struct verve_recv_op *receive_under_way(void)
{
	struct verve_peer *peer = node_peer(&b, &a);
	struct verve_op *op = TAILQ_FIRST(&peer->reads);

	op = op ? op : TAILQ_FIRST(&peer->active);
	return op && op->cls->is_receive ? verve_recv_op_of(op) : NULL;
}

/* Runs both sides until the receive waits for a part. */
static void run_until_asked(void)
{
	while (!receive_under_way() || !receive_under_way()->asks) {
		verve_proto_poll(&a.proto);
		verve_proto_poll(&b.proto);
		if (!receive_under_way() || !receive_under_way()->asks)
			cr_assert(fake_net_run_next());
	}
}

Test(parts, connection_that_breaks_meanwhile_ends_both_sides)
{
	send_and_receive();
	run_until_asked();
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

Test(parts, send_is_not_cancelled_while_it_is_read)
{
	static int context;

	pair_recv(LEN, 0, NULL);
	pair_send(LEN, 0, &context);
	run_until_asked();
	cr_expect_eq(verve_cancel(a.xport, &context), 0);
	expect_message(LEN);
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

/* b is hostile. Only the connection with b ends. */
Test(parts, asking_for_parts_that_there_are_not_ends_the_connection)
{
	struct verve_wire_packet more = {.type = VERVE_WIRE_MORE, .status = 5, .op_id = 77};

	send_raw(&b, &a, more);
	cr_expect_not_null(node_peer(&a, &b)->link, "no message has this id");
	for (int i = 0; i < 2; i++) {
		a.mr_cache.crossover.stage = i ? PAGE : SIZE_MAX;
		pair_send(LEN, 0, NULL);
		nodes_settle();
		more.op_id = id_of_send();
		for (int asked = 0; i && asked < PARTS - 1; asked++)
			send_raw(&b, &a, more);
		cr_expect_not_null(node_peer(&a, &b)->link);
		send_raw(&b, &a, more);
		expect_error(&a.tx_queue, FI_EIO);
		nodes_settle();
		expect_nothing_is_left();
		node_join(&a, &b, NODE_WINDOW);
	}
}

/* b ends the message while a part waits to be sent. */
Test(parts, message_may_end_before_its_part_goes)
{
	struct verve_wire_packet more = {.type = VERVE_WIRE_MORE, .status = 5};
	struct verve_wire_packet fin = {.type = VERVE_WIRE_FIN};
	uint32_t limit = a.xport->wr_limit;

	pair_send(LEN, 0, NULL);
	nodes_settle();
	more.op_id = fin.op_id = id_of_send();
	a.xport->wr_limit = 0;
	send_raw(&b, &a, more);
	send_raw(&b, &a, fin);
	expect_comp(&a.tx_queue);
	a.xport->wr_limit = limit;
	nodes_settle();
	cr_expect_not_null(node_peer(&a, &b)->link);
	cr_expect(TAILQ_EMPTY(&node_peer(&a, &b)->control));
	cr_expect_eq(b.xport->count.stale, 0, "no part has left");
	expect_nothing_is_left();
}

Test(parts, asking_twice_at_once_ends_the_connection)
{
	struct verve_wire_packet more = {.type = VERVE_WIRE_MORE, .status = 5};

	pair_send(LEN, 0, NULL);
	nodes_settle();
	more.op_id = id_of_send();
	a.xport->wr_limit = 0;
	send_raw(&b, &a, more);
	send_raw(&b, &a, more);
	expect_error(&a.tx_queue, FI_EIO);
	nodes_settle();
	expect_nothing_is_left();
}

/* a is hostile: it offers START bytes of LEN, and b asks for more. */
static struct verve_mr_region *offer_a_part(void)
{
	struct verve_wire_packet rts = {.type = VERVE_WIRE_RTS, .op_id = 9, .len = LEN,
					.segment_count = 1};
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_region_open(a.dev, out, START, VERVE_NET_REMOTE_READ, &region), 0);
	rts.segment[0] = (struct verve_wire_segment){(uintptr_t)out, START, region->rkey};
	pair_recv(LEN, 0, NULL);
	send_raw(&a, &b, rts);
	cr_assert(receive_under_way());
	cr_assert(receive_under_way()->asks);
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
		part.op_id = receive_under_way()->op.id;
		send_raw(&a, &b, part);
		expect_error(&b.rx_queue, FI_EIO);
		nodes_settle();
		verve_mr_region_close(region);
		expect_nothing_is_left();
		node_join(&b, &a, NODE_WINDOW);
	}
}

Test(parts, part_that_nobody_waits_for_is_dropped)
{
	struct verve_wire_packet part = {.type = VERVE_WIRE_PART, .op_id = 77, .segment_count = 1,
					 .segment = {{0x2000, 1, 1}}};

	send_raw(&a, &b, part);
	cr_expect_eq(b.xport->count.stale, 1);
	pair_send(LEN, 0, NULL);
	nodes_settle();
	part.op_id = id_of_send();
	send_raw(&b, &a, part);
	cr_expect_eq(a.xport->count.stale, 1, "a send waits for no part");
	pair_recv(LEN, 0, NULL);
	expect_message(LEN);
}

/* A chunk of a message that is read would be written behind what was read. */
Test(parts, chunk_of_a_message_that_is_read_ends_the_connection)
{
	struct verve_wire_packet chunk = {.type = VERVE_WIRE_CHUNK};
	struct verve_mr_region *region = offer_a_part();

	chunk.op_id = receive_under_way()->op.id;
	send_raw(&a, &b, chunk);
	expect_error(&b.rx_queue, FI_EIO);
	verve_mr_region_close(region);
}
