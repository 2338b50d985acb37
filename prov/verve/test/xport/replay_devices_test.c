/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Replay: posts that fail, and devices that take no request in the error state. */
#include "../support/fake_world.h"
#include "replay_fixture.h"
#include "xport/detach.h"
#include "xport/replay_state.h"
#include "xport/turn.h"

/*
 * A read of no bytes ends when the peer's RESUME is settled, and then its RMA_EVENT is to be sent.
 * That post may fail, and break the link, while replay goes through the entries. True: post n
 * failed.
 */
static bool resume_with_failing_post(uint64_t n)
{
	struct iovec iov = {local, 0};
	struct verve_wire_segment from = {(uintptr_t)remote, 0, region->rkey};
	struct verve_request read = {.iov = &iov, .iov_count = 1, .addr = node_addr(&a, &b),
				     .flags = VERVE_OP_NOTIFY, .remote = &from, .remote_count = 1};
	uint32_t conn = node_link(&a, &b)->conn_id;
	bool failed;

	node_link(&a, &b)->rma_event = true;
	cr_assert_eq(verve_rma(a.xport, VERVE_RMA_READ, &read), 0);
	send_to(&a, &b, 20, 0, 0);
	start(VERVE_RMA_WRITE, 1, region->rkey, NULL);
	/*
	 * The peer has executed two requests, and a knows of neither. a may not send before b's
	 * RESUME has come.
	 */
	cr_assert(fake_net_run_leg(0, FAKE_NET_ARRIVE));
	cr_assert(fake_net_run_leg(0, FAKE_NET_ARRIVE));
	fake_net_fail(FAKE_NET_QP_POST, n, -FI_ENOMEM);
	node_resume(&b, &a);
	failed = fake_net_has_failed();
	fake_net_fail(0, 0, 0);
	/* b has broken the link: the manager tells a. */
	if (failed && node_peer(&a, &b)->link)
		node_event(&a, VERVE_CM_DOWN, &b, conn + 1, FI_ENOTCONN);
	nodes_settle();
	cr_expect_eq(AO_load(&a.read.value) + AO_load(&a.read.errors), 1, "post %lu fails", n);
	cr_expect_eq(AO_load(&a.write.value) + AO_load(&a.write.errors), 1, "post %lu fails", n);
	return failed;
}

Test(replay, any_post_may_fail)
{
	uint64_t n = 1;

	while (resume_with_failing_post(n)) {
		cr_assert_lt(n++, 20);
		teardown();
		setup();
	}
	cr_expect_gt(n, 4);
}

/* Looks until the device is not waited for any more. */
static void watch(struct node *node)
{
	for (int i = 0; i < 3; i++)
		verve_detach_watch(node->xport);
	nodes_settle();
	cr_expect(verve_turn_is_due(node->xport), "a sleeper has to look again");
}

static void forget_posts(void)
{
	struct fake_net_config config;

	teardown();
	fake_net_config_default(&config);
	config.error_forgets_posts = true;
	fake_net_start(&config);
	setup();
	refuse(&a);
	send_to(&a, &b, 20, 7, 0);
	nodes_settle();
}

/* The device has flushed the queue pair, and then takes a marker that never comes back. */
Test(replay, device_that_forgets_the_marker)
{
	forget_posts();
	cr_assert(is_suspended(&a, &b));
	watch(&a);
	cr_expect_eq(node_link(&a, &b)->replay->state, VERVE_REPLAY_STOPPED);
	verve_detach_watch(a.xport);
	nodes_settle();
	cr_expect_eq(node_link(&a, &b)->replay->state, VERVE_REPLAY_DETACHED);
	node_resume(&a, &b);
	expect_message(&b, 20, 7);
	expect_comp(&a.tx_queue);
	fake_world.config.error_forgets_posts = false; /* so that what closes ends */
}

Test(replay, broken_link_of_a_device_that_forgets_the_marker)
{
	forget_posts();
	verve_link_break(a.xport, node_link(&a, &b), FI_EIO, 0, "test");
	watch(&a);
	cr_expect_eq(a.xport->link_count, 1);
	verve_detach_watch(a.xport);
	nodes_settle();
	cr_expect_eq(a.xport->link_count, 0);
	cr_expect_not(verve_turn_is_due(a.xport));
	fake_world.config.error_forgets_posts = false;
}

/*
 * The device names the oldest request of which it has not said that it ended: here a message. No
 * key is asked for a message, so a request behind it was refused.
 */
