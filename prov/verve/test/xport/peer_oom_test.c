/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers: memory that runs out. No message may be lost, and the process goes on. */
#include "../support/oom.h"
#include "peer_fixture.h"
#include "xport/peer.h"
#include "xport/replay.h"
#include "xport/replay_state.h"

Test(peer, no_memory_for_a_peer_is_told)
{
	uint64_t fi_addr = node_addr(&a, &b);
	struct verve_peer *peer;
	long failed, nth = 0;

	do {
		int ret;

		oom_fail(nth++ / 2, false); /* each twice: a table may have grown the first time */
		ret = verve_peer_find(a.xport, fi_addr, &peer);
		failed = oom_stop();
		cr_assert_eq(ret, failed ? -FI_ENOMEM : 0);
	} while (failed);
	cr_expect_gt(nth, 7); /* the peer, its id, the hash twice, its entry by fi_addr_t */
	cr_expect(verve_addr_equal(&peer->addr, &b.addr));
	cr_expect_eq(HASH_COUNT(a.xport->peers), 1);
}

Test(peer, no_memory_to_ask_for_a_connection_ends_the_message)
{
	node_peer(&a, &b);
	send_len(1); /* allocates the pool of operations */
	node_event(&a, VERVE_CM_FAILED, &b, 0, FI_ECONNREFUSED);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECONNREFUSED);
	oom_fail(0, false);
	send_len(1);
	cr_expect_eq(oom_stop(), 1);
	expect_error(&a.tx_queue, FI_ENOMEM);
	cr_expect_not(node_peer(&a, &b)->connecting);
}

Test(peer, no_memory_for_a_connection_closes_it)
{
	recv_any();
	/* Three allocations: the link, its id, its place in link_of_conn. */
	for (long nth = 0; nth < 3; nth++) {
		send_len(1);
		node_connect(&a, &b, NODE_WINDOW);
		oom_fail(nth, false);
		verve_cm_events_step(a.xport);
		cr_assert_eq(oom_stop(), 1);
		expect_error(&a.tx_queue, FI_ENOMEM);
		cr_expect_null(node_peer(&a, &b)->link);
		cr_expect_not(node_peer(&a, &b)->connecting);
		cr_expect_eq(a.xport->link_count, 0);
		/* b's manager reports the end. */
		verve_cm_events_step(b.xport);
		node_event(&b, VERVE_CM_DOWN, &a, b.next_conn, FI_ENOTCONN);
		nodes_settle();
	}
	send_len(1);
	node_connect(&a, &b, NODE_WINDOW);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 1);
}

/*
 * a's link is suspended when b starts anew: b does not have the old connection. a has no memory for
 * the new one. nth: the allocation that fails.
 */
static void have_no_memory_for_the_next(long nth)
{
	node_join(&a, &b, NODE_WINDOW);
	verve_replay_renew(a.xport, node_link(&a, &b));
	nodes_settle();
	cr_assert_eq(node_link(&a, &b)->replay->state, VERVE_REPLAY_DETACHED);
	send_len(1);
	b.next_conn += 5000;
	a.next_conn += 5000; /* the table of connections has to grow */
	node_connect(&a, &b, NODE_WINDOW);
	oom_fail(nth, false);
	verve_cm_events_step(a.xport);
	cr_assert_eq(oom_stop(), 1);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
	cr_expect_null(node_peer(&a, &b)->link);
	cr_expect_eq(a.xport->link_count, 0);
}

Test(peer, no_memory_for_a_connection_after_a_suspended_one)
{
	have_no_memory_for_the_next(0); /* the link */
}

Test(peer, no_memory_for_the_place_of_a_connection_after_a_suspended_one)
{
	have_no_memory_for_the_next(1);
}
