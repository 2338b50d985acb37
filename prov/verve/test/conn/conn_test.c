/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection: the state machine, one behaviour per test; each test carries datagrams by hand. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>

#include "base/log.h"
#include "conn/conn.h"
#include "conn/conn_recv.h"
#include "conn/conn_send.h"

enum {
	DOWN = VERVE_CONN_DO_DOWN,
	FAIL = VERVE_CONN_DO_FAIL,
	OPEN = VERVE_CONN_DO_OPEN,
	CONNECT = VERVE_CONN_DO_CONNECT,
	REPORT_UP = VERVE_CONN_DO_UP,
	REPORT_READY = VERVE_CONN_DO_READY,
	SEND = VERVE_CONN_DO_SEND,
	/* The actions of a connection that accepts a HELLO. */
	ADOPT = CONNECT | REPORT_UP | SEND,
};

static const uint64_t ms = 1000000;

/* An endpoint and its connection to the other endpoint. */
struct end {
	struct verve_conn_self self;
	struct verve_conn conn;
	uint64_t serial;
};

static struct end a, b;
static uint64_t now;
static uint64_t random_number;
static struct verve_conn_out out;

static struct verve_addr addr_of(uint8_t host)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(4000),
		.sin_addr.s_addr = htonl(0x0a000000u + host),
	};
	struct verve_addr addr;

	cr_assert_eq(verve_addr_set(&addr, &in, sizeof(in)), 0);
	return addr;
}

/* Makes a new endpoint: at the start of a test, and when its process is started again. */
static void start_end(struct end *end, uint8_t host, uint8_t peer)
{
	struct verve_addr addr = addr_of(peer);

	memset(end, 0, sizeof(*end));
	end->self.addr = addr_of(host);
	end->self.incarnation = ++random_number;
	end->self.window = 100u + host;
	end->self.eager_size = 1000u + host;
	end->self.timeout = 1000 * ms;
	verve_conn_init(&end->conn, &end->self, &addr);
}

static void setup(void)
{
	static struct fi_provider provider = {.name = "test"};

	verve_log_provider = &provider;
	now = 5000 * ms;
	random_number = 1000;
	start_end(&a, 1, 2);
	start_end(&b, 2, 1);
}

TestSuite(conn, .init = setup);

static void open_end(struct end *end)
{
	struct verve_conn_local local = {
		.id = (uint32_t)random_number + 1,
		.serial = ++end->serial,
		.nonce = random_number + 2,
		.qp = {.qp_num = (uint32_t)random_number + 3, .psn = 7, .mtu_log2 = 10},
	};

	random_number += 3;
	verve_conn_open(&end->conn, &local);
}

/* The engine asks for the connection; returns the first HELLO. */
static struct verve_hello request(struct end *end)
{
	verve_conn_connect(&end->conn);
	cr_assert_eq(end->conn.state, VERVE_CONN_QUEUED);
	open_end(end);
	verve_conn_start(&end->conn, now, ++random_number, &out);
	cr_assert_eq(out.actions, SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_HELLO);
	cr_assert_eq(end->conn.state, VERVE_CONN_WAIT_HELLO);
	return out.hello;
}

/* A datagram arrives; returns the actions, with their arguments in out. */
static unsigned receive(struct end *end, const struct verve_hello *arrived)
{
	struct verve_hello hello = *arrived; /* a copy: arrived may be out.hello */
	unsigned actions = 0;

	for (;;) {
		verve_conn_receive(&end->conn, &hello, now, ++random_number, &out);
		actions |= out.actions;
		if (!(out.actions & OPEN))
			return actions;
		open_end(end);
	}
}

/* a asks, b answers, no datagram is lost. Returns the first HELLO. */
static struct verve_hello establish(void)
{
	struct verve_hello first = request(&a), answer, ready;

	cr_assert_eq(receive(&b, &first), OPEN | ADOPT);
	answer = out.hello;
	cr_assert_eq(receive(&a, &answer), ADOPT);
	ready = out.hello;
	cr_assert_eq(receive(&b, &ready), REPORT_READY);
	cr_assert_eq(a.conn.state, VERVE_CONN_UP);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP);
	return first;
}

static void expect_agreement(void)
{
	/* Both engines have read UP. */
	verve_conn_taken(&a.conn);
	verve_conn_taken(&b.conn);
	cr_assert_eq(a.conn.remote.id, b.conn.local.id);
	cr_assert_eq(b.conn.remote.id, a.conn.local.id);
	cr_assert_eq(a.conn.remote.qp.qp_num, b.conn.local.qp.qp_num);
	cr_assert_eq(b.conn.remote.qp.qp_num, a.conn.local.qp.qp_num);
	cr_assert_eq(a.conn.remote.window, b.self.window);
	cr_assert_eq(a.conn.remote.eager_size, b.self.eager_size);
	cr_assert_eq(b.conn.remote.eager_size, a.self.eager_size);
	cr_assert_eq(b.conn.remote.window, a.self.window);
	cr_assert_eq(a.conn.timer, VERVE_TIMER_NEVER);
	cr_assert_eq(b.conn.timer, VERVE_TIMER_NEVER);
}

