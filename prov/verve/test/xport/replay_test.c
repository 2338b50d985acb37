/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Replay: only the refused request fails; which requests are repeated and which are not. */
#include "xport/replay.h"

#include <string.h>

#include "proto/cancel.h"
#include "replay_fixture.h"
#include "xport/post.h"

/* Posts fewer requests than the fixture's queues take. */
Test(replay, refused_write_fails_and_nothing_else)
{
	for (uint32_t i = 1; i < 8; i++)
		start(VERVE_RMA_WRITE, i, region->rkey, NULL);
	refuse(&a);
	for (uint32_t i = 8; i < 16; i++)
		start(VERVE_RMA_WRITE, i, region->rkey, NULL);
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	for (uint32_t i = 1; i < 8; i++)
		expect_comp(&a.tx_queue);
	cr_expect_eq(expect_error(&a.tx_queue, FI_EACCES).prov_errno, VERVE_NET_WC_REMOTE_ACCESS);
	expect_none(&a.tx_queue);
	node_resume(&a, &b);
	cr_expect_not(is_suspended(&a, &b));
	cr_expect_not(is_suspended(&b, &a));
	for (uint32_t i = 8; i < 16; i++)
		expect_comp(&a.tx_queue);
	cr_expect_eq(memcmp(remote + SLOT, local + SLOT, 15 * SLOT), 0);
	cr_expect_eq(AO_load(&a.write.errors), 1);
	cr_expect_eq(AO_load(&a.write.value), 15);
}

Test(replay, reads_are_repeated)
{
	pattern_fill(remote, ROOM, 9);
	start(VERVE_RMA_READ, 1, region->rkey, NULL);
	refuse(&a);
	start(VERVE_RMA_READ, 2, region->rkey, NULL);
	nodes_settle();
	node_resume(&a, &b);
	expect_comp(&a.tx_queue);
	expect_error(&a.tx_queue, FI_EACCES);
	expect_comp(&a.tx_queue);
	cr_expect_eq(memcmp(remote + SLOT, local + SLOT, 2 * SLOT), 0);
}

/* The lengths go inline, from a slab, as an offer from a slab, as an offer of the buffer. */
Test(replay, messages_behind_it_arrive_once_and_in_order)
{
	static const size_t lens[] = {0, 10, 90, 500, 1000, 70, 3 * NODE_EAGER, 64, 800};
	uint32_t count = sizeof(lens) / sizeof(lens[0]);

	for (uint32_t i = 0; i < count; i++) {
		send_to(&a, &b, lens[i], i, 0);
		if (i == 2)
			refuse(&a);
	}
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	node_resume(&a, &b);
	for (uint32_t i = 0; i < count; i++)
		expect_message(&b, lens[i], i);
	expect_nothing_waits(&b);
	cr_expect_eq(AO_load(&a.send.value), count);
	cr_expect_eq(AO_load(&a.send.errors), 0);
	cr_expect_eq(AO_load(&a.write.errors), 1);
}

Test(replay, what_the_peer_has_under_way_arrives_once)
{
	static const size_t lens[] = {10, 500, 3 * NODE_EAGER, 64, 100};
	uint32_t count = sizeof(lens) / sizeof(lens[0]);

	for (uint32_t i = 0; i < count; i++)
		send_to(&b, &a, lens[i], i, i == 3 ? VERVE_OP_ACK : i == 4 ? VERVE_OP_TRANSMIT : 0);
	refuse(&a);
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	node_resume(&a, &b);
	for (uint32_t i = 0; i < count; i++)
		expect_message(&a, lens[i], i);
	expect_nothing_waits(&a);
	cr_expect_eq(AO_load(&b.send.value), count);
	cr_expect_eq(AO_load(&b.send.errors), 0);
	expect_error(&a.tx_queue, FI_EACCES);
}

