/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager and attackers: other keys, no keys, and datagrams that are recorded,
 * reflected, cut, changed, or too many. cm_seeds_test.c has many seeds with a key, and replays.
 */
#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "../support/log_lines.h"
#include "cm_node.h"
#include "cm_world.h"
#include "conn/guard.h"
#include "conn/hello.h"

enum { STRANGER = CM_WORLD_PORTS + 1, STRANGERS = 5000 };

static const uint64_t ms = 1000000;
static struct verve_auth_key key, other_key;

static void setup(void)
{
	verve_auth_key_make(&key, "the secret that all know", 24);
	verve_auth_key_make(&other_key, "a secret that nobody has", 24);
}

TestSuite(cm_auth, .init = setup);

static void start(unsigned count, const struct verve_auth_key *first,
		  const struct verve_auth_key *rest)
{
	nodes_set_key(rest);
	node_keys[0] = first;
	nodes_start(1, count);
}

static void expect_apart(unsigned a, unsigned b)
{
	cr_expect_eq(nodes[a].links[b].ups, 0);
	cr_expect_eq(nodes[b].links[a].ups, 0);
	cr_expect_eq(cm_world_qps(), 0);
}

/* Runs until the handshake has timed out; returns the error of its FAILED event. */
static int error_of(unsigned n, unsigned peer)
{
	nodes_run(cm_world_time + 61000 * ms);
	cr_expect_eq(nodes[n].links[peer].fails, 1);
	return nodes[n].links[peer].error;
}

Test(cm_auth, one_key_five_datagrams)
{
	start(2, &key, &key);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	cr_expect_eq(node_stats(0).sent + node_stats(1).sent, 5);
	cr_expect_eq(node_stats(1).challenged, 1);
	cr_expect_eq(node_stats(0).unauthenticated + node_stats(1).unauthenticated, 0);
	nodes_stop();
}

Test(cm_auth, both_ask)
{
	start(2, &key, &key);
	node_connect(0, 1);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	cr_expect_eq(nodes[0].links[1].ups, 1);
	cr_expect_eq(nodes[1].links[0].ups, 1);
	nodes_stop();
}

Test(cm_auth, different_keys_never_meet)
{
	start(2, &key, &other_key);
	node_connect(0, 1);
	node_connect(1, 0);
	cr_expect_eq(error_of(0, 1), FI_EKEYREJECTED);
	cr_expect_eq(nodes[1].links[0].error, FI_EKEYREJECTED);
	expect_apart(0, 1);
	cr_expect_gt(node_stats(0).unauthenticated, 0);
	cr_expect_gt(node_stats(1).unauthenticated, 0);
	nodes_stop();
}

Test(cm_auth, peer_without_a_key_is_refused_at_once)
{
	start(2, NULL, &key);
	node_connect(0, 1);
	nodes_run(cm_world_time + ms);
	cr_expect_eq(nodes[0].links[1].error, FI_EKEYREJECTED);
	expect_apart(0, 1);
	nodes_stop();
}

Test(cm_auth, endpoint_with_a_key_does_not_talk_to_one_without)
{
	start(2, &key, NULL);
	node_connect(0, 1);
	cr_expect_eq(error_of(0, 1), FI_EKEYREJECTED);
	expect_apart(0, 1);
	cr_expect_gt(node_stats(1).unauthenticated, 0);
	nodes_stop();
}

static unsigned count_lines(const char *text, const char *what)
{
	unsigned count = 0;

	while ((text = strstr(text, what))) {
		text++;
		count++;
	}
	return count;
}

/* Each warning comes once a minute, however many datagrams cause it. */
Test(cm_auth, the_log_says_why_on_both_sides)
{
	const char *text;

	log_start("warn", NULL);
	start(2, &key, &other_key);
	node_connect(0, 1);
	error_of(0, 1);
	nodes_stop();
	text = log_take();
	cr_expect_eq(count_lines(text, "refused a connection from 10.1.0.1:1000: its "
				       "authentication key is another"), 1, "%s", text);
	cr_expect_eq(count_lines(text, "10.1.0.1:1001 does not accept this endpoint's "
				       "authentication key"), 1, "%s", text);
	cr_expect_eq(count_lines(text, "cannot connect to 10.1.0.1:1001: Key was rejected"), 1,
		     "%s", text);
}

