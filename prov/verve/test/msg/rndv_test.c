/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rendezvous: splitting at the longest request, descriptors, and errors on either side. */
#include "msg/rndv.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/pair.h"
#include "mr/region.h"

enum { LONGEST = 2048, ROOM = 5 * LONGEST };

static char out[ROOM], in[ROOM];

static void setup(void)
{
	nodes_limit(LONGEST);
	pair_open(out, in, sizeof(out));
}

TestSuite(rndv, .init = setup, .fini = pair_close);

static void move(size_t len, size_t room)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len}), 0);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = room}), 0);
	nodes_settle();
}

Test(rndv, is_split_at_the_longest_request)
{
	static const size_t sizes[] = {LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST,
				       2 * LONGEST + 1, ROOM};

	for (size_t i = 0; i < 6; i++) {
		size_t reads = (sizes[i] + LONGEST - 1) / LONGEST;
		uint64_t before = nodes_stats().requests;

		memset(in, 0, sizeof(in));
		move(sizes[i], ROOM);
		cr_assert_eq(expect_comp(&b.rx_queue).len, sizes[i]);
		cr_assert(pattern_holds(in, sizes[i], 1));
		expect_comp(&a.tx_queue);
		cr_expect_eq(nodes_stats().requests - before, reads + 2); /* 2: RTS and FIN */
	}
}

Test(rndv, segments_of_both_sides_need_not_agree)
{
	struct iovec from[VERVE_IOV_LIMIT] = {
		{out, 1}, {out + 1, LONGEST}, {out + 1 + LONGEST, 3000},
			{out + LONGEST + 3001, 10}};
	struct iovec to[VERVE_IOV_LIMIT] = {{in, 2000}, {in + 2000, 0}, {in + 2000, 3},
		{in + 2003, 8000}};
	size_t len = 1 + LONGEST + 3000 + 10;

	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .iov = from, .iov_count = 4}), 0);
	cr_assert_eq(node_recv(&b, &(struct message){.iov = to, .iov_count = 4}), 0);
	nodes_settle();
	cr_assert_eq(expect_comp(&b.rx_queue).len, len);
	cr_expect(pattern_holds(in, len, 1));
	cr_expect_eq(in[len], 0);
}

Test(rndv, message_that_fits_nowhere_is_not_read)
{
	uint64_t before = nodes_stats().requests;

	move(ROOM, 0);
	cr_expect_eq(expect_error(&b.rx_queue, FI_ETRUNC).olen, ROOM);
	expect_comp(&a.tx_queue);
	cr_expect_eq(nodes_stats().requests - before, 2);
}

Test(rndv, short_reads_go_through_a_slab_and_long_ones_are_registered)
{
	uint64_t before;

	move(ROOM, 10); /* now both sides have allocated their slabs */
	expect_error(&b.rx_queue, FI_ETRUNC);
	before = nodes_stats().regs;
	move(ROOM, NODE_EAGER);
	expect_error(&b.rx_queue, FI_ETRUNC);
	cr_expect_eq(nodes_stats().regs - before, 1); /* the sender's buffer */
	cr_expect(pattern_holds(in, NODE_EAGER, 1));
	before = nodes_stats().regs;
	move(ROOM, NODE_EAGER + 1);
	expect_error(&b.rx_queue, FI_ETRUNC);
	cr_expect_eq(nodes_stats().regs - before, 2);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
	cr_expect_eq(AO_load(&b.mr_cache.regions), 0);
}

/*
 * The receiver's descriptor spares a registration. The sender's descriptor never does, because its
 * key opens the whole region and not only the message.
 */
Test(rndv, descriptors_are_used_if_they_serve)
{
	struct verve_mr_region *from, *to;
	void *from_desc[1], *to_desc[1];
	uint64_t before;

	cr_assert_eq(verve_mr_region_open(a.dev, out, ROOM, VERVE_NET_REMOTE_READ, &from), 0);
	cr_assert_eq(verve_mr_region_open(b.dev, in, ROOM, VERVE_NET_LOCAL_WRITE, &to), 0);
	from_desc[0] = from;
	to_desc[0] = to;
	before = nodes_stats().regs;
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM,
						     .desc = from_desc}),
		     0);
	cr_expect_eq(nodes_stats().regs, before + 1);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM, .desc = to_desc}), 0);
	nodes_settle();
	cr_assert_eq(expect_comp(&b.rx_queue).len, ROOM);
	cr_expect(pattern_holds(in, ROOM, 1));
	cr_expect_eq(nodes_stats().regs, before + 1);
	verve_mr_region_close(from);
	verve_mr_region_close(to);
}