static void fire(struct end *end)
{
	now = end->conn.timer;
	verve_conn_timer(&end->conn, now, ++random_number, &out);
}

Test(conn, table)
{
	static const char rows[VERVE_CONN_STATES][VERVE_CONN_STATES + 1] = {
		/* to         iqhru */
		[VERVE_CONN_IDLE] = ".x.x.",
		[VERVE_CONN_QUEUED] = "x.xxx",
		[VERVE_CONN_WAIT_HELLO] = "x..xx",
		[VERVE_CONN_WAIT_READY] = "x...x",
		[VERVE_CONN_UP] = "x....",
	};

	for (unsigned from = 0; from < VERVE_CONN_STATES; from++)
		for (unsigned to = 0; to < VERVE_CONN_STATES; to++)
			cr_assert_eq(verve_conn_is_legal(from, to), rows[from][to] == 'x',
				     "from %u to %u", from, to);
}

Test(conn, one_side_asks)
{
	struct verve_hello first = request(&a), answer;

	cr_assert_eq(first.recipient_id, 0);
	cr_assert_eq(receive(&b, &first), OPEN | ADOPT);
	cr_assert_not(out.may_send, "b does not know that a is connected");
	cr_assert_eq(b.conn.state, VERVE_CONN_WAIT_READY);
	answer = out.hello;
	cr_assert_eq(answer.kind, VERVE_HELLO_HELLO);
	cr_assert_eq(answer.recipient_id, first.sender_id);
	cr_assert_eq(answer.recipient_incarnation, a.self.incarnation);
	cr_assert_eq(answer.echo, first.nonce);
	cr_assert_eq(receive(&a, &answer), ADOPT);
	cr_assert(out.may_send);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_READY);
	cr_assert_eq(receive(&b, &out.hello), REPORT_READY);
	expect_agreement();
}

Test(conn, crossing_requests_merge)
{
	struct verve_hello from_a = request(&a), from_b = request(&b), answer_b;
	uint32_t id_a = a.conn.local.id, id_b = b.conn.local.id;

	cr_assert_eq(receive(&a, &from_b), ADOPT & ~SEND, "b answers: its incarnation is larger");
	cr_assert_not(out.may_send);
	cr_assert_not(out.listen);
	cr_assert_eq(receive(&b, &from_a), ADOPT);
	cr_assert_not(out.may_send);
	cr_assert(out.listen);
	answer_b = out.hello;
	cr_assert_eq(receive(&a, &answer_b), REPORT_READY);
	cr_assert(out.greet);
	cr_assert_eq(b.conn.state, VERVE_CONN_WAIT_READY);
	verve_conn_hear(&b.conn);
	expect_agreement();
	cr_assert_eq(a.conn.local.id, id_a);
	cr_assert_eq(b.conn.local.id, id_b);
	verve_conn_hear(&b.conn);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP);
}

/* b's answer arrives before b's HELLO. */
Test(conn, crossing_request_that_is_overtaken)
{
	struct verve_hello from_a = request(&a), from_b = request(&b);

	cr_assert_eq(receive(&b, &from_a), ADOPT);
	cr_assert_eq(receive(&a, &out.hello), ADOPT & ~SEND);
	cr_assert(out.may_send && out.greet);
	cr_assert_eq(receive(&a, &from_b), 0);
	verve_conn_hear(&b.conn);
	expect_agreement();
}

/* No packet takes the place of READY, because a's engine does not run. */
Test(conn, crossing_requests_merge_without_a_packet)
{
	struct verve_hello from_a = request(&a), from_b = request(&b);

	receive(&a, &from_b);
	receive(&b, &from_a);
	receive(&a, &out.hello);
	fire(&b);
	cr_assert_eq(receive(&a, &out.hello), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_READY);
	cr_assert_eq(receive(&b, &out.hello), REPORT_READY);
	cr_assert_not(out.greet);
	expect_agreement();
}

/* a is the quiet side, and b's answer is lost: b repeats the answer, or a its HELLO. */
Test(conn, crossing_requests_whose_answer_is_lost)
{
	for (int first = 0; first < 2; first++) {
		struct verve_hello from_a, from_b;

		setup();
		from_a = request(&a);
		from_b = request(&b);
		receive(&a, &from_b);
		receive(&b, &from_a);
		if (!first) {
			fire(&b);
			cr_assert_eq(receive(&a, &out.hello), REPORT_READY);
			cr_assert(out.greet);
			verve_conn_hear(&b.conn);
		} else {
			fire(&a);
			cr_assert_eq(out.hello.kind, VERVE_HELLO_HELLO);
			cr_assert_eq(receive(&b, &out.hello), REPORT_READY);
			cr_assert_not(out.greet);
			fire(&a);
			cr_assert_eq(receive(&b, &out.hello), SEND);
			cr_assert_eq(receive(&a, &out.hello), REPORT_READY);
			cr_assert_not(out.greet);
		}
		expect_agreement();
	}
}

/* a's HELLO is lost, and a has adopted b's HELLO. */
Test(conn, crossing_requests_of_which_the_quiet_ones_is_lost)
{
	struct verve_hello from_b;

	request(&a);
	from_b = request(&b);
	cr_assert_eq(receive(&a, &from_b), ADOPT & ~SEND);
	fire(&a);
	cr_assert_eq(receive(&b, &out.hello), ADOPT);
	cr_assert(out.may_send);
	cr_assert_eq(receive(&a, &out.hello), REPORT_READY);
	cr_assert_not(out.greet);
	expect_agreement();
}

