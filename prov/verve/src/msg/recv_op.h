/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive: the operation, from the posted receive to its completion and the FIN. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_MSG_RECV_OP_H
#define VERVE_MSG_RECV_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "msg/fin.h"
#include "msg/match.h"
#include "xport/memory.h"
#include "xport/op.h"
#include "xport/transfer.h"

/*
 * A receive, in the order of its life. Posting a receive writes four cache lines: the operation,
 * its node in the match table, its memory. The fields of the message are written when the message
 * comes.
 */
struct verve_recv_op {
	struct verve_op op;
	struct verve_match_recv match; /* while POSTED */
	struct verve_memory memory;
	/* Undefined before verve_recv_begin. */
	struct verve_fin fin;	/* sent when the receive ends; id 0: the sender wants no FIN */
	uint64_t tag, data, src; /* of the message; src: fi_addr_t */
	uint64_t msg_len;	/* bytes of the message, which may be longer than the buffer */
	uint64_t asked;		/* pulled message: offset up to which PULL has asked for bytes */
	struct verve_recv_op *parent; /* multi-receive buffer of the message; NULL: none */
	size_t used;		/* multi-receive buffer: bytes that messages have taken */
	/* the connection with whose queue pair the message's keys end; 0: they do not */
	uint32_t bound_to;
	uint32_t children;	/* multi-receive buffer: messages still being placed */
	bool spent;		/* multi-receive buffer: takes no more messages */
	/* reads no more: when its reads have ended, it fails (op.error), or is pulled */
	bool stopped;
	struct verve_transfer transfer; /* undefined before a rendezvous is accepted */
};

static inline struct verve_recv_op *verve_recv_op_of(struct verve_op *op)
{
	return (struct verve_recv_op *)op;
}

static inline struct verve_recv_op *verve_recv_op_of_match(struct verve_match_recv *match)
{
	return (struct verve_recv_op *)((char *)match - offsetof(struct verve_recv_op, match));
}

/*
 * The receive is about to take a message, or to end without one: clears the fields of the message.
 * A multi-receive buffer begins when it is posted. tag: the receive's own, until a message brings
 * its tag.
 */
static inline void verve_recv_begin(struct verve_recv_op *recv, uint64_t tag)
{
	memset(&recv->fin, 0,
	       offsetof(struct verve_recv_op, transfer) - offsetof(struct verve_recv_op, fin));
	recv->tag = tag;
}

/*
 * Ends the receive. error: positive FI errno, and reason says why; 0: the message is in the buffer.
 * Reports the completion or the error, sends the FIN if the sender waits for one, and frees the
 * receive. Do not touch the receive afterwards.
 */
void verve_recv_finish(struct verve_xport *xport, struct verve_recv_op *recv, int error,
		       const char *reason);

/* Receives from one peer that have an id at a time, at most: all peers share the ids. */
enum { VERVE_RECV_NAMED = 256 };

/*
 * Gives the receive, which has a peer, an id for the wire, unless it has one. -FI_EAGAIN: as many
 * of the peer have one as may, or there is no memory.
 */
int verve_recv_name(struct verve_xport *xport, struct verve_recv_op *recv);

/* The functions of verve_recv_class (msg/recv.c); xport/op.h describes each. */
enum verve_outcome verve_recv_answer(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op);
void verve_recv_fail(struct verve_xport *xport, struct verve_op *op, const char *reason);
void verve_recv_describe(struct verve_xport *xport, struct verve_op *op, struct verve_comp *comp);
void verve_recv_release(struct verve_xport *xport, struct verve_op *op);
void verve_recv_blame(const struct verve_op *op, struct verve_comp_error *entry,
		      const char **reason);

#endif