Test(rndv, descriptors_that_do_not_serve_are_replaced)
{
	struct verve_mr_region *from, *to;
	void *from_desc[1], *to_desc[1];
	uint64_t before;

	/* One region grants no remote access, the other is one byte too short. */
	cr_assert_eq(verve_mr_region_open(a.dev, out, ROOM, 0, &from), 0);
	cr_assert_eq(verve_mr_region_open(b.dev, in, ROOM - 1, VERVE_NET_LOCAL_WRITE, &to), 0);
	from_desc[0] = from;
	to_desc[0] = to;
	before = nodes_stats().regs;
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM,
						     .desc = from_desc}),
		     0);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM, .desc = to_desc}), 0);
	nodes_settle();
	cr_assert_eq(expect_comp(&b.rx_queue).len, ROOM);
	cr_expect(pattern_holds(in, ROOM, 1));
	cr_expect_eq(nodes_stats().regs - before, 2);
	verve_mr_region_close(from);
	verve_mr_region_close(to);
}

Test(rndv, short_reads_are_registered_where_that_costs_less)
{
	struct verve_mr_crossover *crossover = &b.mr_cache.crossover;

	move(ROOM, 10); /* now both sides have allocated their slabs */
	expect_error(&b.rx_queue, FI_ETRUNC);
	crossover->described = crossover->fresh = NODE_EAGER;
	for (size_t len = NODE_EAGER - 1; len <= NODE_EAGER; len++) {
		uint64_t before = nodes_stats().regs;

		move(ROOM, len);
		expect_error(&b.rx_queue, FI_ETRUNC);
		cr_expect(pattern_holds(in, len, 1));
		/* One is of the sender's buffer. */
		cr_expect_eq(nodes_stats().regs - before, len == NODE_EAGER ? 2 : 1);
		cr_expect_eq(AO_load(&b.mr_cache.regions), 0);
	}
}

/* Reads of b that are under way. */
static int count_reads(void)
{
	struct verve_link *link = node_link(&b, &a);
	int count = 0;

	for (uint32_t number = link->retired; number != link->produced; number++)
		count += verve_link_slot(link, number)->kind == VERVE_SLOT_MEMORY;
	return count;
}

/*
 * Reads go on where they have begun: a slab that becomes free meanwhile would overwrite what was
 * read before. The first piece of the receive is empty, so that it has no region.
 */
Test(rndv, memory_of_reads_stays_while_they_go_on)
{
	struct iovec to[] = {{in, 0}, {in, NODE_EAGER}};
	struct iovec from[] = {{out, 256}, {out + 256, 256}, {out + 512, 256}, {out + 768, 4000}};
	size_t slabs = b.xport->tx_slabs.limit;
	uint32_t requests = b.xport->wr_limit;
	struct verve_mr_region *region;
	void *desc[] = {NULL, NULL};

	cr_assert_eq(verve_mr_region_open(b.dev, in, ROOM, VERVE_NET_LOCAL_WRITE, &region), 0);
	desc[1] = region;
	cr_assert_eq(node_recv(&b, &(struct message){.iov = to, .iov_count = 2, .desc = desc}), 0);
	/* No slab is free, and only two of the four reads have room. */
	b.xport->tx_slabs.limit = 0;
	node_leave_room(&b, 2);
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .iov = from, .iov_count = 4}), 0);
	while (!count_reads()) {
		cr_assert(fake_net_run_next());
		verve_proto_poll(&b.proto);
	}
	cr_assert_eq(count_reads(), 2);
	b.xport->tx_slabs.limit = slabs;
	b.xport->wr_limit = requests;
	nodes_settle();
	expect_error(&b.rx_queue, FI_ETRUNC);
	cr_expect(pattern_holds(in, NODE_EAGER, 1));
	expect_comp(&a.tx_queue);
	verve_mr_region_close(region);
}

