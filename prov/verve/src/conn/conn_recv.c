/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving: the effect of each datagram on the connection with its sender. */
#include "conn/conn_recv.h"

#include <rdma/fi_errno.h>

#include "conn/conn_send.h"

static void conn_end_suspended(struct verve_conn *conn, struct verve_conn_out *out)
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
static bool hello_resumes(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return hello->resumes && conn->suspended.local &&
	       hello->resumes == conn->suspended.remote &&
	       hello->sender_incarnation == conn->remote.incarnation;
}

/* True if the sender of such a HELLO has shown that it is the peer: ids can be guessed. */
static bool hello_is_proven_resumption(const struct verve_conn *conn,
				       const struct verve_hello *hello)
{
	return hello_resumes(conn, hello) && hello->echo == conn->suspended.nonce &&
	       hello->recipient_incarnation == conn->self->incarnation;
}

/*
 * True if our own HELLO will serve the peer as the answer. It was sent a moment ago and not
 * repeated yet, so it is hardly lost. If the peer's HELLO echoes a challenge, so does ours: the
 * peer will not challenge our HELLO. Nor will it if both continue a connection.
 */
static bool answer_is_on_its_way(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return !conn->attempts && (conn->challenge.nonce || !hello->echo ||
				   hello_is_proven_resumption(conn, hello));
}

/*
 * When two HELLOs cross, the side with the larger incarnation answers and listens. The other side
 * sends nothing, because that answer comes.
 */
static void hello_answer_request(struct verve_conn *conn, const struct verve_hello *hello,
				 bool crossing, struct verve_conn_out *out)
{
	bool answers = conn->self->incarnation > hello->sender_incarnation;

	if (crossing && !answers && answer_is_on_its_way(conn, hello))
		return;
	conn->listens = crossing && answers;
	out->listen = conn->listens || conn->answers;
	verve_conn_send_end(conn, VERVE_HELLO_HELLO, out);
}

/* Our HELLO has been answered. */
static void hello_adopt_answer(struct verve_conn *conn, const struct verve_hello *hello,
			       uint64_t now, uint64_t random, struct verve_conn_out *out)
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
 * A side that only answers starts no timer, and repeats nothing. Its engine ends the connection if
 * no packet comes.
 */
static void hello_adopt_request(struct verve_conn *conn, const struct verve_hello *hello,
				uint64_t now, uint64_t random, struct verve_conn_out *out)
{
	bool crossing = conn->state == VERVE_CONN_WAIT_HELLO;

	conn->answers = conn->state == VERVE_CONN_IDLE;
	verve_conn_set_state(conn, VERVE_CONN_WAIT_READY);
	hello_answer_request(conn, hello, crossing, out);
	if (!conn->answers)
		verve_conn_start_timer(conn, now, random);
}

static void hello_adopt(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
		  uint64_t random, struct verve_conn_out *out)
{
	bool answered = hello->recipient_id, resumed = hello_resumes(conn, hello);

	if (!resumed)
		verve_conn_forget(conn, 0);
	conn->candidate = (struct verve_conn_candidate){0}; /* this one, or an older one */
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
		hello_adopt_answer(conn, hello, now, random, out);
	else
		hello_adopt_request(conn, hello, now, random, out);
}

static void conn_become_ready(struct verve_conn *conn, const struct verve_hello *hello,
			 struct verve_conn_out *out)
{
	verve_conn_set_state(conn, VERVE_CONN_UP);
	conn->timer = VERVE_TIMER_NEVER;
	out->actions |= VERVE_CONN_DO_READY;
	out->greet = hello->features & VERVE_HELLO_LISTENS;
}

/* What a datagram names: our end, the peer's end, a candidate. */

/* True if the datagram names our end. Only a peer that got a datagram of ours knows our nonce. */
static bool hello_names_us(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return conn->local.id && hello->recipient_id == conn->local.id &&
	       hello->recipient_incarnation == conn->self->incarnation &&
	       hello->echo == conn->local.nonce;
}

