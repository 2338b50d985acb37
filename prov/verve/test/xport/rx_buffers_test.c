/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive buffers: when there are more of them, and when the others go. */
#include "xport/rx_buffers.h"

#include "../proto/pair.h"
#include "xport/dispatch.h"

enum { BUFFERS = 32, LIMIT = 112, ROOM = 100, SECOND = 1000000000, QUIET = 11 };

static char out[ROOM], in[ROOM];

static void open_buffers(uint32_t window, uint32_t buffers, uint32_t limit)
{
	struct verve_xport_attr attr;

	node_attr(&attr);
	attr.rx_buffers = buffers;
	attr.rx_limit = limit;
	attr.window = window;
	node_open(&a, 0, &attr);
	node_open(&b, 1, &attr);
	node_join(&a, &b, window);
	nodes_settle();
}

static void open_with(uint32_t window)
{
	open_buffers(window, BUFFERS, LIMIT);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(rx_buffers, .fini = teardown);

/* The packets that are polled have this length. */
static void packets_of(uint32_t bytes)
{
	for (int i = 0; i < VERVE_POLL_BATCH; i++)
		b.xport->batch.wc[i].byte_len = bytes;
}

static void begin_turn(void)
{
	b.xport->polls = (b.xport->polls + 1) % VERVE_WATCH_POLLS;
}

/* Polls, one in a turn, fill their batches until the run has so many packets. */
static void run_of(uint32_t packets)
{
	b.xport->rx_load.run = 0;
	while (b.xport->rx_load.run < packets) {
		begin_turn();
		verve_rx_buffers_count(b.xport, VERVE_POLL_BATCH);
	}
	verve_rx_buffers_count(b.xport, 1);
	verve_dispatch_refill(b.xport);
}

static void expect_buffers(uint32_t count, uint32_t posted)
{
	cr_expect_eq(b.xport->rx_count, count, "%u, not %u", b.xport->rx_count, count);
	cr_expect_eq(fake_net_srq_count(b.xport->srq), posted, "%u posted",
		     fake_net_srq_count(b.xport->srq));
}

static void one_message(void)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
	cr_assert_eq(node_send(&a, &(struct message){
		.peer = &b, .buf = out, .len = ROOM, .quiet = true}), 0);
	nodes_settle();
	expect_comp(&b.rx_queue);
}

/* A second of looks at the clock passes. */
static void watch(int seconds)
{
	for (int i = 0; i < seconds; i++) {
		fake_net_advance(SECOND);
		verve_rx_buffers_watch(b.xport, fake_net_time());
	}
}

Test(rx_buffers, half_of_them_in_a_run_brings_more_up_to_the_limit)
{
	open_with(NODE_WINDOW * BUFFERS);
	expect_buffers(BUFFERS, BUFFERS);
	verve_rx_buffers_count(b.xport, VERVE_POLL_BATCH - 1);
	verve_rx_buffers_count(b.xport, 1);
	expect_buffers(BUFFERS, BUFFERS);
	run_of(BUFFERS / 2);
	expect_buffers(2 * BUFFERS, 2 * BUFFERS);
	/* A run that is no longer than the last one shows nothing new. */
	run_of(BUFFERS / 2);
	expect_buffers(2 * BUFFERS, 2 * BUFFERS);
	run_of(BUFFERS);
	expect_buffers(3 * BUFFERS, 3 * BUFFERS);
	run_of(10 * LIMIT);
	expect_buffers(LIMIT, LIMIT);
	one_message();
}

Test(rx_buffers, links_get_no_more_than_their_windows_for_long_messages)
{
	open_with(NODE_WINDOW);
	packets_of(1000);
	run_of(10 * LIMIT);
	expect_buffers(BUFFERS, BUFFERS);
}

/* Of small messages, a link may send 2048 for each credit of its window. */
Test(rx_buffers, one_link_that_floods_small_messages_brings_more)
{
	open_with(NODE_WINDOW);
	packets_of(VERVE_WIRE_PREFIX + VERVE_WIRE_SMALL);
	run_of(10 * LIMIT);
	expect_buffers(LIMIT, LIMIT);
}

/* Registering 16 MiB would keep everything else waiting for milliseconds. */
Test(rx_buffers, one_turn_adds_one_step)
{
	enum { MANY = 4 * VERVE_RX_STEP };

	open_buffers(NODE_WINDOW, MANY, 4 * MANY);
	begin_turn();
	for (int i = 0; i < MANY; i++)
		verve_rx_buffers_count(b.xport, VERVE_POLL_BATCH);
	cr_expect_eq(b.xport->rx_count, MANY + VERVE_RX_STEP);
	begin_turn();
	verve_rx_buffers_count(b.xport, VERVE_POLL_BATCH);
	cr_expect_eq(b.xport->rx_count, MANY + 2 * VERVE_RX_STEP);
}

Test(rx_buffers, memory_that_cannot_be_registered_changes_nothing)
{
	open_with(NODE_WINDOW * BUFFERS);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	run_of(BUFFERS / 2);
	cr_expect(fake_net_has_failed());
	expect_buffers(BUFFERS, BUFFERS);
	one_message();
}

Test(rx_buffers, spare_ones_go_after_a_quiet_time_as_messages_come)
{
	uint64_t pinned;

	open_with(NODE_WINDOW * BUFFERS);
	pinned = nodes_stats().pinned;
	run_of(10 * LIMIT);
	watch(QUIET);
	cr_expect_not(b.xport->rx_load.shrinking, "the first look saw the run");
	watch(QUIET);
	cr_expect(b.xport->rx_load.shrinking);
	expect_buffers(LIMIT, LIMIT);
	for (int i = 0; i < 2 * LIMIT; i++)
		one_message();
	cr_expect_eq(b.xport->rx_count, BUFFERS);
	cr_expect_eq(nodes_stats().pinned, pinned);
	cr_expect_not(b.xport->rx_load.shrinking);
	/* And back again. */
	run_of(10 * LIMIT);
	expect_buffers(LIMIT, LIMIT);
}

Test(rx_buffers, run_while_they_go_brings_them_back)
{
	open_with(NODE_WINDOW * BUFFERS);
	run_of(10 * LIMIT);
	watch(1);
	watch(QUIET);
	for (int i = 0; i < LIMIT && !b.xport->rx_load.aside_count; i++)
		one_message();
	cr_expect_gt(b.xport->rx_load.aside_count, 0);
	run_of(LIMIT);
	cr_expect_eq(b.xport->rx_load.aside_count, 0);
	expect_buffers(LIMIT, LIMIT);
	for (int i = 0; i < 2 * LIMIT; i++)
		one_message();
	expect_buffers(LIMIT, LIMIT - b.xport->rx_free_count);
}
