/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager and strangers that connect, say that they want to continue with another queue
 * pair, and do not: our engine asks for each connection again. The test speaks for the strangers.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "../support/log_lines.h"
#include "cm_node.h"
#include "cm_world.h"
#include "conn/cm_state.h"
#include "conn/hello.h"

static const uint64_t ms = 1000000;

/* Sends a datagram in a stranger's name, about node 0's last HELLO to it; NULL: about none. */
static void say(unsigned port, enum verve_hello_kind kind, enum verve_hello_reason reason,
		const struct verve_hello *about)
{
	static uint64_t serial;
	struct verve_hello hello = {
		.kind = (uint8_t)kind, .reason = (uint8_t)reason,
		.version_min = VERVE_HELLO_VERSION_MAX, .version_max = VERVE_HELLO_VERSION_MAX,
		.sender_incarnation = port, .sender_id = 7, .window = 64, .eager_size = 1024,
		.qp = {.qp_num = 60000 + port, .mtu_log2 = 10, .rd_atomic_target = 1}};
	uint8_t buf[VERVE_HELLO_SIZE];

	if (kind == VERVE_HELLO_HELLO)
		serial++;
	hello.serial = hello.nonce = serial;
	if (about) {
		hello.recipient_incarnation = about->sender_incarnation;
		hello.recipient_id = about->sender_id;
		hello.echo = about->nonce;
	}
	verve_hello_encode(&hello, buf);
	cm_world_inject(port, 0, buf, sizeof(buf));
	nodes_run(cm_world_time + ms);
}

static struct verve_hello last_hello_to(unsigned port)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_hello hello;

	cr_assert_eq(cm_world_recorded(0, port, VERVE_HELLO_HELLO, buf), sizeof(buf));
	cr_assert_eq(verve_hello_decode(buf, sizeof(buf), &hello), 0);
	return hello;
}

/* A stranger connects, and suspends. */
static void call_and_suspend(unsigned port)
{
	struct verve_hello answer;

	nodes_may_break = true;
	say(port, VERVE_HELLO_HELLO, 0, NULL);
	answer = last_hello_to(port);
	say(port, VERVE_HELLO_READY, 0, &answer);
	say(port, VERVE_HELLO_BYE, VERVE_HELLO_SUSPENDED, &answer);
}

/* Node 0's engine does as the stranger wants. */
static void go_on(unsigned port)
{
	struct verve_addr addr;

	cm_world_addr(port, &addr);
	cr_assert_eq(verve_cm_resume(nodes[0].cm, &addr, nodes[0].links[port].conn_id), 0);
}

static unsigned count_lines(const char *text, const char *what)
{
	unsigned count = 0;

	for (; (text = strstr(text, what)); text++)
		count++;
	return count;
}

/* A stranger connects, suspends, and refuses; so many times. */
static void tease(unsigned port, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		struct verve_hello asked;
		unsigned fails = nodes[0].links[port].fails;

		call_and_suspend(port);
		go_on(port);
		nodes_run(cm_world_time + ms);
		asked = last_hello_to(port);
		say(port, VERVE_HELLO_BYE, VERVE_HELLO_CLOSED, &asked);
		cr_assert_eq(nodes[0].links[port].fails, fails + 1);
	}
}

Test(cm_again, stranger_does_not_fill_the_log)
{
	const char *text;

	log_start("warn", NULL);
	nodes_start(1, 1);
	tease(5, 10);
	text = log_take();
	cr_expect_eq(count_lines(text, "cannot connect"), 1, "%s", text);
	cr_expect_eq(count_lines(text, "cannot connect again to 10.1.0.1:1005"), 1, "%s", text);
	/* What our engine asks for by itself is told each time, and the next minute is another. */
	cm_world_config.refuse = true;
	for (int i = 0; i < 2; i++) {
		node_connect(0, 5);
		nodes_run(cm_world_time + ms);
	}
	cr_expect_eq(count_lines(log_take(), "cannot connect to 10.1.0.1:1005"), 2);
	cm_world_config.refuse = false;
	nodes_run(cm_world_time + 61000 * ms);
	tease(5, 2);
	cr_expect_eq(count_lines(log_take(), "cannot connect again to"), 1);
	nodes_stop();
}

