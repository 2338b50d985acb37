/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection: the inputs of a connection (conn/conn_state.h) from the engine, the clock and the
 * network.
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
/*
 * Starts the handshake of a connection that is QUEUED and has our end (verve_conn_open). now:
 * nanoseconds; random: any 64 bits. The connection to the endpoint's own address is UP at once.
 */
void verve_conn_start(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out);
/*
 * The engine has read the UP event, and its first packet will reach the peer. So READY is not
 * repeated any more.
 */
void verve_conn_taken(struct verve_conn *conn);
/*
 * A packet came over the queue pair, so the peer's queue pair is connected: UP. The engine knows it
 * already; no READY event.
 */
void verve_conn_hear(struct verve_conn *conn);
/* The time conn->timer has come: repeats a datagram, or ends the handshake. */
void verve_conn_timer(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out);
/*
 * The engine waits for the peer: an UP connection sends READY again. A live peer ignores READY. A
 * peer that was restarted denies the connection (BYE). The port of a dead peer refuses the datagram
 * (ICMP). first: the peer was heard since the last check.
 */
void verve_conn_check(struct verve_conn *conn, bool first, struct verve_conn_out *out);
/*
 * A datagram to the peer could not be sent, or an ICMP error came for it; error: positive FI errno.
 * ICMP is not authentic, and may be older than the connection. Therefore the error ends only a
 * connection in WAIT_HELLO; and one in UP, when two checks in a row were refused, or four did not
 * reach the peer's host.
 */
void verve_conn_unreachable(struct verve_conn *conn, int error, struct verve_conn_out *out);
/*
 * The engine ends a WAIT_READY or UP connection, to continue it with another queue pair: BYE tells
 * the peer. No report.
 */
void verve_conn_suspend(struct verve_conn *conn, struct verve_conn_out *out);
/* The engine or the endpoint ends a WAIT_READY or UP connection: BYE, and no report. */
void verve_conn_drop(struct verve_conn *conn, struct verve_conn_out *out);
/*
 * A WAIT_READY connection has waited too long, or other connections need its place: DOWN. If only
 * the peer asked for the connection, no BYE is sent, because the peer's address may be forged.
 */
void verve_conn_expire(struct verve_conn *conn, struct verve_conn_out *out);
/* Our end cannot be opened or connected, before UP was reported. error: positive FI errno. */
void verve_conn_abort(struct verve_conn *conn, int error, struct verve_conn_out *out);
/*
 * Our device, or a queue of it, has failed: an established connection reports DOWN and says BYE, a
 * handshake reports FAILED. error: positive FI errno.
 */
void verve_conn_abandon(struct verve_conn *conn, int error, struct verve_conn_out *out);

#endif
