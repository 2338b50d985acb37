/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection: the inputs of the engine, the timer and the network. */
#include "conn/conn.h"

#include <assert.h>
#include <rdma/fi_errno.h>

#include "conn/conn_send.h"

/*
 * A silent peer is taken for dead after so many checks that its port refused in a row, or that did
 * not reach its host. More than one, because a cable may be plugged in again.
 */
enum { REFUSED = 2, UNREACHABLE = 4 };

void verve_conn_connect(struct verve_conn *conn)
{
	if (conn->state == VERVE_CONN_IDLE)
		verve_conn_set_state(conn, VERVE_CONN_QUEUED);
}

void verve_conn_start(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out)
{
	assert(conn->state == VERVE_CONN_QUEUED && conn->local.id);
	*out = (struct verve_conn_out){0};
	if (verve_conn_is_self(conn)) {
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
		verve_conn_set_state(conn, VERVE_CONN_UP);
		out->actions = VERVE_CONN_DO_CONNECT | VERVE_CONN_DO_UP;
		out->may_send = true;
		return;
	}
	verve_conn_set_state(conn, VERVE_CONN_WAIT_HELLO);
	verve_conn_start_timer(conn, now, random);
	verve_conn_send_end(conn, VERVE_HELLO_HELLO, out);
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
	verve_conn_set_state(conn, VERVE_CONN_UP);
	conn->timer = VERVE_TIMER_NEVER;
}

void verve_conn_timer(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out)
{
	*out = (struct verve_conn_out){0};
	if (now < conn->timer)
		return;
	if (now < conn->deadline) {
		verve_conn_back_off(conn, now, random);
		verve_conn_send_end(
			conn, conn->state == VERVE_CONN_UP ? VERVE_HELLO_READY : VERVE_HELLO_HELLO,
			out);
	} else if (conn->state == VERVE_CONN_UP) {
		conn->timer = VERVE_TIMER_NEVER;
	} else if (conn->state == VERVE_CONN_WAIT_HELLO) {
		verve_conn_end(conn, VERVE_CONN_DO_FAIL,
			       conn->error ? conn->error : FI_ETIMEDOUT, out);
	} else {
		verve_conn_expire(conn, out);
	}
}

void verve_conn_check(struct verve_conn *conn, bool first, struct verve_conn_out *out)
{
	*out = (struct verve_conn_out){0};
	if (conn->state != VERVE_CONN_UP || verve_conn_is_self(conn))
		return;
	if (first)
		conn->unreachable = 0;
	if (first || conn->checking)
		conn->refusals = 0; /* the port did not refuse the last check */
	conn->checking = conn->seeking = true;
	verve_conn_send_end(conn, VERVE_HELLO_READY, out);
}

static void check_refused(struct verve_conn *conn, struct verve_conn_out *out)
{
	conn->checking = false;
	if (++conn->refusals == REFUSED)
		verve_conn_end(conn, VERVE_CONN_DO_DOWN, FI_EHOSTUNREACH, out);
}

/* Counts one check at most: the kernel may report several at once, seconds later. */
static void check_missed_host(struct verve_conn *conn, struct verve_conn_out *out)
{
	conn->seeking = false;
	if (++conn->unreachable == UNREACHABLE)
		verve_conn_end(conn, VERVE_CONN_DO_DOWN, FI_EHOSTUNREACH, out);
}

void verve_conn_unreachable(struct verve_conn *conn, int error, struct verve_conn_out *out)
{
	*out = (struct verve_conn_out){0};
	if (conn->state == VERVE_CONN_UP && conn->checking && error == FI_ECONNREFUSED)
		check_refused(conn, out);
	else if (conn->state == VERVE_CONN_UP && conn->seeking &&
		 (error == FI_EHOSTUNREACH || error == FI_ENETUNREACH))
		check_missed_host(conn, out);
	if (conn->state != VERVE_CONN_WAIT_HELLO)
		return;
	/*
	 * A route may come back during the handshake, so this error is only the cause of a
	 * time-out. A closed port or an impossible address does not change.
	 */
	if (error == FI_ECONNREFUSED || error == FI_EINVAL || error == EAFNOSUPPORT)
		verve_conn_end(conn, VERVE_CONN_DO_FAIL, error, out);
	else
		conn->error = error;
}

void verve_conn_drop(struct verve_conn *conn, struct verve_conn_out *out)
{
	*out = (struct verve_conn_out){0};
	if (!verve_conn_is_established(conn))
		return;
	if (!verve_conn_is_self(conn))
		verve_conn_send_bye(conn, VERVE_HELLO_CLOSED, out);
	verve_conn_reset(conn);
}

void verve_conn_suspend(struct verve_conn *conn, struct verve_conn_out *out)
{
	*out = (struct verve_conn_out){0};
	if (!verve_conn_is_established(conn))
		return;
	if (!verve_conn_is_self(conn))
		verve_conn_send_bye(conn, VERVE_HELLO_SUSPENDED, out);
	verve_conn_reset_suspended(conn);
}

void verve_conn_expire(struct verve_conn *conn, struct verve_conn_out *out)
{
	assert(conn->state == VERVE_CONN_WAIT_READY);
	*out = (struct verve_conn_out){0};
	if (!conn->answers)
		verve_conn_send_bye(conn, VERVE_HELLO_CLOSED, out);
	verve_conn_end(conn, VERVE_CONN_DO_DOWN, FI_ETIMEDOUT, out);
}

void verve_conn_abort(struct verve_conn *conn, int error, struct verve_conn_out *out)
{
	*out = (struct verve_conn_out){0};
	if (verve_conn_is_established(conn) && !verve_conn_is_self(conn))
		verve_conn_send_bye(conn,
				    verve_net_qp_is_short(error) ? VERVE_HELLO_RESOURCE :
								   VERVE_HELLO_NO_WAY,
				    out);
	verve_conn_end(conn, VERVE_CONN_DO_FAIL, error, out);
}

void verve_conn_abandon(struct verve_conn *conn, int error, struct verve_conn_out *out)
{
	bool established = verve_conn_is_established(conn);

	*out = (struct verve_conn_out){0};
	if (conn->state == VERVE_CONN_IDLE)
		return;
	if (established && !verve_conn_is_self(conn))
		verve_conn_send_bye(conn, VERVE_HELLO_FAILED, out);
	verve_conn_end(conn, established ? VERVE_CONN_DO_DOWN : VERVE_CONN_DO_FAIL, error, out);
}
