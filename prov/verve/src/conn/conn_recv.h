/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: the effect of each kind of datagram on the connection with its sender.
 *
 * A side that only answers repeats nothing, because the peer's address may be forged. The peer
 * repeats its HELLO until the answer comes, and then READY until its engine has the connection. The
 * first packet over the queue pair says the same as READY, and cannot be lost. If neither comes,
 * our engine ends the connection, because only the engine sees packets.
 *
 * Two HELLOs that cross make one connection: the side with the larger incarnation answers, and
 * listens for the other side's first packet. A HELLO that would replace an established connection,
 * or that seems to be older than the last one, must first echo a fresh nonce (CHALLENGE); an old or
 * replayed HELLO cannot. A HELLO that continues a suspended connection echoes our nonce of it
 * instead; one without that nonce is challenged like any other.
 *
 * This file must not know sockets, authentication or cookies: conn/guard.h has checked the
 * datagram. Service thread.
 */
#ifndef VERVE_CONN_CONN_RECV_H
#define VERVE_CONN_CONN_RECV_H

#include <stdbool.h>
#include <stdint.h>

#include "conn/conn_state.h"
#include "conn/hello.h"

/*
 * True: the connection itself judges the datagram: it makes the sender of a HELLO prove that it
 * hears us (CHALLENGE), or this HELLO is the proof. No cookie (conn/guard.h) may be asked for as
 * well, because a HELLO echoes one number.
 */
bool verve_conn_judges(const struct verve_conn *conn, const struct verve_hello *hello);
/*
 * A datagram came from the peer's address. Sets all of *out. now: nanoseconds; random: any 64 bits.
 */
void verve_conn_receive(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			uint64_t random, struct verve_conn_out *out);
/*
 * A BYE without authentication says that the peer has another key. The BYE may be forged, so it
 * ends nothing, but a later time-out reports FI_EKEYREJECTED. False: no HELLO of ours waits for an
 * answer from that peer.
 */
bool verve_conn_doubt(struct verve_conn *conn, const struct verve_hello *bye);

#endif