/* True if the datagram names the peer's end of this connection, or of the last one. */
static bool hello_names_remote(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return hello->sender_incarnation == conn->remote.incarnation &&
	       hello->sender_id == conn->remote.id && hello->serial == conn->remote.serial &&
	       hello->nonce == conn->remote.nonce;
}

static bool hello_is_from_remote(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return verve_conn_is_established(conn) && hello_names_remote(conn, hello);
}

/*
 * True if the HELLO's serial is not above that of the peer's last connection. This proves nothing
 * where that connection never came up: a stranger may have made it up, with the largest serial
 * there is.
 */
static bool hello_looks_old(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return hello->sender_incarnation == conn->remote.incarnation &&
	       hello->serial <= conn->remote.serial;
}

static bool hello_is_proven_candidate(const struct verve_conn *conn,
				      const struct verve_hello *hello)
{
	return conn->candidate.nonce && hello->echo == conn->candidate.nonce &&
	       hello->recipient_incarnation == conn->self->incarnation &&
	       hello->sender_incarnation == conn->candidate.incarnation &&
	       hello->sender_id == conn->candidate.id;
}

/*
 * True if the HELLO looks old, or would end a connection, or a suspended one that could go on, and
 * its sender, whose address may be forged, has not shown yet that it hears us. A copy of an old
 * HELLO never does: the peer does not answer a CHALLENGE to it.
 */
static bool must_prove_itself(const struct verve_conn *conn, const struct verve_hello *hello)
{
	bool ends = verve_conn_is_established(conn) ||
		    (conn->suspended.local && !hello_is_proven_resumption(conn, hello));

	return (ends || hello_looks_old(conn, hello)) && !hello_is_proven_candidate(conn, hello);
}

bool verve_conn_judges(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return verve_conn_is_established(conn) || must_prove_itself(conn, hello) ||
	       hello_is_proven_candidate(conn, hello) || hello_is_proven_resumption(conn, hello);
}

/* A HELLO that names an end of ours: the answer to our HELLO. */
static void receive_answer(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			   uint64_t random, struct verve_conn_out *out)
{
	if (!hello_names_us(conn, hello))
		verve_conn_send_denial(conn, hello, out);
	else if (conn->state == VERVE_CONN_WAIT_HELLO)
		hello_adopt(conn, hello, now, random, out);
	else if (!hello_is_from_remote(conn, hello))
		verve_conn_send_denial(conn, hello, out);
	else if (conn->state == VERVE_CONN_WAIT_READY)
		conn_become_ready(conn, hello, out);
	else
		verve_conn_send_end(conn, VERVE_HELLO_READY, out); /* our earlier READY was lost */
}

/* The connection makes place for the HELLO, which stays proven. */
static void conn_replace(struct verve_conn *conn, const struct verve_hello *hello,
			 struct verve_conn_out *out)
{
	struct verve_conn_candidate proven = conn->candidate;

	if (hello->resumes == conn->remote.id &&
	    hello->sender_incarnation == conn->remote.incarnation)
		conn_end_suspended(conn, out); /* the peer's BYE was lost */
	else
		verve_conn_end(conn, VERVE_CONN_DO_DOWN, FI_ENOTCONN, out);
	conn->candidate = proven;
}

/*
 * A HELLO that names no end of ours: a request for a new connection, or a copy of an old request.
 */
static void receive_request(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			    uint64_t random, struct verve_conn_out *out)
{
	if (hello_is_from_remote(conn, hello)) {
		if (conn->state == VERVE_CONN_WAIT_READY)
			verve_conn_send_end(conn, VERVE_HELLO_HELLO, out);
		else
			out->foreign = true; /* a late copy: the peer has our answer */
	} else if (hello_names_remote(conn, hello)) {
		/* The peer may not know yet that its last connection is over. */
		verve_conn_send_denial(conn, hello, out);
	} else if (conn->state == VERVE_CONN_UP && hello_looks_old(conn, hello)) {
		out->foreign = true; /* the peer has ended that connection itself */
	} else if (must_prove_itself(conn, hello)) {
		verve_conn_send_challenge(conn, hello, random, out);
	} else if (verve_conn_is_established(conn)) {
		conn_replace(conn, hello, out);
		out->actions |= VERVE_CONN_DO_OPEN;
	} else if (!conn->local.id) {
		out->actions |= VERVE_CONN_DO_OPEN;
	} else {
		hello_adopt(conn, hello, now, random, out);
	}
}

