/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operation: one accepted request of the application, from start to its single completion.
 *
 * verve_op_set_state is the only writer of the state and checks that the step is legal.
 * verve_op_report is the only way a completion leaves, and asserts that it is the first.
 * The engine's lock protects everything here.
 */
#ifndef VERVE_PROTO_OP_H
#define VERVE_PROTO_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "proto/match.h"
#include "proto/request.h"
#include "proto/wire.h"

struct verve_link;
struct verve_mr_region;
struct verve_peer;
struct verve_slab;
struct verve_xport;

enum { VERVE_IOV_LIMIT = 4 };

enum verve_op_kind {
	VERVE_OP_SEND,
	VERVE_OP_RECV,
	VERVE_OP_WRITE,
	VERVE_OP_READ,
	VERVE_OP_FIN, /* carries a FIN for a message that no receive of ours took */
	VERVE_OP_ATOMIC, /* the application hears only that it was executed */
	VERVE_OP_FETCH,	 /* an atomic that brings back what was there */
	VERVE_OP_REPLY,	 /* carries the answer to a peer's atomic */
	VERVE_OP_KEY,	 /* carries what a peer is to hear of a key of ours, which is its tag */
	VERVE_OP_CHUNK,	   /* carries the next len bytes of a message of ours, whose id is its tag, to recv.fin_id */
	VERVE_OP_WITHDRAW, /* carries that a message of ours, recv.fin_id, is taken back */
};

enum verve_op_state {
	VERVE_OP_NEW,	  /* being filled in */
	VERVE_OP_QUEUED,  /* in peer->pending: not yet, or not all, on the wire */
	VERVE_OP_SENT,	  /* in peer->active: on the wire, its last work request is to complete */
	VERVE_OP_AWAIT,	  /* in peer->active: the peer is to answer with FIN */
	VERVE_OP_POSTED,  /* receive: in a match table */
	VERVE_OP_FINISH,  /* in peer->control: a FIN, a reply, a read's RMA event, or of a key, is to be sent */
	VERVE_OP_DOOMED,  /* in link->doomed: its connection broke; ends when the hardware let go of it */
	VERVE_OP_STATES,
};

enum {
	VERVE_OP_NOTIFY = 1 << 0,     /* wants a completion entry; counters and errors always count */
	VERVE_OP_REPORTED = 1 << 1,   /* its completion has been given */
	VERVE_OP_TAGGED = 1 << 2,
	VERVE_OP_DATA = 1 << 3,	      /* has remote CQ data */
	VERVE_OP_ACK = 1 << 4,	      /* delivery complete: the peer confirms */
	VERVE_OP_TRANSMIT = 1 << 5,   /* transmit complete: not before the peer's NIC has it */
	VERVE_OP_INJECT = 1 << 6,     /* the buffer was the application's only during the call */
	VERVE_OP_MULTI = 1 << 7,      /* multi-receive buffer */
	VERVE_OP_FENCE = 1 << 8,
	VERVE_OP_TX = 1 << 9,	      /* counts against the transmit queue's size */
	VERVE_OP_CANCELLED = 1 << 10, /* by the application; ends when peer and device let go of it */
	VERVE_OP_OFFERED = 1 << 11,   /* the peer was sent an RTS of it, and may pull it */
};

/* Memory to move by RDMA read or write: the operation's iov on this side, segments on the other. */
struct verve_transfer {
	struct verve_wire_segment remote[VERVE_WIRE_SEGMENTS];
	uint32_t remote_count;
	uint64_t len;	 /* bytes to move */
	uint64_t offset; /* bytes posted */
	uint64_t base;	 /* where in it the operation's slab begins, which holds what fits */
};

struct verve_op_recv {
	struct verve_match_recv match;
	uint32_t fin_id;	  /* the sender's operation, to name in the FIN; 0: none wanted */
	uint32_t fin_status;
	uint64_t src;		  /* of the message: fi_addr_t */
	uint64_t asked;		  /* bytes of a message that is pulled, from its beginning */
	uint64_t msg_len;	  /* of the message, which may be longer than the buffer */
	struct verve_op *parent;  /* of a message placed into a multi-receive buffer */
	uint32_t children;	  /* of a multi-receive buffer: messages still being placed */
	bool spent;		  /* multi-receive buffer that takes no more messages */
	size_t used;		  /* bytes of a multi-receive buffer that are taken */
};

