/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving of a connection: the effect of each datagram on the connection that its sender has
 * with us.
 */
#include "conn/conn_recv.h"

#include <rdma/fi_errno.h>

#include "conn/conn_send.h"

static void end_suspended(struct verve_conn *conn, struct verve_conn_out *out)
{
	verve_conn_reset_suspended(conn);
	out->actions |= VERVE_CONN_DO_DOWN;
	out->error = FI_ENOTCONN;
	out->suspended = true;
}

/*
 * True if the HELLO continues our suspended connection, and the peer is still the same
 * incarnation.
 */
static bool resumes(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return hello->resumes && conn->suspended.local &&
	       hello->resumes == conn->suspended.remote &&
	       hello->sender_incarnation == conn->remote.incarnation;
}

/*
 * True if our HELLO will serve the peer as the answer. Our HELLO was sent a short time ago, so it
 * is hardly lost. If the peer's HELLO echoes a challenge, ours does, too, so the peer will not
 * challenge it.
 */
static bool is_on_its_way(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return !conn->attempts && (conn->challenge.nonce || !hello->echo);
}

/*
 * When two HELLOs cross, one side answers and listens. The other side sends nothing, because the
 * answer comes.
 */
static void answer_request(struct verve_conn *conn, const struct verve_hello *hello, bool crossing,
			   struct verve_conn_out *out)
{
	bool answers = conn->self->incarnation > hello->sender_incarnation;

	if (crossing && !answers && is_on_its_way(conn, hello))
		return;
	conn->listens = crossing && answers;
	out->listen = conn->listens || conn->answers;
	verve_conn_send_end(conn, VERVE_HELLO_HELLO, out);
}

/* Our HELLO has been answered. */
static void adopt_answer(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			 uint64_t random, struct verve_conn_out *out)
{
	bool once = hello->features & VERVE_HELLO_ONCE;

	verve_conn_set_state(conn, VERVE_CONN_UP);
	conn->timer = VERVE_TIMER_NEVER;
	out->greet = once || hello->features & VERVE_HELLO_LISTENS;
	if (once || !out->greet)
		verve_conn_send_end(conn, VERVE_HELLO_READY, out);
	if (once)
		verve_conn_start_timer(conn, now, random);
}

/*
 * A side that only answers repeats nothing: its engine ends a connection over which no packet
 * comes.
 */
static void adopt_request(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			  uint64_t random, struct verve_conn_out *out)
{
	bool crossing = conn->state == VERVE_CONN_WAIT_HELLO;

	conn->answers = conn->state == VERVE_CONN_IDLE;
	verve_conn_set_state(conn, VERVE_CONN_WAIT_READY);
	answer_request(conn, hello, crossing, out);
	if (!conn->answers)
		verve_conn_start_timer(conn, now, random);
}

static void adopt(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
		  uint64_t random, struct verve_conn_out *out)
{
	bool answered = hello->recipient_id, resumed = resumes(conn, hello);

	if (!resumed)
		verve_conn_forget(conn, 0);
	conn->remote = (struct verve_conn_remote){
		.incarnation = hello->sender_incarnation,
		.id = hello->sender_id,
		.serial = hello->serial,
		.nonce = hello->nonce,
		.qp = hello->qp,
		.window = hello->window,
		.eager_size = hello->eager_size,
		.features = hello->features,
		.resumes = resumed ? hello->resumes : 0,
	};
	out->actions |= VERVE_CONN_DO_CONNECT | VERVE_CONN_DO_UP;
	out->may_send = answered;
	if (answered)
		adopt_answer(conn, hello, now, random, out);
	else
		adopt_request(conn, hello, now, random, out);
}

static void become_ready(struct verve_conn *conn, const struct verve_hello *hello,
			 struct verve_conn_out *out)
{
	verve_conn_set_state(conn, VERVE_CONN_UP);
	conn->timer = VERVE_TIMER_NEVER;
	out->actions |= VERVE_CONN_DO_READY;
	out->greet = hello->features & VERVE_HELLO_LISTENS;
}

/* What a datagram means. */

/* True if the datagram names our end. Only a peer that has heard from our end knows the nonce. */
static bool names_us(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return conn->local.id && hello->recipient_id == conn->local.id &&
	       hello->recipient_incarnation == conn->self->incarnation &&
	       hello->echo == conn->local.nonce;
}

static bool is_from_remote(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return verve_conn_is_established(conn) &&
	       hello->sender_incarnation == conn->remote.incarnation &&
	       hello->sender_id == conn->remote.id && hello->serial == conn->remote.serial &&
	       hello->nonce == conn->remote.nonce;
}

static bool is_proven_candidate(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return conn->candidate.nonce && hello->echo == conn->candidate.nonce &&
	       hello->recipient_incarnation == conn->self->incarnation &&
	       hello->sender_incarnation == conn->candidate.incarnation &&
	       hello->sender_id == conn->candidate.id;
}

/* A HELLO that names an end of ours: the answer to our HELLO. */
static void receive_answer(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			   uint64_t random, struct verve_conn_out *out)
{
	if (!names_us(conn, hello))
		verve_conn_send_denial(conn, hello, out);
	else if (conn->state == VERVE_CONN_WAIT_HELLO)
		adopt(conn, hello, now, random, out);
	else if (!is_from_remote(conn, hello))
		verve_conn_send_denial(conn, hello, out);
	else if (conn->state == VERVE_CONN_WAIT_READY)
		become_ready(conn, hello, out);
	else
		verve_conn_send_end(conn, VERVE_HELLO_READY, out); /* the READY before was lost */
}

