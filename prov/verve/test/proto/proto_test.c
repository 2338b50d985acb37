/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transport: opening and its failures, limits of the device, the watch over peers, and the close
 * that drains operations.
 */
#include "xport/xport.h"

#include <string.h>

#include "fixture.h"
#include "mr/region.h"
#include "rma/rma.h"

enum { ROOM = 3 * NODE_EAGER, MANY = 10 };

static struct node a, b;
static char out[ROOM], in[ROOM];

static void setup(void)
{
	pattern_fill(out, sizeof(out), 1);
}

static void teardown(void)
{
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(xport, .init = setup, .fini = teardown);

static void open_both(const struct verve_xport_attr *attr, uint32_t window)
{
	node_open(&a, 0, attr);
	node_open(&b, 1, attr);
	node_join(&a, &b, window);
}

static void close_both(void)
{
	node_close(&a);
	node_close(&b);
}

static int send_len(size_t len, uint32_t flags)
{
	return node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len, .flags = flags});
}

static void recv_any(void)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM}), 0);
}

/* Each protocol, in both directions. */
static void exchange(void)
{
	static const size_t sizes[] = {0, 1, 64, 65, 300, NODE_EAGER, NODE_EAGER + 1, ROOM};

	for (size_t i = 0; i < 4 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t len = sizes[i / 4];
		struct node *from = i % 2 ? &b : &a, *to = i % 2 ? &a : &b;

		memset(in, 0, sizeof(in));
		cr_assert_eq(node_send(from,
				       &(struct message){.peer = to,
							 .buf = out,
							 .len = len,
							 .flags = i % 4 < 2 ? 0 : VERVE_OP_ACK}),
			     0);
		cr_assert_eq(node_recv(to, &(struct message){.buf = in, .len = ROOM}), 0);
		nodes_settle();
		cr_assert_eq(expect_comp(&to->rx_queue).len, len);
		cr_assert(pattern_holds(in, len, 1));
		expect_comp(&from->tx_queue);
	}
}

/* Opening. */

Test(xport, each_failure_of_opening_leaves_nothing)
{
	static const struct {
		uint32_t call;
		uint64_t nth;
		int error, expected;
	} failures[] = {
		{FAKE_NET_CHANNEL_OPEN, 1, -FI_ENOMEM, -FI_ENOMEM},
		{FAKE_NET_CQ_OPEN, 1, -FI_ENOMEM, -FI_ENOMEM},
		{FAKE_NET_CQ_OPEN, 2, -FI_EINVAL, -FI_EINVAL},
		{FAKE_NET_SRQ_OPEN, 1, -FI_EIO, -FI_EIO},
		{FAKE_NET_MR_REG, 1, -FI_EPERM, -FI_EPERM},
		{FAKE_NET_SRQ_POST, 1, -FI_EINVAL, -FI_EINVAL},
	};
	struct verve_xport_attr attr;
	static struct verve_proto proto;

	node_open(&a, 0, NULL); /* fills in the device and the tables of a */
	attr = a.xport->attr;
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		char before[128], after[128];

		fake_net_leaks(before, sizeof(before));
		fake_net_fail(failures[i].call, failures[i].nth, failures[i].error);
		cr_expect_eq(verve_proto_init(&proto, &attr, &a.lock), failures[i].expected,
			     "failure %zu", i);
		cr_expect(fake_net_has_failed());
		fake_net_leaks(after, sizeof(after));
		cr_expect_str_eq(after, before);
	}
	node_close(&a);
}

Test(xport, receive_buffers_are_what_the_device_takes)
{
	struct fake_net_config config;
	struct verve_xport_attr attr;

	fake_net_config_default(&config);
	config.limits.srq_wr = 20;
	config.limits.cqe = 4096;
	fake_net_start(&config);
	node_attr(&attr);
	open_both(&attr, NODE_WINDOW);
	cr_expect_eq(a.xport->attr.rx_uncredited, 20);
	cr_expect_eq(a.xport->rx_slabs.count, 20);
	cr_expect_eq(a.xport->wr_limit, 4096);
	exchange();
	close_both();
	config.limits.srq_wr = 100;
	config.limits.cqe = 40;
	fake_net_start(&config);
	open_both(&attr, NODE_WINDOW);
	cr_expect_eq(a.xport->attr.rx_uncredited, 40);
	cr_expect_eq(a.xport->wr_limit, 40);
	exchange();
	close_both();
}

