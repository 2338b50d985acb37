/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes of one piece that the application's descriptor opens: they take the short way.
 * They are compared with those of two pieces, which take the long one.
 */
#include <string.h>

#include "../proto/fixture.h"
#include "base/config.h"
#include "mr/region.h"
#include "rma/rma.h"

enum { SIZE = 3000 };

static struct node a, b;
static char local[SIZE], remote[SIZE];
static struct verve_mr_region *theirs, *ours;

static void setup(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	cr_assert_eq(verve_mr_region_open(b.dev, remote, SIZE,
					  VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_READ, &theirs),
		     0);
	cr_assert_eq(verve_mr_region_open(a.dev, local, SIZE, VERVE_NET_LOCAL_WRITE, &ours), 0);
}

static void teardown(void)
{
	verve_mr_region_close(ours);
	node_close(&a);
	verve_mr_region_close(theirs);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(described, .init = setup, .fini = teardown);

/* len bytes in so many pieces, with this descriptor. */
static void access_pieces(enum verve_rma_kind kind, size_t len, size_t pieces, uint32_t flags,
			  struct verve_mr_region *region)
{
	struct iovec iov[] = {{local, pieces == 1 ? len : len / 2},
			      {local + len / 2, len - len / 2}};
	void *desc[] = {region, region};
	struct verve_wire_segment to = {(uintptr_t)remote, len, theirs->rkey};
	struct verve_request request = {
		.iov = iov,
		.desc = desc,
		.iov_count = pieces,
		.addr = node_addr(&a, &b),
		.context = local,
		.flags = flags,
		.remote = &to,
		.remote_count = 1,
	};

	pattern_fill(kind == VERVE_RMA_READ ? remote : local, SIZE, 1);
	memset(kind == VERVE_RMA_READ ? local : remote, 0, SIZE);
	cr_assert_eq(verve_rma(a.xport, kind, &request), 0);
}

/* What this side sees of it. */
struct view {
	struct verve_comp comp;
	ssize_t comps;
	AO_t reads, writes;
	size_t started, in_use; /* tx_used, after the call and at the end */
	uint32_t requests;
	char local[SIZE], remote[SIZE];
};

static void try(struct view *view, enum verve_rma_kind kind, size_t len, size_t pieces,
		uint32_t flags)
{
	AO_t reads = AO_load(&a.read.value), writes = AO_load(&a.write.value);
	uint32_t produced = node_link(&a, &b)->produced;

	memset(view, 0, sizeof(*view));
	access_pieces(kind, len, pieces, flags, ours);
	view->started = a.xport->tx_used;
	view->requests = node_link(&a, &b)->produced - produced;
	nodes_settle();
	view->comps = verve_comp_queue_read(&a.tx_queue, &view->comp, 1);
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
	view->reads = AO_load(&a.read.value) - reads;
	view->writes = AO_load(&a.write.value) - writes;
	view->in_use = a.xport->tx_used;
	memcpy(view->local, local, SIZE);
	memcpy(view->remote, remote, SIZE);
}

static void compare(enum verve_rma_kind kind, size_t len, uint32_t flags)
{
	static struct view brief, whole;

	try(&brief, kind, len, 1, flags);
	try(&whole, kind, len, 2, flags);
	cr_assert_eq(memcmp(&brief, &whole, sizeof(brief)), 0, "kind %d, %zu bytes, flags %#x",
		     kind, len, flags);
	cr_assert_eq(brief.comps, flags & VERVE_OP_NOTIFY ? 1 : 0);
	cr_assert_eq(brief.reads + brief.writes, 1);
	cr_assert_eq(brief.requests, 1);
	cr_assert_eq(brief.in_use, 0);
	cr_assert(pattern_holds(kind == VERVE_RMA_READ ? brief.local : brief.remote, len, 1));
}

Test(described, an_access_looks_the_same_whichever_way_it_takes)
{
	static const size_t lens[] = {1, 2, NODE_INLINE, NODE_INLINE + 1, NODE_EAGER + 1, SIZE};
	static const uint32_t levels[] = {0, VERVE_OP_ACK, VERVE_OP_TRANSMIT};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (int level = 0; level < 3; level++) {
			compare(VERVE_RMA_READ, lens[i], levels[level]);
			compare(VERVE_RMA_READ, lens[i], levels[level] | VERVE_OP_NOTIFY);
			compare(VERVE_RMA_WRITE, lens[i], levels[level]);
			compare(VERVE_RMA_WRITE, lens[i], levels[level] | VERVE_OP_NOTIFY);
		}
}

static uint32_t requests_of(enum verve_rma_kind kind, size_t len, struct verve_mr_region *region)
{
	uint32_t produced = node_link(&a, &b)->produced;

	access_pieces(kind, len, 1, VERVE_OP_NOTIFY, region);
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_none(&a.tx_queue);
	cr_expect(pattern_holds(kind == VERVE_RMA_READ ? local : remote, len, 1));
	return node_link(&a, &b)->produced - produced;
}

Test(described, a_read_that_is_too_long_for_one_request_is_cut)
{
	enum { LONGEST = 1000 };

	verve_config.read_size = LONGEST;
	cr_expect_eq(requests_of(VERVE_RMA_READ, LONGEST, ours), 1);
	cr_expect_eq(requests_of(VERVE_RMA_READ, LONGEST + 1, ours), 2);
	cr_expect_eq(requests_of(VERVE_RMA_READ, SIZE, ours), 3);
	cr_expect_eq(requests_of(VERVE_RMA_WRITE, SIZE, ours), 1);
	verve_config.read_size = SIZE_MAX;
}

/* The device knows the memory by addresses that begin in the first page. */
Test(described, addresses_are_those_that_go_with_the_key)
{
	struct verve_mr_region *shifted;
	uint32_t base;

	cr_assert_eq(verve_mr_region_open_offset(a.dev, local, SIZE, VERVE_NET_LOCAL_WRITE, &base,
						 &shifted),
		     0);
	cr_assert_neq(shifted->shift, 0);
	cr_expect_eq(requests_of(VERVE_RMA_READ, SIZE, shifted), 1);
	cr_expect_eq(requests_of(VERVE_RMA_WRITE, SIZE, shifted), 1);
	cr_expect_eq(requests_of(VERVE_RMA_WRITE, 1, shifted), 1);
	verve_mr_region_close(shifted);
}

/* The application's region is too short, or grants too little: verve registers for itself. */
Test(described, a_descriptor_that_does_not_serve_is_left_aside)
{
	struct verve_mr_region *part, *sealed;

	cr_assert_eq(verve_mr_region_open(a.dev, local, SIZE / 2, VERVE_NET_LOCAL_WRITE, &part), 0);
	cr_assert_eq(verve_mr_region_open(a.dev, local, SIZE, 0, &sealed), 0);
	access_pieces(VERVE_RMA_WRITE, SIZE, 1, VERVE_OP_NOTIFY, part);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect(pattern_holds(remote, SIZE, 1));
	access_pieces(VERVE_RMA_READ, SIZE, 1, VERVE_OP_NOTIFY, part);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect(pattern_holds(local, SIZE, 1));
	access_pieces(VERVE_RMA_READ, SIZE, 1, VERVE_OP_NOTIFY, sealed);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect(pattern_holds(local, SIZE, 1));
	verve_mr_region_close(part);
	verve_mr_region_close(sealed);
}

Test(described, a_read_of_a_link_that_breaks_fails_once)
{
	access_pieces(VERVE_RMA_READ, SIZE, 1, VERVE_OP_NOTIFY, ours);
	verve_link_break(a.xport, node_link(&a, &b), FI_ENOTCONN, 0, "test");
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
	expect_none(&a.tx_queue);
	cr_expect_eq(a.xport->tx_used, 0);
}
