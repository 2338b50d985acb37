/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Places: peers that had no queue pair are asked again, less and less often. */
#include "xport/places.h"

#include "../support/fake_memory.h"
#include "base/config.h"
#include "mr/monitor.h"
#include "net/sys.h"
#include "peer_fixture.h"
#include "proto/cancel.h"
#include "xport/open.h"
#include "xport/peer.h"
#include "xport/turn.h"

enum { CROWD = 16 };

static const uint64_t ms = 1000000, first = 50 * ms, last = 1000 * ms;

/* The peer answers that it has no queue pair. */
static void deny(const struct node *by)
{
	node_event(&a, VERVE_CM_FAILED, by, 0, FI_EBUSY);
	cr_assert(verve_cm_events_step(a.xport));
	cr_assert_eq(verve_proto_is_waiting(&a.proto), true);
}

static uint64_t pause_of(struct node *peer)
{
	return node_peer(&a, peer)->retry_at - verve_net_now();
}

static void expect_pause(uint64_t longest)
{
	cr_expect_geq(pause_of(&b), longest / 2);
	cr_expect_lt(pause_of(&b), longest);
}

/* The time comes at which b is asked again. */
static void wait_until_asked(void)
{
	fake_net_advance(pause_of(&b) - 1);
	verve_places_retry(a.xport, verve_net_now());
	cr_assert_not(node_peer(&a, &b)->connecting);
	fake_net_advance(1);
	verve_places_retry(a.xport, verve_net_now());
	cr_assert(node_peer(&a, &b)->connecting);
}

Test(peer, denied_peer_is_asked_less_and_less_often)
{
	uint64_t longest = first;

	send_len(1);
	for (int i = 0; i < 10; i++) {
		deny(&b);
		expect_pause(longest);
		wait_until_asked();
		longest = 2 * longest < last ? 2 * longest : last;
	}
	cr_expect_eq(longest, last);
	expect_none(&a.tx_queue);
}

Test(peer, pauses_begin_anew_after_a_connection)
{
	send_len(1);
	for (int i = 0; i < 5; i++) {
		deny(&b);
		wait_until_asked();
	}
	node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	expect_comp(&a.tx_queue);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ENOTCONN);
	nodes_settle();
	send_len(1);
	deny(&b);
	expect_pause(first);
}

/* Many are denied at the same moment; they must not come back all at the same moment. */
Test(peer, denied_peers_are_asked_one_after_the_other)
{
	static struct node crowd[CROWD];
	const struct verve_peer *peer;
	uint64_t before = 0;

	for (int i = 0; i < CROWD; i++) {
		node_open(&crowd[i], 1, NULL);
		cr_assert_eq(node_send(&a, &(struct message){.peer = &crowd[i], .buf = out,
							     .len = 1}), 0);
		deny(&crowd[i]);
	}
	TAILQ_FOREACH(peer, &a.xport->denied, wanting) {
		cr_expect_gt(peer->retry_at, before);
		before = peer->retry_at;
	}
	cr_expect_gt(before - TAILQ_FIRST(&a.xport->denied)->retry_at, first / 8);
	for (int i = 0; i < CROWD; i++)
		node_close(&crowd[i]);
}

/* Nothing else wakes a thread that sleeps. */
Test(peer, sleeper_wakes_when_a_denied_peer_is_to_be_asked)
{
	cr_expect_eq(verve_proto_pause(&a.proto), a.xport->attr.keepalive);
	send_len(1);
	deny(&b);
	cr_expect_eq(verve_proto_pause(&a.proto), pause_of(&b));
	fake_net_advance(pause_of(&b));
	cr_expect_eq(verve_proto_pause(&a.proto), 1);
	verve_turn_expect(a.xport);
	verve_proto_poll(&a.proto);
	cr_expect(node_peer(&a, &b)->connecting);
}

/* The peer gave the connection up before anything was sent: it has no queue pair. */
Test(peer, stillborn_connection_is_not_asked_for_at_once)
{
	send_len(1);
	node_join(&b, &a, NODE_WINDOW);
	cr_assert_not(node_link(&a, &b)->may_send);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ENOTCONN);
	cr_assert(verve_cm_events_step(a.xport));
	expect_none(&a.tx_queue);
	cr_expect_not(node_peer(&a, &b)->connecting);
	expect_pause(first);
	wait_until_asked();
}

