/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving: arrived packets, posted receives, what nobody asked for yet. */
#ifndef VERVE_PROTO_RECV_H
#define VERVE_PROTO_RECV_H

#include "proto/op.h"
#include "proto/xport.h"

/* A message without a receive; an eager one's payload is copied behind it. */
struct verve_unexpected {
	struct verve_match_msg match;
	LIST_ENTRY(verve_unexpected) claims; /* in xport->rx->claimed, once claimed */
	TAILQ_ENTRY(verve_unexpected) offer; /* in peer->offers, if its sender waits for a FIN */
	bool claimed;
	void *claim_context;
	struct verve_xport *xport; /* that it came to */
	struct verve_peer *peer;
	uint32_t link_id; /* of the link that it came over: its id in xport->link_ids */
	struct verve_wire_packet packet;
	unsigned char payload[];
};

/*
 * Accepts a receive; addr UINT64_MAX takes from anyone. 0: it will complete once.
 * -FI_EAGAIN: no memory; -FI_EINVAL: no such address.
 */
int verve_recv(struct verve_xport *xport, const struct verve_request *request);

/* The completion queue holds VERVE_COMP_UNINVITED completions of peers' writes that did not fit into its ring. */
bool verve_recv_is_flooded(const struct verve_xport *xport);
/* One batch of arrived packets. True: there was any. None is taken while the completion queue is flooded. */
bool verve_recv_poll(struct verve_xport *xport);
/*
 * All packets that have arrived by now, flooded or not, and at most attr.rx_buffers in all, however many more come
 * meanwhile.
 */
void verve_recv_drain(struct verve_xport *xport);
/* Gives consumed buffers back to the device; force: even a few. 0, or the device's error: some are left. */
int verve_recv_refill(struct verve_xport *xport, bool force);

/*
 * Multi-receive buffers take what waits for them; for rx->starved. False: there is still no memory. Until then
 * nothing is received past them.
 */
bool verve_recv_feed(struct verve_xport *xport);

/* The receive has its data, or its error: reports, and sends the FIN if one is due. */
void verve_recv_finish(struct verve_xport *xport, struct verve_op *op, int error, const char *reason);

/* The operation of ours that the packet answers; NULL: none waits for an answer over this link. */
struct verve_op *verve_recv_find_awaiting(struct verve_xport *xport, const struct verve_link *link,
					  const struct verve_wire_packet *packet);

/* For peek.c: */

/* Out of its table, or of the claimed ones, already. */
void verve_recv_free_unexpected(struct verve_unexpected *unexpected);
/* op takes a message that waited; the message is out of its table and is freed. */
void verve_recv_consume(struct verve_op *op, struct verve_unexpected *unexpected);
/* The link that a message came over, if it can still be answered; NULL: it is gone. */
struct verve_link *verve_recv_live_link(struct verve_xport *xport, uint32_t link_id);
/* An eager message of len bytes that came over the link has been consumed. */
void verve_recv_return_credit(struct verve_xport *xport, uint32_t link_id, uint64_t len);

static inline struct verve_op *verve_recv_op_of(struct verve_match_recv *recv)
{
	return (struct verve_op *) ((char *) recv - offsetof(struct verve_op, recv.match));
}

static inline struct verve_unexpected *verve_unexpected_of(struct verve_match_msg *msg)
{
	return (struct verve_unexpected *) ((char *) msg - offsetof(struct verve_unexpected, match));
}

static inline struct verve_match *verve_recv_match_of(struct verve_xport *xport, bool tagged)
{
	return &xport->rx->match[tagged];
}

#endif
