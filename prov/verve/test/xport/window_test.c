/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Windows for a peer: what an offer opens, for whom, and when that ends. */
#include "xport/window.h"

#include <string.h>

#include "../support/fake_memory.h"
#include "../support/fake_region.h"
#include "../support/fake_world.h"
#include "base/config.h"
#include "msg/send.h"
#include "msg/unexpected.h"
#include "proto/cancel.h"
#include "replay_fixture.h"

enum { LEN = 3 * NODE_EAGER };

/* Over devices with windows for a peer. */
static void open_pair(uint32_t windows, bool refused)
{
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.mw = windows;
	config.limits.mw_peer = true;
	config.mw_refused = refused;
	fake_net_start(&config);
	verve_config.mr_cache = "strict";
	fake_net_watch_allow(true);
	setup();
	verve_mr_cache_prepare(&a.mr_cache);
	verve_mr_cache_prepare(&b.mr_cache);
	node_link(&a, &b)->bound_keys = node_link(&b, &a)->bound_keys = true;
}

static void open_windows(void)
{
	open_pair(100, false);
}

TestSuite(peer_window, .init = open_windows, .fini = teardown);
TestSuite(peer_window_kinds, .fini = teardown);

/* The offer of a message that waits at b. */
static const struct verve_wire_packet *offer(void)
{
	struct verve_match_msg *msg = TAILQ_FIRST(&b.proto.msg.match[1].unexpected);

	cr_assert(msg);
	return &verve_unexpected_of(msg)->packet;
}

static uint32_t bound(void)
{
	uint32_t count = 0;
	struct fake_region *region, *next;

	HASH_ITER(hh_rkey, a.dev->by_rkey, region, next)
		count += region->only != NULL;
	return count;
}

static void offer_one(void)
{
	send_to(&a, &b, LEN, 7, 0);
	nodes_settle();
	cr_assert_eq(bound(), 1);
}

/* The message comes, and no window is left. */
static void expect_end(void)
{
	expect_message(&b, LEN, 7);
	expect_comp(&a.tx_queue);
	cr_expect_eq(bound(), 0);
}

Test(peer_window, opens_the_message_to_its_peer_alone)
{
	const struct verve_wire_packet *rts;
	uint32_t key;

	offer_one();
	rts = offer();
	key = rts->segment[0].key;
	cr_expect(rts->flags & VERVE_WIRE_BOUND);
	cr_expect(fake_rkey_covers(a.dev, key, (uintptr_t)out, LEN, VERVE_NET_REMOTE_READ));
	cr_expect_not(fake_rkey_covers(a.dev, key, (uintptr_t)out - 1, 1, VERVE_NET_REMOTE_READ));
	cr_expect_not(fake_rkey_covers(a.dev, key, (uintptr_t)out + LEN, 1,
				       VERVE_NET_REMOTE_READ));
	cr_expect_not(fake_rkey_covers(a.dev, key, (uintptr_t)out, 1, VERVE_NET_REMOTE_WRITE));
	cr_expect(fake_rkey_is_for(a.dev, key, node_link(&a, &b)->qp));
	cr_expect_not(fake_rkey_is_for(a.dev, key, node_link(&b, &a)->qp));
	expect_end();
	cr_expect_not(fake_rkey_is_there(a.dev, key));
}

/* The registration is kept; each message has a window of its own, and a key of its own. */
Test(peer_window, each_message_has_its_own)
{
	uint64_t regs, opened = 0;
	uint32_t keys[20];

	for (int i = 0; i < 20; i++) {
		offer_one();
		keys[i] = offer()->segment[0].key;
		for (int j = 0; j < i; j++)
			cr_expect_neq(keys[j], keys[i]);
		expect_end();
		if (!i) {
			regs = nodes_stats().regs;
			opened = fake_world.open[FAKE_MW];
		}
	}
	cr_expect_eq(nodes_stats().regs, regs);
	cr_expect_eq(nodes_stats().peer_binds, 20);
	cr_expect_eq(fake_world.open[FAKE_MW] - opened, VERVE_MR_WINDOWS_REST - 1);
}

