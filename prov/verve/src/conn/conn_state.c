/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of a connection: the transition table and its one setter, the timer, and how a connection
 * ends.
 */
#include "conn/conn_state.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"

/* Nanoseconds between repetitions. The interval doubles each time; +-25 % of it are random. */
static const uint64_t first_interval = 40000000, last_interval = 1000000000;

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

void verve_conn_set_state(struct verve_conn *conn, enum verve_conn_state state)
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

bool verve_conn_is_self(const struct verve_conn *conn)
{
	return verve_addr_equal(&conn->addr, &conn->self->addr);
}

bool verve_conn_is_established(const struct verve_conn *conn)
{
	return conn->state == VERVE_CONN_WAIT_READY || conn->state == VERVE_CONN_UP;
}

/* Timer. */

static void conn_set_timer(struct verve_conn *conn, uint64_t now, uint64_t random)
{
	uint64_t half = conn->interval / 2;

	conn->timer = now + conn->interval - half / 2 + random % (half + 1);
	if (conn->timer > conn->deadline)
		conn->timer = conn->deadline;
}

void verve_conn_start_timer(struct verve_conn *conn, uint64_t now, uint64_t random)
{
	conn->attempts = 0;
	conn->interval = first_interval;
	conn->deadline = now + conn->self->timeout;
	conn_set_timer(conn, now, random);
}

void verve_conn_back_off(struct verve_conn *conn, uint64_t now, uint64_t random)
{
	conn->attempts++;
	conn->interval *= 2;
	if (conn->interval > last_interval)
		conn->interval = last_interval;
	conn_set_timer(conn, now, random);
}

void verve_conn_reset(struct verve_conn *conn)
{
	if (conn->state != VERVE_CONN_IDLE)
		verve_conn_set_state(conn, VERVE_CONN_IDLE);
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

void verve_conn_end(struct verve_conn *conn, unsigned report, int error,
		    struct verve_conn_out *out)
{
	verve_conn_reset(conn);
	out->actions |= report;
	out->error = error;
}

void verve_conn_reset_suspended(struct verve_conn *conn)
{
	uint32_t local = conn->local.id, remote = conn->remote.id;
	uint64_t nonce = conn->local.nonce;
	struct verve_conn_candidate candidate = conn->candidate;

	verve_conn_reset(conn);
	conn->suspended.local = local;
	conn->suspended.remote = remote;
	conn->suspended.nonce = nonce;
	conn->candidate = candidate; /* its HELLO may have overtaken the BYE */
}

void verve_conn_forget(struct verve_conn *conn, uint32_t id)
{
	if (!id || conn->suspended.local != id)
		memset(&conn->suspended, 0, sizeof(conn->suspended));
}
