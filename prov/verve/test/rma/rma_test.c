/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA: sizes at every threshold, segments of both sides, remote CQ data, memory that cannot be
 * registered, and remote memory that the key does not open.
 */
#include "rma/rma.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/fixture.h"
#include "../support/fake_memory.h"
#include "../support/fake_world.h"
#include "base/config.h"
#include "mr/region.h"
#include "proto/cancel.h"

enum { LONGEST = 2048, ROOM = 3 * LONGEST };

static struct node a, b;
static char local[ROOM], remote[ROOM];
static struct verve_mr_region *region;
static int context;

static void open_nodes(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	cr_assert_eq(verve_mr_region_open(b.dev, remote, ROOM,
					  VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE, &region),
		     0);
}

static void setup(void)
{
	nodes_limit(LONGEST);
	open_nodes();
}

static void close_nodes(void)
{
	node_close(&a);
	verve_mr_region_close(region);
	node_close(&b);
}

static void teardown(void)
{
	fake_net_memlock(UINT64_MAX);
	close_nodes();
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(rma, .init = setup, .fini = teardown);

/* A remote segment: len bytes of the array remote from offset on. */
static struct verve_wire_segment segment(size_t offset, size_t len)
{
	return (struct verve_wire_segment){(uintptr_t)remote + offset, len, region->rkey};
}

static int start(enum verve_rma_kind kind, const struct iovec *iov, size_t count,
		 const struct verve_wire_segment *to, size_t to_count, uint32_t flags,
			void *const *desc)
{
	struct verve_request request = {
		.iov = iov,
		.iov_count = count,
		.desc = desc,
		.addr = node_addr(&a, &b),
		.data = 0x123456789abcdef0,
		.context = &context,
		.flags = flags | VERVE_OP_NOTIFY,
		.remote = to,
		.remote_count = to_count,
	};

	return verve_rma(a.xport, kind, &request);
}

static int start_len(enum verve_rma_kind kind, size_t len, uint32_t flags)
{
	struct iovec iov = {local, len};
	struct verve_wire_segment to = segment(0, len);

	return start(kind, &iov, 1, &to, 1, flags, NULL);
}

/* Sizes around each threshold: inline, slab, registration, longest request. */
static const size_t sizes[] = {0, 1, NODE_INLINE, NODE_INLINE + 1, NODE_EAGER, NODE_EAGER + 1,
			       LONGEST, LONGEST + 1, ROOM};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

Test(rma, writes_of_every_size)
{
	for (size_t i = 0; i < SIZES; i++) {
		struct verve_comp comp;

		memset(remote, 0, ROOM);
		pattern_fill(local, ROOM, i);
		cr_assert_eq(start_len(VERVE_RMA_WRITE, sizes[i], 0), 0);
		expect_none(&a.tx_queue);
		nodes_settle();
		comp = expect_comp(&a.tx_queue);
		cr_expect_eq(comp.context, &context);
		cr_expect_eq(comp.flags, VERVE_COMP_RMA | VERVE_COMP_WRITE);
		cr_assert(pattern_holds(remote, sizes[i], i));
		if (sizes[i] < ROOM)
			cr_assert_eq(remote[sizes[i]], 0);
	}
	cr_expect_eq(AO_load(&a.write.value), SIZES);
	expect_none(&b.rx_queue);
	cr_expect_eq(AO_load(&b.remote_write.value), 0);
}

Test(rma, reads_of_every_size)
{
	for (size_t i = 0; i < SIZES; i++) {
		memset(local, 0, ROOM);
		pattern_fill(remote, ROOM, i);
		cr_assert_eq(start_len(VERVE_RMA_READ, sizes[i], 0), 0);
		nodes_settle();
		cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_READ);
		cr_assert(pattern_holds(local, sizes[i], i));
		if (sizes[i] < ROOM)
			cr_assert_eq(local[sizes[i]], 0);
	}
	cr_expect_eq(AO_load(&a.read.value), SIZES);
	cr_expect_eq(AO_load(&a.write.value), 0);
}