/* A HELLO that had to be repeated may never have arrived: its answer must not be waited for. */
Test(conn, old_request_does_not_keep_quiet)
{
	struct verve_hello from_b;

	request(&a);
	fire(&a);
	from_b = request(&b);
	cr_assert_eq(receive(&a, &from_b), ADOPT);
	cr_assert_eq(receive(&b, &out.hello), ADOPT);
	cr_assert_eq(receive(&a, &out.hello), REPORT_READY);
	expect_agreement();
}

Test(conn, crossing_requests_of_which_one_is_lost_merge)
{
	struct verve_hello from_b, answer_a;

	a.self.incarnation = UINT64_MAX; /* the larger incarnation answers: a */
	request(&a);
	from_b = request(&b);
	cr_assert_eq(receive(&a, &from_b), ADOPT);
	answer_a = out.hello;
	cr_assert_eq(receive(&b, &answer_a), ADOPT & ~SEND);
	cr_assert(out.may_send && out.greet);
	verve_conn_hear(&a.conn);
	expect_agreement();
}

Test(conn, asked_for_while_the_peer_asks)
{
	struct verve_hello first = request(&a);

	verve_conn_connect(&b.conn);
	cr_assert_eq(b.conn.state, VERVE_CONN_QUEUED);
	cr_assert_eq(receive(&b, &first), OPEN | ADOPT);
	cr_assert_eq(b.conn.state, VERVE_CONN_WAIT_READY);
	verve_conn_connect(&b.conn);
	cr_assert_eq(b.conn.state, VERVE_CONN_WAIT_READY);
}

Test(conn, repetition_backs_off_with_jitter_until_the_timeout)
{
	uint64_t start = now, last = now, gap;
	uint32_t id;
	int count = 0;

	id = request(&a).sender_id;
	for (;;) {
		fire(&a);
		if (out.actions != SEND)
			break;
		cr_assert_eq(out.hello.kind, VERVE_HELLO_HELLO);
		cr_assert_eq(out.hello.sender_id, id);
		gap = now - last;
		last = now;
		cr_assert_geq(gap, (30ull << count) * ms);
		cr_assert_leq(gap, (50ull << count) * ms);
		count++;
	}
	cr_assert_eq(out.actions, FAIL);
	cr_assert_eq(out.error, FI_ETIMEDOUT);
	cr_assert_eq(now, start + a.self.timeout);
	cr_assert_geq(count, 4);
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
	cr_assert_eq(a.conn.timer, VERVE_TIMER_NEVER);
}

Test(conn, intervals_end_at_a_second)
{
	uint64_t last;

	a.self.timeout = 60000 * ms;
	request(&a);
	for (int i = 0; i < 10; i++)
		fire(&a);
	last = now;
	fire(&a);
	cr_assert_leq(now - last, 1250 * ms);
	cr_assert_geq(now - last, 750 * ms);
}

Test(conn, timer_that_is_not_due_does_nothing)
{
	request(&a);
	verve_conn_timer(&a.conn, a.conn.timer - 1, 0, &out);
	cr_assert_eq(out.actions, 0);
}

Test(conn, lost_answer_is_repeated_at_once_when_asked_again)
{
	struct verve_hello first = request(&a), answer;

	receive(&b, &first);
	answer = out.hello;
	cr_assert_eq(receive(&b, &first), SEND);
	cr_assert_eq(memcmp(&out.hello, &answer, sizeof(answer)), 0);
	cr_assert_eq(receive(&a, &out.hello), ADOPT);
}

/* READY is repeated until the asking side's engine runs; then the first packet cannot be lost. */
Test(conn, lost_ready_is_repeated_by_who_asked)
{
	struct verve_hello first = request(&a), answer;
	uint64_t start = now;

	receive(&b, &first);
	answer = out.hello;
	cr_assert_eq(receive(&a, &answer), ADOPT);
	cr_assert(out.greet);
	for (int i = 0; i < 3; i++) {
		fire(&a);
		cr_assert_eq(out.actions, SEND);
		cr_assert_eq(out.hello.kind, VERVE_HELLO_READY);
		cr_assert_leq(now - start, 400 * ms);
	}
	cr_assert_eq(receive(&b, &out.hello), REPORT_READY);
	cr_assert_not(out.greet);
	fire(&a);
	cr_assert_eq(out.actions, SEND);
	cr_assert_eq(receive(&b, &out.hello), 0);
	expect_agreement();
}

Test(conn, ready_is_not_repeated_for_ever)
{
	struct verve_hello first = request(&a);
	uint64_t start = now;

	receive(&b, &first);
	receive(&a, &out.hello);
	do
		fire(&a);
	while (out.actions == SEND);
	cr_assert_eq(out.actions, 0);
	cr_assert_eq(now, start + a.self.timeout);
	cr_assert_eq(a.conn.state, VERVE_CONN_UP);
	cr_assert_eq(a.conn.timer, VERVE_TIMER_NEVER);
}