Test(xport, packet_is_no_longer_than_a_work_request)
{
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.msg_size = 512;
	fake_net_start(&config);
	open_both(NULL, NODE_WINDOW);
	cr_expect_eq(a.xport->attr.eager_size, 512 - VERVE_WIRE_ATOMIC_PREFIX);
	exchange();
	for (size_t len = 512 - VERVE_WIRE_ATOMIC_PREFIX - 1; len <= 513; len++) {
		cr_assert_eq(send_len(len, VERVE_OP_DATA | VERVE_OP_ACK), 0);
		recv_any();
		nodes_settle();
		cr_assert_eq(expect_comp(&b.rx_queue).len, len);
		expect_comp(&a.tx_queue);
	}
	close_both();
}

/* Requests of b for a message of ROOM bytes that it reads. */
static uint32_t requests_of_a_message(uint32_t read_size)
{
	struct fake_net_config config;
	uint32_t before, count;

	fake_net_config_default(&config);
	config.limits.read_size = read_size;
	fake_net_start(&config);
	open_both(NULL, NODE_WINDOW);
	before = node_link(&b, &a)->produced;
	recv_any();
	cr_assert_eq(send_len(ROOM, 0), 0);
	nodes_settle();
	cr_assert_eq(expect_comp(&b.rx_queue).len, ROOM);
	expect_comp(&a.tx_queue);
	count = node_link(&b, &a)->produced - before;
	close_both();
	return count;
}

Test(xport, reads_are_as_long_as_the_device_does_well)
{
	cr_expect_eq(requests_of_a_message(ROOM / 6), requests_of_a_message(ROOM) + 5);
}

Test(xport, injected_message_is_no_longer_than_a_buffer)
{
	enum { LONGEST = 512, FITS = LONGEST - VERVE_WIRE_ATOMIC_PREFIX };
	struct iovec iov = {out, FITS + 1};
	struct verve_wire_segment to = {.len = FITS + 1};
	struct verve_request write = {.iov = &iov, .iov_count = 1, .remote = &to, .remote_count = 1,
				      .flags = VERVE_OP_INJECT};
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.msg_size = LONGEST;
	fake_net_start(&config);
	open_both(NULL, NODE_WINDOW);
	write.addr = node_addr(&a, &b);
	cr_expect_eq(send_len(FITS + 1, VERVE_OP_INJECT), -FI_EMSGSIZE);
	cr_expect_eq(send_len(FITS + 1, VERVE_OP_INJECT | VERVE_OP_ACK), -FI_EMSGSIZE);
	cr_expect_eq(verve_rma(a.xport, VERVE_RMA_WRITE, &write), -FI_EMSGSIZE);
	cr_expect_eq(a.xport->tx_used, 0);
	expect_none(&a.tx_queue);
	cr_expect_eq(send_len(FITS, VERVE_OP_INJECT), 0);
	cr_expect_eq(send_len(FITS, VERVE_OP_INJECT | VERVE_OP_ACK), 0);
	recv_any();
	recv_any();
	nodes_settle();
	for (int i = 0; i < 2; i++)
		cr_expect_eq(expect_comp(&b.rx_queue).len, FITS);
	close_both();
}

/* Extreme configurations: every message must still arrive. */

Test(xport, nothing_is_inline)
{
	struct verve_xport_attr attr;

	node_attr(&attr);
	attr.inline_size = 0;
	open_both(&attr, NODE_WINDOW);
	exchange();
	close_both();
}

Test(xport, nothing_is_eager)
{
	struct verve_xport_attr attr;

	node_attr(&attr);
	attr.eager_size = 0;
	open_both(&attr, NODE_WINDOW);
	exchange();
	close_both();
}

Test(xport, windows_of_none_and_one)
{
	for (uint32_t window = 0; window < 2; window++) {
		struct verve_xport_attr attr;

		node_attr(&attr);
		attr.window = window;
		open_both(&attr, window);
		exchange();
		cr_expect_leq(node_link(&a, &b)->credits, window);
		close_both();
	}
}

Test(xport, transmit_queue_of_one)
{
	struct verve_xport_attr attr;

	node_attr(&attr);
	attr.tx_size = 1;
	open_both(&attr, NODE_WINDOW);
	exchange();
	cr_assert_eq(send_len(ROOM, 0), 0);
	cr_expect_eq(send_len(ROOM, 0), -FI_EAGAIN);
	cr_expect_eq(send_len(1, VERVE_OP_INJECT), 0); /* an injected message needs no operation */
	recv_any();
	nodes_settle();
	cr_expect_eq(send_len(ROOM, 0), 0);
	close_both();
}