Test(replay, every_inline_packet_has_its_own_copy)
{
	uint64_t tag = 0;

	/* Several times round the ring of copies, in steps that do not divide its length. */
	for (int round = 0; round < 40; round++) {
		if (round % 5 == 4)
			refuse(&a);
		for (size_t len = 1; len < 64; len += 11)
			send_to(&a, &b, len, tag++, 0);
		nodes_settle();
		if (is_suspended(&a, &b))
			node_resume(&a, &b);
		tag -= 6;
		for (size_t len = 1; len < 64; len += 11)
			expect_message(&b, len, tag++);
		while (!verve_comp_queue_is_empty(&a.tx_queue)) {
			struct verve_comp_error error;
			struct verve_comp comp;

			if (verve_comp_queue_read(&a.tx_queue, &comp, 1) < 0)
				verve_comp_queue_read_error(&a.tx_queue, &error);
		}
	}
	cr_expect_eq(AO_load(&a.write.errors), 8);
	cr_expect_gt(node_link(&a, &b)->copied, 0);
}

/* A packet of so many bytes lies in the ring, in one piece, and a longer one in a slab. */
static void expect_inline(struct verve_link *link, size_t most)
{
	struct verve_outgoing out;

	cr_assert(verve_link_reserve(a.xport, link, most, &out));
	cr_expect_null(out.slab);
	cr_expect_geq(out.data, (char *)link->copies);
	cr_expect_leq(out.data + most, (char *)link->copies + VERVE_LINK_COPIES);
	cr_assert(verve_link_reserve(a.xport, link, most + 1, &out));
	cr_assert_not_null(out.slab);
	verve_slab_free(&a.xport->tx_slabs, out.slab);
}

Test(replay, no_copy_no_inline)
{
	struct verve_link *link = node_link(&a, &b);

	link->copied = VERVE_LINK_COPIES - 20;
	expect_inline(link, 20);
	link->copied_retired = 100;
	expect_inline(link, 100);
	link->copied = VERVE_LINK_COPIES + 100;
	expect_inline(link, 0);
	link->copied = link->copied_retired = 3 * VERVE_LINK_COPIES - 1;
	expect_inline(link, NODE_INLINE);
	link->copied = link->copied_retired = 0;
}

Test(replay, credits_outlive_the_queue_pair)
{
	for (uint32_t i = 0; i < NODE_WINDOW; i++)
		send_to(&a, &b, NODE_EAGER, i, 0);
	refuse(&a);
	nodes_settle();
	node_resume(&a, &b);
	cr_expect_eq(node_link(&a, &b)->credits, 0);
	for (uint32_t i = 0; i < NODE_WINDOW; i++)
		expect_message(&b, NODE_EAGER, i);
	cr_expect_eq(node_link(&b, &a)->held, 0);
	cr_expect_eq(node_link(&a, &b)->credits + node_link(&b, &a)->owed, NODE_WINDOW);
}

/* So do parts of credits. */
Test(replay, weights_outlive_the_queue_pair)
{
	struct verve_link *from = node_link(&a, &b), *to = node_link(&b, &a);

	for (uint32_t i = 0; i < NODE_WINDOW; i++)
		send_to(&a, &b, NODE_EAGER / 4 * 3, i, 0);
	refuse(&a);
	nodes_settle();
	node_resume(&a, &b);
	for (uint32_t i = 0; i < NODE_WINDOW; i++)
		expect_message(&b, NODE_EAGER / 4 * 3, i);
	cr_expect_eq(from->weight_sent, to->weight_arrived);
	cr_expect_eq(to->weight_kept, 0);
	cr_expect_eq(to->held, 0);
	cr_expect_eq(from->credits + to->owed, NODE_WINDOW);
}

/* The refused write's remote CQ data never arrives, but the credits of its packet do. */
Test(replay, credits_of_a_packet_that_is_not_sent_again)
{
	struct verve_link *link = node_link(&a, &b);
	uint32_t credits = node_link(&b, &a)->credits;

	link->owed = 3;
	start_with(VERVE_RMA_WRITE, 0, region->rkey + 1, &a, VERVE_OP_DATA);
	cr_expect_eq(link->owed, 0);
	nodes_settle();
	node_resume(&a, &b);
	expect_error(&a.tx_queue, FI_EACCES);
	cr_expect_eq(link->owed + node_link(&b, &a)->credits - credits, 3);
	expect_none(&b.rx_queue);
}

