/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Batches: which messages share a packet, and what the peer makes of the packet. */
#include <string.h>

#include "../proto/pair.h"
#include "msg/batch.h"
#include "xport/wire.h"

enum { MESSAGES = 60, WINDOW = 64 };

static unsigned char out[NODE_EAGER], in[MESSAGES][VERVE_BATCH_MESSAGE];

static void setup(void)
{
	struct verve_xport_attr attr;

	node_attr(&attr);
	attr.window = WINDOW;
	node_open(&a, 0, &attr);
	node_open(&b, 1, &attr);
	pattern_fill(out, sizeof(out), 1);
	node_join(&a, &b, WINDOW);
	node_link(&a, &b)->batches = true;
}

TestSuite(batch, .init = setup, .fini = pair_close);

static size_t len_of(unsigned i)
{
	return i % 3 ? i % 16 : VERVE_BATCH_MESSAGE / 2;
}

static void send_one(unsigned i, size_t len, uint32_t flags)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out + i, .len = len,
						     .tag = i, .data = i, .context = out + i,
						     .flags = VERVE_OP_TAGGED | flags}), 0);
}

static void recv_one(unsigned i)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in[i], .len = sizeof(in[i]),
						     .ignore = UINT64_MAX, .context = in[i],
						     .flags = VERVE_OP_TAGGED}), 0);
}

/* The completion of receive i, which has message i of this length. */
static void check_message(struct verve_comp comp, unsigned i, size_t len)
{
	cr_assert_eq(comp.tag, i);
	cr_assert_eq(comp.len, len);
	cr_assert_eq(comp.context, in[i]);
	cr_assert_eq(memcmp(in[i], out + i, len), 0, "message %u", i);
}

/* Message i is the next that was received. */
static void expect_message(unsigned i, size_t len)
{
	check_message(expect_comp(&b.rx_queue), i, len);
}

static unsigned packets(void)
{
	return node_link(&a, &b)->sent;
}

Test(batch, messages_behind_many_requests_share_packets)
{
	unsigned before = packets();

	for (unsigned i = 0; i < MESSAGES; i++) {
		recv_one(i);
		send_one(i, len_of(i), i & 1 ? VERVE_OP_INJECT : 0);
	}
	/* Those that found the queue pair idle have left, one by one. */
	cr_expect_geq(packets() - before, VERVE_LINK_SIGNAL);
	cr_expect_leq(packets() - before, VERVE_LINK_SIGNAL + 1);
	nodes_settle();
	for (unsigned i = 0; i < MESSAGES; i++) {
		cr_assert_eq(expect_comp(&a.tx_queue).context, out + i);
		expect_message(i, len_of(i));
	}
	cr_expect_lt(packets() - before, MESSAGES / 2);
	cr_expect_eq(AO_load(&a.send.value), MESSAGES);
	cr_expect_eq(AO_load(&b.recv.value), MESSAGES);
}

Test(batch, unexpected_messages_are_kept_one_by_one)
{
	for (unsigned i = 0; i < MESSAGES; i++)
		send_one(i, len_of(i), VERVE_OP_DATA);
	nodes_settle();
	for (unsigned i = 0; i < MESSAGES; i++) {
		recv_one(i);
		nodes_settle();
		expect_message(i, len_of(i));
	}
	/* All credits that the long ones cost are here again, or owed. */
	cr_expect_eq(node_link(&a, &b)->credits + node_link(&b, &a)->owed, WINDOW);
	cr_expect_eq(node_link(&b, &a)->held, 0);
}

Test(batch, order_holds_beside_messages_that_go_alone)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		recv_one(i);
		send_one(i, i % 7 ? len_of(i) : sizeof(in[i]), i % 5 ? 0 : VERVE_OP_ACK);
	}
	nodes_settle();
	for (unsigned i = 0; i < MESSAGES; i++)
		expect_message(i, i % 7 ? len_of(i) : sizeof(in[i]));
	cr_expect_eq(AO_load(&a.send.value), MESSAGES);
}

