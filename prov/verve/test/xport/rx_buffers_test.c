/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive buffers: when there are more of them, and when the others go. */
#include "xport/rx_buffers.h"

#include <string.h>

#include "../proto/pair.h"
#include "xport/dispatch.h"
#include "xport/rx_lost.h"
#include "xport/turn.h"

enum { BUFFERS = 32, LIMIT = 112, ROOM = 100, SECOND = 1000000000, QUIET = 11 };

static char out[ROOM], in[ROOM];

static void open_nodes(uint32_t window, size_t first, uint32_t buffers, uint32_t limit)
{
	struct verve_xport_attr attr;

	node_attr(&attr);
	attr.rx_uncredited = buffers;
	attr.rx_first = first;
	attr.rx_limit = limit;
	attr.window = window;
	node_open(&a, 0, &attr);
	node_open(&b, 1, &attr);
	node_join(&a, &b, window);
	nodes_settle();
}

static void open_buffers(uint32_t window, uint32_t buffers, uint32_t limit)
{
	open_nodes(window, SIZE_MAX, buffers, limit);
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

/* A turn, whose poll finds so many packets. */
static void find(uint32_t waiting)
{
	b.xport->rx_load.grown = false;
	verve_rx_buffers_count(b.xport, waiting);
	verve_rx_buffers_turn(b.xport);
	verve_dispatch_refill(b.xport);
}

/* Turns until there are enough buffers for so many packets that wait. */
static void wait_for(uint32_t waiting)
{
	for (int i = 0; i < 100; i++)
		find(waiting);
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

Test(rx_buffers, more_than_half_of_them_in_use_bring_more_up_to_the_limit)
{
	open_with(NODE_WINDOW * BUFFERS);
	expect_buffers(BUFFERS, BUFFERS);
	wait_for(BUFFERS / 2);
	expect_buffers(BUFFERS, BUFFERS);
	wait_for(BUFFERS / 2 + 1);
	expect_buffers(2 * BUFFERS, 2 * BUFFERS);
	wait_for(BUFFERS + 1);
	expect_buffers(3 * BUFFERS, 3 * BUFFERS);
	wait_for(LIMIT / 2 + 1);
	expect_buffers(LIMIT, LIMIT);
	one_message();
}

/* Once no buffer is free, the device does not tell how many packets wait at the senders. */
Test(rx_buffers, three_quarters_in_use_bring_as_many_again)
{
	open_buffers(NODE_WINDOW, 2 * BUFFERS, 10 * BUFFERS);
	wait_for(2 * BUFFERS / 4 * 3 - 1);
	expect_buffers(3 * BUFFERS, 3 * BUFFERS);
	wait_for(3 * BUFFERS / 4 * 3);
	expect_buffers(8 * BUFFERS, 8 * BUFFERS);
	/* These are enough. */
	wait_for(3 * BUFFERS);
	expect_buffers(8 * BUFFERS, 8 * BUFFERS);
}

Test(rx_buffers, few_buffers_become_more_too)
{
	open_nodes(NODE_WINDOW, SIZE_MAX, 16, LIMIT);
	expect_buffers(16, 16);
	wait_for(8);
	expect_buffers(16, 16);
	b.xport->lost.count = 1;
	find(15);
	b.xport->lost.count = 0;
	expect_buffers(16 + VERVE_RX_STEP, 16 + VERVE_RX_STEP);
}

Test(rx_buffers, buffers_in_question_that_have_completed_count_as_none)
{
	open_with(NODE_WINDOW * BUFFERS);
	b.xport->lost.count = BUFFERS + 1;
	cr_expect_eq(verve_rx_buffers_usable(b.xport), 0);
	b.xport->lost.count = 0;
}

/* Buffers that a queue pair may have taken along take no packets. */
Test(rx_buffers, buffers_in_question_do_not_count)
{
	enum { MANY = 4 * VERVE_RX_STEP };

	open_buffers(NODE_WINDOW, MANY, 2 * MANY);
	b.xport->lost.count = MANY / 2;
	find(MANY / 4);
	expect_buffers(MANY, MANY);
	find(MANY / 4 + 1);
	b.xport->lost.count = 0;
	expect_buffers(MANY + VERVE_RX_STEP, MANY + VERVE_RX_STEP);
}

/* Where most buffers are in question, few packets are all that can wait. */
Test(rx_buffers, few_packets_fill_the_few_buffers_that_are_left)
{
	open_with(NODE_WINDOW * BUFFERS);
	b.xport->lost.count = BUFFERS - 8;
	find(4);
	expect_buffers(BUFFERS, BUFFERS);
	find(5);
	b.xport->lost.count = 0;
	expect_buffers(BUFFERS + VERVE_RX_STEP, BUFFERS + VERVE_RX_STEP);
}

/* They may be the last ones that no queue pair keeps. */
Test(rx_buffers, free_ones_that_are_no_batch_are_posted_before_a_sleep)
{
	open_with(NODE_WINDOW * BUFFERS);
	one_message();
	expect_buffers(BUFFERS, BUFFERS - 1);
	verve_turn_expect(b.xport);
	expect_buffers(BUFFERS, BUFFERS);
}

/* The thread may never sleep. */
Test(rx_buffers, free_ones_that_are_no_batch_are_posted_at_each_watch)
{
	open_with(NODE_WINDOW * BUFFERS);
	one_message();
	expect_buffers(BUFFERS, BUFFERS - 1);
	fake_net_advance(b.xport->attr.keepalive);
	for (int i = 0; i <= VERVE_WATCH_POLLS; i++)
		verve_turn(b.xport);
	expect_buffers(BUFFERS, BUFFERS);
}

/* Others, and threads that wait for the lock, get their turn meanwhile. */
Test(rx_buffers, turn_handles_no_more_than_a_part_of_what_waits)
{
	open_with(NODE_WINDOW * BUFFERS);
	for (int i = 0; i < BUFFERS - 1; i++) {
		cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
		cr_assert_eq(node_send(&a, &(struct message){
			.peer = &b, .buf = out, .len = ROOM, .quiet = true}), 0);
	}
	while (fake_net_run_next())
		;
	cr_expect_eq(verve_dispatch_poll(b.xport), VERVE_DISPATCH_SOME);
	cr_expect_eq(AO_load(&b.rx_queue.count), VERVE_POLL_BATCH);
	cr_expect_eq(b.xport->batch.count, BUFFERS - 1);
	cr_expect(verve_dispatch_drain(b.xport));
	cr_expect_eq(AO_load(&b.rx_queue.count), BUFFERS - 1);
}

/* Registering 16 MiB would keep everything else waiting for milliseconds. */
Test(rx_buffers, one_turn_adds_one_step)
{
	enum { MANY = 4 * VERVE_RX_STEP };

	open_buffers(NODE_WINDOW, MANY, 4 * MANY);
	verve_rx_buffers_count(b.xport, MANY);
	for (int i = 0; i < MANY; i++)
		verve_rx_buffers_turn(b.xport);
	cr_expect_eq(b.xport->rx_count, MANY + VERVE_RX_STEP);
	b.xport->rx_load.grown = false;
	verve_rx_buffers_turn(b.xport);
	cr_expect_eq(b.xport->rx_count, MANY + 2 * VERVE_RX_STEP);
}

Test(rx_buffers, memory_that_cannot_be_registered_changes_nothing)
{
	open_with(NODE_WINDOW * BUFFERS);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	wait_for(BUFFERS);
	cr_expect(fake_net_has_failed());
	expect_buffers(BUFFERS, BUFFERS);
	one_message();
}

Test(rx_buffers, spare_ones_go_after_a_quiet_time_as_messages_come)
{
	uint64_t pinned;

	open_with(NODE_WINDOW * BUFFERS);
	pinned = nodes_stats().pinned;
	wait_for(10 * LIMIT);
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
	wait_for(10 * LIMIT);
	expect_buffers(LIMIT, LIMIT);
}

Test(rx_buffers, run_while_they_go_brings_them_back)
{
	open_with(NODE_WINDOW * BUFFERS);
	wait_for(10 * LIMIT);
	watch(1);
	watch(QUIET);
	for (int i = 0; i < LIMIT && !b.xport->rx_load.aside_count; i++)
		one_message();
	cr_expect_gt(b.xport->rx_load.aside_count, 0);
	wait_for(LIMIT);
	cr_expect_eq(b.xport->rx_load.aside_count, 0);
	expect_buffers(LIMIT, LIMIT);
	for (int i = 0; i < 2 * LIMIT; i++)
		one_message();
	expect_buffers(LIMIT, LIMIT - b.xport->rx_free_count);
}

/* From here on, b has FIRST buffers always, and MANY where messages have begun in most of them. */
enum { WINDOW = 40, FIRST = 72, MANY = 200, MOST = 1000 };

static void open_few(void)
{
	open_nodes(WINDOW, FIRST, MANY, MOST);
	expect_buffers(FIRST, FIRST);
}

/* A peer of b that no test opens; only its address exists. */
static struct node *stranger(uint16_t i)
{
	static struct node node;

	node.addr = a.addr;
	verve_addr_set_port(&node.addr, 1000 + i);
	return &node;
}

/* So many strangers connect to b. */
static void strangers_come(uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		node_ask(&b, stranger(i));
		node_event(&b, VERVE_CM_READY, stranger(i), b.next_conn, 0);
	}
	nodes_settle();
}

/* Clearing and registering memory for peers that never send would take most of the time. */
Test(rx_buffers, links_that_open_bring_none)
{
	open_few();
	strangers_come(16);
	expect_buffers(FIRST, FIRST);
	cr_expect_not(b.xport->rx_load.shrinking);
	one_message();
}

Test(rx_buffers, first_ones_are_so_many_that_steps_lead_to_a_number)
{
	open_nodes(WINDOW, FIRST - 9, MANY, MOST);
	expect_buffers(FIRST, FIRST);
}

Test(rx_buffers, number_that_is_set_is_always_there)
{
	open_buffers(WINDOW, MANY, MANY);
	expect_buffers(MANY, MANY);
	watch(2 * QUIET);
	for (int i = 0; i < 2 * MANY; i++)
		one_message();
	cr_expect_eq(b.xport->rx_count, MANY);
}

Test(rx_buffers, device_may_take_fewer_than_the_first)
{
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.srq_wr = 20;
	fake_net_start(&config);
	open_nodes(WINDOW, FIRST, MANY, MOST);
	expect_buffers(20, 20);
	wait_for(MOST);
	expect_buffers(20, 20);
	one_message();
}

/* Links alone keep nothing. */
Test(rx_buffers, all_but_the_first_go)
{
	open_few();
	wait_for(10 * MOST);
	expect_buffers(MOST, MOST);
	strangers_come(1);
	watch(1);
	watch(QUIET);
	cr_assert(b.xport->rx_load.shrinking);
	for (int i = 0; i < 4 * MOST && b.xport->rx_load.shrinking; i++) {
		one_message();
		cr_assert_geq(verve_rx_buffers_in_use(b.xport), FIRST);
	}
	verve_dispatch_refill(b.xport);
	expect_buffers(FIRST, FIRST);
	watch(2 * QUIET);
	cr_expect_not(b.xport->rx_load.shrinking);
}

Test(rx_buffers, step_that_is_refused_is_tried_again_after_a_watch)
{
	open_few();
	fake_net_memlock(1);
	wait_for(MOST);
	expect_buffers(FIRST, FIRST);
	one_message();
	fake_net_memlock(UINT64_MAX);
	wait_for(2 * MOST);
	expect_buffers(FIRST, FIRST);
	watch(1);
	wait_for(2 * MOST);
	expect_buffers(MOST, MOST);
}

/* A stream is no reason to keep what a burst has brought. */
Test(rx_buffers, stream_lets_spare_ones_go)
{
	open_few();
	wait_for(10 * MOST);
	watch(1);
	wait_for(MOST / 4 - 1);
	watch(QUIET);
	cr_expect(b.xport->rx_load.shrinking);
}

/* Long messages of many peers, of which each arrives in several packets, are no run of packets. */
Test(rx_buffers, messages_that_have_begun_bring_some)
{
	open_few();
	/* As if the device had written the first packets of so many messages. */
	for (uint32_t i = 0; i < FIRST / 2; i++)
		memset(b.xport->lost.buffers[i]->data, 0, sizeof(b.xport->lost.mark));
	b.xport->rx_load.grown = false;
	verve_rx_lost_watch(b.xport);
	expect_buffers(FIRST, FIRST);
	memset(b.xport->lost.buffers[FIRST / 2]->data, 0, sizeof(b.xport->lost.mark));
	verve_rx_lost_watch(b.xport);
	expect_buffers(FIRST + VERVE_RX_STEP, FIRST + VERVE_RX_STEP);
}
