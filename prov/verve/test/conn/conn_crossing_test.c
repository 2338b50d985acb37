/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection: both sides ask at once, and their requests merge. */
#include "conn_fixture.h"

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
