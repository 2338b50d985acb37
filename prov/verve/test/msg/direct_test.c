/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct messages: which messages leave without a copy, when they complete, and that they are
 * repeated from the application's buffer. And which short messages are read, and into which memory.
 */
#include "msg/direct.h"

#include <string.h>

#include "../proto/pair.h"
#include "../support/fake_memory.h"
#include "mr/region.h"
#include "xport/replay.h"

enum { LEN = NODE_EAGER, ROOM = 4 * NODE_EAGER, PAGE = 4096, NEVER = INT32_MAX };

static _Alignas(PAGE) char out[2 * PAGE], in[2 * PAGE];
static const uint32_t inlined = NODE_INLINE - VERVE_WIRE_HEADER;

/* Every message that does not go inline may be direct; none is offered. */
static void setup(void)
{
	const struct verve_mr_crossover direct = {inlined + 1, inlined + 1, inlined + 1, NEVER,
						  NEVER, NEVER, NEVER};

	fake_net_watch_allow(true);
	pair_open(out, in, ROOM);
	a.mr_cache.crossover = b.mr_cache.crossover = direct;
}

TestSuite(direct, .init = setup, .fini = pair_close);

static struct verve_mr_region *region_open(struct node *node, void *addr, size_t len,
					   unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_region_open(node->dev, addr, len, access, &region), 0);
	return region;
}

static void send_described(size_t len, struct verve_mr_region *region, uint32_t flags)
{
	void *desc[] = {region};

	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len,
						     .desc = desc, .flags = flags}),
		     0);
}

static void receive(size_t len)
{
	memset(in, 0, sizeof(in));
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	nodes_settle();
	cr_assert_eq(expect_comp(&b.rx_queue).len, len);
	cr_assert(pattern_holds(in, len, 1));
	cr_assert_eq(in[len], 0);
}

Test(direct, described_message_completes_when_the_device_has_sent_it)
{
	struct verve_mr_region *region = region_open(&a, out, ROOM, 0);
	uint64_t regs;

	pair_send(10, 0, NULL); /* b's slabs and a's are there now */
	pair_send(inlined + 1, 0, NULL);
	receive(10);
	receive(inlined + 1);
	expect_comp(&a.tx_queue);
	expect_comp(&a.tx_queue);
	regs = nodes_stats().regs;
	for (size_t len = inlined + 1; len <= LEN; len += 100) {
		send_described(len, region, 0);
		expect_none(&a.tx_queue);
		receive(len);
		cr_expect_eq(expect_comp(&a.tx_queue).len, len);
	}
	cr_expect_eq(nodes_stats().regs, regs);
	cr_expect_eq(a.xport->tx_slabs.used, 0);
	verve_mr_region_close(region);
}

/* What the application writes before the completion still leaves: nobody has made a copy. */
Test(direct, message_is_taken_from_the_buffer)
{
	struct verve_mr_region *region = region_open(&a, out, ROOM, 0);

	send_described(LEN, region, 0);
	pattern_fill(out, LEN, 7);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	nodes_settle();
	expect_comp(&b.rx_queue);
	expect_comp(&a.tx_queue);
	cr_expect(pattern_holds(in, LEN, 7));
	verve_mr_region_close(region);
}

static int send_pieces(struct verve_mr_region *region, size_t count)
{
	struct iovec iov[VERVE_IOV_LIMIT] = {{out, 300}, {out + 300, 0}, {out + 300, 1},
					     {out + 301, LEN - 301}};
	void *desc[VERVE_IOV_LIMIT] = {region, NULL, region, region};

	iov[count - 1].iov_len = LEN - (iov[count - 1].iov_base - (void *)out);
	return node_send(&a, &(struct message){.peer = &b, .iov = iov, .desc = desc,
					       .iov_count = count});
}

Test(direct, described_pieces_leave_in_one_request)
{
	struct verve_mr_region *region = region_open(&a, out, ROOM, 0);
	uint64_t before = nodes_stats().requests;

	cr_assert_eq(send_pieces(region, VERVE_IOV_LIMIT - 1), 0);
	expect_none(&a.tx_queue);
	receive(LEN);
	expect_comp(&a.tx_queue);
	cr_expect_eq(nodes_stats().requests - before, 1);
	verve_mr_region_close(region);
}