Test(replay, device_that_blames_a_message_for_a_wrong_key)
{
	struct fake_net_config config;

	teardown();
	fake_net_config_default(&config);
	config.error_names_oldest = true;
	fake_net_start(&config);
	setup();
	send_to(&a, &b, 20, 0, 0);
	refuse(&a);
	send_to(&a, &b, 20, 1, 0);
	nodes_settle();
	cr_assert(is_suspended(&a, &b));
	node_resume(&a, &b);
	cr_assert(is_suspended(&a, &b), "the write is first now, and is named itself");
	node_resume(&a, &b);
	cr_expect_not(is_suspended(&a, &b));
	expect_message(&b, 20, 0);
	expect_message(&b, 20, 1);
	cr_expect_eq(AO_load(&a.send.value), 2);
	cr_expect_eq(AO_load(&a.send.errors), 0);
	cr_expect_eq(AO_load(&a.write.errors), 1);
}

/*
 * Devices that take no request in the error state, and remove the completions of a queue pair that
 * is closed.
 */

static void use_strict_devices(void)
{
	struct fake_net_config config;

	teardown();
	fake_net_config_default(&config);
	config.error_takes_no_post = config.close_cleans_cq = true;
	fake_net_start(&config);
	setup();
}

/*
 * The link goes on, though the device takes no marker, and a finds out that the queue pair has
 * failed when it posts.
 */
Test(replay, device_that_takes_no_request_in_error)
{
	static const size_t lens[] = {0, 10, 90, 500, 1000, 70, 3 * NODE_EAGER, 64, 800};
	uint32_t count = sizeof(lens) / sizeof(lens[0]);

	use_strict_devices();
	for (uint32_t i = 0; i < count; i++) {
		send_to(&a, &b, lens[i], i, 0);
		if (i == 2)
			refuse(&a);
		if (i == 4)
			while (!verve_net_qp_has_failed(node_link(&a, &b)->qp))
				cr_assert(fake_net_run_next());
	}
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	node_resume(&a, &b);
	for (uint32_t i = 0; i < count; i++)
		expect_message(&b, lens[i], i);
	expect_nothing_waits(&b);
	cr_expect_eq(AO_load(&a.send.value), count);
	cr_expect_eq(AO_load(&a.send.errors), 0);
	cr_expect_eq(AO_load(&a.write.errors), 1);
}

/*
 * More packets than one poll takes: a's device has acknowledged them, and they are in the
 * completion queue when the queue pair ends. Each must find a buffer, though a does not poll: b's
 * device would repeat one that finds none for ever.
 */
Test(replay, acknowledged_packets_outlive_a_queue_pair_that_takes_no_marker)
{
	enum { COUNT = 40 };

	use_strict_devices();
	cr_assert_geq(a.xport->rx_count, COUNT);
	send_to(&a, &b, 20, 0, 0);
	nodes_settle();
	for (uint32_t i = 0; i < COUNT; i++)
		send_to(&b, &a, 20, i, 0);
	while (fake_net_run_next())
		;
	start(VERVE_RMA_WRITE, 1, region->rkey, NULL);
	refuse(&a);
	start(VERVE_RMA_WRITE, 2, region->rkey, NULL);
	while (fake_net_run_next())
		;
	nodes_settle();
	node_resume(&a, &b);
	for (uint32_t i = 0; i < COUNT; i++)
		expect_message(&a, 20, i);
	expect_nothing_waits(&a);
	cr_expect_eq(AO_load(&b.send.errors), 0);
	cr_expect_eq(AO_load(&a.write.value), 2);
	cr_expect_eq(AO_load(&a.write.errors), 1);
}

/*
 * The posts of both sides find their queue pairs in error. The refused request is repeated, because
 * its refusal was not seen, and is refused again.
 */
Test(replay, requests_that_are_not_taken_are_kept)
{
	use_strict_devices();
	send_to(&a, &b, 20, 0, 0);
	refuse(&a);
	nodes_settle();
	node_resume(&a, &b);
	verve_net_qp_error(node_link(&b, &a)->qp);
	send_to(&b, &a, 20, 1, 0);
	refuse(&a);
	verve_net_qp_error(node_link(&a, &b)->qp);
	send_to(&a, &b, 20, 1, 0);
	nodes_settle();
	cr_expect(is_suspended(&a, &b));
	cr_expect(is_suspended(&b, &a));
	node_resume(&b, &a);
	node_resume(&b, &a);
	expect_message(&b, 20, 0);
	expect_message(&b, 20, 1);
	expect_message(&a, 20, 1);
	cr_expect_eq(AO_load(&a.send.errors), 0);
	cr_expect_eq(AO_load(&b.send.errors), 0);
}
