/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection: the handshake, one behaviour per test; each test carries datagrams by hand. */
#include "conn_fixture.h"

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
Test(conn, lost_ready_is_repeated_by_the_asking_side)
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
Test(conn, answering_side_repeats_nothing)
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

Test(conn, answering_side_that_asks_too_repeats_its_answer)
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
