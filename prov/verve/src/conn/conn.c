/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection: the transition table, its one setter, and the inputs. */
#include "conn/conn.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"

/* Between repetitions: the first, doubling, at most the last; each up to a quarter more or less. */
static const uint64_t first_interval = 40000000, last_interval = 1000000000;

/* Checks of a silent peer that must be answered so before it is taken for dead. A cable may come back. */
enum { REFUSED = 2, UNREACHABLE = 4 };

static const char *const state_name[VERVE_CONN_STATES] = {
	[VERVE_CONN_IDLE] = "idle",
	[VERVE_CONN_QUEUED] = "queued",
	[VERVE_CONN_WAIT_HELLO] = "wait-hello",
	[VERVE_CONN_WAIT_READY] = "wait-ready",
	[VERVE_CONN_UP] = "up",
};

#define TO(state) (1u << VERVE_CONN_##state)
static const unsigned legal[VERVE_CONN_STATES] = {
	[VERVE_CONN_IDLE] = TO(QUEUED) | TO(WAIT_READY),
	[VERVE_CONN_QUEUED] = TO(IDLE) | TO(WAIT_HELLO) | TO(WAIT_READY) | TO(UP),
	[VERVE_CONN_WAIT_HELLO] = TO(IDLE) | TO(WAIT_READY) | TO(UP),
	[VERVE_CONN_WAIT_READY] = TO(IDLE) | TO(UP),
	[VERVE_CONN_UP] = TO(IDLE),
};
#undef TO

bool verve_conn_is_legal(enum verve_conn_state from, enum verve_conn_state to)
{
	return legal[from] & 1u << to;
}

static void set_state(struct verve_conn *conn, enum verve_conn_state state)
{
	char name[VERVE_ADDR_STRLEN];

	assert(verve_conn_is_legal(conn->state, state));
	VERVE_TRACE(EP_CTRL, "connection %#x to %s: %s -> %s\n", conn->local.id,
		    verve_addr_str(&conn->addr, name), state_name[conn->state], state_name[state]);
	conn->state = state;
}

void verve_conn_init(struct verve_conn *conn, const struct verve_conn_self *self,
		     const struct verve_addr *addr)
{
	memset(conn, 0, sizeof(*conn));
	conn->self = self;
	conn->addr = *addr;
	conn->timer = VERVE_TIMER_NEVER;
}

void verve_conn_open(struct verve_conn *conn, const struct verve_conn_local *local)
{
	assert(!conn->local.id && local->id && local->nonce && local->serial);
	conn->local = *local;
}

static void out_init(struct verve_conn_out *out)
{
	memset(out, 0, sizeof(*out));
}

static bool is_self(const struct verve_conn *conn)
{
	return verve_addr_equal(&conn->addr, &conn->self->addr);
}

bool verve_conn_is_established(const struct verve_conn *conn)
{
	return conn->state == VERVE_CONN_WAIT_READY || conn->state == VERVE_CONN_UP;
}

/* Datagrams. */

static void fill(const struct verve_conn_self *self, enum verve_hello_kind kind,
		 struct verve_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->kind = (uint8_t)kind;
	hello->version_min = VERVE_HELLO_VERSION_MIN;
	hello->version_max = VERVE_HELLO_VERSION_MAX;
	hello->sender_incarnation = self->incarnation;
}

/* HELLO or READY: our end, and the peer's if it is known. */
static void send_end(const struct verve_conn *conn, enum verve_hello_kind kind,
		     struct verve_conn_out *out)
{
	struct verve_hello *hello = &out->hello;

	fill(conn->self, kind, hello);
	hello->sender_id = conn->local.id;
	hello->serial = conn->local.serial;
	hello->nonce = conn->local.nonce;
	hello->qp = conn->local.qp;
	hello->window = conn->self->window;
	hello->eager_size = conn->self->eager_size;
	hello->features = conn->self->features;
	if (kind == VERVE_HELLO_HELLO && conn->listens)
		hello->features |= VERVE_HELLO_LISTENS;
	if (kind == VERVE_HELLO_HELLO && conn->answers)
		hello->features |= VERVE_HELLO_ONCE;
	hello->resumes = conn->suspended.local;
	if (verve_conn_is_established(conn)) {
		hello->recipient_incarnation = conn->remote.incarnation;
		hello->recipient_id = conn->remote.id;
		hello->echo = conn->remote.nonce;
	} else if (conn->challenge.nonce) {
		hello->recipient_incarnation = conn->challenge.incarnation;
		hello->echo = conn->challenge.nonce;
	}
	out->actions |= VERVE_CONN_DO_SEND;
}