Test(xport, few_buffers_to_send_from)
{
	struct verve_xport_attr attr;

	node_attr(&attr);
	attr.inline_size = 0;
	for (size_t limit = 1; limit < 5; limit++) {
		open_both(&attr, NODE_WINDOW);
		a.xport->tx_slabs.limit = b.xport->tx_slabs.limit = limit;
		exchange();
		for (int i = 0; i < 20; i++)
			cr_assert_eq(send_len(100 + i, 0), 0);
		for (int i = 0; i < 20; i++)
			cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM,
								     .context = in + i}),
				     0);
		nodes_settle();
		for (int i = 0; i < 20; i++) {
			struct verve_comp comp = expect_comp(&b.rx_queue);

			cr_assert_eq(comp.len, 100 + (size_t)((char *)comp.context - in));
			expect_comp(&a.tx_queue);
		}
		close_both();
	}
}

/* Many peers. */

static struct node many[MANY];

static void open_many(void)
{
	node_open(&a, 0, NULL);
	for (int i = 0; i < MANY; i++) {
		node_open(&many[i], 1, NULL);
		node_join(&a, &many[i], NODE_WINDOW);
	}
}

static void close_many(void)
{
	for (int i = 0; i < MANY; i++)
		node_close(&many[i]);
	node_close(&a);
}

Test(xport, idle_connections_leave_entries_of_the_send_queue_to_others)
{
	open_many();
	/*
	 * There are so many connections that half of the queue is more than their work requests may
	 * use.
	 */
	a.xport->wr_limit = MANY + VERVE_LINK_RESERVE + 8;
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < MANY; i++)
			cr_assert_eq(node_send(&a, &(struct message){.peer = &many[i], .buf = out,
								     .len = 1}),
				     0);
	nodes_settle();
	for (int i = 0; i < 3 * MANY; i++)
		expect_comp(&a.tx_queue);
	close_many();
}

Test(xport, idle_connections_leave_buffers_to_inject_from)
{
	struct verve_wire_segment to = {0};
	struct iovec iov = {out, 8};
	struct verve_request write = {.iov = &iov, .iov_count = 1, .remote = &to, .remote_count = 1,
				      .flags = VERVE_OP_INJECT};
	struct verve_mr_region *region;

	open_many();
	a.xport->tx_slabs.limit = 2 * MANY;
	/* Each send copies one message, and asks for no completion. */
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(node_send(&a, &(struct message){.peer = &many[i], .buf = out,
							     .len = NODE_EAGER}),
			     0);
	nodes_settle();
	cr_assert_eq(verve_mr_region_open(many[0].dev, in, 8, VERVE_NET_REMOTE_WRITE, &region), 0);
	to = (struct verve_wire_segment){.addr = (uintptr_t)in, .len = 8, .key = region->rkey};
	write.addr = node_addr(&a, &many[0]);
	cr_expect_eq(verve_rma(a.xport, VERVE_RMA_WRITE, &write), 0);
	nodes_settle();
	cr_expect_eq(memcmp(in, out, 8), 0);
	verve_mr_region_close(region);
	close_many();
}

/* Operations under way. */

Test(xport, busy_tells_whether_the_peer_is_needed)
{
	open_both(NULL, NODE_WINDOW);
	cr_expect_not(verve_proto_is_busy(&a.proto, true));
	cr_assert_eq(send_len(1, 0), 0);
	/* the send has completed, as far as this side can tell */
	cr_expect_not(verve_proto_is_busy(&a.proto, true));
	cr_assert_eq(send_len(1, VERVE_OP_TRANSMIT), 0);
	cr_expect(verve_proto_is_busy(&a.proto, false));
	cr_expect(verve_proto_is_waiting(&a.proto));
	nodes_settle();
	cr_expect_not(verve_proto_is_busy(&a.proto, true));
	cr_expect_not(verve_proto_is_waiting(&a.proto));
	cr_assert_eq(send_len(1, VERVE_OP_ACK), 0);
	cr_expect_not(verve_proto_is_busy(&a.proto, false));
	cr_expect(verve_proto_is_busy(&a.proto, true));
	cr_expect(verve_proto_is_waiting(&a.proto));
	cr_assert_eq(send_len(1, VERVE_OP_FENCE), 0);
	cr_expect(verve_proto_is_busy(&a.proto, false));
	for (int i = 0; i < 4; i++)
		recv_any();
	nodes_settle();
	cr_expect_not(verve_proto_is_busy(&a.proto, true));
	close_both();
}