Test(conn, lost_ready_is_made_up_for_by_a_packet)
{
	struct verve_hello first = request(&a);

	receive(&b, &first);
	cr_assert(out.listen);
	receive(&a, &out.hello);
	cr_assert(out.greet);
	verve_conn_hear(&b.conn);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP);
	expect_agreement();
}

/* The asking side's address may be forged: it gets no more datagrams than came from it. */
Test(conn, who_only_answers_repeats_nothing)
{
	struct verve_hello first = request(&a);
	unsigned answers = 0;

	for (unsigned asked = 1; asked <= 3; asked++) {
		answers += !!(receive(&b, &first) & SEND);
		cr_assert_eq(answers, asked);
	}
	while (b.conn.timer != VERVE_TIMER_NEVER) {
		fire(&b);
		answers += !!(out.actions & SEND);
	}
	cr_assert_eq(answers, 3, "%u datagrams for 3", answers);
	verve_conn_expire(&b.conn, &out);
	cr_assert_eq(out.actions, DOWN, "and no farewell");
	cr_assert_eq(b.conn.state, VERVE_CONN_IDLE);
}

Test(conn, who_wants_it_too_repeats_its_answer)
{
	struct verve_hello first = request(&a);

	verve_conn_connect(&b.conn);
	cr_assert_eq(receive(&b, &first), OPEN | ADOPT);
	cr_assert_not(out.listen);
	for (int i = 0; i < 3; i++) {
		fire(&b);
		cr_assert_eq(out.actions, SEND);
		cr_assert_eq(out.hello.kind, VERVE_HELLO_HELLO);
	}
	cr_assert_eq(receive(&a, &out.hello), ADOPT);
	cr_assert_not(out.greet);
	cr_assert_eq(receive(&b, &out.hello), REPORT_READY);
	expect_agreement();
}

Test(conn, copies_change_nothing)
{
	struct verve_hello first = request(&a), answer, ready;

	receive(&b, &first);
	answer = out.hello;
	receive(&a, &answer);
	ready = out.hello;
	receive(&b, &ready);
	cr_assert_eq(receive(&b, &ready), 0);
	cr_assert_eq(receive(&b, &first), 0);
	cr_assert(out.foreign);
	cr_assert_eq(receive(&a, &answer), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_READY);
	expect_agreement();
}

Test(conn, half_open_connection_expires)
{
	struct verve_hello first = request(&a);
	uint64_t start = now;

	verve_conn_connect(&b.conn);
	receive(&b, &first);
	do
		fire(&b);
	while (out.actions == SEND);
	cr_assert_eq(out.actions, DOWN | SEND);
	cr_assert_eq(out.error, FI_ETIMEDOUT);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(now, start + b.self.timeout);
	cr_assert_eq(b.conn.state, VERVE_CONN_IDLE);
}

Test(conn, refusal_fails_who_waits_for_an_answer)
{
	request(&a);
	verve_conn_unreachable(&a.conn, FI_ECONNREFUSED, &out);
	cr_assert_eq(out.actions, FAIL);
	cr_assert_eq(out.error, FI_ECONNREFUSED);
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
}

Test(conn, refusal_is_nothing_to_who_has_heard_from_the_peer)
{
	struct verve_hello first = request(&a);

	receive(&b, &first);
	verve_conn_unreachable(&b.conn, FI_ECONNREFUSED, &out);
	cr_assert_eq(out.actions, 0);
	setup();
	establish();
	verve_conn_unreachable(&a.conn, FI_ECONNREFUSED, &out);
	cr_assert_eq(out.actions, 0);
	cr_assert_eq(a.conn.state, VERVE_CONN_UP);
}

/* Checks of a live peer, of a restarted peer, and of a dead peer. */
Test(conn, check_of_a_living_peer_changes_nothing)
{
	struct verve_hello check;

	establish();
	for (int i = 0; i < 3; i++) {
		verve_conn_check(&a.conn, false, &out);
		cr_assert_eq(out.actions, SEND);
		check = out.hello;
		receive(&b, &check);
		cr_assert_eq(out.actions, 0);
		cr_assert_eq(b.conn.state, VERVE_CONN_UP);
	}
	/* Single refusals, which may be forged: never two in a row. */
	for (int i = 0; i < 3; i++) {
		verve_conn_check(&a.conn, false, &out);
		verve_conn_unreachable(&a.conn, FI_ECONNREFUSED, &out);
		cr_assert_eq(out.actions, 0);
		verve_conn_check(&a.conn, false, &out);
		verve_conn_check(&a.conn, false, &out);
	}
	cr_assert_eq(a.conn.state, VERVE_CONN_UP);
}

Test(conn, check_of_a_peer_that_forgot_us_ends_the_connection)
{
	struct verve_hello check, bye;

	establish();
	verve_conn_check(&a.conn, false, &out);
	check = out.hello;
	verve_conn_drop(&b.conn, &out);
	receive(&b, &check);
	cr_assert_eq(out.actions, SEND);
	bye = out.hello;
	cr_assert_eq(bye.kind, VERVE_HELLO_BYE);
	receive(&a, &bye);
	cr_assert_eq(out.actions, DOWN);
	cr_assert_eq(out.error, FI_ENOTCONN);
}