struct verve_op_atomic {
	uint8_t op, type; /* enum verve_amo_op, verve_amo_type */
	uint32_t compare_count, result_count;
	uint64_t value, expected; /* of the one element, if the device executes it */
	struct iovec compare[VERVE_IOV_LIMIT], result[VERVE_IOV_LIMIT];
};

struct verve_op_reply {
	uint32_t id;	 /* the peer's operation */
	uint32_t status; /* proto/atomic.c; 0: executed */
	void *values;	 /* what was there, from malloc; NULL: nothing to bring */
};

struct verve_op_key {
	uint64_t generation; /* of the key, as far as it was told; or revoked */
	uint32_t next;	     /* segment to be told */
	uint8_t type;	     /* enum verve_wire_type: KEY_REPLY or KEY_REVOKE */
};

struct verve_op {
	TAILQ_ENTRY(verve_op) link; /* in the one queue that its state names */
	struct verve_peer *peer;
	struct verve_link *via; /* DOOMED: the link that it is doomed with */
	void *context;
	uint64_t tag;
	uint64_t data;
	size_t len; /* bytes of iov */
	uint32_t id; /* on the wire; 0: none */
	uint16_t flags;
	uint8_t kind;
	uint8_t state;
	bool posted; /* RMA: all of the transfer is on the wire */
	int error; /* positive FI errno that it alone suffered; 0: none */
	uint32_t status; /* ibv_wc_status of that */
	uint32_t iov_count;
	uint32_t owned; /* bit i: region[i] came from the cache and goes back */
	struct iovec iov[VERVE_IOV_LIMIT];
	struct verve_mr_region *region[VERVE_IOV_LIMIT];
	struct verve_slab *slab; /* stands in for iov when not NULL */
	struct verve_transfer transfer; /* RMA, a rendezvous being read; an atomic: remote alone */
	union {
		struct verve_op *chunk; /* SEND: carries what the peer pulls of it; NULL: it asked for nothing */
		struct verve_op_recv recv; /* RECV, FIN, CHUNK, WITHDRAW */
		struct verve_op_atomic atomic; /* ATOMIC, FETCH */
		struct verve_op_reply reply; /* REPLY */
		struct verve_op_key key; /* KEY */
	};
};

TAILQ_HEAD(verve_op_queue, verve_op);

/* A zeroed operation in state NEW, or NULL: no memory, or (VERVE_OP_TX in flags) the queue is full. */
struct verve_op *verve_op_alloc(struct verve_xport *xport, enum verve_op_kind kind, uint32_t flags);
/* Copies what a request says; registers nothing. */
void verve_op_fill(struct verve_op *op, const struct verve_request *request);
/* Gives back slab, regions and id, and the operation itself. Must have been reported, or never accepted. */
void verve_op_free(struct verve_xport *xport, struct verve_op *op);

void verve_op_set_state(struct verve_op *op, enum verve_op_state state);
/* Takes it out of the queue that its state names (SENT, AWAIT, FINISH, QUEUED or DOOMED). */
void verve_op_dequeue(struct verve_op *op);
/* What it had to start with is posted: from its queue to the peer's active ones. state: SENT or AWAIT. */
void verve_op_activate(struct verve_op *op, enum verve_op_state state);
/* Gives it an id for the wire. -FI_ENOMEM. */
int verve_op_name(struct verve_xport *xport, struct verve_op *op);
/*
 * Every iov gets a region: the application's descriptor, or one from the cache; with REMOTE_READ one from the cache
 * in any case, because the peer that is told its key is to reach this message and no more. access: VERVE_NET_*.
 * -FI_ENOMEM and others: what registration said; nothing is registered then.
 */
int verve_op_register(struct verve_xport *xport, struct verve_op *op, unsigned access);

/* Its last work request completed. */
void verve_op_done(struct verve_xport *xport, struct verve_op *op);
/* The one completion: success. Nobody hears of it if the endpoint closes. Leaves the operation to the caller. */
void verve_op_report(struct verve_xport *xport, struct verve_op *op);
/* The same: error, positive FI errno, ibv_wc_status or 0, and a readable reason. */
void verve_op_report_error(struct verve_xport *xport, struct verve_op *op, int error, uint32_t status,
			   const char *reason);
/* The same for one that is in a queue and that nothing posted refers to: takes it out and frees it. */
void verve_op_fail(struct verve_xport *xport, struct verve_op *op, int error, const char *reason);

#endif
