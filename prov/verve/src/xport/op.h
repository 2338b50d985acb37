/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operation: one accepted request of the application, or one packet that this side owes a peer.
 *
 * struct verve_op is the part that all operations have. Each protocol embeds it, first, in a struct
 * of its own, and describes its kind of operation with one struct verve_op_class; the transport
 * does not know which kinds there are. verve_op_set_state is the only writer of the state and
 * checks that the step is legal. xport/report.h writes the operation's one completion. The engine's
 * lock protects everything here.
 */
#ifndef VERVE_XPORT_OP_H
#define VERVE_XPORT_OP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/pool.h"
#include "xport/xport.h"

struct verve_comp;
struct verve_comp_error;
struct verve_op;

enum verve_op_state {
	VERVE_OP_NEW,	 /* allocated, in no queue */
	VERVE_OP_QUEUED, /* in peer->pending, reads or aside: not all of it is on the wire */
	VERVE_OP_SENT,	 /* in peer->active: waits for its last work request to complete */
	VERVE_OP_AWAIT,	 /* in peer->active: waits for the peer; its reads may be under way */
	VERVE_OP_POSTED, /* a receive in a match table */
	VERVE_OP_FINISH, /* in peer->control: owes the peer a packet */
	VERVE_OP_DOOMED, /* in link->doomed: ends when the device has let go of the broken link */
	VERVE_OP_STATES,
};

enum {
	/* From the request. */
	VERVE_OP_NOTIFY = 1 << 0,   /* wants a completion entry; counters and errors always count */
	VERVE_OP_TAGGED = 1 << 1,
	VERVE_OP_DATA = 1 << 2,	    /* has remote CQ data */
	VERVE_OP_ACK = 1 << 3,	    /* delivery complete: completes when the peer confirms */
	VERVE_OP_TRANSMIT = 1 << 4, /* transmit complete: not before the peer's device has it */
	VERVE_OP_INJECT = 1 << 5,   /* the application may use its buffer after the call again */
	VERVE_OP_MULTI = 1 << 6,    /* multi-receive buffer */
	VERVE_OP_FENCE = 1 << 7,    /* starts when earlier ones have completed: xport/start.c */
	VERVE_OP_MATCH = 1 << 11,   /* match complete: completes when a receive has the message */
	/* The operation's own. */
	VERVE_OP_TX = 1 << 8,	    /* counts against the transmit queue's size */
	VERVE_OP_REPORTED = 1 << 9, /* its completion was written, or it has none */
	VERVE_OP_CANCELLED = 1 << 10, /* was cancelled; ends when peer and device have let go */
	VERVE_OP_ANSWERED = 1 << 12, /* the peer has said the end, in error; the device has not */
	VERVE_OP_UNINVITED = 1 << 13, /* peers cause as many as they like: comp/comp_queue.h */
	VERVE_OP_ASKED = 1 << 14,    /* has an errand (xport/errand.h) */
};

/* Result of starting an operation, or of sending the packet that it owes. */
enum verve_outcome {
	VERVE_DONE,  /* the operation left its queue, or has sent a part: call again at once */
	VERVE_LATER, /* the operation stays in its queue: no room, no buffer, no answer yet */
	VERVE_PASS,  /* the same, of answer alone; packets behind it need not wait */
	VERVE_BROKE, /* the link broke and took the operation along: do not touch either */
};

/* Bytes of the objects of each pool (xport/op_pool.h); of an operation, at most. */
enum { VERVE_OP_SIZE_SMALL = 256, VERVE_OP_SIZE_MEDIUM = 512, VERVE_OP_SIZE_MAX = 1024 };

/* A kind of operation: a constant beside its protocol. A function that is NULL is never called. */
struct verve_op_class {
	const char *name; /* for the log */
	size_t size;	  /* bytes of the protocol's struct; VERVE_OP_SIZE_MAX at most */
	size_t cleared;	  /* bytes that verve_op_alloc zeroes, from the beginning */
	size_t memory_at; /* offset of its struct verve_memory (xport/memory.h); 0: it has none */
	size_t move_at;	  /* offset of its struct verve_transfer (xport/transfer.h); 0: none */
	uint64_t comp_flags; /* VERVE_COMP_* of its completion, for a message without MSG, TAGGED */
	size_t counter_at;   /* offset of its counter in struct verve_sink; 0: never reported */
	bool is_message; /* its completion says MSG or TAGGED */
	bool is_receive; /* completes in the receive queue; waits in peer->reads */
	bool may_be_passed; /* no order is promised with operations to the peer that come later */
	bool is_fetch;	 /* an atomic that fetches: executing it twice would fetch another value */

