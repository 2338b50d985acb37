/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection: datagrams of earlier connections and incarnations; the change to a new one. */
#include "conn_fixture.h"

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
Test(conn, stale_answer_does_not_part_merged_connections)
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

/* What a stranger says in a's name, which knows a's incarnation and no more. */
static struct verve_hello forge(uint64_t serial)
{
	struct verve_hello forged = request(&a);

	verve_conn_end(&a.conn, 0, 0, &out);
	forged.serial = serial;
	forged.sender_id += 1000;
	forged.nonce += 1000;
	forged.qp.qp_num += 1000;
	return forged;
}

/* b gets a's HELLO, challenges it, and treats a's proof as expected. Returns the proof. */
static struct verve_hello prove(const struct verve_hello *first, unsigned expected)
{
	struct verve_hello proof;

	cr_assert_eq(receive(&b, first), SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_CHALLENGE);
	cr_assert(verve_conn_judges(&b.conn, first), "a cookie is not asked for as well");
	cr_assert_eq(receive(&a, &out.hello), SEND);
	proof = out.hello;
	cr_assert(verve_conn_judges(&b.conn, &proof));
	cr_assert_eq(receive(&b, &proof), expected);
	return proof;
}

static void expect_proof(const struct verve_hello *first, unsigned expected)
{
	struct verve_hello proof = prove(first, expected);

	cr_assert_eq(receive(&a, &out.hello), ADOPT);
	cr_assert_eq(receive(&b, &out.hello), REPORT_READY);
	expect_agreement();
	cr_assert_eq(receive(&b, &proof), 0);
}

/* The serial is the largest, or the very one that a will use next. */
Test(conn, forged_serial_does_not_lock_the_peer_out)
{
	for (int guessed = 0; guessed < 2; guessed++) {
		struct verve_hello forged, first;

		setup();
		forged = forge(guessed ? 2 : UINT64_MAX);
		cr_assert_eq(receive(&b, &forged), OPEN | ADOPT, "b cannot know");
		cr_assert_eq(receive(&a, &out.hello), SEND, "a does");
		cr_assert_eq(out.hello.kind, VERVE_HELLO_BYE);
		cr_assert_eq(receive(&b, &out.hello), DOWN);
		first = request(&a);
		cr_assert_eq(first.serial, 2);
		expect_proof(&first, OPEN | ADOPT);
	}
}

Test(conn, forged_serial_does_not_lock_the_peer_out_while_half_open)
{
	struct verve_hello forged = forge(UINT64_MAX), first = request(&a);

	cr_assert_eq(receive(&b, &forged), OPEN | ADOPT);
	expect_proof(&first, DOWN | OPEN | ADOPT);
}

/* Both ask: whichever HELLO comes first, they merge. */
Test(conn, forged_serial_does_not_part_who_ask_both)
{
	for (int order = 0; order < 2; order++) {
		struct verve_hello forged, from_a, from_b;

		setup();
		forged = forge(UINT64_MAX);
		receive(&b, &forged);
		receive(&a, &out.hello);
		receive(&b, &out.hello);
		from_a = request(&a);
		from_b = request(&b);
		if (!order) {
			prove(&from_a, ADOPT);
			cr_assert_eq(receive(&a, &out.hello), ADOPT & ~SEND);
			cr_assert_eq(receive(&a, &from_b), 0);
			verve_conn_hear(&b.conn);
			expect_agreement();
			continue;
		}
		/* a waits quietly for b's answer, and b for a proof: time helps. */
		cr_assert_eq(receive(&a, &from_b), ADOPT & ~SEND);
		cr_assert_eq(receive(&b, &from_a), SEND);
		cr_assert_eq(receive(&a, &out.hello), 0);
		fire(&a);
		cr_assert_eq(receive(&b, &out.hello), ADOPT);
		cr_assert_eq(receive(&a, &out.hello), REPORT_READY);
		expect_agreement();
	}
}

/* A copy of what a sent long ago is challenged once, and a does not answer. */
Test(conn, copy_of_an_old_hello_makes_nothing)
{
	struct verve_hello old = establish(), challenge;

	verve_conn_drop(&a.conn, &out);
	receive(&b, &out.hello);
	establish();
	verve_conn_drop(&a.conn, &out);
	receive(&b, &out.hello);
	cr_assert_eq(receive(&b, &old), SEND);
	challenge = out.hello;
	cr_assert_eq(challenge.kind, VERVE_HELLO_CHALLENGE);
	cr_assert_eq(receive(&a, &challenge), 0);
	request(&a);
	cr_assert_eq(receive(&a, &challenge), 0);
	cr_assert_eq(b.conn.state, VERVE_CONN_IDLE);
}
