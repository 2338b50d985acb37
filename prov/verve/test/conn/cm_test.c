/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager: the contracts of conn/cm.h one by one; then many nodes and many seeds in a
 * network with all faults. VERVE_SEED=n runs one seed, VERVE_SEEDS=n that many times the usual.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_node.h"
#include "cm_world.h"
#include "conn/hello.h"

static const uint64_t ms = 1000000;

static struct verve_cm_stats stats_of(unsigned n)
{
	struct verve_cm_stats stats;

	verve_cm_stats_get(nodes[n].cm, &stats);
	return stats;
}

static uint64_t sent_by_all(unsigned count)
{
	uint64_t sent = 0;

	for (unsigned n = 0; n < count; n++)
		sent += stats_of(n).sent;
	return sent;
}

/* The contracts one by one. */

Test(cm, one_side_asks_three_datagrams)
{
	nodes_start(1, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	cr_assert_eq(sent_by_all(2), 3);
	cr_assert_eq(stats_of(0).connected, 1);
	cr_assert_eq(stats_of(1).connected, 1);
	node_connect(0, 1);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	cr_assert_eq(sent_by_all(2), 3, "asking while one is up adds nothing");
	cr_assert_eq(nodes[0].links[1].ups, 1);
	nodes_stop();
}

/* The incarnations are random, so each side is the quiet one in some of the runs. */
Test(cm, both_ask_three_datagrams)
{
	for (unsigned seed = 1; seed <= 20; seed++) {
		nodes_start(seed, 2);
		node_connect(0, 1);
		node_connect(1, 0);
		nodes_run(UINT64_MAX);
		nodes_expect_connected(0, 1);
		cr_assert_eq(sent_by_all(2), 3);
		cr_assert_eq(cm_world_qps(), 2);
		nodes_stop();
	}
}

/* The side that waits for a packet repeats its HELLO, and gets READY instead. */
Test(cm, both_ask_and_no_engine_runs)
{
	nodes_start(2, 2);
	nodes_are_deaf = true;
	node_connect(0, 1);
	node_connect(1, 0);
	nodes_run(cm_world_time + 60 * ms);
	nodes_expect_connected(0, 1);
	cr_assert_eq(sent_by_all(2), 5);
	nodes_stop();
}

Test(cm, to_itself)
{
	nodes_start(3, 1);
	node_connect(0, 0);
	node_connect(0, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 0);
	cr_assert_eq(nodes[0].links[0].ups, 1);
	cr_assert_eq(sent_by_all(1), 0);
	node_drop(0, 0);
	node_connect(0, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 0);
	cr_assert_eq(cm_world_qps(), 1);
	nodes_stop();
}

Test(cm, refused)
{
	nodes_start(4, 1);
	cm_world_config.refuse = true;
	node_connect(0, 5);
	nodes_run(cm_world_time + ms);
	cr_assert_eq(nodes[0].links[5].fails, 1);
	cr_assert_eq(nodes[0].links[5].error, FI_ECONNREFUSED);
	cr_assert_eq(cm_world_qps(), 0);
	nodes_stop();
}

Test(cm, timed_out)
{
	uint64_t start;

	nodes_start(5, 1);
	start = cm_world_time;
	node_connect(0, 5);
	nodes_run(start + 59999 * ms);
	cr_assert_eq(nodes[0].links[5].fails, 0);
	nodes_run(start + 60001 * ms);
	cr_assert_eq(nodes[0].links[5].fails, 1);
	cr_assert_eq(nodes[0].links[5].error, FI_ETIMEDOUT);
	cr_assert_eq(cm_world_next(), UINT64_MAX);
	nodes_stop();
}

Test(cm, impossible_address_fails_at_once)
{
	nodes_start(6, 1);
	node_connect(0, CM_WORLD_PORTS);
	nodes_run(cm_world_time + 1);
	cr_assert_eq(stats_of(0).failed, 1);
	cr_assert_eq(cm_world_qps(), 0);
	nodes_stop();
}

Test(cm, no_queue_pair_here)
{
	nodes_start(7, 2);
	cm_world_fail_open(1);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	cr_assert_eq(nodes[0].links[1].error, FI_ENOMEM);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	nodes_stop();
}

Test(cm, no_queue_pair_there)
{
	nodes_start(8, 2);
	cm_world_fail_open(2);
	node_connect(0, 1);
	nodes_run(cm_world_time + 10 * ms);
	cr_assert_eq(nodes[0].links[1].error, FI_ECONNREFUSED);
	cr_assert_eq(nodes[1].links[0].ups + nodes[1].links[0].fails, 0);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	nodes_stop();
}

Test(cm, queue_pair_that_cannot_be_connected)
{
	for (unsigned nth = 1; nth <= 2; nth++) { /* 1: at the peer; 2: here */
		nodes_start(9, 2);
		nodes_may_break = true;
		cm_world_fail_connect(nth);
		node_connect(0, 1);
		nodes_run(cm_world_time + 1000 * ms);
		cr_assert_eq(nodes[0].links[1].fails, 1);
		cr_assert_eq(nodes[0].links[1].error, nth == 1 ? FI_ECONNREFUSED : FI_EINVAL);
		cr_assert_null(nodes[1].links[0].qp);
		cr_assert_eq(nodes[1].links[0].downs, nth - 1);
		cr_assert_eq(cm_world_qps(), 0);
		node_connect(0, 1);
		nodes_run(cm_world_time + 1000 * ms);
		nodes_expect_connected(0, 1);
		nodes_stop();
	}
}

Test(cm, close_says_bye)
{
	nodes_start(10, 3);
	node_connect(0, 1);
	node_connect(2, 0);
	nodes_run(UINT64_MAX);
	nodes_may_break = true;
	node_close(0, true);
	nodes_run(cm_world_time + 10 * ms);
	cr_assert_eq(nodes[1].links[0].downs, 1);
	cr_assert_eq(nodes[1].links[0].error, FI_ENOTCONN);
	cr_assert_eq(nodes[2].links[0].downs, 1);
	cr_assert_eq(cm_world_qps(), 0);
	nodes_stop();
}

Test(cm, peer_that_was_killed_comes_back_and_asks)
{
	nodes_start(11, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	node_close(0, false);
	nodes_may_break = true;
	node_open(0);
	node_connect(0, 1);
	nodes_run(cm_world_time + 1000 * ms);
	nodes_expect_connected(0, 1);
	cr_assert_eq(nodes[1].links[0].downs, 1);
	cr_assert_eq(nodes[1].links[0].ups, 2);
	nodes_stop();
}

Test(cm, dropped_on_one_side_and_asked_again)
{
	nodes_start(12, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	cm_world_config.loss = 1000;
	node_drop(0, 1);
	nodes_run(UINT64_MAX);
	cm_world_config.loss = 0;
	nodes_may_break = true;
	node_connect(0, 1);
	nodes_run(cm_world_time + 1000 * ms);
	nodes_expect_connected(0, 1);
	cr_assert_eq(nodes[1].links[0].downs, 1);
	nodes_stop();
}

static void expect_resumed(uint32_t id_0, uint32_t id_1)
{
	nodes_expect_connected(0, 1);
	cr_assert_eq(nodes[0].links[1].resumes, id_1);
	cr_assert_eq(nodes[1].links[0].resumes, id_0);
	cr_assert_eq(nodes[0].links[1].ups, 2);
	cr_assert_eq(nodes[1].links[0].ups, 2);
	cr_assert_eq(cm_world_qps(), 2);
}

Test(cm, suspended_by_one_side)
{
	uint32_t id_0, id_1;

	nodes_start(30, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	id_0 = nodes[0].links[1].conn_id;
	id_1 = nodes[1].links[0].conn_id;
	node_suspend(0, 1);
	nodes_run(UINT64_MAX);
	cr_assert_eq(nodes[1].links[0].suspended, 1);
	expect_resumed(id_0, id_1);
	/* The connection after that resumes none. */
	node_drop(1, 0);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	cr_assert_eq(nodes[0].links[1].resumes, 0);
	cr_assert_eq(nodes[1].links[0].resumes, 0);
	nodes_stop();
}

Test(cm, suspended_by_both_sides)
{
	uint32_t id_0, id_1;

	nodes_start(31, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	id_0 = nodes[0].links[1].conn_id;
	id_1 = nodes[1].links[0].conn_id;
	node_suspend(0, 1);
	node_suspend(1, 0);
	nodes_run(UINT64_MAX);
	expect_resumed(id_0, id_1);
	nodes_stop();
}

Test(cm, suspended_through_loss)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		uint32_t id_0, id_1;

		nodes_start(1000 + seed, 2);
		node_connect(0, 1);
		nodes_run(UINT64_MAX);
		id_0 = nodes[0].links[1].conn_id;
		id_1 = nodes[1].links[0].conn_id;
		cm_world_config.loss = 200;
		node_suspend(0, 1);
		nodes_run(UINT64_MAX);
		cr_assert_eq(nodes[1].links[0].suspended, 1, "seed %lu", seed);
		expect_resumed(id_0, id_1);
		nodes_stop();
	}
}

Test(cm, suspended_by_who_talks_to_itself)
{
	uint32_t id;

	nodes_start(32, 1);
	node_connect(0, 0);
	nodes_run(UINT64_MAX);
	id = nodes[0].links[0].conn_id;
	node_suspend(0, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 0);
	cr_assert_eq(nodes[0].links[0].resumes, id);
	nodes_stop();
}

Test(cm, suspended_while_the_peer_is_gone)
{
	nodes_start(33, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	node_close(1, false);
	cm_world_config.refuse = true;
	node_suspend(0, 1);
	nodes_run(cm_world_time + 1000 * ms);
	cr_assert_eq(nodes[0].links[1].fails, 1);
	cr_assert_eq(nodes[0].links[1].error, FI_ECONNREFUSED);
	nodes_stop();
}

Test(cm, drop_of_an_old_id_is_nothing)
{
	struct verve_cm_request *old;

	nodes_start(13, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	old = nodes[0].links[1].drop;
	nodes[0].links[1].drop = NULL;
	node_drop(1, 0);
	nodes_run(UINT64_MAX);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	cr_assert_not_null(old);
	verve_cm_drop(nodes[0].cm, &old);
	cr_assert_null(old);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	nodes_stop();
}

/* Handshakes with dead peers fill the window; live peers must be reached all the same. */
Test(cm, the_dead_do_not_block_the_living)
{
	nodes_start(14, 2);
	for (unsigned port = 2; port < CM_WORLD_PORTS; port++)
		node_connect(0, port);
	node_connect(0, 1);
	nodes_run(cm_world_time + ms);
	cr_assert_eq(stats_of(0).sent, 64, "no more than the window");
	cr_assert_null(nodes[0].links[1].qp);
	nodes_run(cm_world_time + 600 * ms);
	nodes_expect_connected(0, 1);
	nodes_stop();
}

Test(cm, another_version)
{
	struct verve_hello hello = {
		.kind = VERVE_HELLO_HELLO,
		.version_min = 200,
		.version_max = 201,
		.sender_incarnation = 1,
		.sender_id = 2,
		.serial = 3,
		.nonce = 4,
	};
	uint8_t buf[VERVE_HELLO_SIZE];

	nodes_start(15, 2);
	verve_hello_encode(&hello, buf);
	cm_world_inject(1, 0, buf, sizeof(buf));
	cm_world_inject(1, 0, buf, sizeof(buf) - 1);
	nodes_run(UINT64_MAX);
	cr_assert_eq(stats_of(0).malformed, 2);
	cr_assert_eq(stats_of(0).sent, 1, "the answer: BYE");
	cr_assert_eq(stats_of(1).foreign, 1);
	cr_assert_eq(cm_world_qps(), 0);
	nodes_stop();
}

/* Forged requests from many addresses and ids are never finished. */
Test(cm, a_flood_of_requests_is_bounded)
{
	struct verve_hello hello = {
		.kind = VERVE_HELLO_HELLO,
		.version_min = VERVE_HELLO_VERSION_MAX,
		.version_max = VERVE_HELLO_VERSION_MAX,
		.qp = {.qp_num = 5, .mtu_log2 = 10},
		.eager_size = 1024,
	};
	uint8_t buf[VERVE_HELLO_SIZE];
	unsigned from;

	nodes_start(16, 2);
	nodes_may_break = true;
	for (int i = 0; i < 20000; i++) {
		hello.sender_incarnation = cm_world_random() | 1;
		hello.sender_id = (uint32_t)cm_world_random() | 1;
		hello.serial = cm_world_random() | 1;
		hello.nonce = cm_world_random() | 1;
		from = 2 + (unsigned)(cm_world_random() % 62);
		hello.window = 100 + from;
		verve_hello_encode(&hello, buf);
		cm_world_inject(from, 0, buf, sizeof(buf));
	}
	nodes_run(cm_world_time + 100 * ms);
	cr_assert_eq(stats_of(0).received, 20000);
	cr_assert_eq(cm_world_qps(), 62, "one for each address");
	node_connect(1, 0);
	nodes_run(cm_world_time + 70000 * ms);
	cr_assert_leq(stats_of(0).sent, stats_of(0).received, "more than what came");
	nodes_expect_connected(1, 0);
	cr_assert_eq(cm_world_qps(), 2, "the others expired");
	nodes_stop();
}

Test(cm, any_bytes)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	nodes_start(17, 2);
	nodes_may_break = true;
	nodes[0].links[1].wanted = true;
	node_connect(0, 1);
	for (int i = 0; i < 20000; i++) {
		size_t len = cm_world_random() % (sizeof(buf) + 1);

		for (size_t byte = 0; byte < len; byte++)
			buf[byte] = (uint8_t)cm_world_random();
		cm_world_inject(1, 0, buf, len);
	}
	nodes_run(cm_world_time + 1000 * ms);
	nodes_expect_connected(0, 1);
	cr_assert_eq(stats_of(0).malformed, 20000);
	cr_assert_eq(nodes[0].links[1].ups, 1);
	nodes_stop();
}

/* Many seeds; with every other seed all nodes have a key. */

static void run_seed(uint64_t seed, void (*run)(uint64_t seed))
{
	static struct verve_auth_key key;

	verve_auth_key_make(&key, "a secret of all nodes", 21);
	nodes_set_key(seed % 2 ? &key : NULL);
	run(seed);
	nodes_set_key(NULL);
}

static void each_seed(uint64_t first, unsigned count, void (*run)(uint64_t seed))
{
	const char *one = getenv("VERVE_SEED"), *times = getenv("VERVE_SEEDS");

	if (one) {
		run_seed(strtoull(one, NULL, 0), run);
		return;
	}
	if (times)
		count *= (unsigned)strtoul(times, NULL, 0);
	for (uint64_t seed = first; seed < first + count; seed++)
		run_seed(seed, run);
}

static bool coin(uint32_t of_1000)
{
	return cm_world_random() % 1000 < of_1000;
}

/* Up to 40 % loss; copies; some datagrams arrive seconds late. */
static void do_its_worst(void)
{
	static const uint32_t loss[] = {0, 200, 400};

	cm_world_config.loss = loss[cm_world_random() % 3];
	cm_world_config.copy = coin(500) ? 200 : 0;
	cm_world_config.slow = coin(500) ? 100 : 0;
	cm_world_config.slow_max = 3000 * ms;
	cm_world_config.delay_max = coin(500) ? 100 * ms : 200000;
}

/* Asserts one connection for each pair, no DOWN, and no queue pair left over. */
static void expect_all_to_all(unsigned count)
{
	for (unsigned n = 0; n < count; n++) {
		for (unsigned peer = 0; peer < count; peer++) {
			const struct link *link = &nodes[n].links[peer];

			nodes_expect_connected(n, peer);
			if (link->ups != 1 || link->downs || link->fails)
				nodes_fail("not up exactly once", n, peer);
		}
	}
	if (cm_world_qps() != (size_t)count * count)
		nodes_fail("queue pairs leak", count, count);
}

/* Each node asks for each node, itself included, at random times. */
static void ask_all(unsigned count, uint64_t within)
{
	uint64_t start = cm_world_time;

	for (uint64_t step = 0; step < 16; step++) {
		for (unsigned n = 0; n < count; n++)
			for (unsigned peer = 0; peer < count; peer++)
				if (coin(200) || step == 15)
					node_connect(n, peer);
		nodes_run(start + within * (step + 1) / 16);
	}
}

static void run_pair(uint64_t seed)
{
	nodes_start(seed, 2);
	do_its_worst();
	ask_all(2, coin(500) ? 500 * ms : ms);
	nodes_run(cm_world_time + 60000 * ms);
	expect_all_to_all(2);
	nodes_stop();
}

Test(cm, two_nodes_in_a_bad_network)
{
	each_seed(1000, 3000, run_pair);
}

static void run_many(uint64_t seed)
{
	nodes_start(seed, NODES);
	do_its_worst();
	ask_all(NODES, coin(500) ? 500 * ms : ms);
	nodes_run(cm_world_time + 60000 * ms);
	expect_all_to_all(NODES);
	nodes_stop();
}

Test(cm, many_nodes_in_a_bad_network)
{
	each_seed(20000, 12, run_many);
}

/*
 * Only the node with the lower number asks, or both at once: 3 datagrams for each pair. With a key
 * each request is challenged: 2 datagrams more, and a READY where a challenge is overtaken.
 */
static void run_frugal(uint64_t seed)
{
	uint64_t pairs = NODES * (NODES - 1) / 2, more = node_keys[0] ? 2 : 0;

	nodes_start(seed, NODES);
	for (unsigned n = 0; n < NODES; n++)
		for (unsigned peer = 0; peer < n; peer++)
			node_connect(n, peer);
	nodes_run(UINT64_MAX);
	if (sent_by_all(NODES) != (3 + more) * pairs)
		nodes_fail("not 3 datagrams a pair, 5 with a key", 0, 0);
	nodes_stop();
	nodes_start(seed, NODES);
	for (unsigned n = 0; n < NODES; n++)
		for (unsigned peer = 0; peer < NODES; peer++)
			node_connect(n, peer);
	nodes_run(UINT64_MAX);
	expect_all_to_all(NODES);
	if (sent_by_all(NODES) > (more ? 8 : 3) * pairs)
		nodes_fail("more than 3 datagrams a pair, 8 with a key", 0, 0);
	nodes_stop();
}

Test(cm, handshakes_are_frugal)
{
	each_seed(30000, 4, run_frugal);
}

/* Recorded datagrams come again and again: no connection may be lost by that. */
static void run_replay(uint64_t seed)
{
	nodes_start(seed, 3);
	do_its_worst();
	for (int step = 0; step < 100; step++) {
		if (step < 40 && coin(200))
			node_connect((unsigned)(cm_world_random() % 3),
				     (unsigned)(cm_world_random() % 3));
		if (step == 40)
			ask_all(3, ms);
		for (int i = 0; i < 5; i++)
			cm_world_replay();
		nodes_run(cm_world_time + cm_world_random() % (100 * ms));
	}
	nodes_run(cm_world_time + 60000 * ms);
	expect_all_to_all(3);
	nodes_stop();
}

Test(cm, replays_tear_nothing_down)
{
	each_seed(40000, 300, run_replay);
}

static void do_something(unsigned count)
{
	unsigned n = (unsigned)(cm_world_random() % count);
	unsigned peer = (unsigned)(cm_world_random() % count);
	struct link *link = &nodes[n].links[peer];

	switch (cm_world_random() % 8) {
	case 0:
		node_close(n, coin(500));
		if (coin(500))
			nodes_run(cm_world_time + cm_world_random() % (500 * ms));
		node_open(n);
		for (unsigned i = 0; i < count; i++)
			if (nodes[n].links[i].wanted)
				node_connect(n, i);
		break;
	case 1:
	case 2:
	case 3:
		if (link->qp) {
			node_drop(n, peer);
			if (link->wanted)
				node_connect(n, peer);
		}
		break;
	default:
		cm_world_replay();
	}
}

/* Restarts, kills, drops and replays at random, in a bad network; then no more faults. */
static void quarrel(unsigned count)
{
	nodes_may_break = true;
	do_its_worst();
	cm_world_config.refuse = coin(500);
	for (int step = 0; step < 60; step++) {
		nodes_run(cm_world_time + cm_world_random() % (200 * ms));
		do_something(count);
	}
	cm_world_config.loss = cm_world_config.copy = cm_world_config.slow = 0;
	nodes_run(cm_world_time + 200000 * ms);
}

/* Each link is wanted with the given chance, in 1/1000. */
static void want(unsigned count, uint32_t of_1000)
{
	for (unsigned n = 0; n < count; n++) {
		for (unsigned peer = 0; peer < count; peer++) {
			nodes[n].links[peer].wanted = coin(of_1000);
			if (nodes[n].links[peer].wanted)
				node_connect(n, peer);
		}
	}
}

/* Asserts that each wanted link has a connection, and that no queue pair is left over. */
static void expect_wanted(unsigned count)
{
	unsigned links = 0;

	for (unsigned n = 0; n < count; n++) {
		for (unsigned peer = 0; peer < count; peer++) {
			if (nodes[n].links[peer].wanted)
				nodes_expect_connected(n, peer);
			links += nodes[n].links[peer].qp != NULL;
		}
	}
	if (cm_world_qps() != links)
		nodes_fail("queue pairs leak", count, count);
}

static void run_faults(uint64_t seed)
{
	unsigned count = 2 + (unsigned)(seed % 3);

	nodes_start(seed, count);
	want(count, 500);
	quarrel(count);
	expect_wanted(count);
	nodes_stop();
}

Test(cm, faults_then_peace)
{
	each_seed(50000, 1000, run_faults);
}

/* Datagrams of earlier connections and incarnations come again: no connection is lost by that. */
static void run_history(uint64_t seed)
{
	unsigned ids[3][3];

	nodes_start(seed, 3);
	want(3, 1000);
	quarrel(3);
	for (unsigned n = 0; n < 3; n++)
		for (unsigned peer = 0; peer < 3; peer++)
			ids[n][peer] = nodes[n].links[peer].conn_id;
	for (int step = 0; step < 300; step++) {
		cm_world_replay();
		nodes_run(cm_world_time + cm_world_random() % ms);
	}
	nodes_run(cm_world_time + 1000 * ms);
	expect_wanted(3);
	for (unsigned n = 0; n < 3; n++)
		for (unsigned peer = 0; peer < 3; peer++)
			if (nodes[n].links[peer].conn_id != ids[n][peer])
				nodes_fail("a replayed datagram ended a connection", n, peer);
	nodes_stop();
}

Test(cm, history_does_not_repeat_itself)
{
	each_seed(60000, 300, run_history);
}
