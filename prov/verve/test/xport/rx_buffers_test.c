/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive buffers: when there are more of them, and when the others go. */
#include "xport/rx_buffers.h"

#include <string.h>

#include "../proto/pair.h"
#include "xport/dispatch.h"
#include "xport/rx_lost.h"
#include "xport/turn.h"
#include "xport/wire.h"

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

/* The packets that are polled have this type, and this length. */
static void packets_of(enum verve_wire_type type, uint32_t bytes)
{
	static unsigned char data[VERVE_WIRE_RTS_MAX];
	static struct verve_slab slab = {.data = data};
	struct verve_wire_packet packet = {.type = type};

	verve_wire_encode(&packet, data);
	for (int i = 0; i < VERVE_POLL_BATCH; i++)
		b.xport->batch.wc[i] = (struct verve_net_wc) {
			.wr_id = (uintptr_t)&slab,
			.opcode = VERVE_NET_WC_RECV,
			.byte_len = bytes,
		};
}

static void begin_turn(void)
{
	b.xport->rx_load.grown = false;
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
	packets_of(VERVE_WIRE_EAGER, VERVE_WIRE_PREFIX + NODE_EAGER);
	run_of(10 * LIMIT);
	expect_buffers(BUFFERS, BUFFERS);
}

/* Of small messages, a link may send 2048 for each credit of its window. */
Test(rx_buffers, one_link_that_floods_small_messages_brings_more)
{
	open_with(NODE_WINDOW);
	packets_of(VERVE_WIRE_EAGER, VERVE_WIRE_PREFIX + VERVE_WIRE_SMALL);
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

/* From here on, b has FIRST buffers always, and MANY where packets press that cost no credit. */
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

/* Each link may have a window under way. */
Test(rx_buffers, links_that_send_bring_as_many_as_their_windows)
{
	open_few();
	packets_of(VERVE_WIRE_EAGER, VERVE_WIRE_PREFIX + NODE_EAGER);
	run_of(10 * MOST);
	expect_buffers(FIRST, FIRST);
	strangers_come(3);
	packets_of(VERVE_WIRE_EAGER, VERVE_WIRE_PREFIX + NODE_EAGER);
	run_of(10 * MOST);
	/* The last step leads beyond the windows. */
	cr_expect_geq(b.xport->rx_count, 4 * WINDOW);
	cr_expect_lt(b.xport->rx_count, 4 * WINDOW + VERVE_RX_STEP);
	one_message();
}

Test(rx_buffers, steps_lead_to_a_number_and_not_beyond)
{
	open_nodes(WINDOW, FIRST - 9, MANY, MOST);
	expect_buffers(FIRST, FIRST);
	packets_of(VERVE_WIRE_CHUNK, 1000);
	run_of(10 * MOST);
	expect_buffers(MANY, MANY);
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
	run_of(MOST);
	expect_buffers(20, 20);
	one_message();
}

/* Chunks, offers, atomics and RMA with data cost no credit, whatever their length. */
Test(rx_buffers, packets_without_credit_bring_up_to_a_number)
{
	open_few();
	packets_of(VERVE_WIRE_CHUNK, 1000);
	run_of(10 * MOST);
	expect_buffers(MANY, MANY);
	packets_of(VERVE_WIRE_EAGER, VERVE_WIRE_PREFIX + VERVE_WIRE_SMALL);
	run_of(20 * MOST);
	expect_buffers(MOST, MOST);
	one_message();
}

/* However long a link keeps this side busy, no more than its window has not been answered. */
Test(rx_buffers, one_link_brings_none_by_packets_that_cost_a_credit)
{
	open_few();
	packets_of(VERVE_WIRE_EAGER, VERVE_WIRE_PREFIX + NODE_EAGER);
	run_of(10 * MOST);
	expect_buffers(FIRST, FIRST);
	/* A shorter run of others is not hidden by that. */
	b.xport->batch.wc[VERVE_POLL_BATCH - 1].opcode = VERVE_NET_WC_RECV_IMM;
	run_of(FIRST / 2);
	expect_buffers(FIRST + VERVE_RX_STEP, FIRST + VERVE_RX_STEP);
	run_of(10 * MOST);
	expect_buffers(MANY, MANY);
}

/* Of shorter messages, its window has more. */
Test(rx_buffers, one_link_brings_as_many_as_its_window_has_messages)
{
	open_few();
	packets_of(VERVE_WIRE_EAGER, (VERVE_WIRE_PREFIX + NODE_EAGER) / 4);
	run_of(10 * MOST);
	cr_expect_geq(b.xport->rx_count, 4 * WINDOW - VERVE_RX_STEP);
	cr_expect_leq(b.xport->rx_count, 4 * WINDOW + VERVE_RX_STEP);
}

/* Seven small messages in a batch are too few for a flood of them, and cost no credit either. */
Test(rx_buffers, one_link_brings_more_by_small_messages_among_others)
{
	open_few();
	packets_of(VERVE_WIRE_EAGER, VERVE_WIRE_PREFIX + NODE_EAGER);
	b.xport->batch.wc[3].byte_len = VERVE_WIRE_PREFIX + VERVE_WIRE_SMALL;
	run_of(10 * MOST);
	expect_buffers(MANY, MANY);
}

/* A turn that polls many batches adds one step, and the next turn goes on from there. */
Test(rx_buffers, run_of_one_turn_is_not_forgotten)
{
	open_few();
	begin_turn();
	for (int i = 0; i < MANY; i++)
		verve_rx_buffers_count(b.xport, VERVE_POLL_BATCH);
	cr_expect_eq(b.xport->rx_count, FIRST + VERVE_RX_STEP);
	b.xport->rx_load.run = 0;
	run_of(MANY / 2);
	cr_expect_gt(b.xport->rx_count, FIRST + VERVE_RX_STEP);
}

/* Links alone keep nothing. */
Test(rx_buffers, all_but_the_first_go)
{
	open_few();
	run_of(10 * MOST);
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
	packets_of(VERVE_WIRE_CHUNK, 1000);
	fake_net_memlock(1);
	run_of(MOST);
	expect_buffers(FIRST, FIRST);
	one_message();
	fake_net_memlock(UINT64_MAX);
	packets_of(VERVE_WIRE_CHUNK, 1000);
	run_of(2 * MOST);
	expect_buffers(FIRST, FIRST);
	watch(1);
	run_of(2 * MOST);
	expect_buffers(MANY, MANY);
}

/* Long messages of many peers, of which each arrives in several packets, are no run of packets. */
Test(rx_buffers, messages_that_have_begun_bring_some)
{
	open_few();
	/* As if the device had written the first packets of so many messages. */
	for (uint32_t i = 0; i < FIRST / 2; i++)
		memset(b.xport->lost.buffers[i]->data, 0, sizeof(b.xport->lost.mark));
	begin_turn();
	verve_rx_lost_watch(b.xport);
	expect_buffers(FIRST, FIRST);
	memset(b.xport->lost.buffers[FIRST / 2]->data, 0, sizeof(b.xport->lost.mark));
	verve_rx_lost_watch(b.xport);
	expect_buffers(FIRST + VERVE_RX_STEP, FIRST + VERVE_RX_STEP);
}
