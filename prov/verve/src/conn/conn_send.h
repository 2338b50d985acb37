/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending of a connection: fills the datagrams HELLO, READY, BYE and CHALLENGE from a connection's
 * state.
 *
 * This file owns which field of a datagram says what about a connection. It decides nothing,
 * changes no state but the nonce for a candidate, and must not know why a datagram is sent, nor
 * how (conn/cm_perform.h). Service thread.
 */
#ifndef VERVE_CONN_CONN_SEND_H
#define VERVE_CONN_CONN_SEND_H

#include <stdint.h>

#include "conn/conn_state.h"
#include "conn/hello.h"

/* Each adds VERVE_CONN_DO_SEND to out->actions, and fills out->hello. */

/* kind: VERVE_HELLO_HELLO or _READY. Our end, and the peer's if it is known. */
void verve_conn_send_end(const struct verve_conn *conn, enum verve_hello_kind kind,
			 struct verve_conn_out *out);
/* The connection ends. */
void verve_conn_send_bye(const struct verve_conn *conn, enum verve_hello_reason reason,
			 struct verve_conn_out *out);
/*
 * The connection that hello means is not here any more: a BYE, whose reason is UNKNOWN, or
 * SUSPENDED.
 */
void verve_conn_send_denial(const struct verve_conn *conn, const struct verve_hello *hello,
			    struct verve_conn_out *out);
/* hello would replace the connection: its sender is to echo a nonce first. random: any 64 bits. */
void verve_conn_send_challenge(struct verve_conn *conn, const struct verve_hello *hello,
			       uint64_t random, struct verve_conn_out *out);

/*
 * Fills a BYE to the sender of a HELLO or READY, about the connection of ours that the datagram
 * means.
 */
void verve_conn_refuse(const struct verve_conn_self *self, const struct verve_hello *hello,
		       enum verve_hello_reason reason, struct verve_hello *bye);
/* Fills a CHALLENGE to the sender of a HELLO: the sender is to repeat the HELLO with this nonce. */
void verve_conn_challenge(const struct verve_conn_self *self, const struct verve_hello *hello,
			  uint64_t nonce, struct verve_hello *challenge);

#endif