static void receive_ready(struct verve_conn *conn, const struct verve_hello *hello,
			  struct verve_conn_out *out)
{
	if (!hello_names_us(conn, hello) || !hello_is_from_remote(conn, hello))
		verve_conn_send_denial(conn, hello, out);
	else if (conn->state == VERVE_CONN_WAIT_READY)
		conn_become_ready(conn, hello, out);
}

static int bye_errno(uint8_t reason)
{
	switch (reason) {
	case VERVE_HELLO_VERSION:
		return FI_ENOPROTOOPT;
	case VERVE_HELLO_AUTH:
		return FI_EKEYREJECTED;
	case VERVE_HELLO_RESOURCE:
		return FI_EBUSY;
	case VERVE_HELLO_FAILED:
		return FI_EREMOTEIO;
	case VERVE_HELLO_NO_WAY:
		return FI_EHOSTUNREACH;
	default:
		return FI_ECONNREFUSED;
	}
}

/*
 * A connection that the peer denies is gone for good: its ids, nonces and incarnations are never
 * used again. A restarted peer (another incarnation) denies our connection with UNKNOWN. Any other
 * BYE of another incarnation is about that incarnation's own connection, which may have the same
 * id.
 */
static void receive_bye(struct verve_conn *conn, const struct verve_hello *hello,
			struct verve_conn_out *out)
{
	if (hello_names_us(conn, hello) && conn->state == VERVE_CONN_WAIT_HELLO)
		verve_conn_end(conn, VERVE_CONN_DO_FAIL, bye_errno(hello->reason), out);
	else if (hello_names_us(conn, hello) && verve_conn_is_established(conn) &&
		 hello->sender_id == conn->remote.id && hello->reason == VERVE_HELLO_SUSPENDED &&
		 hello->sender_incarnation == conn->remote.incarnation)
		conn_end_suspended(conn, out);
	else if (hello_names_us(conn, hello) && verve_conn_is_established(conn) &&
		 hello->sender_id == conn->remote.id &&
		 (hello->reason == VERVE_HELLO_UNKNOWN ||
		  hello->sender_incarnation == conn->remote.incarnation))
		verve_conn_end(conn, VERVE_CONN_DO_DOWN,
			       hello->reason == VERVE_HELLO_FAILED ? FI_EREMOTEIO : FI_ENOTCONN,
			       out);
	else
		out->foreign = true;
}

static void receive_challenge(struct verve_conn *conn, const struct verve_hello *hello,
			      struct verve_conn_out *out)
{
	if (!hello_names_us(conn, hello) || conn->state != VERVE_CONN_WAIT_HELLO) {
		out->foreign = true;
		return;
	}
	if (conn->challenge.nonce == hello->nonce)
		return; /* our last HELLO echoed it already; the timer repeats that HELLO */
	conn->challenge.incarnation = hello->sender_incarnation;
	conn->challenge.nonce = hello->nonce;
	verve_conn_send_end(conn, VERVE_HELLO_HELLO, out);
}

void verve_conn_receive(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			uint64_t random, struct verve_conn_out *out)
{
	*out = (struct verve_conn_out){0};
	if (hello->sender_incarnation == conn->self->incarnation) {
		out->foreign = true; /* our own datagram, reflected to us */
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
	if (conn->state != VERVE_CONN_WAIT_HELLO || !hello_names_us(conn, bye))
		return false;
	conn->error = FI_EKEYREJECTED;
	return true;
}
