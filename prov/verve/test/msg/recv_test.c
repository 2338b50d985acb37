/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: truncation, multi-receive buffers, directed receives, and packets that no honest peer
 * sends. bounds_test.c has peers that want more than their share.
 */
#include "msg/recv.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/pair.h"
#include "base/config.h"
#include "msg/peek.h"
#include "xport/post.h"
#include "xport/turn.h"

enum { ROOM = 3 * NODE_EAGER };

static char out[ROOM], in[ROOM];

static void setup(void)
{
	pair_open(out, in, sizeof(out));
}

TestSuite(recv, .init = setup, .fini = pair_close);

Test(recv, truncation_tells_how_much_was_lost)
{
	/*
	 * Lengths of message and buffer, for each protocol. Each pair is tried with the receive
	 * posted before the message arrives, and after.
	 */
	static const size_t sizes[][2] = {
		{1, 0}, {64, 63}, {NODE_EAGER, 1}, {NODE_EAGER + 1, 0}, {ROOM, NODE_EAGER},
		{ROOM, ROOM - 1}};

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t len = sizes[i / 2][0], room = sizes[i / 2][1];
		struct verve_comp_error error;

		memset(in, 0, sizeof(in));
		if (i % 2)
			pair_recv(room, 0, in);
		pair_send(len, VERVE_OP_ACK, NULL);
		nodes_settle();
		if (!(i % 2))
			pair_recv(room, 0, in);
		nodes_settle();
		error = expect_error(&b.rx_queue, FI_ETRUNC);
		cr_expect_eq(error.comp.context, in);
		cr_expect_eq(error.comp.len, room);
		cr_expect_eq(error.olen, len - room);
		cr_expect(pattern_holds(in, room, 1));
		cr_expect_eq(in[room], 0);
		expect_comp(&a.tx_queue); /* truncation is no error of the sender */
	}
	cr_expect_eq(AO_load(&b.recv.errors), 2 * sizeof(sizes) / sizeof(sizes[0]));
	cr_expect_eq(AO_load(&b.recv.value), 0);
}

Test(recv, scatters_into_as_many_segments_as_there_may_be)
{
	static const size_t sizes[] = {3, 60, 200, NODE_EAGER, NODE_EAGER + 1, ROOM};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct iovec iov[VERVE_IOV_LIMIT] = {
			{in, 2}, {in + 2, 0}, {in + 2, 50}, {in + 52, ROOM - 52}};

		memset(in, 0, sizeof(in));
		pair_send(sizes[i], 0, NULL);
		cr_assert_eq(node_recv(&b, &(struct message){.iov = iov,
							     .iov_count = VERVE_IOV_LIMIT}),
			     0);
		nodes_settle();
		cr_assert_eq(expect_comp(&b.rx_queue).len, sizes[i]);
		cr_assert(pattern_holds(in, sizes[i], 1));
	}
}

Test(recv, receive_without_segments_takes_a_message_without_bytes)
{
	cr_assert_eq(node_recv(&b, &(struct message){.iov = (struct iovec[1]){{0}}}), 0);
	pair_send(0, 0, NULL);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 0);
	cr_assert_eq(node_recv(&b, &(struct message){.iov = (struct iovec[1]){{0}}}), 0);
	pair_send(ROOM, 0, NULL);
	nodes_settle();
	cr_expect_eq(expect_error(&b.rx_queue, FI_ETRUNC).olen, ROOM);
}

Test(recv, directed_receive_takes_from_its_source_alone)
{
	struct node c;
	char *from_c = in + NODE_EAGER;

	node_open(&c, 0, NULL);
	node_join(&c, &b, NODE_WINDOW);
	cr_assert_eq(node_recv(&b, &(struct message){.peer = &c, .buf = from_c, .len = 10,
						     .context = &c}),
		     0);
	pair_send(10, 0, NULL);
	nodes_settle();
	expect_none(&b.rx_queue);
	cr_assert_eq(node_send(&c, &(struct message){.peer = &b, .buf = out + 1, .len = 10}), 0);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).src, node_addr(&b, &c));
	cr_expect_eq(memcmp(from_c, out + 1, 10), 0);
	pair_recv(10, 0, NULL);
	cr_expect_eq(expect_comp(&b.rx_queue).src, node_addr(&b, &a));
	node_close(&c);
}

Test(recv, unknown_source_is_refused)
{
	struct verve_request request = {.addr = 777};

	cr_expect_eq(verve_recv(b.xport, &request), -FI_EINVAL);
	cr_expect_eq(b.proto.msg.match[0].posted_count, 0);
	expect_none(&b.rx_queue);
}

