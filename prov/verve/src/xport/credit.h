/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits: they bound the payload that a receiver keeps for a peer. The receiver has attr.window
 * credits out. Each buys eager messages that weigh VERVE_WIRE_WEIGHT together, as one of the eager
 * size does. Shorter messages weigh less, in proportion, so that a credit never buys more payload
 * than the eager size. Small ones weigh 1, though so many of them may be more: programs send many
 * before anybody receives them (doc/decisions.md).
 *
 * A message leaves only while a credit is there; the message that completes a credit's weight
 * spends the credit. So a peer has less than a credit more at the receiver than its window. The
 * receiver gives a credit back for each VERVE_WIRE_WEIGHT that was consumed: in the header of any
 * packet, or in a CREDIT packet. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_CREDIT_H
#define VERVE_XPORT_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/link.h"
#include "xport/packet.h"
#include "xport/xport.h"

/* What a byte of a message weighs on a link of this eager size, for link->byte_weight. */
static inline uint64_t verve_credit_byte_weight(uint32_t eager_size)
{
	/* Of eager size 0 no message has a byte. */
	return eager_size ? ((uint64_t)VERVE_WIRE_WEIGHT << 32) / eager_size : 0;
}

/*
 * What an eager message of len bytes weighs: 1 to VERVE_WIRE_WEIGHT. Both sides get the same,
 * because both use the smaller one of their eager sizes.
 */
static inline uint64_t verve_credit_weight(const struct verve_link *link, uint64_t len)
{
	uint64_t weight;

	if (len <= VERVE_WIRE_SMALL)
		return 1;
	weight = 1 + (len * link->byte_weight >> 32);
	return weight < VERVE_WIRE_WEIGHT ? weight : VERVE_WIRE_WEIGHT;
}

/* Credits that messages of this weight cost. */
static inline uint32_t verve_credit_price(const struct verve_link *link, uint64_t weight)
{
	return (link->weight_sent + weight) / VERVE_WIRE_WEIGHT -
	       link->weight_sent / VERVE_WIRE_WEIGHT;
}

/* True if one more message may leave behind messages of this weight, which are not spent yet. */
static inline bool verve_credit_is_left(const struct verve_link *link, uint64_t weight)
{
	return link->credits > verve_credit_price(link, weight);
}

/* Eager messages of this weight leave. Before the last of them, there was a credit. */
static inline void verve_credit_spend(struct verve_link *link, uint64_t weight)
{
	link->credits -= verve_credit_price(link, weight);
	link->weight_sent += weight;
}

/* The same for one message of len bytes. */
static inline void verve_credit_spend_message(struct verve_link *link, uint64_t len)
{
	verve_credit_spend(link, verve_credit_weight(link, len));
}

/*
 * An eager message of len bytes has arrived. False: the peer has spent a credit that it cannot have
 * (held + owed credits were not sent back to it, and never were there more than the window). It is
 * seen when the message completes a credit's weight.
 */
static inline bool verve_credit_arrive(const struct verve_xport *xport, struct verve_link *link,
				       uint64_t len)
{
	uint64_t arrived = link->weight_arrived + verve_credit_weight(link, len);
	bool complete = arrived / VERVE_WIRE_WEIGHT != link->weight_arrived / VERVE_WIRE_WEIGHT;

	if (complete && link->held + link->owed >= xport->attr.window)
		return false;
	link->weight_arrived = arrived;
	link->held += complete;
	return true;
}

/* The eager message of len bytes that has arrived waits for a receive. */
static inline void verve_credit_keep(struct verve_link *link, uint64_t len)
{
	link->weight_kept += verve_credit_weight(link, len);
	link->long_kept += len > VERVE_WIRE_SMALL;
}

/* The eager message of len bytes waits no more. */
static inline void verve_credit_let_go(struct verve_link *link, uint64_t len)
{
	link->weight_kept -= verve_credit_weight(link, len);
	link->long_kept -= len > VERVE_WIRE_SMALL;
}

/*
 * For verve_credit_settle alone: a credit becomes owed. Does nothing if the link is broken. May
 * break the link.
 */
void verve_credit_give_back(struct verve_xport *xport, struct verve_link *link);

/*
 * A message was consumed: weight_kept is what still waits. The peer gets back the credit whose
 * weight is consumed now; no message weighs more than one. May break the link.
 */
static inline void verve_credit_settle(struct verve_xport *xport, struct verve_link *link)
{
	uint64_t due = (link->weight_arrived - link->weight_kept) / VERVE_WIRE_WEIGHT;

	if (due != link->returned)
		verve_credit_give_back(xport, link);
}

/* CREDIT has arrived. Does nothing: the dispatcher counts the credits of every packet. */
void verve_credit_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);

#endif
