/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection: it is suspended, and the next one resumes it. */
#include "conn_fixture.h"

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

Test(conn, check_of_a_suspended_connection_says_that_it_is)
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

/* b is suspended, too; whoever sends from a's address knows nothing of the connection. */
Test(conn, forged_hello_ends_no_suspension)
{
	uint32_t id_a, id_b;
	struct verve_hello bye = suspend(&id_a, &id_b), hello, forged;

	cr_assert_eq(receive(&b, &bye), DOWN);
	hello = request(&a);
	forged = hello;
	forged.sender_incarnation += 100;
	forged.sender_id++;
	forged.nonce++;
	forged.resumes = 0;
	cr_assert_eq(receive(&b, &forged), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_CHALLENGE);
	forged.sender_incarnation = hello.sender_incarnation;
	cr_assert_eq(receive(&b, &forged), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(receive(&b, &hello), OPEN | ADOPT);
	expect_resumed(id_a, id_b);
}

/*
 * A stranger can learn a's incarnation, and guess ids and serials. Only a knows b's nonce of the
 * suspended connection. Both may have asked by then, too.
 */
Test(conn, guessed_ids_resume_nothing)
{
	for (int both = 0; both < 2; both++) {
		uint32_t id_a, id_b;
		struct verve_hello bye, hello, forged;

		setup();
		bye = suspend(&id_a, &id_b);
		cr_assert_eq(receive(&b, &bye), DOWN);
		hello = request(&a);
		if (both)
			request(&b);
		forged = hello;
		forged.sender_id++;
		forged.serial += 10;
		forged.nonce++;
		forged.qp.qp_num++;
		for (int echo = 0; echo < 2; echo++) {
			forged.echo = echo ? hello.echo + 1 : 0;
			forged.recipient_incarnation = echo ? b.self.incarnation : 0;
			cr_assert_eq(receive(&b, &forged), SEND);
			cr_assert_eq(out.hello.kind, VERVE_HELLO_CHALLENGE);
			cr_assert_eq(receive(&a, &out.hello), 0);
		}
		cr_assert_eq(b.conn.suspended.local, id_b);
		cr_assert_eq(receive(&b, &hello), both ? ADOPT : OPEN | ADOPT);
		if (!both) {
			expect_resumed(id_a, id_b);
			continue;
		}
		cr_assert_eq(out.hello.resumes, id_b);
		cr_assert_eq(receive(&a, &out.hello), ADOPT & ~SEND);
		verve_conn_hear(&b.conn);
		expect_agreement();
	}
}

/* a's HELLO overtakes a's BYE, and is challenged; then b asks, too. */
Test(conn, suspension_whose_bye_is_late)
{
	uint32_t id_a, id_b;
	struct verve_hello bye = suspend(&id_a, &id_b), hello = request(&a), from_a, from_b;

	cr_assert_eq(receive(&b, &hello), SEND);
	hello = out.hello;
	cr_assert_eq(hello.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(receive(&b, &bye), DOWN);
	from_b = request(&b);
	cr_assert_eq(receive(&a, &hello), SEND);
	hello = out.hello;
	cr_assert_eq(receive(&a, &from_b), ADOPT & ~SEND, "a's HELLO is on its way");
	cr_assert_eq(receive(&b, &hello), ADOPT);
	cr_assert_eq(b.conn.remote.resumes, id_a);
	cr_assert_eq(receive(&a, &out.hello), REPORT_READY);
	cr_assert_eq(a.conn.remote.resumes, id_b);
	verve_conn_hear(&b.conn);
	expect_agreement();
	/* A copy of a's proof comes while the next connection is half-open. */
	verve_conn_suspend(&b.conn, &out);
	receive(&a, &out.hello);
	from_a = request(&a);
	cr_assert_eq(receive(&b, &from_a), OPEN | ADOPT);
	cr_assert_eq(receive(&b, &hello), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(receive(&a, &out.hello), 0);
	cr_assert_eq(b.conn.state, VERVE_CONN_WAIT_READY);
}

/* Whatever became of the suspended one meanwhile, the next connection comes. */
Test(conn, proof_of_what_is_forgotten_harms_nothing)
{
	uint32_t id_a, id_b;
	struct verve_hello bye = suspend(&id_a, &id_b), hello, answer;

	cr_assert_eq(receive(&b, &bye), DOWN);
	verve_conn_forget(&b.conn, 0);
	hello = request(&a);
	cr_assert_neq(hello.echo, 0);
	request(&b);
	cr_assert_eq(receive(&b, &hello), ADOPT);
	answer = out.hello;
	cr_assert_eq(answer.resumes, 0);
	cr_assert_eq(receive(&a, &answer), ADOPT & ~SEND);
	cr_assert_eq(a.conn.remote.resumes, 0);
	verve_conn_hear(&b.conn);
	expect_agreement();
}

/* Both suspend what continues another connection: three in a chain. */
Test(conn, resumed_connection_is_suspended_again)
{
	uint32_t id_a, id_b;
	struct verve_hello bye = suspend(&id_a, &id_b), hello;

	receive(&b, &bye);
	hello = request(&a);
	receive(&b, &hello);
	expect_resumed(id_a, id_b);
	id_a = a.conn.local.id;
	id_b = b.conn.local.id;
	verve_conn_suspend(&a.conn, &out);
	verve_conn_suspend(&b.conn, &out);
	cr_assert_eq(receive(&b, &hello), SEND, "a copy of the last one's");
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(receive(&a, &out.hello), 0);
	hello = request(&a);
	cr_assert_eq(receive(&b, &hello), OPEN | ADOPT);
	expect_resumed(id_a, id_b);
}

Test(conn, restarted_peer_shows_that_it_hears_who_has_suspended)
{
	uint32_t id_a, id_b;
	struct verve_hello hello;

	suspend(&id_a, &id_b);
	start_end(&b, 2, 1);
	hello = request(&b);
	cr_assert_eq(receive(&a, &hello), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(receive(&b, &out.hello), SEND);
	hello = out.hello;
	cr_assert_eq(receive(&a, &hello), OPEN | ADOPT);
	cr_assert_eq(a.conn.remote.resumes, 0);
	cr_assert_eq(receive(&b, &out.hello), ADOPT);
	expect_agreement();
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

/* b was started anew, and has answered a copy of a's HELLO; by chance its id is the old one. */
Test(conn, restarted_peer_was_not_suspended)
{
	struct verve_hello first = establish(), answer;

	start_end(&b, 2, 1);
	cr_assert_eq(receive(&b, &first), OPEN | ADOPT);
	answer = out.hello;
	answer.sender_id = a.conn.remote.id;
	verve_conn_suspend(&a.conn, &out);
	cr_assert_eq(receive(&a, &answer), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
	cr_assert_eq(out.hello.reason, VERVE_HELLO_UNKNOWN);
}

Test(conn, bye_of_another_incarnation_suspends_nothing)
{
	uint32_t id_a, id_b;
	struct verve_hello bye = suspend(&id_a, &id_b);

	bye.sender_incarnation++;
	cr_assert_eq(receive(&b, &bye), 0);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP);
}
