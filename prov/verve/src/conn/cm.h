/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager: one per endpoint. Owns the handshake socket and every connection from the
 * first HELLO to the hand-over of its connected queue pair; answers peers whether or not the
 * application calls libfabric.
 *
 * Its state belongs to the service thread, which calls verve_cm_step. The engine talks to it by
 * verve_cm_connect and verve_cm_drop (any thread, lock-free) and reads its events from a mailbox.
 */
#ifndef VERVE_CONN_CM_H
#define VERVE_CONN_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/mailbox.h"
#include "net/qp.h"

struct verve_auth_key;
struct verve_cm;
struct verve_cm_request;

enum verve_cm_event_type {
	/*
	 * A connection exists; the reader owns qp from now on. It may carry messages to the peer at once
	 * if may_send, else after READY or the peer's first message, whichever comes first.
	 */
	VERVE_CM_UP,
	VERVE_CM_READY,
	/* verve_cm_connect to addr failed: refused, timed out, or no resources here. No conn_id. */
	VERVE_CM_FAILED,
	/*
	 * The peer ended the connection, restarted, or began anew. What had arrived before is still in
	 * the completion queue: take it first. conn_id is free for another connection's UP from here on.
	 */
	VERVE_CM_DOWN,
};

/* Owned by the reader of the mailbox; free with verve_cm_event_free. */
struct verve_cm_event {
	struct verve_mail mail;
	enum verve_cm_event_type type;
	struct verve_addr addr; /* the peer */
	uint32_t conn_id;	/* ours: the destination id in the peer's packets (base/idtab.h) */
	uint32_t remote_id;	/* the peer's: goes into our packets */
	struct verve_net_qp *qp;
	uint32_t window;     /* eager messages that the peer lets us have unconsumed */
	uint32_t eager_size; /* bytes of payload that its receive buffers take */
	uint32_t features;   /* that the peer announced: VERVE_HELLO_* */
	/*
	 * UP: for verve_cm_drop. Made with the event, so that giving a connection up needs no memory. A reader that
	 * takes it sets it NULL; it is freed by verve_cm_request_free.
	 */
	struct verve_cm_request *drop;
	bool may_send;
	bool listen; /* UP: the peer may say READY by a packet: verve_cm_hear when the first came; verve_cm_expire */
	bool greet;  /* UP, READY: the peer listens: a packet of any kind is to follow, as soon as there is room */
	uint32_t resumes; /* UP: the peer's id of the suspended connection that this one continues; 0: none */
	bool suspended; /* DOWN: the peer wants to go on with another queue pair: verve_cm_resume */
	int error; /* FAILED, DOWN: positive FI errno */
};

struct verve_cm_attr {
	struct verve_net_device *dev;
	struct verve_net_qp_attr qp_attr; /* of every queue pair it opens */
	struct verve_addr addr;		  /* to bind to; port 0: any */
	const struct verve_auth_key *key; /* that peers must have, too; copied; NULL: none */
	uint32_t window;		  /* to announce: eager messages a peer may have unconsumed here */
	uint32_t eager_size;		  /* to announce: bytes of payload that receive buffers take */
	uint32_t features;		  /* to announce: VERVE_HELLO_* */
	uint64_t connect_timeout;	  /* nanoseconds from the first HELLO to FAILED, FI_ETIMEDOUT */
	uint32_t transport_timeout_ms;	  /* see verve_net_qp_connect */
	struct verve_mailbox *events;	  /* where events go; outlives the manager */
	void (*notify)(void *arg);	  /* after events were put: wakes the reader. Must not block or re-enter */
	void (*wake)(void *arg);	  /* after connect and drop: makes the service thread call verve_cm_step */
	void *arg;
};

/*
 * Binds the socket. -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_ENOMEM ...; -FI_EINVAL: with a key, addr
 * must not be a wildcard.
 */
int verve_cm_open(const struct verve_cm_attr *attr, struct verve_cm **cm);
/*
 * When the service thread no longer steps it: says BYE to every peer, closes what was not handed
 * over, and puts no more events. The caller then empties the mailbox (an UP in it owns a queue pair).
 */
void verve_cm_close(struct verve_cm *cm);

/* The bound address: the endpoint's name. Constant. */
const struct verve_addr *verve_cm_addr(const struct verve_cm *cm);
int verve_cm_fd(const struct verve_cm *cm);

/*
 * Asks for a connection; ends in UP or FAILED, once. Also when one comes up because the peer asked
 * at the same time: one UP serves both. Asking while one is up or on its way adds nothing.
 * An endpoint may connect to its own address. -FI_ENOMEM.
 */
int verve_cm_connect(struct verve_cm *cm, const struct verve_addr *addr);
/*
 * The engine has given a connection up (its queue pair failed; the engine closes that). The manager
 * forgets it and frees conn_id; the next connect starts anew. No event follows. drop: of its UP; the manager's
 * from here on, and set NULL. NULL: nothing.
 */
void verve_cm_drop(struct verve_cm *cm, struct verve_cm_request **drop);
/* The same for one whose UP said listen, and over which no packet came in time: a peer that may not exist is not told. */
void verve_cm_expire(struct verve_cm *cm, struct verve_cm_request **drop);
void verve_cm_request_free(struct verve_cm_request *request);

/*
 * The same, but the engine wants to go on with another queue pair: tells the peer, and connects. Ends in UP
 * or FAILED, once; in UP's resumes the peer says that it goes on, too. Also after a DOWN that says suspended.
 * Only a connection that the peer has: UP said may_send, READY came, or a packet. To a peer that still waits for our
 * HELLO this would be a refusal. -FI_ENOMEM.
 */
int verve_cm_resume(struct verve_cm *cm, const struct verve_addr *addr, uint32_t conn_id);

/* The peer's first packet came, over a connection whose UP said listen. -FI_ENOMEM: READY tells the same. */
int verve_cm_hear(struct verve_cm *cm, uint32_t conn_id);

/*
 * The engine waits for an answer over the connection: DOWN with FI_EHOSTUNREACH follows the second time
 * that the peer's port turns out to be closed, or the fourth time that its host cannot be reached; with
 * FI_ENOTCONN if somebody else is there. first: the peer was heard of since the last check. -FI_ENOMEM.
 */
int verve_cm_check(struct verve_cm *cm, uint32_t conn_id, bool first);

/*
 * Service thread: the device is gone. Every connection ends, and everything that waits for one fails, with
 * error, positive; peers are told. The next step wakes the reader. Opening queue pairs fails from now on, so what
 * comes later fails by itself.
 */
void verve_cm_abandon(struct verve_cm *cm, int error);

/*
 * Service thread: requests, datagrams, timers. now: nanoseconds of the monotonic clock. Returns the
 * time of the next timer, UINT64_MAX if none runs.
 */
uint64_t verve_cm_step(struct verve_cm *cm, uint64_t now);

void verve_cm_event_free(struct verve_cm_event *event);

/* Counts since open, for statistics and tests; service thread or after close of traffic. */
struct verve_cm_stats {
	uint64_t sent, received;	/* datagrams */
	uint64_t malformed, foreign;	/* dropped: not ours to read; not for this incarnation */
	uint64_t unauthenticated;	/* dropped: not of our key */
	uint64_t challenged;		/* asked to show first that they hear us */
	uint64_t retransmitted;
	uint64_t connected, failed;
};
void verve_cm_stats_get(const struct verve_cm *cm, struct verve_cm_stats *stats);

#endif
