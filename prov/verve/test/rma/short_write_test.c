/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way of a write against the long one, which a write of two pieces takes, and a write
 * that finds another one in its peer's queue.
 */
#include <string.h>

#include "../proto/fixture.h"
#include "mr/region.h"
#include "rma/rma.h"

static struct node a, b;
static char local[NODE_INLINE], remote[NODE_INLINE];
static struct verve_mr_region *region;

static void setup(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	cr_assert_eq(verve_mr_region_open(b.dev, remote, sizeof(remote), VERVE_NET_REMOTE_WRITE,
					  &region),
		     0);
	pattern_fill(local, sizeof(local), 1);
}

static void teardown(void)
{
	node_close(&a);
	verve_mr_region_close(region);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(short_write, .init = setup, .fini = teardown);

/* A write of len bytes in so many pieces. */
static void write_pieces(size_t len, size_t pieces, uint64_t key, uint32_t flags)
{
	struct iovec iov[] = {{local, pieces == 1 ? len : len / 2},
			      {local + len / 2, len - len / 2}};
	struct verve_wire_segment to = {(uintptr_t)remote, len, key};
	struct verve_request request = {
		.iov = iov,
		.iov_count = pieces,
		.addr = node_addr(&a, &b),
		.context = local,
		.flags = flags,
		.remote = &to,
		.remote_count = 1,
	};

	cr_assert_eq(verve_rma(a.xport, VERVE_RMA_WRITE, &request), 0);
}

/* What both sides see of a write. */
struct view {
	struct verve_comp comp;
	ssize_t comps;
	AO_t writes;
	size_t started, in_use; /* tx_used, after the call and at the end */
	char remote[NODE_INLINE];
};

static struct view try(size_t len, size_t pieces, uint32_t flags)
{
	AO_t writes = AO_load(&a.write.value);
	struct view view;

	memset(&view, 0, sizeof(view));
	memset(remote, 0, sizeof(remote));
	write_pieces(len, pieces, region->rkey, flags);
	view.started = a.xport->tx_used;
	expect_none(&a.tx_queue);
	nodes_settle();
	view.comps = verve_comp_queue_read(&a.tx_queue, &view.comp, 1);
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
	view.writes = AO_load(&a.write.value) - writes;
	view.in_use = a.xport->tx_used;
	memcpy(view.remote, remote, sizeof(remote));
	return view;
}

Test(short_write, looks_like_a_long_one)
{
	static const uint32_t levels[] = {0, VERVE_OP_ACK, VERVE_OP_TRANSMIT};

	for (size_t len = 1; len <= NODE_INLINE; len++)
		for (int i = 0; i < 6; i++) {
			uint32_t flags = levels[i / 2] | (i % 2 ? VERVE_OP_NOTIFY : 0);
			struct view brief = try(len, 1, flags), whole = try(len, 2, flags);

			cr_assert_eq(memcmp(&brief, &whole, sizeof(brief)), 0,
				     "%zu bytes, flags %#x", len, flags);
			cr_assert_eq(brief.comps, i % 2);
			cr_assert_eq(brief.writes, 1);
			cr_assert_eq(brief.started, 1);
			cr_assert_eq(brief.in_use, 0);
			cr_assert(pattern_holds(brief.remote, len, 1));
		}
}

Test(short_write, is_posted_within_the_call)
{
	uint32_t posted = node_link(&a, &b)->produced;

	write_pieces(8, 1, region->rkey, VERVE_OP_NOTIFY);
	cr_expect_eq(node_link(&a, &b)->produced, posted + 1);
	cr_expect(TAILQ_EMPTY(&node_peer(&a, &b)->pending));
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).context, local);
}