Test(xport, what_waits_for_a_connection_is_busy)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	cr_assert_eq(send_len(1, 0), 0);
	cr_expect(verve_proto_is_busy(&a.proto, false));
	/* the connection manager watches over the handshake */
	cr_expect_not(verve_proto_is_waiting(&a.proto));
	node_event(&a, VERVE_CM_FAILED, &b, 0, FI_ETIMEDOUT);
	nodes_settle();
	cr_expect_not(verve_proto_is_busy(&a.proto, true));
	close_both();
}

/* Polls so often that the transport looks at the clock. */
static void poll_often(struct node *node)
{
	for (int i = 0; i < VERVE_WATCH_POLLS; i++)
		verve_proto_poll(&node->proto);
}

Test(xport, silent_peer_is_asked_for_a_sign_after_its_time)
{
	uint64_t start;

	open_both(NULL, NODE_WINDOW);
	poll_often(&a);
	cr_assert_eq(send_len(1, VERVE_OP_ACK), 0);
	nodes_settle();
	fake_net_host_kill(1);
	start = a.xport->watch_time - 1000000000; /* the fake clock began at 0 */
	fake_net_run_until(start + a.xport->attr.keepalive - 1);
	poll_often(&a);
	cr_expect_eq(node_link(&a, &b)->produced, 1);
	fake_net_run_until(start + a.xport->attr.keepalive);
	poll_often(&a);
	cr_expect_eq(node_link(&a, &b)->produced, 2);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
	close_both();
}

Test(xport, peer_that_nobody_waits_for_is_left_alone)
{
	uint32_t produced;

	open_both(NULL, NODE_WINDOW);
	cr_assert_eq(send_len(1, 0), 0);
	nodes_settle();
	produced = node_link(&a, &b)->produced;
	for (int i = 0; i < 3; i++) {
		fake_net_advance(2 * a.xport->attr.keepalive);
		poll_often(&a);
	}
	cr_expect_eq(node_link(&a, &b)->produced, produced);
	close_both();
}

/* The close. */

Test(xport, bye_is_said_once_and_acknowledged)
{
	uint32_t produced;

	open_both(NULL, NODE_WINDOW);
	for (int i = 0; i < NODE_WINDOW; i++)
		cr_assert_eq(send_len(100, 0), 0);
	cr_expect_not(verve_proto_say_bye(&a.proto));
	produced = node_link(&a, &b)->produced;
	cr_expect_not(verve_proto_say_bye(&a.proto));
	cr_expect_eq(node_link(&a, &b)->produced, produced);
	nodes_settle();
	cr_expect(verve_proto_say_bye(&a.proto));
	cr_expect_null(node_peer(&b, &a)->link);
	for (int i = 0; i < NODE_WINDOW; i++)
		recv_any();
	for (int i = 0; i < NODE_WINDOW; i++)
		cr_expect_eq(expect_comp(&b.rx_queue).len, 100); /* the accepted message arrived */
	close_both();
}

Test(xport, bye_needs_no_peer_that_was_never_heard)
{
	open_both(NULL, NODE_WINDOW);
	cr_expect(verve_proto_say_bye(&b.proto));
	cr_expect_eq(node_link(&b, &a)->produced, 0);
	close_both();
	node_open(&a, 0, NULL);
	cr_expect(verve_proto_say_bye(&a.proto));
	node_close(&a);
}

Test(xport, bye_waits_for_broken_connections)
{
	open_both(NULL, NODE_WINDOW);
	cr_assert_eq(send_len(ROOM, 0), 0);
	verve_link_break(a.xport, node_link(&a, &b), FI_EIO, 0, "test");
	cr_expect_not(verve_proto_say_bye(&a.proto));
	nodes_settle();
	cr_expect(verve_proto_say_bye(&a.proto));
	close_both();
}