Test(recv, tagged_and_untagged_do_not_mix)
{
	pair_recv(10, VERVE_OP_TAGGED, NULL);
	pair_send(10, 0, NULL);
	nodes_settle();
	expect_none(&b.rx_queue);
	pair_send(10, VERVE_OP_TAGGED, NULL);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).flags, VERVE_COMP_RECV | VERVE_COMP_TAGGED);
	pair_recv(10, 0, NULL);
	cr_expect_eq(expect_comp(&b.rx_queue).flags, VERVE_COMP_RECV | VERVE_COMP_MSG);
}

Test(recv, source_is_named_only_where_it_is_asked_for)
{
	b.xport->attr.source = false;
	pair_send(10, 0, NULL);
	pair_recv(10, 0, NULL);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).src, UINT64_MAX);
}

Test(recv, without_notify_only_the_counter_and_errors_tell)
{
	struct message quiet = {.buf = in, .len = 10, .quiet = true};

	cr_assert_eq(node_recv(&b, &quiet), 0);
	pair_send(10, 0, NULL);
	nodes_settle();
	expect_none(&b.rx_queue);
	cr_expect_eq(AO_load(&b.recv.value), 1);
	cr_assert_eq(node_recv(&b, &quiet), 0);
	pair_send(11, 0, NULL);
	nodes_settle();
	expect_error(&b.rx_queue, FI_ETRUNC);
}

/* Multi-receive. */

Test(recv, multi_buffer_takes_messages_until_less_than_the_least_is_left)
{
	struct verve_comp comp;

	/* After two messages of 100 bytes, 64 are left: enough. After one more byte 63: too few. */
	pair_recv(264, VERVE_OP_MULTI, in);
	for (int i = 0; i < 2; i++) {
		pair_send(100, 0, NULL);
		nodes_settle();
		comp = expect_comp(&b.rx_queue);
		cr_expect_eq(comp.context, in);
		cr_expect_eq(comp.buf, in + 100 * i);
		cr_expect_eq(comp.flags, VERVE_COMP_RECV | VERVE_COMP_MSG);
	}
	pair_send(1, 0, NULL);
	nodes_settle();
	comp = expect_comp(&b.rx_queue);
	cr_expect_eq(comp.buf, in + 200);
	cr_expect_eq(comp.flags, VERVE_COMP_RECV | VERVE_COMP_MSG | VERVE_COMP_MULTI_RECV);
	pair_send(1, 0, NULL);
	nodes_settle();
	expect_none(&b.rx_queue); /* the buffer was given back, so the message waits */
	cr_expect_eq(AO_load(&b.recv.value), 3);
}

Test(recv, multi_buffer_takes_what_waited)
{
	for (int i = 0; i < 5; i++)
		pair_send(100, 0, NULL);
	nodes_settle();
	pair_recv(300, VERVE_OP_MULTI, in);
	nodes_settle();
	for (int i = 0; i < 3; i++) {
		struct verve_comp comp = expect_comp(&b.rx_queue);

		cr_expect_eq(comp.buf, in + 100 * i);
		cr_expect(pattern_holds(comp.buf, 100, 1));
		cr_expect_eq(!!(comp.flags & VERVE_COMP_MULTI_RECV), i == 2);
	}
	expect_none(&b.rx_queue);
	cr_expect_eq(b.proto.msg.match[0].unexpected_count, 2);
}

Test(recv, multi_buffer_is_given_back_with_the_last_message_to_come)
{
	struct verve_comp first, second;

	/* The long message is still being read when the short message has arrived. */
	pair_recv(NODE_EAGER + 2 + NODE_MIN_MULTI - 1, VERVE_OP_MULTI, in);
	pair_send(NODE_EAGER + 1, 0, NULL);
	pair_send(1, 0, NULL);
	nodes_settle();
	first = expect_comp(&b.rx_queue);
	second = expect_comp(&b.rx_queue);
	cr_expect_not(first.flags & VERVE_COMP_MULTI_RECV);
	cr_expect(second.flags & VERVE_COMP_MULTI_RECV);
	cr_expect_eq(first.len + second.len, NODE_EAGER + 2);
	cr_expect(pattern_holds(in, NODE_EAGER + 1, 1));
}

