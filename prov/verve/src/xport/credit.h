/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits: each eager message that is not small costs its sender one credit, so that a receiver
 * never buffers more messages of a peer than attr.window. Credits go back in the header of any
 * packet, or in a CREDIT packet. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_CREDIT_H
#define VERVE_XPORT_CREDIT_H

#include <stdint.h>

struct verve_link;
struct verve_wire_packet;
struct verve_xport;

/*
 * An eager message of len bytes that arrived over the link of this id was consumed: the peer gets
 * its credit back, if the message cost one. Harmless if the link is gone. May break the link.
 */
void verve_credit_return(struct verve_xport *xport, uint32_t link_id, uint64_t len);
/* CREDIT has arrived. Does nothing: the dispatcher counts the credits of every packet. */
void verve_credit_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);

#endif
