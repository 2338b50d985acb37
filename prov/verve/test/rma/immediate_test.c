/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Remote CQ data as immediate data: which writes carry it, and what both sides see of them. */
#include <string.h>

#include "../proto/fixture.h"
#include "mr/region.h"
#include "rma/rma.h"

enum { LONGEST = 2048, ROOM = 3 * LONGEST };

static struct node a, b;
static char local[ROOM], remote[ROOM];
static struct verve_mr_region *region;

static void setup(void)
{
	nodes_limit(LONGEST);
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	node_link(&a, &b)->immediates = true;
	node_link(&a, &b)->arrived = 1; /* the peer has sent a packet */
	node_link(&b, &a)->sent = 1;
	cr_assert_eq(verve_mr_region_open(b.dev, remote, ROOM, VERVE_NET_REMOTE_WRITE, &region), 0);
}

static void teardown(void)
{
	fake_net_memlock(UINT64_MAX);
	node_close(&a);
	verve_mr_region_close(region);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(immediate, .init = setup, .fini = teardown);

static void write_len(size_t len, size_t pieces, uint64_t key, uint64_t data)
{
	struct iovec iov = {local, len};
	struct verve_wire_segment to[] = {
		{(uintptr_t)remote, pieces == 1 ? len : len / 2, key},
		{(uintptr_t)remote + len / 2, len - len / 2, key},
	};
	struct verve_request request = {
		.iov = &iov,
		.iov_count = 1,
		.addr = node_addr(&a, &b),
		.data = data,
		.context = local,
		.flags = VERVE_OP_DATA | VERVE_OP_NOTIFY,
		.remote = to,
		.remote_count = pieces,
	};

	pattern_fill(local, len, len);
	memset(remote, 0, ROOM);
	cr_assert_eq(verve_rma(a.xport, VERVE_RMA_WRITE, &request), 0);
}

/* Both sides see the write and its data. Returns the requests that it took. */
static uint32_t try(size_t len, size_t pieces, uint64_t data)
{
	uint32_t before = node_link(&a, &b)->produced;
	struct verve_comp comp;

	write_len(len, pieces, region->rkey, data);
	while (verve_comp_queue_is_empty(&b.rx_queue)) {
		verve_proto_poll(&a.proto);
		cr_assert(fake_net_run_next());
		verve_proto_poll(&b.proto);
	}
	cr_assert(pattern_holds(remote, len, len)); /* the bytes came first */
	comp = expect_comp(&b.rx_queue);
	cr_expect_eq(comp.flags,
		     VERVE_COMP_RMA | VERVE_COMP_REMOTE_WRITE | VERVE_COMP_REMOTE_CQ_DATA);
	cr_expect_eq(comp.data, data);
	cr_expect_eq(comp.len, len);
	cr_expect_eq(comp.src, node_addr(&b, &a));
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
	return node_link(&a, &b)->produced - before;
}

/* Sizes that go inline, from a slab, and from the application's memory. */
static const size_t sizes[] = {
	1, NODE_INLINE, NODE_INLINE + 1, NODE_EAGER, NODE_EAGER + 1, LONGEST,
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

Test(immediate, data_of_32_bits_needs_no_packet)
{
	for (size_t i = 0; i < SIZES; i++) {
		cr_expect_eq(try(sizes[i], 1, 0), 1);
		cr_expect_eq(try(sizes[i], 1, UINT32_MAX), 1);
		cr_expect_eq(try(sizes[i], 1, 0x12345678), 1);
	}
	cr_expect_eq(AO_load(&b.remote_write.value), 3 * SIZES);
}

Test(immediate, other_writes_have_a_packet_behind_them)
{
	cr_expect_eq(try(8, 1, 1ull << 32), 2);	   /* more than 32 bits */
	cr_expect_eq(try(LONGEST + 1, 1, 1), 3);   /* two requests move it */
	cr_expect_eq(try(8, 2, 1), 3);		   /* so do two segments */
	cr_expect_eq(try(0, 1, 1), 2);		   /* nothing is moved */
	node_link(&a, &b)->immediates = false;	   /* an older peer */
	cr_expect_eq(try(8, 1, 1), 2);
	node_link(&a, &b)->immediates = true;
	node_link(&a, &b)->arrived = 0;		   /* a peer that may not have the link */
	cr_expect_eq(try(8, 1, 1), 2);
	cr_expect_eq(AO_load(&b.remote_write.value), 6);
}

Test(immediate, pieces_through_a_slab_have_a_packet_behind_them)
{
	cr_expect_eq(try(1, 1, 1), 1); /* allocates the slabs */
	fake_net_memlock(0);
	cr_expect_eq(try(NODE_EAGER, 1, 1), 1);
	cr_expect_gt(try(LONGEST, 1, 1), 2);
}

Test(immediate, both_sides_count_it_as_a_packet)
{
	uint32_t sent = node_link(&a, &b)->sent, arrived = node_link(&b, &a)->arrived;

	for (int i = 0; i < 10; i++)
		try(8, 1, i);
	cr_expect_eq(node_link(&a, &b)->sent, sent + 10);
	cr_expect_eq(node_link(&b, &a)->arrived, arrived + 10);
}

/* The buffers that the receives have taken are posted again. */
Test(immediate, more_than_there_are_buffers)
{
	for (int i = 0; i < 1000; i++)
		try(8, 1, i);
}

Test(immediate, of_a_closed_region_is_not_told)
{
	write_len(8, 1, 1ull << 48, 1); /* no rkey: the upper half is too large */
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	expect_none(&b.rx_queue);
	cr_expect_eq(AO_load(&b.remote_write.value), 0);
}
