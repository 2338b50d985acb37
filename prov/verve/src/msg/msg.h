/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages: what the message protocols of one endpoint, or of a shared receive context, have in
 * common: the posted receives, and the messages that wait for a receive. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_MSG_MSG_H
#define VERVE_MSG_MSG_H

#include <stdbool.h>
#include <sys/queue.h>

#include "msg/match.h"
#include "xport/xport.h"

struct verve_unexpected;

LIST_HEAD(verve_claim_list, verve_unexpected);

/*
 * A transport that carries messages. The tables of a transport that has a shared receive context
 * stay empty: the context's tables are used.
 */
struct verve_msg {
	struct verve_xport xport; /* first: verve_msg_of casts a transport to its verve_msg */
	struct verve_match match[2]; /* untagged, tagged: index by VERVE_OP_TAGGED set or not */
	bool starved; /* no memory: messages wait although a posted receive matches them */
	struct verve_claim_list claimed; /* messages that FI_CLAIM took out of the tables */
};

/* The verve_msg whose tables the transport uses: its own, or its shared receive context's. */
static inline struct verve_msg *verve_msg_of(struct verve_xport *xport)
{
	return (struct verve_msg *)xport->home;
}

static inline struct verve_match *verve_msg_match_of(struct verve_xport *xport, bool tagged)
{
	return &verve_msg_of(xport)->match[tagged];
}

/*
 * These open and close the tables only; proto/proto.c opens and closes the transport. 0 or
 * -FI_ENOMEM. The caller has emptied the tables with verve_recv_cancel_all before fini.
 */
int verve_msg_init(struct verve_msg *msg);
void verve_msg_fini(struct verve_msg *msg);

#endif
