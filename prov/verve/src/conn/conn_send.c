/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sending: fills HELLO, READY, BYE and CHALLENGE. */
#include "conn/conn_send.h"

#include <string.h>

static void hello_fill(const struct verve_conn_self *self, enum verve_hello_kind kind,
		       struct verve_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->kind = (uint8_t)kind;
	hello->version_min = VERVE_HELLO_VERSION_MIN;
	hello->version_max = VERVE_HELLO_VERSION_MAX;
	hello->sender_incarnation = self->incarnation;
}

void verve_conn_send_end(const struct verve_conn *conn, enum verve_hello_kind kind,
			 struct verve_conn_out *out)
{
	struct verve_hello *hello = &out->hello;

	hello_fill(conn->self, kind, hello);
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
	} else if (conn->suspended.local) {
		/* of the suspended connection: only its peer knows this nonce */
		hello->recipient_incarnation = conn->remote.incarnation;
		hello->echo = conn->remote.nonce;
	}
	out->actions |= VERVE_CONN_DO_SEND;
}

void verve_conn_send_bye(const struct verve_conn *conn, enum verve_hello_reason reason,
			 struct verve_conn_out *out)
{
	struct verve_hello *bye = &out->hello;

	hello_fill(conn->self, VERVE_HELLO_BYE, bye);
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
	hello_fill(self, VERVE_HELLO_BYE, bye);
	bye->reason = (uint8_t)reason;
	bye->sender_id = hello->recipient_id;
	bye->recipient_incarnation = hello->sender_incarnation;
	bye->recipient_id = hello->sender_id;
	bye->echo = hello->nonce;
}

void verve_conn_challenge(const struct verve_conn_self *self, const struct verve_hello *hello,
			  uint64_t nonce, struct verve_hello *challenge)
{
	hello_fill(self, VERVE_HELLO_CHALLENGE, challenge);
	challenge->nonce = nonce;
	challenge->recipient_incarnation = hello->sender_incarnation;
	challenge->recipient_id = hello->sender_id;
	challenge->echo = hello->nonce;
}

void verve_conn_send_denial(const struct verve_conn *conn, const struct verve_hello *hello,
			    struct verve_conn_out *out)
{
	/* An endpoint that was started anew may have the same id. */
	bool suspended = conn->suspended.local &&
			 hello->recipient_id == conn->suspended.local &&
			 hello->sender_id == conn->suspended.remote &&
			 hello->sender_incarnation == conn->remote.incarnation;

	verve_conn_refuse(conn->self, hello,
			  suspended ? VERVE_HELLO_SUSPENDED : VERVE_HELLO_UNKNOWN, &out->hello);
	out->foreign = true;
	out->actions |= VERVE_CONN_DO_SEND;
}

/* The same candidate gets the same nonce again: its HELLO with the echo may be under way. */
void verve_conn_send_challenge(struct verve_conn *conn, const struct verve_hello *hello,
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
