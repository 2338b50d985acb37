/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving: memory that runs out. No message may be lost, nor overtake another. */
#include <string.h>

#include "../proto/pair.h"
#include "../support/oom.h"
#include "msg/recv.h"

enum { LEN = 100, MANY = 100 };

static char out[LEN], in[3][LEN], spare;

static void setup(void)
{
	pair_open(out, in, sizeof(out));
}

TestSuite(recv_oom, .init = setup, .fini = pair_close);

static void post(void *buf, size_t len, uint64_t tag, uint64_t ignore, uint32_t flags)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = buf, .len = len, .tag = tag,
						     .ignore = ignore, .context = buf,
						     .flags = VERVE_OP_TAGGED | flags}),
		     0);
}

/* A multi-receive buffer for any tag. After one message of LEN bytes it is spent. */
static void post_multi(void *buf)
{
	post(buf, LEN, 0, UINT64_MAX, VERVE_OP_MULTI);
}

/* The next operation of b needs memory. Untagged receives that nobody sends to use up the rest. */
static void empty_the_pool(void)
{
	const struct verve_pool *pool = verve_op_pool(b.xport, &verve_recv_class);

	while (pool->free)
		cr_assert_eq(node_recv(&b, &(struct message){.buf = &spare, .len = 1}), 0);
}

/* Sends a message, which is in b's queue when this returns. */
static void send_message(uint64_t tag)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = LEN,
						     .tag = tag, .flags = VERVE_OP_TAGGED}),
		     0);
	while (fake_net_run_next())
		verve_proto_poll(&a.proto);
}

/* b polls, and there is no memory for an operation; for everything else there is. */
static void poll_without_memory(void)
{
	oom_fail(0, false);
	verve_turn(b.xport);
	cr_assert_eq(oom_stop(), 1);
	cr_expect(b.proto.msg.starved);
}

static size_t waiting(void)
{
	return b.proto.msg.match[1].unexpected_count;
}

static void expect_message(uint64_t tag, const void *context)
{
	struct verve_comp comp = expect_comp(&b.rx_queue);

	cr_expect_eq(comp.tag, tag);
	cr_expect_eq(comp.context, context);
}

Test(recv_oom, a_receive_behind_a_spent_buffer_gets_what_waited)
{
	post_multi(in[0]);
	post(in[1], LEN, 0, UINT64_MAX, 0);
	empty_the_pool();
	send_message(1);
	poll_without_memory();
	send_message(2);
	verve_turn(b.xport);
	cr_expect_eq(waiting(), 2);
	verve_proto_poll(&b.proto);
	cr_expect_not(b.proto.msg.starved);
	send_message(3);
	nodes_settle();
	expect_message(1, in[0]);
	expect_message(2, in[1]);
	expect_none(&b.rx_queue);
	post(in[2], LEN, 0, UINT64_MAX, 0);
	expect_message(3, in[2]);
}

/* The receive is older than the second buffer, so it comes first. */
Test(recv_oom, a_receive_between_buffers_gets_its_own)
{
	post_multi(in[0]);
	post(in[1], LEN, 0, UINT64_MAX, 0);
	post_multi(in[2]);
	empty_the_pool();
	for (uint64_t tag = 1; tag <= 3; tag++)
		send_message(tag);
	poll_without_memory();
	verve_proto_poll(&b.proto);
	for (int i = 0; i < 3; i++)
		expect_message((uint64_t)i + 1, in[i]);
}

/* The receive behind the buffer needs no memory. */
Test(recv_oom, what_waited_for_a_cancelled_buffer_goes_to_the_next_receive)
{
	const struct verve_pool *pool = verve_op_pool(b.xport, &verve_recv_class);
	size_t count;

	post_multi(in[0]);
	post(in[1], LEN, 0, UINT64_MAX, 0);
	empty_the_pool();
	send_message(1);
	poll_without_memory();
	count = pool->count;
	cr_assert_eq(verve_recv_cancel(b.xport, in[0]), 0);
	cr_expect_eq(pool->count, count);
	expect_error(&b.rx_queue, FI_ECANCELED);
	expect_message(1, in[1]);
	cr_expect_eq(waiting(), 0);
}

/* The buffer does not match the second message. The receive does, but has to take an older one. */
Test(recv_oom, a_message_that_an_older_one_may_force_out_waits)
{
	post(in[0], LEN, 0, 1, VERVE_OP_MULTI);
	post(in[1], LEN, 1, 3, 0);
	empty_the_pool();
	send_message(0);
	send_message(1);
	poll_without_memory();
	send_message(3);
	verve_turn(b.xport);
	cr_expect_eq(waiting(), 3);
	verve_proto_poll(&b.proto);
	expect_message(0, in[0]);
	expect_message(1, in[1]);
	expect_none(&b.rx_queue);
	cr_expect_eq(waiting(), 1);
	post(in[2], LEN, 3, 0, 0);
	expect_message(3, in[2]);
}