static void move_pieces(void)
{
	static const size_t lens[] = {100, NODE_EAGER, ROOM - 100};

	for (size_t i = 0; i < 3; i++) {
		size_t len = lens[i], half = len / 2, tenth = len / 10;
		struct iovec iov[VERVE_IOV_LIMIT] = {
			{local, tenth}, {local + tenth, 0}, {local + tenth, half},
				{local + tenth + half, len - tenth - half}};
		/* The remote segments lie in another order, with gaps. */
		struct verve_wire_segment to[VERVE_WIRE_SEGMENTS] = {
			segment(half, len - half - 1), segment(0, 0), segment(0, half),
				segment(ROOM - 1, 1)};

		pattern_fill(local, ROOM, i);
		memset(remote, 0, ROOM);
		cr_assert_eq(start(VERVE_RMA_WRITE, iov, 4, to, 4, 0, NULL), 0);
		nodes_settle();
		expect_comp(&a.tx_queue);
		cr_expect_eq(memcmp(remote + half, local, len - half - 1), 0);
		cr_expect_eq(memcmp(remote, local + len - half - 1, half), 0);
		cr_expect_eq(remote[ROOM - 1], local[len - 1]);

		memset(local, 0, ROOM);
		cr_assert_eq(start(VERVE_RMA_READ, iov, 4, to, 4, 0, NULL), 0);
		nodes_settle();
		expect_comp(&a.tx_queue);
		cr_expect(pattern_holds(local, len, i));
	}
}

Test(rma, segments_of_both_sides_need_not_agree)
{
	move_pieces();
}

/* Some devices scatter a read to fewer pieces than they gather for other requests. */
Test(rma, reads_have_no_more_pieces_than_the_device_can_do)
{
	for (uint32_t pieces = 1; pieces < VERVE_IOV_LIMIT; pieces++) {
		close_nodes();
		fake_world.config.limits.read_sge = pieces;
		open_nodes();
		move_pieces();
	}
}

Test(rma, remote_data_follows_the_write)
{
	for (size_t i = 0; i < SIZES; i++) {
		struct verve_comp comp;

		memset(remote, 0, ROOM);
		pattern_fill(local, ROOM, i);
		cr_assert_eq(start_len(VERVE_RMA_WRITE, sizes[i], VERVE_OP_DATA), 0);
		while (verve_comp_queue_is_empty(&b.rx_queue)) {
			verve_proto_poll(&a.proto);
			cr_assert(fake_net_run_next());
			verve_proto_poll(&b.proto);
		}
		cr_assert(pattern_holds(remote, sizes[i], i)); /* the data came first */
		comp = expect_comp(&b.rx_queue);
		cr_expect_eq(comp.data, 0x123456789abcdef0);
		cr_expect_eq(comp.len, sizes[i]);
		cr_expect_eq(comp.src, node_addr(&b, &a));
		nodes_settle();
		expect_comp(&a.tx_queue);
		expect_none(&a.tx_queue);
	}
	cr_expect_eq(AO_load(&b.remote_write.value), SIZES);
}

Test(rma, inject_leaves_the_buffer_to_the_application)
{
	for (size_t len = 1; len <= NODE_EAGER; len *= 2) {
		struct verve_wire_segment to = segment(0, len);
		char *message = malloc(len);
		struct iovec iov = {message, len};

		pattern_fill(message, len, len);
		cr_assert_eq(start(VERVE_RMA_WRITE, &iov, 1, &to, 1, VERVE_OP_INJECT, NULL), 0);
		free(message);
		nodes_settle();
		expect_comp(&a.tx_queue);
		cr_expect(pattern_holds(remote, len, len));
	}
}