/* A request has no segment left for the header. */
Test(direct, most_pieces_are_copied)
{
	struct verve_mr_region *region = region_open(&a, out, ROOM, 0);

	cr_assert_eq(send_pieces(region, VERVE_IOV_LIMIT), 0);
	receive(LEN);
	nodes_settle();
	expect_comp(&a.tx_queue);
	verve_mr_region_close(region);
}

/* Each of these completes at once, or by the peer's FIN. */
Test(direct, what_is_copied_all_the_same)
{
	struct verve_mr_region *region = region_open(&a, out, ROOM, 0),
			       *shorter = region_open(&a, out, LEN - 1, 0);

	send_described(LEN, region, VERVE_OP_INJECT);
	expect_comp(&a.tx_queue);
	receive(LEN);
	send_described(LEN, shorter, 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	receive(LEN);
	a.mr_cache.crossover.described = LEN + 1;
	send_described(LEN, region, 0);
	expect_comp(&a.tx_queue);
	receive(LEN);
	a.mr_cache.crossover.described = LEN;
	send_described(LEN, region, VERVE_OP_ACK);
	nodes_settle();
	pattern_fill(out, LEN, 2);
	pattern_fill(in, LEN, 2);
	expect_none(&a.tx_queue);
	pattern_fill(out, LEN, 1);
	receive(LEN);
	expect_comp(&a.tx_queue);
	verve_mr_region_close(shorter);
	verve_mr_region_close(region);
}

/* The second use of a buffer makes the cache keep it; the third one finds it. */
Test(direct, kept_registration_serves_without_a_descriptor)
{
	uint64_t regs;

	pair_send(LEN, 0, NULL);
	expect_comp(&a.tx_queue);
	receive(LEN);
	regs = nodes_stats().regs;
	for (int i = 0; i < 3; i++) {
		pair_send(LEN, 0, NULL);
		expect_none(&a.tx_queue);
		receive(LEN);
		expect_comp(&a.tx_queue);
		cr_expect_eq(nodes_stats().regs, regs + 1);
	}
	cr_expect_eq(AO_load(&a.mr_cache.regions), 1);
}

Test(direct, short_memory_is_never_registered_to_be_kept)
{
	a.mr_cache.crossover.keep = LEN + 1;
	for (int i = 0; i < 5; i++) {
		pair_send(LEN, 0, NULL);
		expect_comp(&a.tx_queue);
		receive(LEN);
	}
	cr_expect_eq(AO_load(&a.mr_cache.misses), 0);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
}

Test(direct, without_a_credit_the_message_is_offered_from_a_copy)
{
	struct verve_mr_region *region = region_open(&a, out, ROOM, 0);

	for (int i = 0; i < NODE_WINDOW; i++)
		send_described(LEN, region, 0);
	send_described(LEN, region, 0);
	expect_comp(&a.tx_queue);
	for (int i = 0; i < NODE_WINDOW + 1; i++)
		receive(LEN);
	for (int i = 0; i < NODE_WINDOW; i++)
		expect_comp(&a.tx_queue);
	expect_none(&a.tx_queue);
	verve_mr_region_close(region);
}

/* No slab is free for the header: the kept registration goes back, and the message waits. */
Test(direct, without_a_slab_the_message_waits)
{
	size_t limit = a.xport->tx_slabs.limit;

	for (int i = 0; i < 2; i++) {
		pair_send(LEN, 0, NULL);
		receive(LEN);
		expect_comp(&a.tx_queue);
	}
	cr_assert_eq(AO_load(&a.mr_cache.regions), 1);
	a.xport->tx_slabs.limit = 0;
	a.xport->tx_slabs.used = 0;
	pair_send(LEN, 0, NULL);
	nodes_settle();
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
	a.xport->tx_slabs.limit = limit;
	verve_peer_kick(a.xport, node_peer(&a, &b));
	receive(LEN);
	expect_comp(&a.tx_queue);
}

/* The queue pair fails: the message that the peer has is not repeated, the other one is. */
Test(direct, message_is_repeated_over_another_queue_pair)
{
	struct verve_mr_region *region = region_open(&a, out, ROOM, 0);

	send_described(LEN, region, 0);
	send_described(LEN - 1, region, 0);
	cr_assert(fake_net_run_leg(0, FAKE_NET_ARRIVE));
	verve_replay_renew(a.xport, node_link(&a, &b));
	nodes_settle();
	cr_assert(node_link(&a, &b)->replay);
	expect_none(&a.tx_queue);
	cr_expect_gt(a.xport->tx_slabs.used, 0);
	node_resume(&a, &b);
	receive(LEN);
	receive(LEN - 1);
	cr_expect_eq(expect_comp(&a.tx_queue).len, LEN);
	cr_expect_eq(expect_comp(&a.tx_queue).len, LEN - 1);
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
	cr_expect_eq(a.xport->tx_slabs.used, 0);
	verve_mr_region_close(region);
}

/* The buffer belongs to the device until the device has let go of the broken link. */
Test(direct, message_of_a_broken_link_fails_and_gives_all_back)
{
	struct verve_mr_region *region = region_open(&a, out, ROOM, 0);

	send_described(LEN, region, 0);
	verve_link_break(a.xport, node_link(&a, &b), FI_ECONNABORTED, 0, "the test breaks it");
	expect_none(&a.tx_queue);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECONNABORTED);
	cr_expect_eq(a.xport->tx_slabs.used, 0);
	verve_mr_region_close(region);
}