/* No older message needs this receive. It gives its memory back, which helps the one that waits. */
Test(recv_oom, a_message_of_another_receive_does_not_wait)
{
	post(in[0], LEN, 0, 0, VERVE_OP_MULTI);
	post(in[1], LEN, 1, 0, 0);
	empty_the_pool();
	send_message(0);
	poll_without_memory();
	send_message(1);
	oom_fail(0, true);
	verve_proto_poll(&b.proto);
	oom_stop();
	expect_message(1, in[1]);
	expect_message(0, in[0]);
	cr_expect_eq(waiting(), 0);
}

/* A poll that finds no memory does not look through the messages. */
Test(recv_oom, polls_without_memory_cost_little)
{
	uint64_t misses;

	post(in[0], LEN, MANY, 0, VERVE_OP_MULTI);
	empty_the_pool();
	for (uint64_t tag = 0; tag < MANY; tag++) {
		send_message(tag);
		verve_proto_poll(&b.proto);
	}
	send_message(MANY);
	poll_without_memory();
	misses = b.proto.msg.match[1].misses;
	oom_fail(0, true);
	for (int i = 0; i < 10; i++)
		verve_proto_poll(&b.proto);
	cr_expect_eq(oom_stop(), 10);
	cr_expect_eq(b.proto.msg.match[1].misses, misses);
	cr_expect_eq(waiting(), MANY + 1);
	nodes_settle();
	expect_message(MANY, in[0]);
}

/* Posts receives that match every message. No message that came before may take one of them. */
static void expect_all_lost(void)
{
	for (int i = 0; i < 3; i++)
		post(in[i], LEN, 0, UINT64_MAX, 0);
	nodes_settle();
	expect_none(&b.rx_queue);
	cr_expect_eq(waiting(), 0);
}

Test(recv_oom, no_message_overtakes_one_that_is_lost)
{
	for (uint64_t tag = 1; tag <= 3; tag++)
		send_message(tag);
	oom_fail(0, false);
	verve_turn(b.xport);
	cr_assert_eq(oom_stop(), 1);
	cr_expect_null(node_peer(&b, &a)->link);
	expect_all_lost();
}

/* Its late messages are of use, until one is lost. */
Test(recv_oom, no_message_of_a_broken_link_overtakes_one_that_is_lost)
{
	post(in[0], LEN, 1, 0, 0);
	for (uint64_t tag = 1; tag <= 3; tag++)
		send_message(tag);
	verve_link_break(b.xport, node_link(&b, &a), FI_EIO, 0, "the test breaks it");
	oom_fail(0, false);
	verve_turn(b.xport);
	cr_assert_eq(oom_stop(), 1);
	expect_message(1, in[0]);
	expect_all_lost();
}

/* As many empty messages in one packet, with these tags counted from 1. It waits in b's queue. */
static void send_batch(unsigned count)
{
	struct verve_wire_packet batch = {.type = VERVE_WIRE_BATCH,
					  .dest = node_link(&b, &a)->conn_id};
	struct verve_wire_packet message = {.type = VERVE_WIRE_EAGER, .flags = VERVE_WIRE_TAGGED};
	char bytes[8 * VERVE_WIRE_PREFIX];
	size_t len = verve_wire_encode(&batch, bytes);
	struct verve_outgoing outgoing;

	for (message.tag = 1; message.tag <= count; message.tag++) {
		message.dest = verve_wire_prefix(message.flags);
		verve_wire_encode_eager(&message, bytes + len);
		len += message.dest;
	}
	cr_assert(verve_link_reserve(a.xport, node_link(&a, &b), len, &outgoing));
	memcpy(outgoing.data, bytes, len);
	cr_assert_eq(verve_link_post_packet(a.xport, node_link(&a, &b), &outgoing, len, false,
					    NULL), 0);
	while (fake_net_run_next())
		verve_proto_poll(&a.proto);
}

Test(recv_oom, no_message_of_a_batch_overtakes_one_that_is_lost)
{
	for (int broken = 0; broken < 2; broken++) {
		post(in[0], LEN, 1, 0, 0);
		send_batch(3);
		if (broken)
			verve_link_break(b.xport, node_link(&b, &a), FI_EIO, 0, "test");
		oom_fail(0, false);
		verve_turn(b.xport);
		cr_assert_eq(oom_stop(), 1);
		expect_message(1, in[0]);
		expect_all_lost();
		for (int i = 0; i < 3; i++) {
			cr_assert_eq(verve_recv_cancel(b.xport, in[i]), 0);
			expect_error(&b.rx_queue, FI_ECANCELED);
		}
		verve_link_break(a.xport, node_link(&a, &b), FI_EIO, 0, "test");
		nodes_settle();
		node_join(&a, &b, NODE_WINDOW);
	}
}