Test(recv, multi_buffer_truncates_what_is_longer_than_its_rest)
{
	struct verve_comp_error error;

	pair_recv(100, VERVE_OP_MULTI, in);
	pair_send(36, 0, NULL); /* leaves exactly NODE_MIN_MULTI */
	pair_send(65, 0, NULL);
	nodes_settle();
	cr_expect_not(expect_comp(&b.rx_queue).flags & VERVE_COMP_MULTI_RECV);
	error = expect_error(&b.rx_queue, FI_ETRUNC);
	cr_expect_eq(error.olen, 1);
	cr_expect_eq(error.comp.len, 64);
	cr_expect(error.comp.flags & VERVE_COMP_MULTI_RECV);
	cr_expect_eq(in[100], 0);
}

Test(recv, giving_a_multi_buffer_back_is_never_suppressed)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = 100, .quiet = true,
						     .flags = VERVE_OP_MULTI}),
		     0);
	pair_send(10, 0, NULL);
	pair_send(40, 0, NULL);
	nodes_settle();
	cr_expect(expect_comp(&b.rx_queue).flags & VERVE_COMP_MULTI_RECV);
	expect_none(&b.rx_queue);
	cr_expect_eq(AO_load(&b.recv.value), 2);
}

Test(recv, cancelled_multi_buffer_gives_itself_back)
{
	pair_recv(100, VERVE_OP_MULTI, in);
	pair_send(10, 0, NULL);
	nodes_settle();
	expect_comp(&b.rx_queue);
	cr_assert_eq(verve_recv_cancel(b.xport, in), 0);
	cr_expect(expect_error(&b.rx_queue, FI_ECANCELED).comp.flags & VERVE_COMP_MULTI_RECV);
	cr_expect_eq(verve_recv_cancel(b.xport, in), -FI_ENOENT);
}

Test(recv, cancelled_multi_buffer_waits_for_messages_that_come_into_it)
{
	pair_recv(ROOM, VERVE_OP_MULTI, in);
	pair_send(NODE_EAGER + 1, 0, NULL);
	/* Go on until the read has begun. */
	while (TAILQ_EMPTY(&node_peer(&b, &a)->active)) {
		cr_assert(fake_net_run_next());
		verve_proto_poll(&b.proto);
	}
	cr_assert_eq(verve_recv_cancel(b.xport, in), 0);
	expect_none(&b.rx_queue);
	nodes_settle();
	cr_expect(expect_comp(&b.rx_queue).flags & VERVE_COMP_MULTI_RECV);
	cr_expect(pattern_holds(in, NODE_EAGER + 1, 1));
	expect_none(&b.rx_queue);
}

/* Packets that arrive. */

static void send_packet(const struct verve_wire_packet *packet, uint32_t dest, size_t extra)
{
	unsigned char bytes[VERVE_WIRE_RTS_MAX + 8] = {0};
	struct verve_wire_packet copy = *packet;

	copy.dest = dest;
	node_send_raw(&a, &b, bytes, verve_wire_encode(&copy, bytes) + extra);
}

Test(recv, malformed_packets_are_counted_and_dropped)
{
	uint32_t dest = node_link(&b, &a)->conn_id;
	unsigned char bytes[VERVE_WIRE_HEADER] = {0};

	node_send_raw(&a, &b, bytes, 0);
	node_send_raw(&a, &b, bytes, sizeof(bytes) - 1);
	node_send_raw(&a, &b, bytes, sizeof(bytes)); /* type 0 */
	bytes[0] = VERVE_WIRE_TYPES;
	node_send_raw(&a, &b, bytes, sizeof(bytes));
	send_packet(&(struct verve_wire_packet){.type = VERVE_WIRE_FIN}, dest, 1);
	cr_expect_eq(b.xport->count.malformed, 5);
	cr_expect_eq(b.xport->count.stale, 0);
	pair_send(5, 0, NULL);
	pair_recv(10, 0, NULL);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 5);
}

Test(recv, packets_for_no_connection_are_counted_and_dropped)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_EAGER};
	uint32_t dest = node_link(&b, &a)->conn_id;

	pair_recv(10, 0, NULL);
	send_packet(&packet, 0, 0);
	send_packet(&packet, dest + 1, 0);
	send_packet(&packet, dest + (1u << VERVE_IDTAB_INDEX_BITS), 0); /* an older generation */
	send_packet(&packet, UINT32_MAX, 0);
	cr_expect_eq(b.xport->count.malformed, 4);
	expect_none(&b.rx_queue);
	send_packet(&packet, dest, 0);
	expect_comp(&b.rx_queue);
}