Test(cm_auth, the_log_says_which_side_has_no_key)
{
	const char *text;

	log_start("warn", NULL);
	start(2, NULL, &key);
	node_connect(0, 1);
	nodes_run(cm_world_time + ms);
	nodes_stop();
	text = log_take();
	cr_expect(strstr(text, "it has no authentication key, this endpoint has one"), "%s", text);
	cr_expect(strstr(text, "authentication key (there is none)"), "%s", text);
}

/* A forged BYE says that the peer has another key: the handshake goes on. */
Test(cm_auth, a_lie_about_the_key_stops_nothing)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_hello hello, bye = {
		.kind = VERVE_HELLO_BYE, .reason = VERVE_HELLO_AUTH,
		.version_min = VERVE_HELLO_VERSION_MAX, .version_max = VERVE_HELLO_VERSION_MAX,
		.sender_incarnation = 77};

	start(2, &key, &key);
	node_close(1, true);
	node_connect(0, 1);
	nodes_run(cm_world_time + ms);
	cr_assert_eq(cm_world_recorded(0, 1, VERVE_HELLO_HELLO, buf), sizeof(buf));
	cr_assert_eq(verve_hello_decode(buf, sizeof(buf), &hello), 0);
	bye.recipient_incarnation = hello.sender_incarnation;
	bye.recipient_id = hello.sender_id;
	bye.echo = hello.nonce;
	verve_hello_encode(&bye, buf);
	cm_world_inject(1, 0, buf, sizeof(buf));
	nodes_run(cm_world_time + ms);
	cr_expect_eq(nodes[0].links[1].fails, 0);
	node_open(1);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	nodes_stop();
}

/* Sends all recorded datagrams of a handshake again, to the same endpoints and to new ones. */
static void replay_all(void)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	for (uint8_t kind = VERVE_HELLO_HELLO; kind < VERVE_HELLO_KINDS; kind++) {
		for (unsigned from = 0; from < 2; from++) {
			if (cm_world_recorded(from, 1 - from, kind, buf))
				cm_world_inject(from, 1 - from, buf, sizeof(buf));
			nodes_run(cm_world_time + ms);
		}
	}
}

Test(cm_auth, a_recording_does_nothing)
{
	uint32_t id;

	start(2, &key, &key);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	id = nodes[0].links[1].conn_id;
	replay_all();
	nodes_expect_connected(0, 1);
	cr_expect_eq(nodes[0].links[1].conn_id, id);
	cr_expect_eq(cm_world_qps(), 2);

	/* Both endpoints are new and do not connect: the replay must not even open a queue pair. */
	node_close(0, false);
	node_close(1, false);
	node_open(0);
	node_open(1);
	replay_all();
	cr_expect_eq(node_stats(0).connected + node_stats(1).connected, 0);
	cr_expect_eq(cm_world_qps(), 0);
	nodes_stop();
}

/* BYE, and three for the next connection: the suspended one is proof enough. */
Test(cm_auth, resuming_with_a_key_takes_no_cookie)
{
	for (int both = 0; both < 2; both++) {
		uint64_t sent, id;

		start(2, &key, &key);
		node_connect(0, 1);
		nodes_run(UINT64_MAX);
		sent = nodes_sent(2);
		id = nodes[0].links[1].conn_id;
		node_suspend(0, 1);
		if (both)
			node_suspend(1, 0);
		nodes_run(UINT64_MAX);
		nodes_expect_connected(0, 1);
		cr_expect_eq(nodes[1].links[0].resumes, id);
		cr_expect_eq(nodes_sent(2) - sent, both ? 5 : 4);
		cr_expect_eq(node_stats(0).challenged + node_stats(1).challenged, 1);
		nodes_stop();
	}
}

/*
 * The peer dies between its BYE, suspended, and its next HELLO; our engine does not look. The new
 * endpoint there must show that it hears us, by one number: a HELLO cannot echo a second one.
 */