Test(conn, checks_that_are_refused_twice_in_a_row_end_the_connection)
{
	establish();
	verve_conn_check(&a.conn, false, &out);
	verve_conn_unreachable(&a.conn, FI_EHOSTUNREACH, &out);
	verve_conn_unreachable(&a.conn, FI_ECONNREFUSED, &out);
	verve_conn_unreachable(&a.conn, FI_ECONNREFUSED, &out);
	cr_assert_eq(out.actions, 0, "two answers to one check are one");
	verve_conn_check(&a.conn, false, &out);
	verve_conn_unreachable(&a.conn, FI_ECONNREFUSED, &out);
	cr_assert_eq(out.actions, DOWN);
	cr_assert_eq(out.error, FI_EHOSTUNREACH);
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
}

/* A cable may be out for a while: only four missed checks in one silence mean a dead host. */
Test(conn, checks_that_do_not_get_to_the_host_four_times_end_the_connection)
{
	establish();
	for (int silence = 0; silence < 2; silence++)
		for (int i = 0; i < 4; i++) {
			verve_conn_check(&a.conn, i == 0, &out);
			cr_assert_eq(out.actions, SEND);
			/* The ICMP error may come after the next check was sent, and twice. */
			if (i % 2)
				verve_conn_check(&a.conn, false, &out);
			for (int answer = 0; answer < 2; answer++) {
				bool last = silence && i == 3 && !answer;

				if (!silence && i == 3)
					continue;
				verve_conn_unreachable(
					&a.conn, i % 2 ? FI_EHOSTUNREACH : FI_ENETUNREACH, &out);
				cr_assert_eq(out.actions, last ? DOWN : 0, "silence %d, %d",
					     silence, i);
				cr_assert(!last || out.error == FI_EHOSTUNREACH);
			}
		}
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
}

Test(conn, checks_need_a_connection_to_another)
{
	verve_conn_check(&a.conn, false, &out);
	cr_assert_eq(out.actions, 0);
	request(&a);
	verve_conn_check(&a.conn, false, &out);
	cr_assert_eq(out.actions, 0);
}

/* Anybody who saw the HELLO can forge this BYE; only a time-out reports its reason. */
Test(conn, doubts_about_the_key_are_the_reason_at_the_end_only)
{
	struct verve_hello hello = request(&a), bye, wrong;

	verve_conn_refuse(&b.self, &hello, VERVE_HELLO_AUTH, &bye);
	wrong = bye;
	wrong.echo++;
	cr_assert_not(verve_conn_doubt(&a.conn, &wrong));
	cr_assert(verve_conn_doubt(&a.conn, &bye));
	cr_assert_eq(a.conn.state, VERVE_CONN_WAIT_HELLO);
	do
		fire(&a);
	while (out.actions == SEND);
	cr_assert_eq(out.actions, FAIL);
	cr_assert_eq(out.error, FI_EKEYREJECTED);
	cr_assert_not(verve_conn_doubt(&a.conn, &bye));
}

Test(conn, without_a_key_a_refusal_ends_the_attempt)
{
	struct verve_hello hello = request(&a), bye;

	verve_conn_refuse(&b.self, &hello, VERVE_HELLO_AUTH, &bye);
	cr_assert_eq(receive(&a, &bye), FAIL);
	cr_assert_eq(out.error, FI_EKEYREJECTED);
}

Test(conn, missing_route_is_the_reason_at_the_end_only)
{
	request(&a);
	verve_conn_unreachable(&a.conn, FI_EHOSTUNREACH, &out);
	cr_assert_eq(out.actions, 0);
	do
		fire(&a);
	while (out.actions == SEND);
	cr_assert_eq(out.actions, FAIL);
	cr_assert_eq(out.error, FI_EHOSTUNREACH);
}

Test(conn, bye_ends_exactly_the_connection_it_names)
{
	struct verve_hello bye, wrong;

	establish();
	verve_conn_drop(&a.conn, &out);
	cr_assert_eq(out.actions, SEND);
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
	bye = out.hello;
	cr_assert_eq(bye.kind, VERVE_HELLO_BYE);
	for (int field = 0; field < 5; field++) {
		wrong = bye;
		switch (field) {
		case 0: wrong.recipient_id++; break;
		case 1: wrong.recipient_incarnation++; break;
		case 2: wrong.echo++; break;
		case 3: wrong.sender_id++; break;
		/* An earlier incarnation may have had the same id. */
		case 4: wrong.sender_incarnation++; break;
		}
		cr_assert_eq(receive(&b, &wrong), 0);
		cr_assert(out.foreign);
		cr_assert_eq(b.conn.state, VERVE_CONN_UP);
	}
	cr_assert_eq(receive(&b, &bye), DOWN);
	cr_assert_eq(out.error, FI_ENOTCONN);
	cr_assert_eq(receive(&b, &bye), 0, "a copy means nobody");
}

Test(conn, drop_of_what_is_not_established_is_nothing)
{
	verve_conn_drop(&a.conn, &out);
	cr_assert_eq(out.actions, 0);
	request(&a);
	verve_conn_drop(&a.conn, &out);
	cr_assert_eq(out.actions, 0);
	cr_assert_eq(a.conn.state, VERVE_CONN_WAIT_HELLO);
}