/* The send completes when the device refuses the key, not when FIN comes. */
Test(peer_window, has_ended_when_the_send_completes)
{
	bool closing = false;

	offer_one();
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = LEN, .tag = 7,
						     .flags = VERVE_OP_TAGGED}), 0);
	for (int i = 0; i < 1000 && verve_comp_queue_is_empty(&a.tx_queue); i++) {
		const struct verve_op *op = TAILQ_FIRST(&node_peer(&a, &b)->active);

		closing |= op && op->state == VERVE_OP_SENT;
		fake_net_run_next();
		verve_proto_poll(&b.proto);
		verve_proto_poll(&a.proto);
		cr_expect(bound() || closing);
	}
	cr_expect(closing);
	cr_expect_eq(bound(), 0);
	expect_comp(&a.tx_queue);
	nodes_settle();
	expect_comp(&b.rx_queue);
}

Test(peer_window, message_of_pieces_has_one_for_each)
{
	struct iovec from[VERVE_IOV_LIMIT] = {
		{out, 1000}, {out + 1000, 1000}, {out + 2000, 0}, {out + 2000, LEN - 2000}};

	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .iov = from, .iov_count = 4,
						     .tag = 7, .flags = VERVE_OP_TAGGED}), 0);
	nodes_settle();
	cr_expect_eq(bound(), 3);
	expect_end();
}

Test(peer_window, peer_that_does_not_know_them_gets_none)
{
	node_link(&a, &b)->bound_keys = false;
	send_to(&a, &b, LEN, 7, 0);
	nodes_settle();
	cr_expect_eq(bound(), 0);
	cr_expect_not(offer()->flags & VERVE_WIRE_BOUND);
	expect_end();
	cr_expect_eq(nodes_stats().peer_binds, 0);
}

Test(peer_window, ends_when_the_message_is_taken_back)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = LEN, .tag = 7,
						     .context = in, .flags = VERVE_OP_TAGGED}),
		     0);
	nodes_settle();
	cr_expect_eq(bound(), 1);
	cr_assert_eq(verve_cancel(a.xport, in), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECANCELED);
	cr_expect_eq(bound(), 0);
	expect_nothing_waits(&b);
}

/* Without room for the request that ends it, the window is freed. */
Test(peer_window, is_freed_where_there_is_no_room)
{
	uint32_t limit = a.xport->wr_limit;
	size_t open;

	offer_one();
	open = fake_world.open[FAKE_MW];
	a.xport->wr_limit = 0;
	expect_message(&b, LEN, 7);
	expect_comp(&a.tx_queue);
	cr_expect_eq(bound(), 0);
	cr_expect_eq(fake_world.open[FAKE_MW], open - 1);
	a.xport->wr_limit = limit;
}

/* The offer waits at b while the connection gets another queue pair: b pulls the message. */
Test(peer_window, offer_that_outlives_its_queue_pair_is_pulled)
{
	offer_one();
	refuse(&a);
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	expect_error(&a.tx_queue, FI_EACCES);
	cr_expect_eq(bound(), 0);
	node_resume(&a, &b);
	expect_end();
	cr_expect_eq(AO_load(&a.send.errors) + AO_load(&b.recv.errors), 0);
}

/* The offer itself was not executed: it is repeated without keys. */
Test(peer_window, offer_that_is_repeated_is_pulled)
{
	refuse(&a);
	send_to(&a, &b, LEN, 7, 0);
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	expect_error(&a.tx_queue, FI_EACCES);
	node_resume(&a, &b);
	cr_expect_eq(offer()->segment_count, 0);
	expect_end();
	offer_one();
	cr_expect_eq(offer()->segment_count, 1);
	expect_end();
}