Test(short_write, fails_like_a_long_one)
{
	for (size_t pieces = 1; pieces <= 2; pieces++) {
		/* No rkey: the upper half is too large. */
		write_pieces(8, pieces, 1ull << 48, VERVE_OP_NOTIFY);
		nodes_settle();
		cr_expect_eq(expect_error(&a.tx_queue, FI_EACCES).comp.context, local);
		cr_expect_eq(a.xport->tx_used, 0);
	}
	cr_expect_eq(AO_load(&a.write.errors), 2);
	cr_expect_eq(AO_load(&a.write.value), 0);
}

Test(short_write, of_a_link_that_breaks_fails_once)
{
	write_pieces(8, 1, region->rkey, VERVE_OP_NOTIFY);
	verve_link_break(a.xport, node_link(&a, &b), FI_ENOTCONN, 0, "test");
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
	expect_none(&a.tx_queue);
	cr_expect_eq(a.xport->tx_used, 0);
}

Test(short_write, does_not_overtake_what_waits)
{
	struct verve_link *link = node_link(&a, &b);
	uint32_t writes = 0;

	while (TAILQ_EMPTY(&node_peer(&a, &b)->pending) && ++writes < NODE_TX_SIZE)
		write_pieces(8, 1, region->rkey, VERVE_OP_NOTIFY);
	cr_assert_lt(writes, NODE_TX_SIZE, "the send queue has room for all");
	cr_expect_eq(link->produced - link->retired, writes - 1);
	write_pieces(8, 1, region->rkey, VERVE_OP_NOTIFY);
	cr_expect_eq(TAILQ_NEXT(TAILQ_FIRST(&node_peer(&a, &b)->pending), link)->state,
		     VERVE_OP_QUEUED);
	nodes_settle();
	for (uint32_t i = 0; i < writes + 1; i++)
		expect_comp(&a.tx_queue);
	expect_none(&a.tx_queue);
}

/* As many at once as the queue takes: the device has fewer completions than there are writes. */
Test(short_write, among_many_others_does_not_ask_for_a_completion)
{
	struct verve_link *link = node_link(&a, &b);
	uint32_t writes = 0;

	for (; TAILQ_EMPTY(&node_peer(&a, &b)->pending) && writes < NODE_TX_SIZE; writes++)
		write_pieces(8, 1, region->rkey, VERVE_OP_NOTIFY);
	cr_assert_geq(writes, 32);
	cr_expect_lt(a.xport->asked, writes / 2);
	cr_expect_geq(a.xport->asked, 4);
	cr_expect_eq(a.xport->asked + link->sharing, link->produced - link->retired);
	nodes_settle();
	for (uint32_t i = 0; i < writes; i++)
		expect_comp(&a.tx_queue);
	expect_none(&a.tx_queue);
	cr_expect_eq(link->sharing, 0);
	cr_expect_eq(a.xport->asked, 0);
}

/* Nothing follows the last write: this side asks for it when the others have ended. */
Test(short_write, last_one_of_a_burst_completes)
{
	for (uint32_t burst = 1; burst <= 32; burst++) {
		for (uint32_t i = 0; i < burst; i++)
			write_pieces(8, 1, region->rkey, VERVE_OP_NOTIFY);
		nodes_settle();
		for (uint32_t i = 0; i < burst; i++)
			expect_comp(&a.tx_queue);
		expect_none(&a.tx_queue);
		cr_expect_eq(node_link(&a, &b)->sharing, 0);
	}
}

Test(short_write, that_has_not_asked_fails_with_its_link)
{
	enum { WRITES = 32 };

	for (int i = 0; i < WRITES; i++)
		write_pieces(8, 1, region->rkey, VERVE_OP_NOTIFY);
	cr_assert_gt(node_link(&a, &b)->sharing, 0);
	verve_link_break(a.xport, node_link(&a, &b), FI_ENOTCONN, 0, "test");
	nodes_settle();
	for (int i = 0; i < WRITES; i++)
		expect_error(&a.tx_queue, FI_ENOTCONN);
	expect_none(&a.tx_queue);
	cr_expect_eq(a.xport->asked, 0);
	cr_expect_eq(a.xport->tx_used, 0);
}
