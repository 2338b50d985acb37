/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of a connection. There is at most one connection at a time with each peer address, and it
 * remembers the last one. A peer is the address that its datagrams come from.
 *
 *   IDLE        no connection, and neither side has asked for one
 *   QUEUED      the engine asked for a connection; it waits to be admitted
 *   WAIT_HELLO  our HELLO is sent, and repeated until the peer answers
 *   WAIT_READY  the peer's HELLO is here and our queue pair is connected to its queue pair; if our
 *               engine asked, too, our HELLO is repeated until the peer shows that its queue pair
 *               is connected
 *   UP          both queue pairs are connected
 *
 * This file owns the data, the table of legal transitions, the one setter of the state, the
 * timer's arithmetic, and how a connection ends. It must not know datagrams, nor the manager:
 * conn/conn_send.h fills datagrams, conn/conn_recv.h takes them, conn/conn.h has the other inputs.
 * Service thread.
 */
#ifndef VERVE_CONN_CONN_STATE_H
#define VERVE_CONN_CONN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "conn/hello.h"
#include "conn/timer.h"
#include "net/qp.h"

enum verve_conn_state {
	VERVE_CONN_IDLE,
	VERVE_CONN_QUEUED,
	VERVE_CONN_WAIT_HELLO,
	VERVE_CONN_WAIT_READY,
	VERVE_CONN_UP,
	VERVE_CONN_STATES,
};

/* What all connections of an endpoint share. Constant. */
struct verve_conn_self {
	struct verve_addr addr; /* the endpoint's own address */
	uint64_t incarnation;	/* the endpoint's random number; never 0 */
	uint32_t window;	/* HELLO announces it: credits that a peer has here at first */
	uint32_t eager_size;	/* HELLO announces it: bytes of payload our receive buffers take */
	uint32_t features;	/* HELLO announces them: VERVE_HELLO_* */
	uint64_t timeout;	/* nanoseconds for a handshake, and for a half-open connection */
};

/* Our end of the connection. */
struct verve_conn_local {
	uint32_t id;	 /* our connection id; 0: our end is not open */
	uint64_t serial; /* the connection's number; larger than earlier ones of this incarnation */
	uint64_t nonce;	 /* the connection's random number; never 0 */
	struct verve_net_qp_addr qp; /* our queue pair's address */
};

/*
 * The peer's end. Valid in WAIT_READY and UP. Remembered after it: incarnation, id, serial, nonce.
 */
struct verve_conn_remote {
	uint64_t incarnation;
	uint32_t id; /* the peer's connection id */
	uint64_t serial, nonce;
	struct verve_net_qp_addr qp; /* the peer's queue pair's address */
	uint32_t window, eager_size, features; /* as the peer announced them */
	uint32_t resumes; /* the peer's id of the suspended connection continued here; 0: none */
};

/* A connection of the peer that must prove itself first; nonce 0: none. */
struct verve_conn_candidate {
	uint64_t incarnation; /* of the candidate's endpoint */
	uint64_t nonce;	      /* our number, which the candidate must echo */
	uint32_t id;	      /* the candidate's connection id */
};

struct verve_conn {
	const struct verve_conn_self *self;
	struct verve_addr addr; /* the peer's address */
	enum verve_conn_state state;
	struct verve_conn_local local;
	struct verve_conn_remote remote;
	struct verve_conn_candidate candidate;
	struct { /* the peer's CHALLENGE, which our HELLO must echo; nonce 0: there was none */
		uint64_t incarnation, nonce;
	} challenge;
	struct { /* the last connection, if the next one continues it; local 0: none */
		uint32_t local, remote; /* its ids */
		uint64_t nonce;		/* our nonce of it, which the peer's HELLO echoes */
	} suspended;
	uint64_t timer;	   /* the next verve_conn_timer, nanoseconds; VERVE_TIMER_NEVER: none */
	uint64_t deadline; /* the time when the handshake has failed, nanoseconds */
	uint64_t interval; /* nanoseconds between two repetitions of a datagram */
	unsigned attempts; /* HELLOs that the timer has repeated since it was started */
	int error;	   /* reported if the handshake times out, positive; 0: FI_ETIMEDOUT */
	bool listens;	   /* WAIT_READY: the peer's first packet may take the place of READY */
	bool answers;	   /* WAIT_READY: only the peer asked; each of its HELLOs gets one answer */
	bool checking;	   /* UP: a check is under way that the peer's port did not refuse */
	bool seeking;	   /* UP: a check is under way that did not fail to reach the host */
	unsigned refusals; /* UP: checks that the peer's port refused, in a row */
	unsigned unreachable; /* UP: checks that did not reach the host, since the peer was heard */
};

