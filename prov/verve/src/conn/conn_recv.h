/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving of a connection: what each kind of datagram does to the connection with its sender.
 *
 * A side that only answers repeats nothing, because the peer's address may be forged. The peer
 * repeats its HELLO until the answer is there, and then READY, until its engine has the
 * connection: the first packet over the queue pair says the same as READY, and is not lost. Our
 * engine sees packets, so our engine loses patience. HELLOs that cross make one connection: the
 * side with the larger incarnation answers, and listens for the other side's first packet. A HELLO
 * that would replace an established connection first echoes a fresh nonce (CHALLENGE); stale and
 * replayed datagrams cannot.
 *
 * This file must not know sockets, authentication or cookies: conn/guard.h has passed the
 * datagram. Service thread.
 */
#ifndef VERVE_CONN_CONN_RECV_H
#define VERVE_CONN_CONN_RECV_H

#include <stdbool.h>
#include <stdint.h>

#include "conn/conn_state.h"
#include "conn/hello.h"

/* A datagram came from the peer's address. Sets *out whole. random: any 64 bits. */
void verve_conn_receive(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			uint64_t random, struct verve_conn_out *out);
/*
 * bye came without authentication, and says that our key is not the peer's. It may be a lie, so it
 * only becomes the cause that a time-out reports. Returns false if bye is not about a HELLO of
 * ours that waits for its answer.
 */
bool verve_conn_doubt(struct verve_conn *conn, const struct verve_hello *bye);

#endif