Test(replay, data_behind_it_is_told_once)
{
	refuse(&a);
	start_with(VERVE_RMA_WRITE, 3, region->rkey, &b, VERVE_OP_DATA);
	nodes_settle();
	node_resume(&a, &b);
	expect_error(&a.tx_queue, FI_EACCES);
	expect_comp(&a.tx_queue);
	expect_comp(&b.rx_queue);
	expect_none(&b.rx_queue);
	cr_expect_eq(memcmp(remote + 3 * SLOT, local + 3 * SLOT, SLOT), 0);
}

/* A write with immediate data is a packet to the peer, and may be refused, too. */
Test(replay, immediate_data_is_told_once)
{
	node_link(&a, &b)->immediates = true;
	node_link(&a, &b)->arrived = 1; /* the peer has sent a packet */
	node_link(&b, &a)->sent = 1;
	for (uint32_t i = 1; i < 8; i++)
		start_with(VERVE_RMA_WRITE, i, region->rkey, NULL, VERVE_OP_DATA);
	start_with(VERVE_RMA_WRITE, 0, region->rkey + 1, NULL, VERVE_OP_DATA);
	for (uint32_t i = 8; i < 16; i++)
		start_with(VERVE_RMA_WRITE, i, region->rkey, NULL,
			   i % 2 ? VERVE_OP_DATA : 0);
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	for (uint32_t i = 1; i < 8; i++)
		expect_comp(&b.rx_queue);
	expect_none(&b.rx_queue);
	node_resume(&a, &b);
	cr_expect_not(is_suspended(&a, &b));
	for (uint32_t i = 1; i < 8; i++)
		expect_comp(&a.tx_queue);
	expect_error(&a.tx_queue, FI_EACCES);
	for (uint32_t i = 8; i < 16; i++)
		expect_comp(&a.tx_queue);
	for (uint32_t i = 8; i < 16; i += 2)
		expect_comp(&b.rx_queue);
	expect_none(&b.rx_queue);
	cr_expect_eq(memcmp(remote + SLOT, local + SLOT, 15 * SLOT), 0);
	cr_expect_eq(AO_load(&b.remote_write.value), 11);
	cr_expect_eq(node_link(&a, &b)->sent, node_link(&b, &a)->arrived);
}

Test(replay, several_and_from_both_sides)
{
	for (uint32_t i = 0; i < 5; i++) {
		send_to(&a, &b, 20, i, 0);
		send_to(&b, &a, 20, i, 0);
		refuse(&a);
	}
	for (int i = 0; i < 5; i++) {
		nodes_settle();
		cr_assert(is_suspended(&a, &b));
		node_resume(&a, &b);
	}
	cr_expect_not(is_suspended(&a, &b));
	for (uint32_t i = 0; i < 5; i++) {
		expect_message(&a, 20, i);
		expect_message(&b, 20, i);
	}
	cr_expect_eq(AO_load(&a.write.errors), 5);
}

Test(replay, new_work_waits_and_goes_last)
{
	send_to(&a, &b, 20, 0, 0);
	refuse(&a);
	send_to(&a, &b, 20, 1, 0);
	nodes_settle();
	send_to(&a, &b, 20, 2, 0);
	start(VERVE_RMA_WRITE, 3, region->rkey, NULL);
	cr_expect_not(TAILQ_EMPTY(&node_peer(&a, &b)->pending));
	node_resume(&a, &b);
	for (uint32_t i = 0; i < 3; i++)
		expect_message(&b, 20, i);
	cr_expect_eq(memcmp(remote + 3 * SLOT, local + 3 * SLOT, SLOT), 0);
}