static void send_bye(const struct verve_conn *conn, enum verve_hello_reason reason,
		     struct verve_conn_out *out)
{
	struct verve_hello *bye = &out->hello;

	fill(conn->self, VERVE_HELLO_BYE, bye);
	bye->reason = (uint8_t)reason;
	bye->sender_id = conn->local.id;
	bye->recipient_incarnation = conn->remote.incarnation;
	bye->recipient_id = conn->remote.id;
	bye->echo = conn->remote.nonce;
	out->actions |= VERVE_CONN_DO_SEND;
}

void verve_conn_refuse(const struct verve_conn_self *self, const struct verve_hello *hello,
		       enum verve_hello_reason reason, struct verve_hello *bye)
{
	fill(self, VERVE_HELLO_BYE, bye);
	bye->reason = (uint8_t)reason;
	bye->sender_id = hello->recipient_id;
	bye->recipient_incarnation = hello->sender_incarnation;
	bye->recipient_id = hello->sender_id;
	bye->echo = hello->nonce;
}

void verve_conn_challenge(const struct verve_conn_self *self, const struct verve_hello *hello,
			  uint64_t nonce, struct verve_hello *challenge)
{
	fill(self, VERVE_HELLO_CHALLENGE, challenge);
	challenge->nonce = nonce;
	challenge->recipient_incarnation = hello->sender_incarnation;
	challenge->recipient_id = hello->sender_id;
	challenge->echo = hello->nonce;
}

static void refuse(const struct verve_conn *conn, const struct verve_hello *hello,
		   struct verve_conn_out *out)
{
	bool suspended = conn->suspended.local &&
			 hello->recipient_id == conn->suspended.local &&
			 hello->sender_id == conn->suspended.remote;

	verve_conn_refuse(conn->self, hello, suspended ? VERVE_HELLO_SUSPENDED : VERVE_HELLO_UNKNOWN,
			  &out->hello);
	out->foreign = true;
	out->actions |= VERVE_CONN_DO_SEND;
}

/* The same candidate gets the same nonce again: its answer may be under way. */
static void send_challenge(struct verve_conn *conn, const struct verve_hello *hello,
			   uint64_t random, struct verve_conn_out *out)
{
	if (!conn->candidate.nonce || conn->candidate.id != hello->sender_id ||
	    conn->candidate.incarnation != hello->sender_incarnation) {
		conn->candidate.incarnation = hello->sender_incarnation;
		conn->candidate.id = hello->sender_id;
		conn->candidate.nonce = random ? random : 1;
	}
	verve_conn_challenge(conn->self, hello, conn->candidate.nonce, &out->hello);
	out->actions |= VERVE_CONN_DO_SEND;
}

/* Time. */

static void set_timer(struct verve_conn *conn, uint64_t now, uint64_t random)
{
	uint64_t half = conn->interval / 2;

	conn->timer = now + conn->interval - half / 2 + random % (half + 1);
	if (conn->timer > conn->deadline)
		conn->timer = conn->deadline;
}

static void start_timer(struct verve_conn *conn, uint64_t now, uint64_t random)
{
	conn->attempts = 0;
	conn->interval = first_interval;
	conn->deadline = now + conn->self->timeout;
	set_timer(conn, now, random);
}

static void back_off(struct verve_conn *conn, uint64_t now, uint64_t random)
{
	conn->attempts++;
	conn->interval *= 2;
	if (conn->interval > last_interval)
		conn->interval = last_interval;
	set_timer(conn, now, random);
}

/* Ends and beginnings. */

/* What remains is the memory of the peer's incarnation and serial. */
static void close_conn(struct verve_conn *conn)
{
	if (conn->state != VERVE_CONN_IDLE)
		set_state(conn, VERVE_CONN_IDLE);
	memset(&conn->local, 0, sizeof(conn->local));
	memset(&conn->candidate, 0, sizeof(conn->candidate));
	memset(&conn->challenge, 0, sizeof(conn->challenge));
	memset(&conn->suspended, 0, sizeof(conn->suspended));
	conn->timer = VERVE_TIMER_NEVER;
	conn->error = 0;
	conn->listens = conn->answers = false;
	conn->checking = false;
	conn->refusals = 0;
}