/* b's reads are under way when the queue pair fails. */
Test(peer_window, reads_under_way_become_a_pull)
{
	offer_one();
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = LEN, .tag = 7,
						     .flags = VERVE_OP_TAGGED}), 0);
	refuse(&a);
	fake_net_run_leg(0, FAKE_NET_ARRIVE);
	nodes_settle();
	cr_assert(is_suspended(&a, &b));
	node_resume(&a, &b);
	expect_error(&a.tx_queue, FI_EACCES);
	expect_comp(&a.tx_queue);
	cr_expect_eq(expect_comp(&b.rx_queue).len, LEN);
	cr_expect(pattern_holds(in, LEN, 2));
	cr_expect_eq(bound(), 0);
}

Test(peer_window, broken_connection_ends_it)
{
	offer_one();
	verve_link_break(a.xport, node_link(&a, &b), FI_EIO, 0, "test");
	nodes_settle();
	expect_error(&a.tx_queue, FI_EIO);
	cr_expect_eq(bound(), 0);
}

/* FIN has come, and the link breaks before the device has ended the window. */
Test(peer_window, answered_message_ends_well_though_the_link_breaks)
{
	struct verve_wire_packet fin = {.type = VERVE_WIRE_FIN};
	struct verve_link *link = node_link(&a, &b);

	offer_one();
	fin.op_id = offer()->op_id;
	verve_send_finished(a.xport, link, &fin);
	cr_expect_eq(bound(), 1);
	verve_link_break(a.xport, link, FI_EIO, 0, "test");
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect_eq(bound(), 0);
	expect_nothing_waits(&a);
}

/* Slots are used again: a packet must not be taken for the request that was there before. */
Test(peer_window, slots_of_packets_name_no_request_of_a_window)
{
	struct verve_link *link = node_link(&a, &b);

	offer_one();
	expect_end();
	for (uint32_t i = 0; i < VERVE_LINK_REQUESTS; i++) {
		send_to(&a, &b, 8, 8, 0);
		nodes_settle();
		expect_comp(&a.tx_queue);
	}
	for (uint32_t i = 0; i < VERVE_LINK_REQUESTS; i++)
		if (verve_link_slot(link, i)->kind != VERVE_SLOT_NOTHING)
			cr_expect_eq(verve_link_slot(link, i)->verb, 0);
	cr_expect_neq(verve_link_slot(link, 0)->kind, VERVE_SLOT_NOTHING);
}

/* A device that refuses a bind: the message is pulled, and no window for a peer is used again. */
Test(peer_window_kinds, refused_bind_costs_no_message)
{
	open_pair(100, true);
	send_to(&a, &b, LEN, 7, 0);
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	node_resume(&a, &b);
	expect_end();
	cr_expect_not(verve_mr_peer_windows_are_open(&a.mr_cache.peer_windows));
	send_to(&a, &b, LEN, 7, 0);
	nodes_settle();
	cr_expect_eq(offer()->segment_count, 1);
	expect_end();
}

/* A peer can fail its queue pair: that says nothing of the device's windows. */
Test(peer_window_kinds, queue_pair_that_failed_refuses_no_window)
{
	struct verve_link *link;

	open_pair(100, false);
	fake_world.config.error_takes_no_post = true;
	link = node_link(&a, &b);
	link->futile = UINT8_MAX; /* suspending it is hopeless */
	link->futile_packets = link->sent + link->arrived;
	verve_net_qp_error(link->qp);
	send_to(&a, &b, LEN, 7, 0);
	cr_expect(link->broken);
	cr_expect(verve_mr_peer_windows_are_open(&a.mr_cache.peer_windows));
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
}

/* Where the device has no window left, the message has a registration of its own. */
Test(peer_window_kinds, none_is_left)
{
	open_pair(2, false);
	for (uint64_t i = 0; i < 3; i++)
		send_to(&a, &b, LEN, i, 0);
	nodes_settle();
	cr_expect_eq(bound(), 2);
	for (uint64_t i = 0; i < 3; i++)
		expect_message(&b, LEN, i);
	for (uint64_t i = 0; i < 3; i++)
		expect_comp(&a.tx_queue);
	cr_expect_eq(bound(), 0);
}
