/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Replay: links that do not go on. */
#include "proto/cancel.h"
#include "replay_fixture.h"

static void suspend_with_work(void)
{
	refuse(&a);
	start(VERVE_RMA_WRITE, 1, region->rkey, &b);
	send_to(&a, &b, 90, 0, VERVE_OP_ACK);
	nodes_settle();
	cr_assert(is_suspended(&a, &b));
	expect_error(&a.tx_queue, FI_EACCES);
}

static void expect_broken(int error)
{
	expect_error(&a.tx_queue, error);
	expect_error(&a.tx_queue, error);
	expect_none(&a.tx_queue);
	cr_expect_eq(a.xport->drained_count, 0);
}

Test(replay, peer_that_cannot_be_reached_again)
{
	suspend_with_work();
	node_event(&a, VERVE_CM_FAILED, &b, 0, FI_ECONNREFUSED);
	nodes_settle();
	expect_broken(FI_ECONNREFUSED);
	cr_expect_null(node_peer(&a, &b)->link);
}

Test(replay, peer_that_ended_the_connection)
{
	suspend_with_work();
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ENOTCONN);
	nodes_settle();
	expect_broken(FI_ENOTCONN);
}

Test(replay, peer_that_has_forgotten)
{
	suspend_with_work();
	node_event(&b, VERVE_CM_DOWN, &a, b.next_conn, FI_ENOTCONN);
	node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	expect_broken(FI_ENOTCONN);
	send_to(&a, &b, 20, 7, 0);
	expect_message(&b, 20, 7);
}

static void expect_dropped(void)
{
	expect_none(&a.tx_queue);
	cr_expect_eq(a.xport->tx_used, 0);
	cr_expect_eq(a.xport->drained_count, 0);
}

Test(replay, closing_while_suspended)
{
	suspend_with_work();
	verve_proto_cancel(&a.proto);
	nodes_settle();
	expect_dropped();
}

Test(replay, closing_while_the_queue_pair_drains)
{
	refuse(&a);
	start(VERVE_RMA_WRITE, 1, region->rkey, &b);
	send_to(&a, &b, 90, 0, VERVE_OP_ACK);
	while (!node_link(&a, &b)->replay) {
		verve_proto_poll(&a.proto);
		cr_assert(fake_net_run_next());
	}
	verve_proto_cancel(&a.proto);
	nodes_settle();
	expect_dropped();
}

/* The peer's RESUME counts more packets than were sent. */
Test(replay, numbers_that_make_no_sense_end_the_connection)
{
	suspend_with_work();
	node_link(&b, &a)->arrived += 5;
	node_resume(&a, &b);
	expect_broken(FI_EIO);
}

Test(replay, continuation_of_what_we_do_not_have_is_refused)
{
	uint32_t links = a.xport->link_count;

	node_link(&a, &b)->remote_id += 1000;
	suspend_with_work();
	node_resume(&a, &b);
	expect_broken(FI_ENOTCONN);
	cr_expect_null(node_peer(&a, &b)->link);
	cr_expect_eq(a.xport->link_count, links - 1);
}

/* The queue pairs fail without a refusal: the device cannot be used. */
Test(replay, connection_that_fails_again_and_again_ends)
{
	int times = 0;

	start(VERVE_RMA_READ, 1, region->rkey, NULL);
	while (node_peer(&a, &b)->link && times < 100) {
		node_resume(&a, &b);
		times++;
	}
	cr_expect_gt(times, 1);
	cr_expect_lt(times, 100);
}