Test(recv, fin_ends_only_what_waits_for_it)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_FIN};
	uint32_t dest = node_link(&b, &a)->conn_id;
	struct verve_op *op;

	/* b awaits a FIN, too, for a message that a does not receive. */
	pair_send(0, 0, NULL);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = in, .len = 1,
						     .flags = VERVE_OP_ACK}),
		     0);
	nodes_settle();
	op = TAILQ_FIRST(&node_peer(&b, &a)->active);
	cr_assert_not_null(op);
	packet.op_id = op->id + 1;
	send_packet(&packet, dest, 0);
	packet.op_id = 0;
	send_packet(&packet, dest, 0);
	cr_expect_eq(b.xport->count.stale, 2);
	expect_none(&b.tx_queue);
	packet.op_id = op->id;
	packet.status = FI_EIO;
	send_packet(&packet, dest, 0);
	expect_error(&b.tx_queue, FI_EIO);
	send_packet(&packet, dest, 0); /* the same FIN a second time */
	cr_expect_eq(b.xport->count.stale, 3);
	expect_none(&b.tx_queue);
}

Test(recv, fin_of_another_peer_ends_nothing)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_FIN};
	unsigned char bytes[VERVE_WIRE_RTS_MAX];
	struct node c;

	node_open(&c, 0, NULL);
	node_join(&c, &b, NODE_WINDOW);
	pair_send(0, 0, NULL);
	nodes_settle();
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = in, .len = 1,
						     .flags = VERVE_OP_ACK}),
		     0);
	nodes_settle();
	packet.dest = node_link(&b, &c)->conn_id;
	packet.op_id = TAILQ_FIRST(&node_peer(&b, &a)->active)->id;
	node_send_raw(&c, &b, bytes, verve_wire_encode(&packet, bytes));
	cr_expect_eq(b.xport->count.stale, 1);
	expect_none(&b.tx_queue);
	node_close(&c);
}

Test(recv, write_data_is_a_completion_of_the_target)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_WRITE_DATA,
					   .flags = VERVE_WIRE_DATA, .data = UINT64_MAX, .len = 77};
	struct verve_comp comp;

	send_packet(&packet, node_link(&b, &a)->conn_id, 0);
	comp = expect_comp(&b.rx_queue);
	cr_expect_eq(comp.flags,
		     VERVE_COMP_RMA | VERVE_COMP_REMOTE_WRITE | VERVE_COMP_REMOTE_CQ_DATA);
	cr_expect_eq(comp.data, UINT64_MAX);
	cr_expect_eq(comp.len, 77);
	cr_expect_null(comp.context);
	cr_expect_eq(AO_load(&b.remote_write.value), 1);
}

Test(recv, credits_come_with_any_packet)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CREDIT, .credits = UINT16_MAX};
	uint32_t dest = node_link(&b, &a)->conn_id;

	send_packet(&packet, dest, 0);
	cr_expect_eq(node_link(&b, &a)->credits, NODE_WINDOW + UINT16_MAX);
	packet = (struct verve_wire_packet){.type = VERVE_WIRE_EAGER, .credits = 1};
	send_packet(&packet, dest, 0);
	cr_expect_eq(node_link(&b, &a)->credits, NODE_WINDOW + UINT16_MAX + 1);
}

/* A packet with the id of another peer's connection is dropped. */
Test(recv, packets_for_the_connection_of_another_are_dropped)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_EAGER, .credits = 100};
	uint8_t bytes[VERVE_WIRE_RTS_MAX];
	struct node c;
	uint32_t credits;

	node_open(&c, 0, NULL);
	node_join(&c, &b, NODE_WINDOW);
	pair_send(0, 0, NULL); /* the connection still works */
	nodes_settle();
	pair_recv(ROOM, 0, in);
	expect_comp(&b.rx_queue);
	pair_recv(ROOM, 0, in);
	credits = node_link(&b, &a)->credits;
	packet.dest = node_link(&b, &a)->conn_id;
	node_send_raw(&c, &b, bytes, verve_wire_encode(&packet, bytes));
	expect_none(&b.rx_queue);
	cr_expect_eq(b.xport->count.malformed, 1);
	cr_expect_eq(node_link(&b, &a)->credits, credits);
	packet.type = VERVE_WIRE_BYE;
	node_send_raw(&c, &b, bytes, verve_wire_encode(&packet, bytes));
	cr_expect_not(node_link(&b, &a)->leaving || node_link(&b, &a)->broken);
	packet.dest = node_link(&b, &c)->conn_id;
	packet.type = VERVE_WIRE_EAGER;
	node_send_raw(&c, &b, bytes, verve_wire_encode(&packet, bytes));
	cr_expect_eq(expect_comp(&b.rx_queue).len, 0);
	node_close(&c);
}
