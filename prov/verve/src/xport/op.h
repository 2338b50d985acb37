/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operation: one accepted request of the application, or one packet that we owe a peer, from start to end.
 *
 * struct verve_op is the part that all operations have. Each protocol embeds it, first, in a struct of its own
 * and describes its kind of operation with one struct verve_op_class; nothing here knows which kinds there are.
 * verve_op_set_state is the only writer of the state and checks that the step is legal. xport/report.h gives the
 * operation's one completion.
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_OP_H
#define VERVE_XPORT_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_comp;
struct verve_comp_error;
struct verve_link;
struct verve_op;
struct verve_peer;
struct verve_xport;

enum verve_op_state {
	VERVE_OP_NEW,	 /* being filled in */
	VERVE_OP_QUEUED, /* in peer->pending, or peer->reads: not yet, or not all, on the wire */
	VERVE_OP_SENT,	 /* in peer->active: on the wire, its last work request is to complete */
	VERVE_OP_AWAIT,	 /* in peer->active: the peer is to answer */
	VERVE_OP_POSTED, /* a receive: in a match table */
	VERVE_OP_FINISH, /* in peer->control: a packet that the peer waits for is to be sent */
	VERVE_OP_DOOMED, /* in link->doomed: its link broke; it ends when the device has let go of it */
	VERVE_OP_STATES,
};

enum {
	/* What a request says. */
	VERVE_OP_NOTIFY = 1 << 0,   /* wants a completion entry; counters and errors always count */
	VERVE_OP_TAGGED = 1 << 1,
	VERVE_OP_DATA = 1 << 2,	    /* has remote CQ data */
	VERVE_OP_ACK = 1 << 3,	    /* delivery complete: the peer confirms */
	VERVE_OP_TRANSMIT = 1 << 4, /* transmit complete: not before the peer's device has it */
	VERVE_OP_INJECT = 1 << 5,   /* the buffer was the application's only during the call */
	VERVE_OP_MULTI = 1 << 6,    /* multi-receive buffer */
	VERVE_OP_FENCE = 1 << 7,    /* starts when everything before it has ended */
	/* What becomes of it. */
	VERVE_OP_TX = 1 << 8,	    /* counts against the transmit queue's size */
	VERVE_OP_REPORTED = 1 << 9, /* its completion has been given, or it has none */
	VERVE_OP_CANCELLED = 1 << 10, /* by the application; ends when peer and device let go of it */
	/* What a request says, again. */
	VERVE_OP_MATCH = 1 << 11, /* match complete; with ACK */
};

/* What came of trying to start an operation, or to send the packet that it owes. */
enum verve_outcome {
	VERVE_DONE,  /* it left its queue, or has sent a part and may be called again at once */
	VERVE_LATER, /* it is where it was: no room, no buffer, or an answer is missing */
	VERVE_BROKE, /* the link broke and took the operation along: do not touch either */
};

/* A kind of operation: a constant beside the protocol that has it. NULL: not for this kind. */
struct verve_op_class {
	const char *name; /* for the log */
	size_t size;	  /* bytes of the protocol's struct; no more than the largest of xport->ops */
	size_t cleared;	  /* verve_op_alloc zeroes so many bytes from the beginning */
	size_t memory_at; /* where its struct verve_memory lies (xport/memory.h); 0: it has none */
	size_t move_at;	  /* where its struct verve_transfer lies (xport/transfer.h); 0: it has none */
	uint64_t comp_flags; /* VERVE_COMP_* of its completion; MSG or TAGGED is added to a message's */
	size_t counter_at;   /* offset of its counter in struct verve_sink; 0: never reported */
	bool is_message;
	bool is_receive; /* completes in the receive queue; waits in peer->reads */
	bool is_fetch;	 /* brings back what was in the peer's memory, and only once */

	/* QUEUED, at the head of its queue; the link has room for one request at least. */
	enum verve_outcome (*start)(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op);
	/* FINISH, at the head of peer->control: sends the packet, takes it out and ends it. */
	enum verve_outcome (*answer)(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op);
	/*
	 * The work request that was posted with tell has ended well. May be called in state DOOMED.
	 */
	void (*done)(struct verve_xport *xport, struct verve_op *op);
	/*
	 * The operation has op->error, and nothing of it is posted any more: ends it. NULL:
	 * verve_op_fail. For replay only: a link that ends calls verve_op_fail for every class.
	 */
	void (*fail)(struct verve_xport *xport, struct verve_op *op, const char *reason);
	/* The application cancels it, QUEUED or active. 0, or -FI_EAGAIN: no memory. */
	int (*cancel)(struct verve_xport *xport, struct verve_op *op);
	/* Adds to a completion what only this kind knows. Called once, when the completion leaves. */
	void (*describe)(struct verve_xport *xport, struct verve_op *op, struct verve_comp *comp);
	/* The same for an error, after describe: may change what is reported, and why. */
	void (*blame)(const struct verve_op *op, struct verve_comp_error *entry, const char **reason);
	/* Gives back what it has besides its id and itself: its memory (verve_op_release_memory), and more. */
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
	uint32_t id;	 /* on the wire; 0: none */
	uint32_t status; /* ibv_wc_status of its error */
	int error;	 /* positive FI errno that it alone suffered; 0: none */
	uint16_t flags;	 /* VERVE_OP_NOTIFY ... */
	uint8_t state;	 /* enum verve_op_state */
};

/* In state NEW; what its class clears is zeroed. NULL: no memory, or (VERVE_OP_TX in flags) the queue is full. */
struct verve_op *verve_op_alloc(struct verve_xport *xport, const struct verve_op_class *cls,
				uint32_t flags);
/* Out of its queue; gives back what it has, and itself. Must have been reported, or never accepted. */
void verve_op_free(struct verve_xport *xport, struct verve_op *op);

/* The step must be legal. Moving the operation between queues is left to the caller. */
void verve_op_set_state(struct verve_op *op, enum verve_op_state state);
/* At the end of a queue, in this state; it must be in none. */
void verve_op_enqueue(struct verve_op *op, struct verve_op_queue *queue, enum verve_op_state state);
/* Out of its queue; harmless if it is in none. */
void verve_op_dequeue(struct verve_op *op);
/* All operations of one queue to the end of another one, in this state. */
void verve_op_move_all(struct verve_op_queue *to, struct verve_op_queue *from, enum verve_op_state state);
/* Gives it an id for the wire, unless it has one. -FI_ENOMEM. */
int verve_op_name(struct verve_xport *xport, struct verve_op *op);
/* The operation of ours that awaits this peer's answer, named by its id; NULL, and counted as stale: none does. */
struct verve_op *verve_op_find_awaiting(struct verve_xport *xport, const struct verve_peer *peer,
					uint32_t id);

#endif
