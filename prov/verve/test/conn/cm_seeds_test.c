/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager: many nodes and many seeds in a network with all faults. With every other seed
 * all nodes have a key. VERVE_SEED=n runs one seed, VERVE_SEEDS=n that many times the usual.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "cm_node.h"
#include "cm_world.h"

static const uint64_t ms = 1000000;

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
	if (nodes_sent(NODES) != (3 + more) * pairs)
		nodes_fail("not 3 datagrams a pair, 5 with a key", 0, 0);
	nodes_stop();
	nodes_start(seed, NODES);
	for (unsigned n = 0; n < NODES; n++)
		for (unsigned peer = 0; peer < NODES; peer++)
			node_connect(n, peer);
	nodes_run(UINT64_MAX);
	expect_all_to_all(NODES);
	if (nodes_sent(NODES) > (more ? 8 : 3) * pairs)
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

/* Each engine, or both at once, continue with another queue pair, again and again. */
static void suspend_something(void)
{
	for (unsigned n = 0; n < 2; n++)
		if (coin(500) && nodes[n].links[1 - n].qp && nodes[n].links[1 - n].may_send)
			node_suspend(n, 1 - n);
}

static void run_suspensions(uint64_t seed)
{
	const struct link *ours = &nodes[0].links[1], *theirs = &nodes[1].links[0];
	bool dies = seed / 2 % 2;

	nodes_start(seed, 2);
	nodes_go_on = nodes[0].links[1].wanted = true;
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	nodes_may_break = true;
	do_its_worst();
	for (int step = 0; step < 30; step++) {
		suspend_something();
		nodes_run(cm_world_time + cm_world_random() % (coin(500) ? 500 * ms : ms));
		if (coin(200))
			cm_world_replay();
		if (!dies || !coin(100))
			continue;
		node_close(1, coin(500));
		node_open(1);
		if (coin(500))
			node_connect(1, 0);
	}
	cm_world_config.loss = cm_world_config.copy = cm_world_config.slow = 0;
	nodes_run(cm_world_time + 200000 * ms);
	nodes_expect_connected(0, 1);
	/* A peer that was started anew may have a connection of the same id: its link breaks. */
	if (!ours->resumes != !theirs->resumes && !dies)
		nodes_fail("only one side continues", 0, 1);
	if (ours->fails && !dies)
		nodes_fail("a peer that lives was not reached", 0, 1);
	if (cm_world_qps() != 2)
		nodes_fail("queue pairs leak", 0, 1);
	/* A last time, in peace: the very connection is continued. */
	node_suspend((unsigned)seed / 4 % 2, 1 - (unsigned)seed / 4 % 2);
	nodes_run(cm_world_time + 1000 * ms);
	nodes_expect_connected(0, 1);
	if (!ours->resumes || !theirs->resumes)
		nodes_fail("not continued", 0, 1);
	nodes_stop();
}

Test(cm, suspensions_then_peace)
{
	each_seed(70000, 1000, run_suspensions);
}