/* The crossover says that a read costs less than two copies. */
Test(direct, short_message_is_read_where_that_costs_less)
{
	uint64_t before;

	a.mr_cache.crossover.rendezvous = b.mr_cache.crossover.fresh = LEN;
	pair_send(LEN - 1, VERVE_OP_INJECT, NULL);
	receive(LEN - 1);
	expect_comp(&a.tx_queue);
	before = nodes_stats().requests;
	pair_send(LEN, 0, NULL);
	nodes_settle();
	expect_none(&a.tx_queue);
	receive(LEN);
	expect_comp(&a.tx_queue);
	cr_expect_eq(nodes_stats().requests - before, 3, "RTS, read, FIN");
	pair_send(LEN, VERVE_OP_INJECT, NULL); /* its buffer is the application's already */
	expect_comp(&a.tx_queue);
	before = nodes_stats().requests;
	receive(LEN);
	cr_expect_eq(nodes_stats().requests, before + 1, "it was sent");
}

/* A registration that was made for one message is not kept; the second one's is. */
Test(direct, message_of_a_kept_buffer_is_read)
{
	a.mr_cache.crossover.offer_kept = LEN;
	a.mr_cache.keeps_remote = true;
	pair_send(LEN, 0, NULL);
	nodes_settle();
	expect_comp(&a.tx_queue);
	receive(LEN);
	for (int i = 0; i < 3; i++) {
		pair_send(LEN, 0, NULL);
		nodes_settle();
		expect_none(&a.tx_queue);
		receive(LEN);
		expect_comp(&a.tx_queue);
	}
	pair_send(LEN - 1, 0, NULL);
	nodes_settle();
	expect_comp(&a.tx_queue);
	receive(LEN - 1);
}

Test(direct, message_without_a_kept_buffer_is_sent)
{
	a.mr_cache.crossover.offer_kept = LEN;
	a.mr_cache.crossover.keep = LEN + 1;
	for (int i = 0; i < 3; i++) {
		pair_send(LEN, 0, NULL);
		nodes_settle();
		expect_comp(&a.tx_queue);
		receive(LEN);
	}
}

/* Reads into a slab, until the receive buffer has been used twice. */
Test(direct, short_read_uses_a_kept_registration)
{
	static const uint32_t regs[] = {0, 1, 0, 0};

	a.mr_cache.crossover.rendezvous = LEN;
	pair_send(LEN, 0, NULL);
	b.mr_cache.crossover.kept = NEVER;
	receive(LEN); /* b's slabs are registered */
	b.mr_cache.crossover.kept = LEN;
	for (int i = 0; i < 4; i++) {
		uint64_t before;

		pair_send(LEN, 0, NULL);
		before = nodes_stats().regs;
		receive(LEN);
		cr_expect_eq(nodes_stats().regs - before, regs[i], "use %d", i);
	}
	cr_expect_eq(AO_load(&b.mr_cache.regions), 1);
	cr_expect_leq(AO_load(&b.mr_cache.bytes), PAGE, "no more than the message is registered");
}