Test(cm_auth, restarted_peer_shows_one_proof)
{
	uint64_t sent;

	start(2, &key, &key);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	nodes_may_break = true;
	node_suspend(1, 0);
	nodes_run(cm_world_time + 1);
	node_close(1, false);
	nodes_run(cm_world_time + ms);
	cr_assert_eq(nodes[0].links[1].suspended, 1);
	node_open(1);
	sent = node_stats(0).sent;
	node_connect(1, 0);
	nodes_run(cm_world_time + 100 * ms);
	nodes_expect_connected(0, 1);
	cr_expect_eq(node_stats(0).sent - sent, 2, "a CHALLENGE and the answer");
	cr_expect_eq(node_stats(1).sent, 3);
	nodes_stop();
}

/* A cookie is valid for one to two minutes, for one address, for one request, at one endpoint. */
Test(cm_auth, cookies_are_of_a_time_and_an_address)
{
	struct verve_hello hello = {.kind = VERVE_HELLO_HELLO, .sender_incarnation = 1,
				    .sender_id = 2, .serial = 3, .nonce = 4}, other;
	const uint64_t now = 1000000 * ms;
	struct verve_guard guard, elsewhere;
	struct verve_addr from, to;

	cm_world_addr(0, &to);
	cm_world_addr(1, &from);
	verve_guard_init(&guard, &key, &to);
	verve_guard_init(&elsewhere, &key, &to);
	cr_expect(verve_guard_doubts(&guard, &hello, &from, now, 0));
	hello.echo = verve_guard_cookie(&guard, &hello, &from, now);
	for (uint64_t later = 0; later <= 60000; later += 1000)
		cr_expect_not(verve_guard_doubts(&guard, &hello, &from, now + later * ms, 0));
	cr_expect(verve_guard_doubts(&guard, &hello, &from, now + 120000 * ms, 0));
	cr_expect(verve_guard_doubts(&guard, &hello, &to, now, 0));
	cr_expect(verve_guard_doubts(&elsewhere, &hello, &from, now, 0));
	for (int field = 0; field < 4; field++) {
		other = hello;
		other.sender_incarnation += field == 0;
		other.sender_id += field == 1;
		other.serial += field == 2;
		other.nonce += field == 3;
		cr_expect(verve_guard_doubts(&guard, &other, &from, now, 0), "field %d", field);
	}
	verve_guard_fini(&guard);
	verve_guard_fini(&elsewhere);
}

/* Without a key, only many half-open connections make cookies needed; an answer never needs one. */
Test(cm_auth, cookies_are_for_crowds)
{
	struct verve_hello hello = {.kind = VERVE_HELLO_HELLO, .sender_incarnation = 1,
				    .sender_id = 2, .serial = 3, .nonce = 4};
	struct verve_guard guard;
	struct verve_addr addr;

	cm_world_addr(0, &addr);
	verve_guard_init(&guard, NULL, &addr);
	cr_expect_not(verve_guard_doubts(&guard, &hello, &addr, 1, VERVE_GUARD_UNPROVEN - 1));
	cr_expect(verve_guard_doubts(&guard, &hello, &addr, 1, VERVE_GUARD_UNPROVEN));
	hello.recipient_id = 7;
	cr_expect_not(verve_guard_doubts(&guard, &hello, &addr, 1, VERVE_GUARD_UNPROVEN));
	hello.kind = VERVE_HELLO_READY;
	cr_expect_not(verve_guard_doubts(&guard, &hello, &addr, 1, VERVE_GUARD_UNPROVEN));
	verve_guard_fini(&guard);
}

Test(cm_auth, a_reflection_does_nothing)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	start(3, &key, &key);
	node_close(1, true);
	node_connect(0, 1);
	nodes_run(cm_world_time + ms);
	cr_assert_eq(cm_world_recorded(0, 1, VERVE_HELLO_HELLO, buf), sizeof(buf));
	/* Reflect the HELLO to its sender, and send it to another endpoint. */
	cm_world_inject(1, 0, buf, sizeof(buf));
	cm_world_inject(0, 2, buf, sizeof(buf));
	cm_world_inject(1, 2, buf, sizeof(buf));
	nodes_run(cm_world_time + ms);
	/* Two: the one in node 1's name, and node 2's answer to the one in node 0's name. */
	cr_expect_eq(node_stats(0).unauthenticated, 2);
	cr_expect_eq(nodes[0].links[1].fails, 0);
	cr_expect_eq(node_stats(2).unauthenticated, 2);
	cr_expect_eq(node_stats(2).challenged, 0);
	cr_expect_eq(cm_world_qps(), 1);
	nodes_stop();
}