/*
 * A HELLO that names no end of ours: a request for a new connection, or a copy of an old request.
 */
static void receive_request(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			    uint64_t random, struct verve_conn_out *out)
{
	if (is_from_remote(conn, hello)) {
		if (conn->state == VERVE_CONN_WAIT_READY)
			verve_conn_send_end(conn, VERVE_HELLO_HELLO, out);
		else
			out->foreign = true; /* a late copy: the peer has had our answer */
	} else if (hello->sender_incarnation == conn->remote.incarnation &&
		   hello->serial <= conn->remote.serial) {
		/*
		 * The last connection is over, perhaps unknown to the peer. Earlier ones the peer
		 * ended itself.
		 */
		if (hello->serial == conn->remote.serial && !verve_conn_is_established(conn))
			verve_conn_send_denial(conn, hello, out);
		else
			out->foreign = true;
	} else if (verve_conn_is_established(conn)) {
		if (!is_proven_candidate(conn, hello)) {
			verve_conn_send_challenge(conn, hello, random, out);
			return;
		}
		if (hello->resumes == conn->remote.id &&
		    hello->sender_incarnation == conn->remote.incarnation)
			end_suspended(conn, out); /* the BYE was lost */
		else
			verve_conn_end(conn, VERVE_CONN_DO_DOWN, FI_ENOTCONN, out);
		out->actions |= VERVE_CONN_DO_OPEN;
	} else if (!conn->local.id) {
		out->actions |= VERVE_CONN_DO_OPEN;
	} else {
		adopt(conn, hello, now, random, out);
	}
}

static void receive_ready(struct verve_conn *conn, const struct verve_hello *hello,
			  struct verve_conn_out *out)
{
	if (!names_us(conn, hello) || !is_from_remote(conn, hello))
		verve_conn_send_denial(conn, hello, out);
	else if (conn->state == VERVE_CONN_WAIT_READY)
		become_ready(conn, hello, out);
}

static int refusal(uint8_t reason)
{
	switch (reason) {
	case VERVE_HELLO_VERSION:
		return FI_ENOPROTOOPT;
	case VERVE_HELLO_AUTH:
		return FI_EKEYREJECTED;
	default:
		return FI_ECONNREFUSED;
	}
}

/*
 * An end that the peer denies is gone for good: ids, nonces and incarnations do not come back. A
 * later incarnation of the peer may deny a connection that it never had (UNKNOWN). Any other BYE
 * of another incarnation is about that incarnation's own connection, whose id may be the same.
 */
static void receive_bye(struct verve_conn *conn, const struct verve_hello *hello,
			struct verve_conn_out *out)
{
	if (names_us(conn, hello) && conn->state == VERVE_CONN_WAIT_HELLO)
		verve_conn_end(conn, VERVE_CONN_DO_FAIL, refusal(hello->reason), out);
	else if (names_us(conn, hello) && verve_conn_is_established(conn) &&
		 hello->sender_id == conn->remote.id && hello->reason == VERVE_HELLO_SUSPENDED &&
		 hello->sender_incarnation == conn->remote.incarnation)
		end_suspended(conn, out);
	else if (names_us(conn, hello) && verve_conn_is_established(conn) &&
		 hello->sender_id == conn->remote.id &&
		 (hello->reason == VERVE_HELLO_UNKNOWN ||
		  hello->sender_incarnation == conn->remote.incarnation))
		verve_conn_end(conn, VERVE_CONN_DO_DOWN, FI_ENOTCONN, out);
	else
		out->foreign = true;
}

static void receive_challenge(struct verve_conn *conn, const struct verve_hello *hello,
			      struct verve_conn_out *out)
{
	if (!names_us(conn, hello) || conn->state != VERVE_CONN_WAIT_HELLO) {
		out->foreign = true;
		return;
	}
	if (conn->challenge.nonce == hello->nonce)
		return; /* we have echoed it; the timer repeats the HELLO */
	conn->challenge.incarnation = hello->sender_incarnation;
	conn->challenge.nonce = hello->nonce;
	verve_conn_send_end(conn, VERVE_HELLO_HELLO, out);
}

void verve_conn_receive(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			uint64_t random, struct verve_conn_out *out)
{
	*out = (struct verve_conn_out){0};
	if (hello->sender_incarnation == conn->self->incarnation) {
		out->foreign = true; /* our own, reflected */
		return;
	}
	switch (hello->kind) {
	case VERVE_HELLO_HELLO:
		if (hello->recipient_id)
			receive_answer(conn, hello, now, random, out);
		else
			receive_request(conn, hello, now, random, out);
		break;
	case VERVE_HELLO_READY:
		receive_ready(conn, hello, out);
		break;
	case VERVE_HELLO_BYE:
		receive_bye(conn, hello, out);
		break;
	case VERVE_HELLO_CHALLENGE:
		receive_challenge(conn, hello, out);
		break;
	}
}

bool verve_conn_doubt(struct verve_conn *conn, const struct verve_hello *bye)
{
	if (conn->state != VERVE_CONN_WAIT_HELLO || !names_us(conn, bye))
		return false;
	conn->error = FI_EKEYREJECTED;
	return true;
}