Test(conn, drops_that_cross_are_harmless)
{
	struct verve_hello bye_a, bye_b, first, answer;

	establish();
	verve_conn_drop(&a.conn, &out);
	bye_a = out.hello;
	verve_conn_drop(&b.conn, &out);
	bye_b = out.hello;
	first = request(&a);
	cr_assert_eq(receive(&a, &bye_b), 0);
	cr_assert_eq(receive(&b, &first), OPEN | ADOPT);
	answer = out.hello;
	cr_assert_eq(receive(&b, &bye_a), 0);
	cr_assert_eq(receive(&a, &answer), ADOPT);
	cr_assert_eq(b.conn.state, VERVE_CONN_WAIT_READY);
}

/* a asks anew while b's connection is UP: b challenges, then replaces its connection. */
static void expect_change_over(struct verve_hello first)
{
	struct verve_hello challenge, proof, answer, ready;
	uint32_t old = b.conn.local.id;

	cr_assert_eq(receive(&b, &first), SEND);
	challenge = out.hello;
	cr_assert_eq(challenge.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP, "nothing is given up yet");
	cr_assert_eq(receive(&a, &challenge), SEND);
	proof = out.hello;
	cr_assert_eq(receive(&a, &challenge), 0, "a copy is not answered");
	cr_assert_eq(receive(&b, &proof), DOWN | OPEN | ADOPT);
	cr_assert_eq(b.conn.state, VERVE_CONN_WAIT_READY);
	cr_assert_neq(b.conn.local.id, old);
	answer = out.hello;
	cr_assert_eq(receive(&a, &answer), ADOPT);
	ready = out.hello;
	cr_assert_eq(receive(&b, &ready), REPORT_READY);
	expect_agreement();
	cr_assert_eq(receive(&b, &first), 0);
	cr_assert_eq(receive(&b, &proof), 0);
	cr_assert_eq(receive(&a, &challenge), 0);
	expect_agreement();
}

Test(conn, dropped_without_a_word_and_asked_again)
{
	establish();
	verve_conn_drop(&a.conn, &out);
	expect_change_over(request(&a));
}

Test(conn, peer_restarted)
{
	establish();
	start_end(&a, 1, 2);
	expect_change_over(request(&a));
}

Test(conn, same_candidate_gets_the_same_challenge)
{
	struct verve_hello first, challenge;

	establish();
	start_end(&a, 1, 2);
	first = request(&a);
	receive(&b, &first);
	challenge = out.hello;
	receive(&b, &first);
	cr_assert_eq(out.hello.nonce, challenge.nonce);
}

Test(conn, challenge_is_no_proof_for_anybody_else)
{
	struct verve_hello first, proof;

	establish();
	start_end(&a, 1, 2);
	first = request(&a);
	receive(&b, &first);
	receive(&a, &out.hello);
	proof = out.hello;
	proof.sender_id++;
	cr_assert_eq(receive(&b, &proof), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP);
	start_end(&a, 1, 2);
	proof = request(&a);
	proof.echo = 12345;
	proof.recipient_incarnation = b.self.incarnation;
	cr_assert_eq(receive(&b, &proof), SEND);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP);
}