/* fi_close of fi_endpoint(3): operations are dropped without completions. */
Test(xport, cancel_ends_everything_without_a_word)
{
	struct node c;

	open_both(NULL, NODE_WINDOW);
	node_open(&c, 1, NULL);
	cr_assert_eq(send_len(ROOM, 0), 0);
	cr_assert_eq(send_len(1, VERVE_OP_ACK), 0);
	cr_assert_eq(node_send(&a, &(struct message){.peer = &c, .buf = out, .len = 1}), 0);
	cr_assert_eq(node_recv(&a, &(struct message){.buf = in, .len = 1}), 0);
	cr_assert_eq(node_recv(&a, &(struct message){.buf = in, .len = 1,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	nodes_settle();
	verve_proto_cancel(&a.proto);
	nodes_settle();
	verve_proto_cancel(&a.proto); /* nothing is left to cancel */
	expect_none(&a.tx_queue);
	expect_none(&a.rx_queue);
	cr_expect_eq(AO_load(&a.send.errors), 0);
	cr_expect_eq(AO_load(&a.recv.errors), 0);
	cr_expect_eq(a.xport->tx_used, 0);
	cr_expect_eq(a.xport->op_ids.used, 0);
	cr_expect_eq(a.proto.msg.match[0].posted_count + a.proto.msg.match[1].posted_count, 0);
	node_close(&c);
	close_both();
}

Test(xport, closing_reports_no_more_of_its_own_but_of_its_memory)
{
	struct iovec iov = {out, 8};
	struct verve_wire_segment to = {0};
	struct verve_request write = {.iov = &iov, .iov_count = 1, .remote = &to, .remote_count = 1,
				      .data = 5, .flags = VERVE_OP_DATA | VERVE_OP_NOTIFY};
	struct verve_mr_region *region;

	open_both(NULL, NODE_WINDOW);
	cr_assert_eq(verve_mr_region_open(a.dev, in, 8, VERVE_NET_REMOTE_WRITE, &region), 0);
	to = (struct verve_wire_segment){.addr = (uintptr_t)in, .len = 8, .key = region->rkey};
	write.addr = node_addr(&b, &a);
	cr_assert_eq(send_len(1, VERVE_OP_TRANSMIT), 0);
	cr_assert_eq(node_recv(&a, &(struct message){.buf = in, .len = 1}), 0);
	verve_proto_begin_close(&a.proto);
	verve_proto_begin_close(&a.proto);
	cr_expect_eq(a.proto.msg.match[0].posted_count, 0);
	cr_assert_eq(verve_rma(b.xport, VERVE_RMA_WRITE, &write), 0);
	nodes_settle();
	expect_none(&a.tx_queue);
	cr_expect_eq(AO_load(&a.send.value), 0);
	cr_expect_eq(a.xport->tx_used, 0);
	/* The accepted messages have been sent. */
	recv_any();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 1);
	expect_comp(&b.tx_queue);
	cr_expect_eq(expect_comp(&a.rx_queue).data, 5);
	cr_expect_eq(AO_load(&a.remote_write.value), 1);
	verve_mr_region_close(region);
	close_both();
}

Test(xport, poll_of_a_lost_device_finds_nothing)
{
	open_both(NULL, NODE_WINDOW);
	cr_assert_eq(send_len(1, VERVE_OP_ACK), 0);
	fake_net_device_remove(0);
	cr_expect_not(verve_proto_poll(&a.proto));
	expect_none(&a.tx_queue);
	/* No request will ever be flushed: only closing the queue pair ends it. */
	verve_proto_cancel(&a.proto);
	nodes_settle();
	expect_none(&a.tx_queue);
	cr_expect_eq(a.xport->tx_used, 0);
	close_both();
}

/* The message arrived before the links were broken, and no turn has handled it. */
Test(xport, message_that_comes_while_it_is_closed_is_not_left_in_the_shared_context)
{
	struct verve_xport_attr attr;
	struct verve_proto shared;
	struct verve_lock lock;

	verve_lock_init(&lock, true);
	verve_lock_acquire(&lock);
	node_attr(&attr);
	cr_assert_eq(verve_proto_init_shared(&shared, &attr, &lock), 0);
	node_open(&a, 0, &attr);
	attr.shared = verve_proto_xport(&shared);
	node_open(&b, 1, &attr);
	node_join(&a, &b, NODE_WINDOW);
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = 100}), 0);
	while (fake_net_run_next())
		;
	cr_assert_eq(shared.msg.match[0].unexpected_count, 0);
	node_close(&b);
	cr_expect_eq(shared.msg.match[0].unexpected_count, 0,
		     "a message of an endpoint that is gone");
	node_close(&a);
	verve_proto_fini_shared(&shared);
	verve_lock_release(&lock);
	verve_lock_fini(&lock);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}
