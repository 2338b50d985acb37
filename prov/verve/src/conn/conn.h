/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection: what an endpoint has, wants and knows with one peer address: at most one connection
 * at a time, and the memory of the last. A peer is where its datagrams come from.
 *
 * Plain state: every function is an input (time and randomness are arguments) and answers with actions for the
 * manager to perform. No I/O, no allocation; the service thread.
 *
 *   IDLE        nothing is, nothing is asked for
 *   QUEUED      asked for; waits to be admitted
 *   WAIT_HELLO  our HELLO is out; repeated until answered
 *   WAIT_READY  the peer's HELLO is here and our queue pair connected to it; if we want that, too, our HELLO is
 *               repeated until the peer shows that its queue pair is connected
 *   UP          both are
 *
 * Who only answers repeats nothing: the address may be forged. Its peer repeats its HELLO until it has the answer;
 * then READY, until its engine has the connection, whose first packet says the same and is not lost. When to lose
 * patience, our engine says, which sees such packets. Crossing HELLOs make one connection: the side with the
 * larger incarnation answers, and listens for the other's first packet. A HELLO that would replace a connection
 * proves itself first, by echoing a fresh nonce (CHALLENGE): stale and replayed datagrams cannot.
 */
#ifndef VERVE_CONN_CONN_H
#define VERVE_CONN_CONN_H

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
	struct verve_addr addr;
	uint64_t incarnation; /* random */
	uint32_t window;      /* to announce */
	uint32_t eager_size;  /* likewise */
	uint32_t features;    /* to announce: VERVE_HELLO_* */
	uint64_t timeout;     /* nanoseconds for a handshake, and for a half-open connection */
};

/* Our end. serial: larger than any before of the incarnation; nonce: random, not 0. */
struct verve_conn_local {
	uint32_t id; /* 0: there is none */
	uint64_t serial, nonce;
	struct verve_net_qp_addr qp;
};

/* The peer's end. Valid in WAIT_READY and UP; incarnation and serial are remembered after. */
struct verve_conn_remote {
	uint64_t incarnation;
	uint32_t id;
	uint64_t serial, nonce;
	struct verve_net_qp_addr qp;
	uint32_t window, eager_size, features;
	uint32_t resumes; /* its suspended connection, of which ours this one continues; 0: none */
};

struct verve_conn {
	const struct verve_conn_self *self;
	struct verve_addr addr; /* the peer's */
	enum verve_conn_state state;
	struct verve_conn_local local;
	struct verve_conn_remote remote;
	struct { /* who would replace the connection, what we gave it to echo; 0: nobody */
		uint64_t incarnation, nonce;
		uint32_t id;
	} candidate;
	struct { uint64_t incarnation, nonce; } challenge; /* what the peer gave us to echo; nonce 0: nothing */
	struct { /* the last one, if it is to go on with another queue pair; local 0: it is not */
		uint32_t local, remote;
	} suspended;
	uint64_t timer; /* when verve_conn_timer is due; VERVE_TIMER_NEVER */
	uint64_t deadline, interval;
	unsigned attempts; /* HELLOs sent by the timer since the last change of state */
	int error;	   /* why the peer seems unreachable; positive FI errno, 0: it does not */
	bool listens;	   /* WAIT_READY: a packet may say that the peer's queue pair is connected */
	bool answers;	   /* WAIT_READY: only the peer wanted it; our HELLO goes out as often as its comes in */
	bool checking, seeking; /* the peer, its host; refusals: in a row; unreachable: checks that did not get there */
	unsigned refusals, unreachable;
};

/* To be performed in this order. */
enum {
	VERVE_CONN_DO_DOWN = 1 << 0,	/* report; id and queue pair are no more the connection's */
	VERVE_CONN_DO_FAIL = 1 << 1,	/* report, if it was asked for; likewise */
	VERVE_CONN_DO_OPEN = 1 << 2,	/* verve_conn_open, then the same input again */
	VERVE_CONN_DO_CONNECT = 1 << 3, /* the queue pair to remote.qp; fails: verve_conn_abort */
	VERVE_CONN_DO_UP = 1 << 4,	/* report */
	VERVE_CONN_DO_READY = 1 << 5,	/* report */
	VERVE_CONN_DO_SEND = 1 << 6,	/* hello; last: who answers must find it true */
};

