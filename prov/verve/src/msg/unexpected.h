/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unexpected messages: a message that found no receive waits in a match table or, once claimed, in
 * verve_msg.claimed. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_UNEXPECTED_H
#define VERVE_MSG_UNEXPECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "msg/match.h"
#include "xport/peer.h"
#include "xport/wire.h"

/* In link->offers, a uthash by id: the sender of a message waits for a FIN. */
struct verve_offer {
	UT_hash_handle hh;
	uint32_t id; /* the sender's operation */
	bool is_listed; /* the link is not broken */
};

/* A message that waits for a receive. */
struct verve_unexpected {
	struct verve_match_msg match;
	LIST_ENTRY(verve_unexpected) claims; /* in verve_msg.claimed, once claimed */
	struct verve_offer offer;
	bool claimed;
	void *claim_context; /* if claimed: the context of the FI_PEEK that claimed the message */
	struct verve_xport *xport; /* transport that the message came to */
	struct verve_peer *peer;
	uint32_t link_id; /* of the link that the message came over: verve_unexpected_link */
	uint64_t link_serial;
	struct verve_wire_packet packet;
	unsigned char payload[]; /* of an eager message: a copy */
};

static inline struct verve_unexpected *verve_unexpected_of(struct verve_match_msg *msg)
{
	return (struct verve_unexpected *)((char *)msg -
					    offsetof(struct verve_unexpected, match));
}

/*
 * The link that the message came over. NULL: it has ended, or is broken. Eager messages outlive
 * their links, whose ids other links get then.
 */
struct verve_link *verve_unexpected_link(const struct verve_unexpected *unexpected);

/*
 * Keeps a message that came over the link, with a copy of its payload. Not kept: -FI_ENOMEM; or
 * -FI_EINVAL: the peer has named another message that waits alike, as no honest peer does.
 */
int verve_unexpected_keep(struct verve_xport *xport, struct verve_link *link,
			  const struct verve_wire_packet *packet);
/*
 * The caller has taken the message out of its table or of verve_msg.claimed, to receive it or to
 * throw it away: verve_unexpected_forget leaves it alone from here on. Harmless if repeated.
 */
void verve_unexpected_take(struct verve_unexpected *unexpected);
/*
 * The message, which the caller has taken, is consumed: its sender gets back what it cost. Harmless
 * if the link is gone. May break the link.
 */
void verve_unexpected_pay_back(const struct verve_unexpected *unexpected);
/* Frees the message, which the caller has taken out of its table or of verve_msg.claimed. */
void verve_unexpected_free(struct verve_unexpected *unexpected);

/*
 * First step of throwing a message away, which may fail. *fin becomes the operation that sends the
 * FIN with this status (positive FI errno or 0); NULL: the sender waits for no FIN, or its link has
 * ended. -FI_EAGAIN: no memory.
 */
int verve_unexpected_prepare_discard(const struct verve_unexpected *unexpected, uint32_t status,
				     struct verve_op **fin);
/*
 * Second step: sends fin, pays the message back, and frees the message. The caller has taken
 * the message out of its table or of verve_msg.claimed.
 */
void verve_unexpected_discard(struct verve_unexpected *unexpected, struct verve_op *fin);

/* The link breaks: frees the messages in the tables whose bytes would come over it (RTS). */
void verve_unexpected_forget(struct verve_xport *xport, struct verve_link *link);
/* Frees all messages that came to the transport, in the tables and claimed. */
void verve_unexpected_forget_all(struct verve_xport *xport);
/* Calls verve_peer_need for the sender of each message. */
void verve_unexpected_need_peers(struct verve_xport *xport);

/* WITHDRAW has arrived: the peer takes a message back, which may still wait here. */
void verve_unexpected_withdrawn(struct verve_xport *xport, struct verve_link *link,
				struct verve_wire_packet *packet);

#endif