Test(rma, descriptors_are_used)
{
	struct verve_mr_region *own;
	struct fake_net_stats stats;
	struct iovec iov = {local, ROOM};
	struct verve_wire_segment to = segment(0, ROOM);
	void *desc[1];
	uint64_t before;

	cr_assert_eq(verve_mr_region_open(a.dev, local, ROOM, VERVE_NET_LOCAL_WRITE, &own), 0);
	desc[0] = own;
	fake_net_stats(&stats);
	before = stats.regs;
	cr_assert_eq(start(VERVE_RMA_WRITE, &iov, 1, &to, 1, 0, desc), 0);
	cr_assert_eq(start(VERVE_RMA_READ, &iov, 1, &to, 1, 0, desc), 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_comp(&a.tx_queue);
	fake_net_stats(&stats);
	cr_expect_eq(stats.regs, before);
	verve_mr_region_close(own);
}

Test(rma, unknown_peer_is_refused)
{
	struct verve_request request = {.addr = 4711};

	cr_expect_eq(verve_rma(a.xport, VERVE_RMA_WRITE, &request), -FI_EINVAL);
	cr_expect_eq(verve_rma(a.xport, VERVE_RMA_READ, &request), -FI_EINVAL);
	cr_expect_eq(a.xport->tx_used, 0);
}

Test(rma, transmit_queue_is_as_long_as_it_says)
{
	for (int i = 0; i < NODE_TX_SIZE; i++)
		cr_assert_eq(start_len(i % 2 ? VERVE_RMA_READ : VERVE_RMA_WRITE, 8, 0), 0);
	cr_expect_eq(start_len(VERVE_RMA_READ, 8, 0), -FI_EAGAIN);
	cr_expect_eq(start_len(VERVE_RMA_WRITE, 8, VERVE_OP_INJECT), -FI_EAGAIN);
	nodes_settle();
	for (int i = 0; i < NODE_TX_SIZE; i++)
		expect_comp(&a.tx_queue);
	cr_expect_eq(start_len(VERVE_RMA_READ, 8, 0), 0);
	nodes_settle();
}

Test(rma, more_requests_than_the_queue_pair_holds)
{
	a.xport->attr.tx_size = SIZE_MAX;
	for (int i = 0; i < 5 * VERVE_LINK_DEPTH; i++)
		cr_assert_eq(start_len(VERVE_RMA_WRITE, ROOM, VERVE_OP_DATA), 0);
	nodes_settle();
	for (int i = 0; i < 5 * VERVE_LINK_DEPTH; i++) {
		expect_comp(&a.tx_queue);
		expect_comp(&b.rx_queue);
	}
}

Test(rma, local_memory_that_cannot_be_registered_is_this_ones_error_alone)
{
	cr_assert_eq(start_len(VERVE_RMA_READ, 1, 0), 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++) {
		fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EFAULT);
		cr_assert_eq(start_len(kind, ROOM, 0), 0);
		nodes_settle();
		cr_expect_eq(expect_error(&a.tx_queue, FI_EFAULT).comp.context, &context);
		cr_assert_eq(start_len(kind, ROOM, 0), 0);
		nodes_settle();
		expect_comp(&a.tx_queue);
	}
	cr_expect_eq(AO_load(&a.write.errors), 1);
	cr_expect_eq(AO_load(&a.read.errors), 1);
}

/* A file that is mapped from a disk, on newer kernels. */
Test(rma, local_memory_that_no_device_may_use_goes_through_a_slab)
{
	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++) {
		cr_assert_eq(start_len(VERVE_RMA_READ, 1, 0), 0);
		nodes_settle();
		expect_comp(&a.tx_queue);
		fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EOPNOTSUPP);
		cr_assert_eq(start_len(kind, ROOM, 0), 0);
		nodes_settle();
		cr_expect(fake_net_has_failed());
		expect_comp(&a.tx_queue);
	}
}

