/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operation: a node's request to the provider, and its fate. sim_traffic.c and its neighbours start
 * operations, sim_check.c ends them.
 */
#ifndef VERVE_TEST_SIM_OP_H
#define VERVE_TEST_SIM_OP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "sim_buffer.h"

struct sim;
struct sim_node;

#define SIM_OP_MAGIC 0x766572766573696dull

enum sim_kind { SIM_SEND, SIM_RECV, SIM_WRITE, SIM_READ, SIM_PEEK, SIM_ATOMIC };

/* An accepted operation. Its address is the context; the provider must not write there. */
struct sim_op {
	uint64_t magic[2]; /* SIM_OP_MAGIC, unless the provider writes to the context */
	TAILQ_ENTRY(sim_op) link;     /* peer->inbound: a message that was not received yet */
	TAILQ_ENTRY(sim_op) delivery; /* sim->delivered */
	enum sim_kind kind;
	struct sim_node *node; /* that started it */
	struct sim_node *peer; /* NULL: from any */
	uint32_t from, to;     /* members: of the sender, of the target */
	uint64_t id;
	bool tagged;
	uint64_t tag, ignore;
	bool has_data;
	uint64_t data;
	size_t len;
	struct sim_buffer buf;
	bool cancelled; /* fi_cancel was called for it */
	bool entry; /* the completion queue will tell of its end */
	bool done, over;
	bool may_fail;	/* the peer was not there, or dies */
	int error;	/* positive FI errno */
	uint64_t order; /* number of its acceptance in the run */
	/* send: */
	bool delivery_complete;
	bool received; /* taken, or thrown away */
	bool guessed;  /* taken without its id; then also: */
	bool named;    /* the completion named its sender */
	size_t shown;  /* bytes that the receive got */
	bool stray;    /* in peer->strays */
	bool withdrawn; /* cancelled in time */
	struct sim_op *taken_by;
	uint64_t taken_offset; /* multi-receive: where */
	uint64_t taken_order;  /* of the receive, claim or discard that took it */
	/* receive: */
	bool multi, sweep;
	size_t used;			/* multi-receive: bytes that messages took */
	/* the message that the peek found, which is to be claimed */
	uint64_t claim_tag, claim_data;
	size_t claim_len;
	bool claimed;
	/* RMA: */
	uint8_t *slice; /* the peer's memory */
	bool refused;	/* with a key or a range that is none of the peer's */
	/* RMA to regions that close (sim_region.c): */
	uint8_t *first;	 /* contents of the slice at the start */
	/* contents of the slice without the operation's effect; NULL: no region closes */
	uint8_t *before;
	uint8_t first_stamp;
	bool exposed;	 /* the region that it was started for is closed */
	bool may_miss;	 /* FI_EACCES is a right end */
	bool may_repeat; /* in a later one, under the same key, all of it */
	bool landed;	 /* some of it is in the slice, or was when the region closed */
	bool whole;	 /* all of it is in the slice */
	/* peek: */
	uint64_t peek_flags;
	/* atomic: */
	bool fetch;	     /* something comes back */
	bool swap;	     /* compare and swap in a word of its own; else a sum */
	uint32_t word;	     /* of the peer */
	uint64_t operand[2]; /* as struct sim_word; swap: compare, then its id */
	uint64_t result[2];
};

TAILQ_HEAD(sim_op_queue, sim_op);

/* sim_traffic.c, sim_receive.c, sim_rma.c: each starts one operation of its kind if it can. */

void sim_start_send(struct sim_node *node);
void sim_start_rma(struct sim_node *node);
/* An operation that the peer's device refuses as a whole, or at its end. */
void sim_start_refused(struct sim_node *node);
void sim_start_atomic(struct sim_node *node);
void sim_start_recv(struct sim_node *node);
/* A receive that takes anything. */
void sim_start_sweep(struct sim_node *node, bool tagged);
void sim_start_peek(struct sim_node *node);
void sim_cancel_some(struct sim_node *node);
void sim_op_free(struct sim_op *op);

/* The second half of a claim, if there is one to do. */
void sim_start_claim(struct sim_node *node);

/* sim_region.c: it starts, in its slice. */
void sim_region_use(struct sim_op *op);
/* The operation ends, with success or a positive FI errno. */
void sim_region_check(struct sim_op *op, int error);

/* sim_check.c, sim_end.c */

/* Reads up to max completions of each queue. Returns how many there were. */
uint32_t sim_progress(struct sim_node *node, uint32_t max);
bool sim_op_takes(const struct sim_op *recv, const struct sim_op *send);
/* The node's receives that wait will get no message. */
void sim_forget_receives(struct sim_node *node);
/* The node's endpoints are closed and its queues read: operations without a completion get none. */
void sim_drop_all(struct sim_node *node);
/* True if the node's counters have counted all operations that complete without an entry. */
bool sim_is_counted(struct sim_node *node);
/* When all is done: everything completed, nothing overtaken, counters right. */
void sim_check_end(struct sim *sim);
/* Checks that each message whose send is delivery complete has arrived. */
void sim_check_delivered(struct sim *sim);
/* True if the operation has no more effect at either end. A silent read is over at once. */
bool sim_is_over(struct sim_op *op);
/* True if the message may be lost: its send has failed, or failed without a completion. */
bool sim_may_be_lost(const struct sim_op *op);
/*
 * True if the message that the peek found may be gone before the application reads of it, because
 * its sender took it back.
 */
bool sim_may_be_gone(const struct sim_op *send, const struct sim_op *peek);

#endif