Test(batch, messages_without_a_credit_are_offered)
{
	struct verve_link *link = node_link(&a, &b);

	for (unsigned i = 0; i < VERVE_LINK_SIGNAL + 1; i++)
		send_one(i, 1, 0);
	link->credits = 2;
	for (unsigned i = VERVE_LINK_SIGNAL + 1; i < MESSAGES; i++)
		send_one(i, VERVE_WIRE_SMALL + 1, 0);
	nodes_settle();
	cr_expect_eq(link->credits, 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		recv_one(i);
	nodes_settle();
	/* Offered messages complete when they have been fetched. */
	for (unsigned n = 0; n < MESSAGES; n++) {
		struct verve_comp comp = expect_comp(&b.rx_queue);

		check_message(comp, comp.tag,
			      comp.tag > VERVE_LINK_SIGNAL ? VERVE_WIRE_SMALL + 1 : 1);
	}
	cr_expect_eq(AO_load(&b.recv.value), MESSAGES);
}

Test(batch, a_peer_that_does_not_take_batches_gets_none)
{
	unsigned before = packets();

	node_link(&a, &b)->batches = false;
	for (unsigned i = 0; i < MESSAGES; i++) {
		recv_one(i);
		send_one(i, 1, 0);
	}
	nodes_settle();
	for (unsigned i = 0; i < MESSAGES; i++)
		expect_message(i, 1);
	cr_expect_eq(packets() - before, MESSAGES);
}

Test(batch, messages_of_a_batch_under_way_end_once_when_the_link_breaks)
{
	for (unsigned i = 0; i < MESSAGES; i++)
		send_one(i, 1, 0);
	verve_link_break(a.xport, node_link(&a, &b), FI_EIO, 0, "the test breaks it");
	nodes_settle();
	/* Each has completed, or fails: those that had left, and those that had not. */
	for (unsigned i = 0; i < VERVE_LINK_SIGNAL; i++)
		cr_assert_eq(expect_comp(&a.tx_queue).context, out + i);
	for (unsigned i = VERVE_LINK_SIGNAL; i < MESSAGES; i++)
		cr_assert_eq(expect_error(&a.tx_queue, FI_EIO).comp.context, out + i);
	expect_none(&a.tx_queue);
}

/* A batch of these bytes, which are no row of messages, breaks the link. good: messages before. */
static void refuse(const void *bytes, size_t len, unsigned good)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_BATCH,
					   .dest = node_link(&b, &a)->conn_id};
	char whole[VERVE_WIRE_RTS_MAX + 64];
	size_t head = verve_wire_encode(&packet, whole);

	for (unsigned i = 0; i < good; i++)
		recv_one(i);
	memcpy(whole + head, bytes, len);
	node_send_raw(&a, &b, whole, head + len);
	for (unsigned i = 0; i < good; i++)
		cr_expect_eq(expect_comp(&b.rx_queue).len, 0);
	expect_none(&b.rx_queue);
	cr_expect_null(node_peer(&b, &a)->link);
}

static size_t record(char *bytes, uint8_t type, uint8_t flags, uint32_t len)
{
	struct verve_wire_packet packet = {
		.type = type, .flags = VERVE_WIRE_TAGGED | flags, .dest = len};

	if (type != VERVE_WIRE_EAGER)
		packet.flags = 0;
	return verve_wire_encode(&packet, bytes);
}

Test(batch, a_record_of_no_length_is_refused)
{
	char bytes[64];

	refuse(bytes, record(bytes, VERVE_WIRE_EAGER, 0, 0), 0);
}

Test(batch, a_record_beyond_the_packet_is_refused)
{
	char bytes[64];

	refuse(bytes, record(bytes, VERVE_WIRE_EAGER, 0, VERVE_WIRE_HEADER + 1), 0);
}

Test(batch, bytes_behind_the_last_record_are_refused)
{
	char bytes[64] = {0};
	size_t len = record(bytes, VERVE_WIRE_EAGER, 0, VERVE_WIRE_HEADER);

	refuse(bytes, len + 5, 1);
}

Test(batch, a_record_that_wants_an_answer_is_refused)
{
	char bytes[64];

	refuse(bytes, record(bytes, VERVE_WIRE_EAGER, VERVE_WIRE_ACK, VERVE_WIRE_HEADER + 8), 0);
}

Test(batch, a_record_that_is_no_message_is_refused)
{
	char bytes[64];

	refuse(bytes, record(bytes, VERVE_WIRE_BATCH, 0, VERVE_WIRE_HEADER), 0);
}