/* From here on no memory can be registered: a transfer goes through a slab, a piece at a time. */
static void become_poor(void)
{
	/* This read allocates and registers the slabs. */
	cr_assert_eq(start_len(VERVE_RMA_READ, 1, 0), 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	fake_net_memlock(0);
}

Test(rma, memory_that_is_more_than_may_be_locked)
{
	struct fake_net_stats before, after;

	become_poor();
	fake_net_stats(&before);
	for (size_t i = 0; i < SIZES; i++) {
		memset(remote, 0, ROOM);
		pattern_fill(local, ROOM, i);
		cr_assert_eq(start_len(VERVE_RMA_WRITE, sizes[i], VERVE_OP_DATA), 0);
		nodes_settle();
		cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_WRITE);
		cr_expect_eq(expect_comp(&b.rx_queue).len, sizes[i]);
		cr_expect(pattern_holds(remote, sizes[i], i));
		memset(local, 0, ROOM);
		cr_assert_eq(start_len(VERVE_RMA_READ, sizes[i], 0), 0);
		nodes_settle();
		cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_READ);
		cr_expect(pattern_holds(local, sizes[i], i));
		if (sizes[i] < ROOM)
			cr_expect_eq(local[sizes[i]], 0);
	}
	fake_net_stats(&after);
	cr_expect_eq(after.regs, before.regs);
	cr_expect_eq(a.xport->tx_slabs.used, 0);
}

static void count_tries(void *arg, bool opens, const void *addr)
{
	int *tries = arg;

	*tries += opens && addr == local;
}

/* A try may close what other transfers keep registered: there is one for each operation. */
Test(rma, waits_for_a_slab_without_registering_again)
{
	struct verve_slab *slab[VERVE_TX_SLABS];
	size_t count = 0;
	int tries = 0;

	become_poor();
	while (count < VERVE_TX_SLABS && (slab[count] = verve_slab_alloc(&a.xport->tx_slabs)))
		count++;
	fake_net_on_mr(count_tries, &tries);
	cr_assert_eq(start_len(VERVE_RMA_READ, ROOM, 0), 0);
	for (int i = 0; i < 100; i++)
		verve_proto_poll(&a.proto);
	expect_none(&a.tx_queue);
	while (count--)
		verve_slab_free(&a.xport->tx_slabs, slab[count]);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_READ);
	cr_expect_eq(tries, 1);
}

Test(rma, pieces_do_not_overtake_one_another)
{
	struct iovec iov[2] = {{local, 1000}, {local + 1001, ROOM - 1001}};
	struct verve_wire_segment to[2] = {segment(1, 3000), segment(3001, ROOM - 3001)};

	become_poor();
	pattern_fill(local, ROOM, 1);
	cr_assert_eq(start(VERVE_RMA_WRITE, iov, 2, to, 2, 0, NULL), 0);
	cr_assert_eq(start_len(VERVE_RMA_WRITE, ROOM, 0), 0);
	cr_assert_eq(start_len(VERVE_RMA_WRITE, 8, 0), 0);
	nodes_settle();
	for (int i = 0; i < 3; i++)
		expect_comp(&a.tx_queue);
	cr_expect(pattern_holds(remote, ROOM, 1));
}

Test(rma, cancelled_between_pieces)
{
	become_poor();
	memset(remote, 0, ROOM);
	memset(local, 1, ROOM);
	cr_assert_eq(start_len(VERVE_RMA_WRITE, ROOM, 0), 0);
	cr_expect_eq(verve_cancel(a.xport, &context), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECANCELED);
	expect_none(&a.tx_queue);
	cr_expect_eq(remote[0], 1);
	cr_expect_eq(remote[ROOM - 1], 0);
	cr_expect_eq(a.xport->tx_slabs.used, 0);
}

/* Requests of a's queue pair for a read of LONGEST bytes. */
static uint32_t requests_of_a_read(void)
{
	uint32_t before = node_link(&a, &b)->produced;

	cr_assert_eq(start_len(VERVE_RMA_READ, LONGEST, 0), 0);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_READ);
	return node_link(&a, &b)->produced - before;
}