/* This side has no queue pair; the operation is cancelled before there is a place again. */
Test(peer, lack_is_forgotten_with_the_operation_that_lacked)
{
	struct node c;

	node_open(&c, 1, NULL);
	node_join(&a, &c, NODE_WINDOW);
	send_len(1);
	verve_peer_connected(a.xport, node_peer(&a, &b));
	cr_assert(verve_places_lack(a.xport, node_peer(&a, &b), true));
	cr_assert_eq(verve_cancel(a.xport, out), 0);
	expect_error(&a.tx_queue, FI_ECANCELED);
	fake_net_advance(2000 * ms);
	verve_places_step(a.xport, verve_net_now());
	cr_assert(TAILQ_EMPTY(&a.xport->wanting));
	cr_expect_eq(node_peer(&a, &b)->lacking, 0);
	fake_net_advance(verve_config.connect_timeout * ms);
	send_len(1);
	deny(&b);
	expect_none(&a.tx_queue);
	expect_pause(first);
	node_close(&c);
}

/* Other endpoints have all queue pairs of this side; they may give some back. */
Test(peer, lack_of_an_endpoint_without_connections_does_not_end_its_operations)
{
	send_len(1);
	verve_peer_connected(a.xport, node_peer(&a, &b));
	cr_assert_eq(verve_places_taken(a.xport), 0);
	cr_assert(verve_places_lack(a.xport, node_peer(&a, &b), true));
	expect_pause(first);
	wait_until_asked();
	verve_peer_connected(a.xport, node_peer(&a, &b));
	fake_net_advance(verve_config.connect_timeout * ms);
	cr_expect_not(verve_places_lack(a.xport, node_peer(&a, &b), true));
}

/* A request that found no memory asks for a connection, too; meanwhile the endpoint closes. */
Test(peer, denied_peer_is_not_asked_by_an_endpoint_that_closes)
{
	struct verve_cm *cm = a.xport->cm;

	send_len(1);
	deny(&b);
	node_peer(&a, &b)->is_asked_for = true;
	cr_assert_eq(verve_cancel(a.xport, out), 0);
	expect_error(&a.tx_queue, FI_ECANCELED);
	a.xport->cm = NULL;
	fake_net_advance(last);
	verve_places_retry(a.xport, verve_net_now());
	cr_expect_not(node_peer(&a, &b)->connecting);
	a.xport->cm = cm;
}

/* Other errors are no lack of queue pairs: no idle connection has to make place. */
Test(peer, error_that_stays_ends_no_idle_connection)
{
	static const int errors[] = {FI_ECONNREFUSED, FI_EHOSTUNREACH, FI_EOPNOTSUPP, FI_EINVAL};
	struct node c;

	node_open(&c, 1, NULL);
	node_join(&a, &c, NODE_WINDOW);
	for (int i = 0; i < 4; i++) {
		send_len(1);
		node_event(&a, VERVE_CM_FAILED, &b, 0, errors[i]);
		cr_assert(verve_cm_events_step(a.xport));
		expect_error(&a.tx_queue, errors[i]);
		cr_expect_not(verve_places_is_due(a.xport));
		cr_expect(TAILQ_EMPTY(&a.xport->denied));
	}
	nodes_settle();
	cr_expect_not_null(node_peer(&a, &c)->link);
	cr_expect_eq(a.xport->quiescing_count, 0);
	node_close(&c);
}

static int spared;

static bool give(struct verve_mr_listener *listener)
{
	(void)listener;
	return ++spared;
}

static struct verve_mr_listener keeper = {.spare = give};

static void keep_registrations(void)
{
	spared = 0;
	fake_net_watch_allow(true);
	cr_assert_eq(verve_mr_monitor_add(&keeper), 0);
}

/* Drivers that pin a queue pair's memory share the process's limit with what caches keep. */
Test(peer, idle_registrations_give_way_to_queue_pairs_where_memory_is_limited)
{
	keep_registrations();
	node_event(&a, VERVE_CM_SCARCE, &b, 0, 0);
	cr_assert(verve_cm_events_step(a.xport));
	cr_expect_eq(spared, 0, "it is the device that has no queue pair");
	verve_config.locked = 1 << 20;
	node_event(&a, VERVE_CM_SCARCE, &b, 0, 0);
	cr_assert(verve_cm_events_step(a.xport));
	cr_expect_eq(spared, 1);
	verve_places_lack(a.xport, node_peer(&a, &b), true);
	cr_expect_eq(spared, 1, "a moment ago they gave what they had");
	fake_net_advance(1000 * ms);
	verve_places_lack(a.xport, node_peer(&a, &b), false);
	cr_expect_eq(spared, 1, "it is the peer that has no queue pair");
	verve_places_lack(a.xport, node_peer(&a, &b), true);
	cr_expect_eq(spared, 2);
	verve_mr_monitor_remove(&keeper);
}

Test(peer, idle_registrations_give_way_to_queues)
{
	static struct verve_xport xport;

	keep_registrations();
	fake_net_fail(FAKE_NET_CQ_OPEN, 2, -FI_ENOMEM);
	cr_expect_eq(verve_xport_init(&xport, &a.xport->attr, a.xport->protocols, &a.lock), 0);
	cr_expect_eq(spared, 1);
	verve_xport_fini(&xport);
	verve_mr_monitor_remove(&keeper);
}