static void end(struct verve_conn *conn, unsigned report, int error, struct verve_conn_out *out)
{
	close_conn(conn);
	out->actions |= report;
	out->error = error;
}

/* The same, and the next one, of the same incarnations, goes on where this one stopped. */
static void suspend(struct verve_conn *conn)
{
	uint32_t local = conn->local.id, remote = conn->remote.id;

	close_conn(conn);
	conn->suspended.local = local;
	conn->suspended.remote = remote;
}

static void end_suspended(struct verve_conn *conn, struct verve_conn_out *out)
{
	suspend(conn);
	out->actions |= VERVE_CONN_DO_DOWN;
	out->error = FI_ENOTCONN;
	out->suspended = true;
}

/* Both mean the same one: the peer has not forgotten it, nor have we. */
static bool resumes(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return hello->resumes && conn->suspended.local &&
	       hello->resumes == conn->suspended.remote &&
	       hello->sender_incarnation == conn->remote.incarnation;
}

/* The peer takes our HELLO for an answer: it is not old, so hardly lost, and not challenged, if the peer's was. */
static bool is_on_its_way(const struct verve_conn *conn, const struct verve_hello *hello)
{
	return !conn->attempts && (conn->challenge.nonce || !hello->echo);
}

/* Of two sides whose HELLOs cross, one answers, and listens; the other keeps quiet, because the answer comes. */
static void answer_request(struct verve_conn *conn, const struct verve_hello *hello, bool crossing,
			   struct verve_conn_out *out)
{
	bool answers = conn->self->incarnation > hello->sender_incarnation;

	if (crossing && !answers && is_on_its_way(conn, hello))
		return;
	conn->listens = crossing && answers;
	out->listen = conn->listens || conn->answers;
	send_end(conn, VERVE_HELLO_HELLO, out);
}

/* Our HELLO has been answered. */
static void adopt_answer(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			 uint64_t random, struct verve_conn_out *out)
{
	bool once = hello->features & VERVE_HELLO_ONCE;

	set_state(conn, VERVE_CONN_UP);
	conn->timer = VERVE_TIMER_NEVER;
	out->greet = once || hello->features & VERVE_HELLO_LISTENS;
	if (once || !out->greet)
		send_end(conn, VERVE_HELLO_READY, out);
	if (once)
		start_timer(conn, now, random);
}

/* Who only answers repeats nothing, and leaves it to its engine to lose patience. */
static void adopt_request(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			  uint64_t random, struct verve_conn_out *out)
{
	bool crossing = conn->state == VERVE_CONN_WAIT_HELLO;

	conn->answers = conn->state == VERVE_CONN_IDLE;
	set_state(conn, VERVE_CONN_WAIT_READY);
	answer_request(conn, hello, crossing, out);
	if (!conn->answers)
		start_timer(conn, now, random);
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
	set_state(conn, VERVE_CONN_UP);
	conn->timer = VERVE_TIMER_NEVER;
	out->actions |= VERVE_CONN_DO_READY;
	out->greet = hello->features & VERVE_HELLO_LISTENS;
}

/* What a datagram means. */

/* It names our end, as only who has heard from it can. */
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

/* A HELLO to an end of ours: the answer to one. */
static void receive_answer(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			   uint64_t random, struct verve_conn_out *out)
{
	if (!names_us(conn, hello))
		refuse(conn, hello, out);
	else if (conn->state == VERVE_CONN_WAIT_HELLO)
		adopt(conn, hello, now, random, out);
	else if (!is_from_remote(conn, hello))
		refuse(conn, hello, out);
	else if (conn->state == VERVE_CONN_WAIT_READY)
		become_ready(conn, hello, out);
	else
		send_end(conn, VERVE_HELLO_READY, out); /* the one before was lost */
}

