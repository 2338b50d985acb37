/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection: what the engine, the clock and the network do to a connection (conn/conn_state.h).
 *
 * Every function is an input: time and randomness are arguments, and *out is set whole with the
 * actions that the manager is to perform. Datagrams are inputs, too: conn/conn_recv.h. This file
 * must not know the manager, its mailboxes or its socket; no input does I/O or allocates memory.
 * Service thread.
 */
#ifndef VERVE_CONN_CONN_H
#define VERVE_CONN_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "conn/conn_state.h"

/* The engine asks for a connection: IDLE becomes QUEUED; no other state changes. */
void verve_conn_connect(struct verve_conn *conn);
/* A connection that is QUEUED and open is admitted. The endpoint's own address is UP at once. */
void verve_conn_start(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out);
/*
 * The engine has the UP connection, and its first packet will reach the peer: READY is not
 * repeated any more.
 */
void verve_conn_taken(struct verve_conn *conn);
/* A packet came over the queue pair: the peer's queue pair is connected. Not reported. */
void verve_conn_hear(struct verve_conn *conn);
/* conn->timer is due. */
void verve_conn_timer(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out);
/*
 * The engine waits for the peer: an UP connection says READY again. A peer that lives ignores
 * READY, a peer that was restarted denies the connection, and the port of a peer that died refuses
 * the datagram. first: the peer was heard of since the last check.
 */
void verve_conn_check(struct verve_conn *conn, bool first, struct verve_conn_out *out);
/*
 * A datagram to the peer could not be sent, or ICMP reported so; error: positive FI errno. ICMP is
 * not authentic, and may be older than the connection. Therefore it ends only a connection in
 * WAIT_HELLO, and an UP one when two checks in a row were refused, or four did not get to the
 * peer's host.
 */
void verve_conn_unreachable(struct verve_conn *conn, int error, struct verve_conn_out *out);
/*
 * The engine ends a WAIT_READY or UP connection to go on with another queue pair: the peer is told
 * so.
 */
void verve_conn_suspend(struct verve_conn *conn, struct verve_conn_out *out);
/* The engine or the endpoint ends a WAIT_READY or UP connection: BYE, and no report. */
void verve_conn_drop(struct verve_conn *conn, struct verve_conn_out *out);
/*
 * A WAIT_READY connection waited too long, or others need its place. If only the peer asked, the
 * peer is not told.
 */
void verve_conn_expire(struct verve_conn *conn, struct verve_conn_out *out);
/* Our end cannot be opened or connected, and UP was not reported. error: positive FI errno. */
void verve_conn_abort(struct verve_conn *conn, int error, struct verve_conn_out *out);
/*
 * Our device is gone: an established connection is down, a handshake has failed, with error, a
 * positive FI errno.
 */
void verve_conn_abandon(struct verve_conn *conn, int error, struct verve_conn_out *out);

#endif