Test(conn, stale_hello_tears_nothing_down)
{
	struct verve_hello very_old, old = establish(), challenge;

	very_old = old;
	verve_conn_drop(&a.conn, &out);
	receive(&b, &out.hello);
	old = establish();
	verve_conn_drop(&a.conn, &out);
	receive(&b, &out.hello);
	establish();
	/* Same incarnation, earlier serial: that connection is over. */
	cr_assert_eq(receive(&b, &old), 0);
	cr_assert_eq(receive(&b, &very_old), 0);
	/* Another incarnation may be new: it is challenged, and does not answer. */
	old.sender_incarnation += 77;
	cr_assert_eq(receive(&b, &old), SEND);
	challenge = out.hello;
	cr_assert_eq(challenge.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(receive(&a, &challenge), 0);
	expect_agreement();
}

Test(conn, stale_hello_without_a_connection_is_over_at_once)
{
	struct verve_hello old = establish(), answer;

	start_end(&b, 2, 1);
	verve_conn_drop(&a.conn, &out);
	cr_assert_eq(receive(&b, &old), OPEN | ADOPT, "b cannot know");
	answer = out.hello;
	cr_assert_eq(receive(&a, &answer), SEND, "a does");
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(receive(&b, &out.hello), DOWN);
	cr_assert_eq(receive(&b, &old), SEND, "and b remembers");
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(b.conn.state, VERVE_CONN_IDLE);
}

/* a merges with a HELLO of b's last incarnation; b's present incarnation corrects that. */
Test(conn, merged_with_a_stale_hello)
{
	struct verve_hello stale = request(&b), from_a, answer;

	start_end(&b, 2, 1);
	a.self.incarnation = UINT64_MAX; /* the larger incarnation answers: a */
	from_a = request(&a);
	cr_assert_eq(receive(&a, &stale), ADOPT);
	answer = out.hello;
	cr_assert_eq(receive(&b, &answer), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	answer = out.hello;
	/* b answers a's first HELLO too: a's end is connected already, and a denies. */
	cr_assert_eq(receive(&b, &from_a), OPEN | ADOPT);
	cr_assert_eq(receive(&a, &out.hello), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(receive(&b, &out.hello), DOWN);
	cr_assert_eq(receive(&a, &answer), DOWN);
	establish();
}

/* The same, and a is the quiet side at first. */
Test(conn, merged_quietly_with_a_stale_hello)
{
	struct verve_hello stale = request(&b), from_a;

	start_end(&b, 2, 1);
	from_a = request(&a);
	cr_assert_eq(receive(&a, &stale), ADOPT & ~SEND);
	cr_assert_eq(receive(&b, &from_a), OPEN | ADOPT);
	cr_assert_eq(receive(&a, &out.hello), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(receive(&b, &out.hello), DOWN);
	fire(&a);
	cr_assert_eq(receive(&b, &out.hello), SEND);
	cr_assert_eq(receive(&a, &out.hello), DOWN);
	establish();
}

/* An answer that b sent before its restart comes after a has merged with b's new HELLO. */
Test(conn, stale_answer_does_not_part_who_merged)
{
	struct verve_hello from_a, stale, from_b, answer;

	a.self.incarnation = UINT64_MAX; /* the larger incarnation answers: a */
	from_a = request(&a);
	receive(&b, &from_a);
	stale = out.hello;
	start_end(&b, 2, 1);
	from_b = request(&b);
	cr_assert_eq(receive(&a, &from_b), ADOPT);
	answer = out.hello;
	cr_assert_eq(receive(&a, &stale), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(receive(&b, &out.hello), 0, "it means the old one");
	cr_assert_eq(receive(&b, &answer), ADOPT & ~SEND);
	verve_conn_hear(&a.conn);
	expect_agreement();
}

Test(conn, ready_of_a_forgotten_connection_is_denied)
{
	struct verve_hello first = request(&a), ready;

	receive(&b, &first);
	receive(&a, &out.hello);
	ready = out.hello;
	verve_conn_drop(&b.conn, &out); /* b's BYE is lost */
	cr_assert_eq(receive(&b, &ready), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(receive(&a, &out.hello), DOWN);
}

Test(conn, bye_to_who_waits_is_a_refusal)
{
	struct verve_hello first = request(&a), bye;

	verve_conn_refuse(&b.self, &first, VERVE_HELLO_RESOURCE, &bye);
	cr_assert_eq(receive(&a, &bye), FAIL);
	cr_assert_eq(out.error, FI_ECONNREFUSED);
	first = request(&a);
	verve_conn_refuse(&b.self, &first, VERVE_HELLO_VERSION, &bye);
	cr_assert_eq(receive(&a, &bye), FAIL);
	cr_assert_eq(out.error, FI_ENOPROTOOPT);
}

Test(conn, to_itself)
{
	a.conn.addr = a.self.addr;
	verve_conn_connect(&a.conn);
	open_end(&a);
	verve_conn_start(&a.conn, now, 1, &out);
	cr_assert_eq(out.actions, CONNECT | REPORT_UP);
	cr_assert(out.may_send);
	cr_assert_eq(a.conn.state, VERVE_CONN_UP);
	cr_assert_eq(a.conn.remote.id, a.conn.local.id);
	cr_assert_eq(a.conn.remote.qp.qp_num, a.conn.local.qp.qp_num);
	cr_assert_eq(a.conn.timer, VERVE_TIMER_NEVER);
	verve_conn_drop(&a.conn, &out);
	cr_assert_eq(out.actions, 0);
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
}

Test(conn, reflected_datagram_is_foreign)
{
	struct verve_hello first = request(&a);

	cr_assert_eq(receive(&a, &first), 0);
	cr_assert(out.foreign);
	cr_assert_eq(a.conn.state, VERVE_CONN_WAIT_HELLO);
}

Test(conn, abort_before_and_after_the_peer_is_known)
{
	struct verve_hello first = request(&a);

	verve_conn_connect(&b.conn);
	verve_conn_abort(&b.conn, FI_ENOMEM, &out);
	cr_assert_eq(out.actions, FAIL);
	cr_assert_eq(out.error, FI_ENOMEM);
	cr_assert_eq(b.conn.state, VERVE_CONN_IDLE);
	receive(&b, &first);
	verve_conn_abort(&b.conn, FI_EINVAL, &out);
	cr_assert_eq(out.actions, FAIL | SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(receive(&a, &out.hello), FAIL);
	cr_assert_eq(out.error, FI_ECONNREFUSED);
}

/* Suspending. */

/* a's engine suspends the connection; returns a's BYE. */
static struct verve_hello suspend(uint32_t *id_a, uint32_t *id_b)
{
	establish();
	*id_a = a.conn.local.id;
	*id_b = b.conn.local.id;
	verve_conn_suspend(&a.conn, &out);
	cr_assert_eq(out.actions, SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(out.hello.reason, VERVE_HELLO_SUSPENDED);
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
	return out.hello;
}

static void expect_resumed(uint32_t id_a, uint32_t id_b)
{
	struct verve_hello answer = out.hello;

	cr_assert_eq(answer.kind, VERVE_HELLO_HELLO);
	cr_assert_eq(answer.resumes, id_b);
	cr_assert_eq(b.conn.remote.resumes, id_a);
	cr_assert_eq(receive(&a, &answer), ADOPT);
	cr_assert_eq(a.conn.remote.resumes, id_b);
	cr_assert_eq(receive(&b, &out.hello), REPORT_READY);
	expect_agreement();
}

Test(conn, suspended_connection_is_resumed)
{
	uint32_t id_a, id_b;
	struct verve_hello bye = suspend(&id_a, &id_b), hello;

	cr_assert_eq(receive(&b, &bye), DOWN);
	cr_assert(out.suspended);
	hello = request(&a);
	cr_assert_eq(hello.resumes, id_a);
	cr_assert_eq(receive(&b, &hello), OPEN | ADOPT);
	expect_resumed(id_a, id_b);
	/* Only once: the connection after that resumes none. */
	verve_conn_drop(&a.conn, &out);
	cr_assert_eq(request(&a).resumes, 0);
}

Test(conn, both_suspend_and_ask)
{
	uint32_t id_a, id_b;
	struct verve_hello from_a, from_b, answer_b;

	suspend(&id_a, &id_b);
	verve_conn_suspend(&b.conn, &out);
	from_a = request(&a);
	from_b = request(&b);
	cr_assert_eq(receive(&b, &from_a), ADOPT);
	answer_b = out.hello;
	cr_assert_eq(receive(&a, &from_b), ADOPT & ~SEND);
	cr_assert_eq(a.conn.remote.resumes, id_b);
	cr_assert_eq(b.conn.remote.resumes, id_a);
	cr_assert_eq(answer_b.resumes, id_b);
}

Test(conn, suspension_whose_bye_was_lost)
{
	struct verve_hello hello, challenge;
	uint32_t id_a, id_b;

	suspend(&id_a, &id_b);
	hello = request(&a);
	cr_assert_eq(receive(&b, &hello), SEND);
	challenge = out.hello;
	cr_assert_eq(challenge.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(receive(&a, &challenge), SEND);
	hello = out.hello;
	verve_conn_receive(&b.conn, &hello, now, ++random_number, &out);
	cr_assert_eq(out.actions, DOWN | OPEN);
	cr_assert(out.suspended);
	open_end(&b);
	cr_assert_eq(receive(&b, &hello), ADOPT);
	expect_resumed(id_a, id_b);
}

Test(conn, who_asks_after_a_suspended_connection_hears_that_it_is)
{
	uint32_t id_a, id_b;

	suspend(&id_a, &id_b);
	verve_conn_check(&b.conn, true, &out);
	receive(&a, &out.hello);
	cr_assert_eq(out.hello.reason, VERVE_HELLO_SUSPENDED);
	cr_assert_eq(receive(&b, &out.hello), DOWN);
	cr_assert(out.suspended);
}

Test(conn, restarted_peer_resumes_nothing)
{
	uint32_t id_a, id_b;
	struct verve_hello hello;

	suspend(&id_a, &id_b);
	start_end(&b, 2, 1);
	hello = request(&a);
	cr_assert_eq(hello.resumes, id_a);
	cr_assert_eq(receive(&b, &hello), OPEN | ADOPT);
	cr_assert_eq(b.conn.remote.resumes, 0);
	cr_assert_eq(out.hello.resumes, 0);
	cr_assert_eq(receive(&a, &out.hello), ADOPT);
	cr_assert_eq(a.conn.remote.resumes, 0);
}

Test(conn, suspended_connection_that_is_forgotten_is_not_resumed)
{
	uint32_t id_a, id_b;
	struct verve_hello bye = suspend(&id_a, &id_b), hello;

	cr_assert_eq(receive(&b, &bye), DOWN);
	verve_conn_forget(&b.conn, id_b);
	cr_assert_eq(b.conn.suspended.local, id_b, "it is the one that is meant");
	verve_conn_forget(&b.conn, 0);
	hello = request(&a);
	cr_assert_eq(receive(&b, &hello), OPEN | ADOPT);
	cr_assert_eq(b.conn.remote.resumes, 0);
	cr_assert_eq(out.hello.resumes, 0);
}

Test(conn, bye_of_another_incarnation_suspends_nothing)
{
	uint32_t id_a, id_b;
	struct verve_hello bye = suspend(&id_a, &id_b);

	bye.sender_incarnation++;
	cr_assert_eq(receive(&b, &bye), 0);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP);
}

Test(conn, abandoned_is_reported_as_what_it_was)
{
	struct verve_hello first = request(&a);

	verve_conn_abandon(&a.conn, FI_ENODEV, &out);
	cr_assert_eq(out.actions, FAIL);
	cr_assert_eq(out.error, FI_ENODEV);
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
	receive(&b, &first);
	cr_assert(verve_conn_is_established(&b.conn));
	verve_conn_abandon(&b.conn, FI_ENODEV, &out);
	cr_assert_eq(out.actions, VERVE_CONN_DO_DOWN | SEND);
	cr_assert_eq(out.error, FI_ENODEV);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(b.conn.state, VERVE_CONN_IDLE);
}