/* A HELLO to nobody in particular: a new connection, or a copy. */
static void receive_request(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			    uint64_t random, struct verve_conn_out *out)
{
	if (is_from_remote(conn, hello)) {
		if (conn->state == VERVE_CONN_WAIT_READY)
			send_end(conn, VERVE_HELLO_HELLO, out);
		else
			out->foreign = true; /* a late copy: the peer has had our answer */
	} else if (hello->sender_incarnation == conn->remote.incarnation &&
		   hello->serial <= conn->remote.serial) {
		/* The last is over, and the peer may not know; of those before it does. */
		if (hello->serial == conn->remote.serial && !verve_conn_is_established(conn))
			refuse(conn, hello, out);
		else
			out->foreign = true;
	} else if (verve_conn_is_established(conn)) {
		if (!is_proven_candidate(conn, hello)) {
			send_challenge(conn, hello, random, out);
			return;
		}
		if (hello->resumes == conn->remote.id &&
		    hello->sender_incarnation == conn->remote.incarnation)
			end_suspended(conn, out); /* the BYE was lost */
		else
			end(conn, VERVE_CONN_DO_DOWN, FI_ENOTCONN, out);
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
		refuse(conn, hello, out);
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
 * later incarnation may deny what it never knew; what an earlier one ended was its own, whose id
 * may be the same.
 */
static void receive_bye(struct verve_conn *conn, const struct verve_hello *hello,
			struct verve_conn_out *out)
{
	if (names_us(conn, hello) && conn->state == VERVE_CONN_WAIT_HELLO)
		end(conn, VERVE_CONN_DO_FAIL, refusal(hello->reason), out);
	else if (names_us(conn, hello) && verve_conn_is_established(conn) &&
		 hello->sender_id == conn->remote.id && hello->reason == VERVE_HELLO_SUSPENDED &&
		 hello->sender_incarnation == conn->remote.incarnation)
		end_suspended(conn, out);
	else if (names_us(conn, hello) && verve_conn_is_established(conn) &&
		 hello->sender_id == conn->remote.id &&
		 (hello->reason == VERVE_HELLO_UNKNOWN ||
		  hello->sender_incarnation == conn->remote.incarnation))
		end(conn, VERVE_CONN_DO_DOWN, FI_ENOTCONN, out);
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
		return; /* answered; the timer repeats it */
	conn->challenge.incarnation = hello->sender_incarnation;
	conn->challenge.nonce = hello->nonce;
	send_end(conn, VERVE_HELLO_HELLO, out);
}

/* Inputs. */

void verve_conn_connect(struct verve_conn *conn)
{
	if (conn->state == VERVE_CONN_IDLE)
		set_state(conn, VERVE_CONN_QUEUED);
}

void verve_conn_start(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out)
{
	assert(conn->state == VERVE_CONN_QUEUED && conn->local.id);
	out_init(out);
	if (is_self(conn)) {
		conn->remote = (struct verve_conn_remote){
			.incarnation = conn->self->incarnation,
			.id = conn->local.id,
			.serial = conn->local.serial,
			.nonce = conn->local.nonce,
			.qp = conn->local.qp,
			.window = conn->self->window,
			.eager_size = conn->self->eager_size,
			.features = conn->self->features,
			.resumes = conn->suspended.local,
		};
		set_state(conn, VERVE_CONN_UP);
		out->actions = VERVE_CONN_DO_CONNECT | VERVE_CONN_DO_UP;
		out->may_send = true;
		return;
	}
	set_state(conn, VERVE_CONN_WAIT_HELLO);
	start_timer(conn, now, random);
	send_end(conn, VERVE_HELLO_HELLO, out);
}

void verve_conn_receive(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			uint64_t random, struct verve_conn_out *out)
{
	out_init(out);
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

void verve_conn_taken(struct verve_conn *conn)
{
	if (conn->state == VERVE_CONN_UP)
		conn->timer = VERVE_TIMER_NEVER;
}

void verve_conn_hear(struct verve_conn *conn)
{
	if (conn->state != VERVE_CONN_WAIT_READY)
		return;
	set_state(conn, VERVE_CONN_UP);
	conn->timer = VERVE_TIMER_NEVER;
}

void verve_conn_timer(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out)
{
	out_init(out);
	if (now < conn->timer)
		return;
	if (now < conn->deadline) {
		back_off(conn, now, random);
		send_end(conn, conn->state == VERVE_CONN_UP ? VERVE_HELLO_READY : VERVE_HELLO_HELLO, out);
	} else if (conn->state == VERVE_CONN_UP) {
		conn->timer = VERVE_TIMER_NEVER;
	} else if (conn->state == VERVE_CONN_WAIT_HELLO) {
		end(conn, VERVE_CONN_DO_FAIL, conn->error ? conn->error : FI_ETIMEDOUT, out);
	} else {
		verve_conn_expire(conn, out);
	}
}

void verve_conn_check(struct verve_conn *conn, bool first, struct verve_conn_out *out)
{
	out_init(out);
	if (conn->state != VERVE_CONN_UP || is_self(conn))
		return;
	if (first)
		conn->unreachable = 0;
	if (first || conn->checking)
		conn->refusals = 0; /* the last was not refused */
	conn->checking = conn->seeking = true;
	send_end(conn, VERVE_HELLO_READY, out);
}

static void refuse_check(struct verve_conn *conn, struct verve_conn_out *out)
{
	conn->checking = false;
	if (++conn->refusals == REFUSED)
		end(conn, VERVE_CONN_DO_DOWN, FI_EHOSTUNREACH, out);
}

/* The kernel may say so seconds later, of several checks at once. */
static void miss_host(struct verve_conn *conn, struct verve_conn_out *out)
{
	conn->seeking = false;
	if (++conn->unreachable == UNREACHABLE)
		end(conn, VERVE_CONN_DO_DOWN, FI_EHOSTUNREACH, out);
}

void verve_conn_unreachable(struct verve_conn *conn, int error, struct verve_conn_out *out)
{
	out_init(out);
	if (conn->state == VERVE_CONN_UP && conn->checking && error == FI_ECONNREFUSED)
		refuse_check(conn, out);
	else if (conn->state == VERVE_CONN_UP && conn->seeking &&
		 (error == FI_EHOSTUNREACH || error == FI_ENETUNREACH))
		miss_host(conn, out);
	if (conn->state != VERVE_CONN_WAIT_HELLO)
		return;
	/* Routes come back; a closed port and an impossible address do not, within a handshake. */
	if (error == FI_ECONNREFUSED || error == FI_EINVAL || error == EAFNOSUPPORT)
		end(conn, VERVE_CONN_DO_FAIL, error, out);
	else
		conn->error = error;
}

bool verve_conn_doubt(struct verve_conn *conn, const struct verve_hello *bye)
{
	if (conn->state != VERVE_CONN_WAIT_HELLO || !names_us(conn, bye))
		return false;
	conn->error = FI_EKEYREJECTED;
	return true;
}

void verve_conn_drop(struct verve_conn *conn, struct verve_conn_out *out)
{
	out_init(out);
	if (!verve_conn_is_established(conn))
		return;
	if (!is_self(conn))
		send_bye(conn, VERVE_HELLO_CLOSED, out);
	close_conn(conn);
}

void verve_conn_suspend(struct verve_conn *conn, struct verve_conn_out *out)
{
	out_init(out);
	if (!verve_conn_is_established(conn))
		return;
	if (!is_self(conn))
		send_bye(conn, VERVE_HELLO_SUSPENDED, out);
	suspend(conn);
}

void verve_conn_forget(struct verve_conn *conn, uint32_t id)
{
	if (!id || conn->suspended.local != id)
		memset(&conn->suspended, 0, sizeof(conn->suspended));
}

void verve_conn_expire(struct verve_conn *conn, struct verve_conn_out *out)
{
	assert(conn->state == VERVE_CONN_WAIT_READY);
	out_init(out);
	if (!conn->answers)
		send_bye(conn, VERVE_HELLO_CLOSED, out);
	end(conn, VERVE_CONN_DO_DOWN, FI_ETIMEDOUT, out);
}

void verve_conn_abort(struct verve_conn *conn, int error, struct verve_conn_out *out)
{
	out_init(out);
	if (verve_conn_is_established(conn) && !is_self(conn))
		send_bye(conn, VERVE_HELLO_RESOURCE, out);
	end(conn, VERVE_CONN_DO_FAIL, error, out);
}

void verve_conn_abandon(struct verve_conn *conn, int error, struct verve_conn_out *out)
{
	bool established = verve_conn_is_established(conn);

	out_init(out);
	if (conn->state == VERVE_CONN_IDLE)
		return;
	if (established && !is_self(conn))
		send_bye(conn, VERVE_HELLO_CLOSED, out);
	end(conn, established ? VERVE_CONN_DO_DOWN : VERVE_CONN_DO_FAIL, error, out);
}
