/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages: what the message protocols of one endpoint, or of a shared receive context, have in common: the posted
 * receives, and the messages that wait for one. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_MSG_H
#define VERVE_MSG_MSG_H

#include <stdbool.h>
#include <sys/queue.h>

#include "msg/match.h"
#include "xport/xport.h"

struct verve_unexpected;

LIST_HEAD(verve_claim_list, verve_unexpected);

/* A transport that carries messages. The tables of one that takes its receives from a context stay empty. */
struct verve_msg {
	struct verve_xport xport; /* first: verve_msg_of finds the rest by it */
	struct verve_match match[2]; /* untagged, tagged: index by VERVE_OP_TAGGED set or not */
	bool starved; /* messages wait that a posted multi-receive buffer had no memory to take */
	struct verve_claim_list claimed;
};

/* Whose receives a transport takes: its own, or its shared receive context's. */
static inline struct verve_msg *verve_msg_of(struct verve_xport *xport)
{
	return (struct verve_msg *) xport->shared;
}

static inline struct verve_match *verve_msg_match_of(struct verve_xport *xport, bool tagged)
{
	return &verve_msg_of(xport)->match[tagged];
}

/* The tables alone; the transport is opened and closed by itself (proto/proto.h). 0 or -FI_ENOMEM. */
int verve_msg_init(struct verve_msg *msg);
void verve_msg_fini(struct verve_msg *msg);

#endif
