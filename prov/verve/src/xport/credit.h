/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits: they bound what a receiver keeps for a peer. An eager message costs its sender one
 * credit; VERVE_WIRE_SMALL_GROUP small ones cost one together: each of them leaves only while
 * a credit is there, and the last one spends it. The receiver has attr.window credits out, and
 * gives one back for each message, or group of small ones, that was consumed: in the header of any
 * packet, or in a CREDIT packet. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_CREDIT_H
#define VERVE_XPORT_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/link.h"
#include "xport/packet.h"
#include "xport/xport.h"

/* This side sends an eager message of len bytes. link->credits must not be 0. */
static inline void verve_credit_spend(struct verve_link *link, uint64_t len)
{
	if (verve_wire_costs_credit(len) || !(++link->small_sent % VERVE_WIRE_SMALL_GROUP))
		link->credits--;
}

/*
 * An eager message of len bytes has arrived. False: the peer has spent a credit that it cannot have
 * (held + owed credits were not sent back to it, and never were there more than the window).
 */
static inline bool verve_credit_arrive(const struct verve_xport *xport, struct verve_link *link,
				       uint64_t len)
{
	if (!verve_wire_costs_credit(len) && ++link->small_arrived % VERVE_WIRE_SMALL_GROUP)
		return true;
	if (link->held + link->owed >= xport->attr.window)
		return false;
	link->held++;
	return true;
}

/* True if the eager message of len bytes that arrived last was small, and the last of its group. */
static inline bool verve_credit_ends_group(const struct verve_link *link, uint64_t len)
{
	return !verve_wire_costs_credit(len) && !(link->small_arrived % VERVE_WIRE_SMALL_GROUP);
}

/*
 * An eager message that arrived over the link of this id, and that cost a credit, was consumed: the
 * peer gets the credit back. Harmless if the link is gone. May break the link.
 */
void verve_credit_give_back(struct verve_xport *xport, uint32_t link_id);

/* The same for an eager message of len bytes; does nothing for a small one. */
static inline void verve_credit_return(struct verve_xport *xport, uint32_t link_id, uint64_t len)
{
	if (verve_wire_costs_credit(len))
		verve_credit_give_back(xport, link_id);
}

/*
 * Small messages were consumed, of which so many (0 or 1) had waited for a receive: the peer gets
 * back what they cost. Called for each one that had waited, and for the last one of a group.
 * Harmless if the link is gone. May break the link.
 */
void verve_credit_return_small(struct verve_xport *xport, uint32_t link_id, uint32_t waited);

/* CREDIT has arrived. Does nothing: the dispatcher counts the credits of every packet. */
void verve_credit_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);

#endif
