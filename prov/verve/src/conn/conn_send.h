/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending: fills the datagrams HELLO, READY, BYE and CHALLENGE from a connection's state.
 *
 * This file maps a connection's fields to a datagram's fields. It decides nothing, and changes no
 * state but the nonce for a candidate. It must not know the reason for a datagram, nor the socket
 * (conn/cm_perform.h). Service thread.
 */
#ifndef VERVE_CONN_CONN_SEND_H
#define VERVE_CONN_CONN_SEND_H

#include <stdint.h>

#include "conn/conn_state.h"
#include "conn/hello.h"

/* Each verve_conn_send_ function fills out->hello, and adds VERVE_CONN_DO_SEND to out->actions. */

/* A HELLO or READY (kind) with our end, and the peer's end if it is known. */
void verve_conn_send_end(const struct verve_conn *conn, enum verve_hello_kind kind,
			 struct verve_conn_out *out);
/* A BYE that ends an established connection. */
void verve_conn_send_bye(const struct verve_conn *conn, enum verve_hello_reason reason,
			 struct verve_conn_out *out);
/*
 * A BYE to the sender of hello, because we do not have the connection that hello names: SUSPENDED
 * if our engine has suspended it, else UNKNOWN.
 */
void verve_conn_send_denial(const struct verve_conn *conn, const struct verve_hello *hello,
			    struct verve_conn_out *out);
/*
 * A CHALLENGE to the sender of hello, which becomes the candidate: the sender must echo a nonce
 * first. random: any 64 bits, for the nonce.
 */
void verve_conn_send_challenge(struct verve_conn *conn, const struct verve_hello *hello,
			       uint64_t random, struct verve_conn_out *out);

/*
 * Fills *bye for the sender of a HELLO or READY. It refuses the connection that the datagram names.
 */
void verve_conn_refuse(const struct verve_conn_self *self, const struct verve_hello *hello,
		       enum verve_hello_reason reason, struct verve_hello *bye);
/* Fills *challenge for the sender of a HELLO, which must repeat the HELLO and echo the nonce. */
void verve_conn_challenge(const struct verve_conn_self *self, const struct verve_hello *hello,
			  uint64_t nonce, struct verve_hello *challenge);

#endif