Test(rndv, receive_buffer_that_cannot_be_registered_fails_both_sides)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM}), 0);
	nodes_settle();
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EFAULT);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM, .context = in}), 0);
	nodes_settle();
	cr_expect_eq(expect_error(&b.rx_queue, FI_EFAULT).comp.context, in);
	expect_error(&a.tx_queue, FI_EFAULT);
	/* The connection is good. */
	move(ROOM, ROOM);
	expect_comp(&b.rx_queue);
	expect_comp(&a.tx_queue);
}

/* A file that is mapped from a disk, on newer kernels. */
Test(rndv, receive_buffer_that_no_device_may_write_gets_copies)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM}), 0);
	nodes_settle();
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EOPNOTSUPP);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	nodes_settle();
	expect_comp(&b.rx_queue);
	expect_comp(&a.tx_queue);
	cr_expect(pattern_holds(in, ROOM, 1));
}

Test(rndv, second_segment_that_cannot_be_registered_gives_the_first_back)
{
	struct iovec iov[2] = {{in, LONGEST}, {in + LONGEST, ROOM - LONGEST}};

	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM}), 0);
	nodes_settle();
	fake_net_fail(FAKE_NET_MR_REG, 2, -FI_EFAULT);
	cr_assert_eq(node_recv(&b, &(struct message){.iov = iov, .iov_count = 2}), 0);
	nodes_settle();
	expect_error(&b.rx_queue, FI_EFAULT);
	expect_error(&a.tx_queue, FI_EFAULT);
	cr_expect_eq(AO_load(&b.mr_cache.regions), 0);
}

Test(rndv, memory_that_is_not_the_senders_is_the_receivers_error)
{
	struct verve_wire_packet offer = {
		.type = VERVE_WIRE_RTS,
		.dest = node_link(&b, &a)->conn_id,
		.len = ROOM,
		.op_id = 12345,
		.segment_count = 1,
		.segment = {{.addr = (uintptr_t)out, .len = ROOM, .key = 54321}},
	};
	unsigned char bytes[VERVE_WIRE_RTS_MAX];

	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	node_send_raw(&a, &b, bytes, verve_wire_encode(&offer, bytes));
	cr_expect_neq(expect_error(&b.rx_queue, FI_ENOTCONN).prov_errno, 0);
	/* The connection is good. */
	node_resume(&a, &b);
	move(ROOM, ROOM);
	expect_comp(&b.rx_queue);
	expect_comp(&a.tx_queue);
}

Test(rndv, offer_without_bytes_is_finished_at_once)
{
	struct verve_wire_packet offer = {
		.type = VERVE_WIRE_RTS, .dest = node_link(&b, &a)->conn_id, .op_id = 12345};
	unsigned char bytes[VERVE_WIRE_RTS_MAX];

	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	node_send_raw(&a, &b, bytes, verve_wire_encode(&offer, bytes));
	cr_expect_eq(expect_comp(&b.rx_queue).len, 0);
	/* The FIN names an operation that does not exist. */
	cr_expect_eq(a.xport->count.stale, 1);
}

Test(rndv, reads_overtake_sends_that_wait_for_room)
{
	struct verve_peer *peer = node_peer(&b, &a);

	move(0, 0);
	expect_comp(&b.rx_queue);
	/* A fence holds b's sends back; the read must not wait behind the fence. */
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = in, .len = 1,
						     .flags = VERVE_OP_ACK}),
		     0);
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = in, .len = 1,
						     .flags = VERVE_OP_FENCE}),
		     0);
	cr_expect_not(TAILQ_EMPTY(&peer->pending));
	move(ROOM, ROOM);
	cr_expect_eq(expect_comp(&b.rx_queue).len, ROOM);
	cr_expect_not(TAILQ_EMPTY(&peer->pending));
	expect_none(&b.tx_queue);
}

Test(rndv, sender_that_ends_while_it_is_read_is_the_receivers_error)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM}), 0);
	nodes_settle();
	fake_net_host_kill(0);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM, .context = in}), 0);
	nodes_settle();
	cr_expect_eq(expect_error(&b.rx_queue, FI_EHOSTUNREACH).comp.context, in);
}