Test(rma, reads_have_the_length_that_the_variable_says)
{
	cr_expect_eq(requests_of_a_read(), 1);
	verve_config.read_size = LONGEST / 4;
	cr_expect_eq(requests_of_a_read(), 4);
	verve_config.read_size = SIZE_MAX;
	cr_expect_eq(requests_of_a_read(), 1);
}

Test(rma, refused_between_pieces)
{
	struct verve_wire_segment to[2] = {segment(0, ROOM / 2), segment(ROOM - 8, ROOM / 2)};
	struct iovec iov = {local, ROOM};

	become_poor();
	cr_assert_eq(start(VERVE_RMA_WRITE, &iov, 1, to, 2, 0, NULL), 0);
	cr_assert_eq(start_len(VERVE_RMA_READ, ROOM, 0), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	node_resume(&a, &b);
	cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_READ);
	cr_expect_eq(a.xport->tx_slabs.used, 0);
}

Test(rma, host_dies_between_pieces)
{
	become_poor();
	cr_assert_eq(start_len(VERVE_RMA_WRITE, ROOM, 0), 0);
	cr_assert_eq(start_len(VERVE_RMA_READ, ROOM, 0), 0);
	fake_net_host_kill(1);
	cr_expect(verve_proto_is_waiting(&a.proto), "nobody looks after the peer");
	nodes_settle();
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
	cr_expect_eq(a.xport->tx_slabs.used, 0);
}

/* Expects an access that the peer's key does not grant to fail alone. */
static void expect_denied(enum verve_rma_kind kind, struct verve_wire_segment to)
{
	struct iovec iov = {local, to.len};
	struct verve_comp_error error;

	cr_assert_eq(start(kind, &iov, 1, &to, 1, 0, NULL), 0);
	nodes_settle();
	error = expect_error(&a.tx_queue, FI_EACCES);
	cr_expect_eq(error.prov_errno, VERVE_NET_WC_REMOTE_ACCESS);
	cr_expect_eq(error.comp.context, &context);
	cr_expect_eq(error.comp.flags, kind == VERVE_RMA_WRITE ? VERVE_COMP_RMA | VERVE_COMP_WRITE :
								VERVE_COMP_RMA | VERVE_COMP_READ);
	/* The connection still works. */
	node_resume(&a, &b);
}

Test(rma, keys_open_their_memory_and_no_more)
{
	struct verve_wire_segment to = segment(0, 100);

	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++) {
		to.key = region->rkey + 1;
		expect_denied(kind, to);
		expect_denied(kind, segment(ROOM - 99, 100));
		to = segment(0, 100);
		to.addr--;
		expect_denied(kind, to);
		cr_assert_eq(start_len(kind, 100, 0), 0);
		nodes_settle();
		expect_comp(&a.tx_queue);
	}
}

Test(rma, data_of_a_denied_write_is_never_told)
{
	struct iovec iov = {local, 100};
	struct verve_wire_segment to = segment(ROOM, 100);

	cr_assert_eq(start(VERVE_RMA_WRITE, &iov, 1, &to, 1, VERVE_OP_DATA, NULL), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	expect_none(&b.rx_queue);
	cr_expect_eq(AO_load(&b.remote_write.value), 0);
}

Test(rma, fence_holds_back_what_follows_a_read)
{
	pattern_fill(remote, ROOM, 3);
	cr_assert_eq(start_len(VERVE_RMA_READ, ROOM, 0), 0);
	cr_assert_eq(start_len(VERVE_RMA_WRITE, 8, VERVE_OP_FENCE), 0);
	cr_expect_not(TAILQ_EMPTY(&node_peer(&a, &b)->pending));
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_READ);
	cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_WRITE);
}

Test(rma, to_a_host_that_died)
{
	fake_net_host_kill(1);
	cr_assert_eq(start_len(VERVE_RMA_WRITE, 8, 0), 0);
	cr_assert_eq(start_len(VERVE_RMA_READ, ROOM, 0), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
}