/* Jobs for strangers that are put and not done. The workers take their next step later. */
static unsigned strangers_jobs(void)
{
	nodes_run(cm_world_time + 1);
	return nodes[0].cm->strangers;
}

/* Each of its jobs, so that strangers never have all workers. */
Test(cm_again, stranger_stays_a_stranger)
{
	struct verve_hello asked;

	nodes_start(2, 1);
	for (int chain = 0; chain < 3; chain++) {
		if (!chain)
			call_and_suspend(5);
		cm_world_config.work_max = ms;
		go_on(5);
		cr_expect_eq(strangers_jobs(), 1, "opening, %d", chain);
		nodes_run(cm_world_time + 5 * ms); /* the workers sleep again */
		asked = last_hello_to(5);
		cr_assert_eq(nodes[0].cm->strangers, 0);
		/* The stranger answers, and suspends again. */
		cm_world_config.delay_min = 0;
		cm_world_config.delay_max = 1;
		cm_world_config.work_max = 100 * ms;
		say(5, VERVE_HELLO_HELLO, 0, &asked);
		cr_expect_eq(nodes[0].cm->strangers, 1, "connecting, %d", chain);
		cm_world_config.work_max = ms;
		nodes_run(cm_world_time + 105 * ms);
		cr_assert_eq(nodes[0].links[5].ups, 2 + chain);
		say(5, VERVE_HELLO_BYE, VERVE_HELLO_SUSPENDED, &asked);
		cr_assert_eq(nodes[0].links[5].suspended, 2 + chain);
	}
	/* Our engine asks, for itself: that is urgent, whatever was going on. */
	go_on(5);
	cr_expect_eq(strangers_jobs(), 1);
	node_connect(0, 5);
	cr_expect_eq(strangers_jobs(), 0);
	cr_expect_eq(nodes[0].cm->window_used, 1);
	cr_expect_eq(nodes[0].cm->window_for_peers, 0);
	nodes_stop();
}

/* What our engine has asked for stays urgent, whoever suspends it. */
Test(cm_again, peer_that_we_called_is_no_stranger)
{
	nodes_start(3, 2);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	nodes_may_break = true;
	cm_world_config.work_max = ms;
	node_suspend(0, 1);
	cr_expect_eq(strangers_jobs(), 0);
	nodes_run(cm_world_time + 100 * ms);
	nodes_expect_connected(0, 1);
	node_suspend(1, 0);
	nodes_run(cm_world_time + 100 * ms);
	nodes_expect_connected(0, 1);
	node_suspend(0, 1);
	cr_expect_eq(strangers_jobs(), 0);
	nodes_stop();
}

/* Our engine asks for each again, and none answers. The application's own request does not wait. */
Test(cm_again, strangers_do_not_fill_the_window)
{
	uint64_t sent;

	nodes_start(4, 2);
	for (unsigned port = 2; port < CM_WORLD_PORTS; port++)
		call_and_suspend(port);
	sent = node_stats(0).sent;
	for (unsigned port = 2; port < CM_WORLD_PORTS; port++)
		go_on(port);
	nodes_run(cm_world_time + 10 * ms);
	cr_expect_eq(node_stats(0).sent - sent, 32);
	node_connect(0, 1);
	nodes_run(cm_world_time + 10 * ms);
	nodes_expect_connected(0, 1);
	/* All have their turn. */
	nodes_run(cm_world_time + 70000 * ms);
	for (unsigned port = 2; port < CM_WORLD_PORTS; port++)
		cr_expect_eq(nodes[0].links[port].fails, 1, "port %u", port);
	cr_expect_eq(nodes[0].cm->window_used, 0);
	cr_expect_eq(nodes[0].cm->window_for_peers, 0);
	cr_expect_eq(nodes[0].cm->count[VERVE_CM_LIST_AGAIN], 0);
	nodes_stop();
}
