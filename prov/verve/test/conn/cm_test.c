/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection manager: the contracts of conn/cm.h one by one. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "cm_node.h"
#include "cm_world.h"
#include "conn/hello.h"

static const uint64_t ms = 1000000;

Test(cm, one_side_asks_three_datagrams)
{
	nodes_start(1, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	cr_assert_eq(nodes_sent(2), 3);
	cr_assert_eq(node_stats(0).connected, 1);
	cr_assert_eq(node_stats(1).connected, 1);
	node_connect(0, 1);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	cr_assert_eq(nodes_sent(2), 3, "asking while one is up adds nothing");
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
		cr_assert_eq(nodes_sent(2), 3);
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
	cr_assert_eq(nodes_sent(2), 5);
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
	cr_assert_eq(nodes_sent(1), 0);
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
	cm_world_config.work_max = 0;
	node_connect(0, CM_WORLD_PORTS);
	nodes_run(cm_world_time + 1);
	cr_assert_eq(node_stats(0).failed, 1);
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

/* As where a control group allows no more of them. Connections would fail, each by itself. */
Test(cm, no_thread_is_told_by_open)
{
	struct verve_cm_attr attr = {0};
	struct verve_cm *cm;

	nodes_start(7, 0);
	cm_world_config.no_threads = true;
	cm_world_addr(0, &attr.addr);
	cr_expect_eq(verve_cm_open(&attr, &cm), -FI_EAGAIN);
	nodes_stop();
}

/* Later, the first worker is there. */
Test(cm, lack_of_threads_comes_after_open)
{
	nodes_start(8, 2);
	cm_world_config.no_threads = true;
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
	cr_assert_eq(nodes[0].links[1].error, FI_EBUSY);
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
		cr_assert_eq(nodes[0].links[1].error, nth == 1 ? FI_EHOSTUNREACH : FI_EINVAL);
		cr_assert_null(nodes[1].links[0].qp);
		cr_assert_eq(nodes[1].links[0].downs, nth - 1);
		/* Packets may have come over it. */
		cr_assert_eq(nodes[nth % 2].unused, 1);
		cr_assert_eq(nodes[0].unused + nodes[1].unused, 1);
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

Test(cm, suspended_connection_to_itself)
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
	cr_assert_eq(node_stats(0).sent, 64, "no more than the window");
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
	cr_assert_eq(node_stats(0).malformed, 2);
	cr_assert_eq(node_stats(0).sent, 1, "the answer: BYE");
	cr_assert_eq(node_stats(1).foreign, 1);
	cr_assert_eq(cm_world_qps(), 0);
	nodes_stop();
}

/*
 * Requests that no queue pair can be connected for leave none behind, and the engine, which may not
 * look for long, has nothing to close: no packet can have come over these.
 */
Test(cm, requests_that_cannot_be_connected_leave_nothing)
{
	struct verve_hello hello = {
		.kind = VERVE_HELLO_HELLO,
		.version_min = VERVE_HELLO_VERSION_MAX,
		.version_max = VERVE_HELLO_VERSION_MAX,
		.sender_incarnation = 77,
		.window = 64,
		.eager_size = 1024,
		.qp = {.qp_num = 5, .mtu_log2 = 10, .rd_atomic_target = 0},
	};
	uint8_t buf[VERVE_HELLO_SIZE];

	nodes_start(19, 1);
	for (unsigned i = 1; i <= 100; i++) {
		hello.sender_id = i;
		hello.serial = hello.nonce = i;
		verve_hello_encode(&hello, buf);
		cm_world_inject(5, 0, buf, sizeof(buf));
		nodes_run(cm_world_time + 10 * ms);
		cr_assert_eq(cm_world_qps(), 0, "request %u", i);
	}
	cr_assert_eq(node_stats(0).received, 100);
	cr_assert_eq(nodes[0].unused, 0);
	nodes_stop();
}

/* Forged requests from many addresses and ids are never finished. */
Test(cm, a_flood_of_requests_is_bounded)
{
	struct verve_hello hello = {
		.kind = VERVE_HELLO_HELLO,
		.version_min = VERVE_HELLO_VERSION_MAX,
		.version_max = VERVE_HELLO_VERSION_MAX,
		.qp = {.qp_num = 5, .mtu_log2 = 10, .rd_atomic_target = 1},
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
	cr_assert_eq(node_stats(0).received, 20000);
	cr_assert_eq(cm_world_qps(), 62, "one for each address");
	node_connect(1, 0);
	nodes_run(cm_world_time + 70000 * ms);
	cr_assert_leq(node_stats(0).sent, node_stats(0).received, "more than what came");
	nodes_expect_connected(1, 0);
	cr_assert_eq(cm_world_qps(), 2, "the others expired");
	nodes_stop();
}

/*
 * A stranger, whom node 1 has answered and so told its incarnation, calls node 0 in node 1's name,
 * with the largest serial there is.
 */
Test(cm, forged_serial_does_not_lock_a_peer_out)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_hello hello;

	nodes_start(20, 3);
	node_connect(2, 1);
	nodes_run(UINT64_MAX);
	cr_assert_eq(cm_world_recorded(1, 2, VERVE_HELLO_HELLO, buf), sizeof(buf));
	cr_assert_eq(verve_hello_decode(buf, sizeof(buf), &hello), 0);
	nodes_may_break = true;
	hello.recipient_incarnation = hello.echo = 0;
	hello.recipient_id = 0;
	hello.serial = UINT64_MAX;
	verve_hello_encode(&hello, buf);
	cm_world_inject(1, 0, buf, sizeof(buf));
	nodes_run(cm_world_time + ms);
	cr_assert_eq(nodes[0].links[1].ups, 1);
	cr_assert_eq(nodes[0].links[1].downs, 1);
	node_connect(1, 0);
	nodes_run(cm_world_time + 10 * ms);
	nodes_expect_connected(0, 1);
	cr_assert_eq(nodes[1].links[0].fails, 0);
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
	cr_assert_eq(node_stats(0).malformed, 20000);
	cr_assert_eq(nodes[0].links[1].ups, 1);
	nodes_stop();
}
