/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unexpected messages: those that found no receive wait in the match tables, or in the list of claimed ones. The engine's
 * lock protects everything here.
 */
#ifndef VERVE_MSG_UNEXPECTED_H
#define VERVE_MSG_UNEXPECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "msg/match.h"
#include "xport/peer.h"
#include "xport/wire.h"

/* A message without a receive; an eager one's payload is copied behind it. */
struct verve_unexpected {
	struct verve_match_msg match;
	LIST_ENTRY(verve_unexpected) claims; /* in the msg's claimed ones, once claimed */
	struct verve_offer offer; /* in peer->offers, if its sender waits for a FIN */
	bool claimed;
	void *claim_context;
	struct verve_xport *xport; /* that it came to */
	struct verve_peer *peer;
	uint32_t link_id; /* of the link that it came over: its id in xport->link_ids */
	struct verve_wire_packet packet;
	unsigned char payload[];
};

static inline struct verve_unexpected *verve_unexpected_of(struct verve_match_msg *msg)
{
	return (struct verve_unexpected *) ((char *) msg - offsetof(struct verve_unexpected, match));
}

/* Keeps a message that has come over the link, and copies its payload. -FI_ENOMEM. */
int verve_unexpected_keep(struct verve_xport *xport, struct verve_link *link,
			  const struct verve_wire_packet *packet);
/* Out of its table, or of the claimed ones, already. */
void verve_unexpected_free(struct verve_unexpected *unexpected);

/* Throwing one away, in two steps: *fin is what its sender waits for, NULL: nothing. -FI_EAGAIN: no memory. */
int verve_unexpected_prepare_discard(const struct verve_unexpected *unexpected, uint32_t status,
				     struct verve_op **fin);
/* The message is out of its table, or of the claimed ones, already. */
void verve_unexpected_discard(struct verve_unexpected *unexpected, struct verve_op *fin);

/* Forgets the messages that must be fetched over the link, because it breaks. */
void verve_unexpected_forget(struct verve_xport *xport, const struct verve_link *link);
/* Forgets all messages that came to the transport. */
void verve_unexpected_forget_all(struct verve_xport *xport);
/* verve_peer_need for senders. */
void verve_unexpected_need_peers(struct verve_xport *xport);

/* The peer takes a message back that may wait here: WITHDRAW. */
void verve_unexpected_withdrawn(struct verve_xport *xport, struct verve_link *link,
				struct verve_wire_packet *packet);

#endif