/* Records a HELLO with a valid cookie: the node would accept it if it were not changed. */
static void record_proven(uint8_t *buf)
{
	start(2, &key, &key);
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	cr_assert_eq(cm_world_recorded(0, 1, VERVE_HELLO_HELLO, buf), VERVE_HELLO_SIZE);
	node_drop(1, 0);
	node_close(0, false);
	nodes_run(cm_world_time + ms);
	cr_assert_eq(cm_world_qps(), 0);
}

/* Its cookie is good still, but the connection is over, and its end is remembered. */
Test(cm_auth, recorded_proof_makes_no_second_queue_pair)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_cm_stats before;

	record_proven(buf);
	before = node_stats(1);
	cm_world_inject(0, 1, buf, sizeof(buf));
	nodes_run(cm_world_time + ms);
	cr_expect_eq(node_stats(1).connected, before.connected);
	cr_expect_eq(node_stats(1).challenged, before.challenged);
	cr_expect_eq(node_stats(1).sent, before.sent + 1, "a refusal");
	nodes_stop();
}

Test(cm_auth, cut_datagrams_do_nothing)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_cm_stats before;

	record_proven(buf);
	before = node_stats(1);
	for (size_t len = 0; len < VERVE_HELLO_SIZE; len++)
		cm_world_inject(0, 1, buf, len);
	nodes_run(cm_world_time + ms);
	cr_expect_eq(node_stats(1).malformed, before.malformed + VERVE_HELLO_SIZE);
	cr_expect_eq(node_stats(1).sent, before.sent);
	cr_expect_eq(node_stats(1).connected, before.connected);
	nodes_stop();
}

Test(cm_auth, changed_datagrams_do_nothing)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_cm_stats before;

	record_proven(buf);
	before = node_stats(1);
	for (unsigned bit = 0; bit < 8 * VERVE_HELLO_SIZE; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cm_world_inject(0, 1, buf, sizeof(buf));
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		nodes_run(cm_world_time + ms);
	}
	/* A datagram with another version counts as both. */
	cr_expect_geq(node_stats(1).malformed + node_stats(1).unauthenticated,
		      before.malformed + before.unauthenticated + 8 * VERVE_HELLO_SIZE);
	cr_expect_eq(node_stats(1).connected, before.connected);
	cr_expect_eq(node_stats(1).challenged, before.challenged);
	cr_expect_eq(cm_world_qps(), 0);
	nodes_stop();
}

/* Injects forged HELLOs, each from another address. */
static void flood(unsigned to, unsigned count)
{
	struct verve_hello hello = {
		.kind = VERVE_HELLO_HELLO, .version_min = VERVE_HELLO_VERSION_MAX,
		.version_max = VERVE_HELLO_VERSION_MAX, .sender_id = 1,
		.serial = 1, .window = 8, .eager_size = 1024,
		.qp = {.qp_num = 17, .mtu_log2 = 10, .rd_atomic_target = 1}};
	uint8_t buf[VERVE_HELLO_SIZE];

	for (unsigned i = 0; i < count; i++) {
		hello.sender_incarnation = cm_world_random() | 1;
		hello.nonce = cm_world_random() | 1;
		verve_hello_encode(&hello, buf);
		cm_world_inject(STRANGER + i, to, buf, sizeof(buf));
	}
	nodes_run(cm_world_time + 10 * ms);
}

