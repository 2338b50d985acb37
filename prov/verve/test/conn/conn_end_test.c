/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection: what ends one, or an attempt: refusals, checks, BYEs, and the engine. */
#include "conn_fixture.h"

Test(conn, refusal_fails_a_connection_that_waits_for_an_answer)
{
	request(&a);
	verve_conn_unreachable(&a.conn, FI_ECONNREFUSED, &out);
	cr_assert_eq(out.actions, FAIL);
	cr_assert_eq(out.error, FI_ECONNREFUSED);
	cr_assert_eq(a.conn.state, VERVE_CONN_IDLE);
}

Test(conn, refusal_is_nothing_once_the_peer_was_heard)
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

Test(conn, bye_to_a_connection_that_waits_is_a_refusal)
{
	struct verve_hello first = request(&a), bye;

	verve_conn_refuse(&b.self, &first, VERVE_HELLO_RESOURCE, &bye);
	cr_assert_eq(receive(&a, &bye), FAIL);
	cr_assert_eq(out.error, FI_EBUSY);
	first = request(&a);
	verve_conn_refuse(&b.self, &first, VERVE_HELLO_VERSION, &bye);
	cr_assert_eq(receive(&a, &bye), FAIL);
	cr_assert_eq(out.error, FI_ENOPROTOOPT);
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
	cr_assert_eq(out.error, FI_EHOSTUNREACH);
}

Test(conn, abort_for_a_shortage_says_so)
{
	struct verve_hello first = request(&a);

	receive(&b, &first);
	verve_conn_abort(&b.conn, FI_ENOSPC, &out);
	cr_assert_eq(receive(&a, &out.hello), FAIL);
	cr_assert_eq(out.error, FI_EBUSY);
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