	/* Starts a QUEUED operation at the head of its queue; the link has room for a request. */
	enum verve_outcome (*start)(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op);
	/* Sends the packet of a FINISH operation at the head of peer->control, and ends it. */
	enum verve_outcome (*answer)(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op);
	/* A work request whose slot has tell ended well. May be called in state DOOMED. */
	void (*done)(struct verve_xport *xport, struct verve_op *op);
	/*
	 * Ends an operation that has op->error and no work request outstanding. NULL:
	 * verve_op_fail. For replay only: a link that ends calls verve_op_fail for every class.
	 */
	void (*fail)(struct verve_xport *xport, struct verve_op *op, const char *reason);
	/*
	 * The link goes on over another queue pair, and reads of the operation have not ended.
	 * True: they need keys that ended with the old queue pair, so they must not be repeated;
	 * the operation is QUEUED, to start anew, or has failed. For replay only. NULL: false.
	 */
	bool (*restart)(struct verve_xport *xport, struct verve_op *op);
	/* The application cancels the QUEUED or active operation. 0, or -FI_EAGAIN: no memory. */
	int (*cancel)(struct verve_xport *xport, struct verve_op *op);
	/* Fills in the fields of a completion that only this kind has. Called once. */
	void (*describe)(struct verve_xport *xport, struct verve_op *op, struct verve_comp *comp);
	/* Called after describe for an error: may change the entry and the reason. */
	void (*blame)(const struct verve_op *op, struct verve_comp_error *entry,
		      const char **reason);
	/*
	 * Gives back all that the operation has, such as its memory (verve_op_release_memory), but
	 * its id and itself.
	 */
	void (*release)(struct verve_xport *xport, struct verve_op *op);
};

TAILQ_HEAD(verve_op_queue, verve_op);

struct verve_op {
	TAILQ_ENTRY(verve_op) link; /* in queue */
	struct verve_op_queue *queue; /* the queue that the state names; NULL: it is in none */
	const struct verve_op_class *cls;
	struct verve_peer *peer;
	void *context;
	size_t len;	 /* bytes of the application's memory; in its completion */
	uint32_t id;	 /* on the wire, from xport->op_ids; 0: none */
	uint32_t status; /* ibv_wc_status that belongs to error, or 0 */
	int error;	 /* positive FI errno of this operation's own failure; 0: none */
	uint16_t flags;	 /* VERVE_OP_NOTIFY ... */
	uint8_t state;	 /* enum verve_op_state */
};

/* The pool of the smallest objects that are large enough for the class. */
static inline struct verve_pool *verve_op_pool(struct verve_xport *xport,
					       const struct verve_op_class *cls)
{
	assert(cls->size <= VERVE_OP_SIZE_MAX);
	return &xport->home->ops[(cls->size > VERVE_OP_SIZE_SMALL) +
				 (cls->size > VERVE_OP_SIZE_MEDIUM)];
}

/*
 * Takes the operation out of its queue, releases all that it has, and frees it. It must have been
 * reported, or never accepted.
 */
void verve_op_free(struct verve_xport *xport, struct verve_op *op);

/* For verve_op_set_state alone: bits of the legal next states; logs a step, or asserts. */
extern const uint16_t verve_op_next_states[VERVE_OP_STATES];
void verve_op_log_step(const struct verve_op *op, enum verve_op_state state);

/* The step must be legal (asserted). Moves the operation to no queue: the caller does. */
static inline void verve_op_set_state(struct verve_op *op, enum verve_op_state state)
{
	bool legal = verve_op_next_states[op->state] & 1u << state;

	if (__builtin_expect(!legal || verve_log_traces, 0))
		verve_op_log_step(op, state);
	op->state = state;
}

/* Puts the operation, which is in no queue, at the end of this one, in this state. */
void verve_op_enqueue(struct verve_op *op, struct verve_op_queue *queue, enum verve_op_state state);
/* Takes the operation out of its queue. Harmless if it is in none. */
void verve_op_dequeue(struct verve_op *op);
/* Moves the operation to the end of another queue. Its state stays. */
void verve_op_move(struct verve_op *op, struct verve_op_queue *queue);
/* Moves all operations of one queue to the end of another one, in this state. */
void verve_op_move_all(struct verve_op_queue *to, struct verve_op_queue *from,
		       enum verve_op_state state);
/* Gives the operation an id for the wire, unless it has one. -FI_ENOMEM. */
int verve_op_name(struct verve_xport *xport, struct verve_op *op);
/*
 * The operation of this id, if it is in state AWAIT and waits for this peer. NULL: there is none;
 * xport->count.stale counts the answer.
 */
struct verve_op *verve_op_find_awaiting(struct verve_xport *xport, const struct verve_peer *peer,
					uint32_t id);

#endif
