/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits: each eager message that is not small costs its sender one credit, so that a receiver
 * never buffers more messages of a peer than attr.window. Credits go back in the header of any
 * packet, or in a CREDIT packet. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_CREDIT_H
#define VERVE_XPORT_CREDIT_H

#include <stdint.h>

#include "xport/wire.h"

struct verve_link;
struct verve_xport;

/*
 * An eager message that arrived over the link of this id, and that cost a credit, was consumed: the
 * peer gets the credit back. Harmless if the link is gone. May break the link.
 */
void verve_credit_give_back(struct verve_xport *xport, uint32_t link_id);

/* The same for an eager message of len bytes, which may have cost nothing. */
static inline void verve_credit_return(struct verve_xport *xport, uint32_t link_id, uint64_t len)
{
	if (verve_wire_costs_credit(len))
		verve_credit_give_back(xport, link_id);
}

/* CREDIT has arrived. Does nothing: the dispatcher counts the credits of every packet. */
void verve_credit_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);

#endif