/* Actions that the manager performs, in this order. */
enum {
	VERVE_CONN_DO_DOWN = 1 << 0, /* report DOWN, and free our end */
	VERVE_CONN_DO_FAIL = 1 << 1, /* report FAILED if the engine asked, and free our end */
	VERVE_CONN_DO_OPEN = 1 << 2, /* call verve_conn_open, then give the same input again */
	VERVE_CONN_DO_CONNECT = 1 << 3, /* connect to remote.qp; on failure verve_conn_abort */
	VERVE_CONN_DO_UP = 1 << 4,	/* report UP */
	VERVE_CONN_DO_READY = 1 << 5,	/* report READY */
	/* send hello; the last action, because a peer may answer at once */
	VERVE_CONN_DO_SEND = 1 << 6,
};

struct verve_conn_out {
	unsigned actions;
	int error;	/* DOWN, FAIL: positive FI errno */
	bool may_send;	/* UP: the engine may send at once; false: after READY */
	bool listen;	/* UP: the peer's first packet may take the place of READY */
	bool greet;	/* UP, READY: the peer listens for our first packet */
	bool suspended; /* DOWN: the peer wants to continue with another queue pair */
	bool foreign;	/* the datagram was not about this connection */
	struct verve_hello hello;
};

void verve_conn_init(struct verve_conn *conn, const struct verve_conn_self *self,
		     const struct verve_addr *addr);
/* Gives the connection our end: before verve_conn_start, and when VERVE_CONN_DO_OPEN asks. */
void verve_conn_open(struct verve_conn *conn, const struct verve_conn_local *local);

/* True in WAIT_READY and UP: both ends are known, and the engine has been told. */
bool verve_conn_is_established(const struct verve_conn *conn);
/* True if the peer's address is the endpoint's own. */
bool verve_conn_is_self(const struct verve_conn *conn);
/* The transition table. */
bool verve_conn_is_legal(enum verve_conn_state from, enum verve_conn_state to);

/* For the inputs (conn.c, conn_recv.c). The transition must be legal. */
void verve_conn_set_state(struct verve_conn *conn, enum verve_conn_state state);
/* Starts the handshake's time: sets deadline and first repetition. random: any 64 bits. */
void verve_conn_start_timer(struct verve_conn *conn, uint64_t now, uint64_t random);
/* Sets the next repetition, after twice the last interval, at most a second. */
void verve_conn_back_off(struct verve_conn *conn, uint64_t now, uint64_t random);

/* Ends the connection: IDLE. remote keeps incarnation, id, serial and nonce. No report. */
void verve_conn_reset(struct verve_conn *conn);
/* The same; the next connection between the same incarnations continues this one. */
void verve_conn_reset_suspended(struct verve_conn *conn);
/* verve_conn_reset, reported: VERVE_CONN_DO_DOWN or _FAIL with error, a positive FI errno. */
void verve_conn_end(struct verve_conn *conn, unsigned report, int error,
		    struct verve_conn_out *out);
/* Forgets the suspended connection, so that the next one continues none; keeps it if it has id. */
void verve_conn_forget(struct verve_conn *conn, uint32_t id);

#endif