/* A forged datagram with our own address as its source is not ours. */
Test(cm_auth, own_address_is_nobody_elses)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	start(2, NULL, NULL);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	cr_assert_eq(cm_world_recorded(1, 0, VERVE_HELLO_HELLO, buf), sizeof(buf));
	cm_world_inject(0, 0, buf, sizeof(buf));
	nodes_run(UINT64_MAX);
	cr_expect_eq(node_stats(0).connected, 1);
	cr_expect_eq(node_stats(0).foreign, 1);
	node_connect(0, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 0);
	nodes_stop();
}

/* Forged requests get a limited number of queue pairs; a real peer still gets one. */
Test(cm_auth, a_flood_is_bounded)
{
	start(2, NULL, NULL);
	cm_world_config.work_max = 0;
	flood(0, STRANGERS);
	cr_expect_eq(nodes[0].strangers, VERVE_GUARD_UNPROVEN);
	cr_expect_eq(node_stats(0).challenged, STRANGERS - VERVE_GUARD_UNPROVEN);
	node_connect(1, 0);
	nodes_run(cm_world_time + 10 * ms);
	nodes_expect_connected(0, 1);
	cr_expect_eq(node_stats(0).challenged, STRANGERS - VERVE_GUARD_UNPROVEN + 1);
	nodes_stop();
}

Test(cm_auth, with_a_key_a_flood_gets_nothing)
{
	start(2, &key, &key);
	flood(0, STRANGERS);
	cr_expect_eq(nodes[0].strangers, 0);
	cr_expect_eq(node_stats(0).unauthenticated, STRANGERS);
	cr_expect_leq(node_stats(0).sent, 64, "%lu were answered", node_stats(0).sent);
	cr_expect_eq(cm_world_qps(), 0);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	nodes_stop();
}

/* Each recording was authentic once, and would open a queue pair if it were believed. */
Test(cm_auth, with_a_key_a_flood_of_recordings_gets_nothing)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	start(2, &key, &key);
	cm_world_config.work_max = 0;
	node_connect(1, 0);
	nodes_run(cm_world_time + 1);
	cr_assert_eq(cm_world_recorded(1, 0, VERVE_HELLO_HELLO, buf), sizeof(buf));
	node_close(1, false);
	nodes_run(cm_world_time + ms);
	for (unsigned i = 0; i < STRANGERS; i++)
		cm_world_inject(1, 0, buf, sizeof(buf));
	nodes_run(cm_world_time + ms);
	cr_expect_eq(node_stats(0).connected, 0);
	cr_expect_geq(node_stats(0).challenged, STRANGERS);
	cr_expect_eq(cm_world_qps(), 0);
	nodes_stop();
}

/* A peer of a later version gets a signed BYE that says so. */
Test(cm_auth, versions_are_told_apart_with_a_key)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_addr from, to;
	struct verve_hello bye;

	start(2, &key, &key);
	node_close(1, true);
	node_connect(0, 1);
	nodes_run(cm_world_time + ms);
	cr_assert_eq(cm_world_recorded(0, 1, VERVE_HELLO_HELLO, buf), sizeof(buf));
	buf[8] = buf[9] = VERVE_HELLO_VERSION_MAX + 1;
	cm_world_addr(1, &from);
	cm_world_addr(0, &to);
	/* Make it the datagram of another endpoint, which has that version. */
	memset(buf + 16, 0x55, 8);
	verve_auth_sign(&key, buf, sizeof(buf), &from, &to);
	cm_world_inject(1, 0, buf, sizeof(buf));
	nodes_run(cm_world_time + ms);
	cr_assert_eq(cm_world_recorded(0, 1, VERVE_HELLO_BYE, buf), sizeof(buf));
	cr_expect(verve_auth_check(&key, buf, sizeof(buf), &to, &from));
	cr_assert_eq(verve_hello_decode(buf, sizeof(buf), &bye), 0);
	cr_expect_eq(bye.reason, VERVE_HELLO_VERSION);
	nodes_stop();
}

Test(cm_auth, a_key_needs_an_address)
{
	struct verve_cm_attr attr = {.key = &key};
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct verve_cm *cm;

	nodes_start(1, 0);
	cr_assert_eq(verve_addr_set(&attr.addr, &any, sizeof(any)), 0);
	cr_expect_eq(verve_cm_open(&attr, &cm), -FI_EINVAL);
	nodes_stop();
}