/* a's requests are refused without end; b's reads, which take longest, end all the same. */
Test(replay, peer_that_is_refused_again_and_again_stops_nobody)
{
	struct verve_mr_region *memory;
	struct iovec iov = {in, ROOM / 4};
	struct verve_wire_segment from;
	struct verve_request read = {.iov = &iov, .iov_count = 1, .addr = node_addr(&b, &a),
				     .flags = VERVE_OP_NOTIFY, .remote = &from, .remote_count = 1};
	int rounds = 0;

	cr_assert_eq(verve_mr_region_open(a.dev, local, ROOM, VERVE_NET_REMOTE_READ, &memory), 0);
	from = (struct verve_wire_segment){(uintptr_t)local, ROOM / 4, memory->rkey};
	refuse(&a);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(verve_rma(b.xport, VERVE_RMA_READ, &read), 0);
	while (AO_load(&b.read.value) < 20) {
		refuse(&a);
		refuse(&a);
		nodes_settle();
		cr_assert(is_suspended(&a, &b));
		node_resume(&a, &b);
		cr_assert_lt(++rounds, 4);
	}
	cr_expect(pattern_holds(in, ROOM / 4, 1));
	while (node_link(&a, &b)->replay)
		node_resume(&a, &b);
	verve_mr_region_close(memory);
}

Test(replay, packet_of_an_old_queue_pair_counts_until_its_number_is_told)
{
	send_to(&b, &a, 20, 0, 0);
	/* The packet is in a's receive queue when a hears that b has suspended the connection. */
	while (fake_net_run_next())
		;
	node_resume(&a, &b);
	expect_message(&a, 20, 0);
	expect_nothing_waits(&a);
}

Test(replay, resume_on_a_connection_that_is_well_is_nothing)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_RESUME,
					   .dest = node_link(&b, &a)->conn_id, .op_id = 9};
	unsigned char bytes[VERVE_WIRE_RTS_MAX];

	node_send_raw(&a, &b, bytes, verve_wire_encode(&packet, bytes));
	cr_expect_eq(b.xport->count.stale, 1);
	send_to(&a, &b, 20, 1, 0);
	expect_message(&b, 20, 1);
}

/*
 * A read of four pieces is cancelled when two of them are posted, so an empty write ends it behind
 * them. The peer has received that write and a packet behind it, but the data of the read has not
 * come: both pieces are repeated, and the read ends behind them, not before.
 */
Test(replay, an_abandoned_read_ends_behind_its_repeated_pieces)
{
	struct iovec iov = {local, 4 * SLOT};
	struct verve_wire_segment from[4];
	struct verve_request read = {.iov = &iov, .iov_count = 1, .addr = node_addr(&a, &b),
				     .context = &a, .flags = VERVE_OP_NOTIFY, .remote = from,
				     .remote_count = 4};
	uint32_t limit = a.xport->wr_limit;

	for (uint32_t i = 0; i < 4; i++)
		from[i] = (struct verve_wire_segment){(uintptr_t)remote + i * SLOT, SLOT,
						      region->rkey};
	pattern_fill(remote, ROOM, 9);
	node_leave_room(&a, 2);
	cr_assert_eq(verve_rma(a.xport, VERVE_RMA_READ, &read), 0);
	cr_assert_eq(node_link(&a, &b)->produced - node_link(&a, &b)->retired, 2);
	cr_assert_eq(verve_cancel(a.xport, &a), 0);
	a.xport->wr_limit = limit;
	verve_peer_kick(a.xport, node_peer(&a, &b));
	send_to(&a, &b, 20, 0, 0);
	cr_assert_eq(node_link(&a, &b)->produced - node_link(&a, &b)->retired, 4);
	for (int i = 0; i < 4; i++)
		cr_assert(fake_net_run_leg(0, FAKE_NET_ARRIVE));
	expect_comp(&a.tx_queue);
	node_watch(&a);
	node_resume(&b, &a);
	expect_message(&b, 20, 0);
	expect_error(&a.tx_queue, FI_ECANCELED);
	expect_none(&a.tx_queue);
}