struct verve_conn_out {
	unsigned actions;
	int error;     /* DOWN, FAIL: positive FI errno */
	bool may_send; /* UP */
	bool listen;   /* UP: READY may come as a packet: verve_conn_hear */
	bool greet;    /* UP, READY: the peer listens */
	bool suspended; /* DOWN: the peer wants to go on with another queue pair */
	bool foreign;  /* the datagram did not mean this connection */
	struct verve_hello hello;
};

void verve_conn_init(struct verve_conn *conn, const struct verve_conn_self *self,
		     const struct verve_addr *addr);
/* Gives it our end: before verve_conn_start, and when VERVE_CONN_DO_OPEN asks. */
void verve_conn_open(struct verve_conn *conn, const struct verve_conn_local *local);

/* Inputs. They set *out whole. */

/* The engine asks: IDLE becomes QUEUED; no other state is changed. */
void verve_conn_connect(struct verve_conn *conn);
/* A QUEUED and open one is admitted. The endpoint's own address is UP at once. */
void verve_conn_start(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out);
/* A datagram from its address. */
void verve_conn_receive(struct verve_conn *conn, const struct verve_hello *hello, uint64_t now,
			uint64_t random, struct verve_conn_out *out);
/* The engine has the UP connection, whose first packet will reach the peer: READY is not repeated any more. */
void verve_conn_taken(struct verve_conn *conn);
/* A packet came over the queue pair: the peer's is connected. Not reported. */
void verve_conn_hear(struct verve_conn *conn);
/* conn->timer is due. */
void verve_conn_timer(struct verve_conn *conn, uint64_t now, uint64_t random,
		      struct verve_conn_out *out);
/*
 * The engine waits for the peer: an UP connection says READY again. A peer that lives ignores it, one
 * that was restarted denies the connection, and the port of one that died refuses it. first: the peer
 * was heard of since the last check.
 */
void verve_conn_check(struct verve_conn *conn, bool first, struct verve_conn_out *out);
/*
 * A datagram could not be sent there, or ICMP said so; error: positive FI errno. ICMP is not
 * authentic, and may be older than what was established since: only a connection in WAIT_HELLO minds,
 * and one that is UP when two checks in a row were refused, or four did not get to its host.
 */
void verve_conn_unreachable(struct verve_conn *conn, int error, struct verve_conn_out *out);
/*
 * Somebody who has seen our HELLO, perhaps the peer, says without authentication that our key is
 * not the peer's. That may be a lie, so it only becomes what a time-out says. False: it is not
 * about a HELLO of ours that waits.
 */
bool verve_conn_doubt(struct verve_conn *conn, const struct verve_hello *bye);
/* The engine gives a WAIT_READY or UP one up, to go on with another queue pair: verve_conn_drop, but the next says so. */
void verve_conn_suspend(struct verve_conn *conn, struct verve_conn_out *out);
/* The next one is to have nothing to do with one that was suspended; id: unless that is it, 0: none. */
void verve_conn_forget(struct verve_conn *conn, uint32_t id);
/* The engine, or the endpoint, gives a WAIT_READY or UP one up: BYE, and no report. */
void verve_conn_drop(struct verve_conn *conn, struct verve_conn_out *out);
/* A WAIT_READY one waited too long, or others need its place. A peer that was only answered is not told. */
void verve_conn_expire(struct verve_conn *conn, struct verve_conn_out *out);
/* Our end cannot be opened or connected; not reported as UP. error: positive FI errno. */
void verve_conn_abort(struct verve_conn *conn, int error, struct verve_conn_out *out);
/* Our device is gone: an established connection is down, one under way has failed, with error. */
void verve_conn_abandon(struct verve_conn *conn, int error, struct verve_conn_out *out);

/* A BYE to who sent the HELLO or READY, about the connection of ours that it means. */
void verve_conn_refuse(const struct verve_conn_self *self, const struct verve_hello *hello,
		       enum verve_hello_reason reason, struct verve_hello *bye);
/* To who sent the HELLO: say it again, with this nonce. */
void verve_conn_challenge(const struct verve_conn_self *self, const struct verve_hello *hello,
			  uint64_t nonce, struct verve_hello *challenge);

/* Both ends are known, and the engine has been told: WAIT_READY, UP. */
bool verve_conn_is_established(const struct verve_conn *conn);
/* The transition table. */
bool verve_conn_is_legal(enum verve_conn_state from, enum verve_conn_state to);

#endif
