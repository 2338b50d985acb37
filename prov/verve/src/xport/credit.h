/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits: each eager message that is not small costs its sender one, so that a receiver never buffers more than its
 * window for a peer. They go back in the header of any packet, or in a packet of their own. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_XPORT_CREDIT_H
#define VERVE_XPORT_CREDIT_H

#include <stdint.h>

struct verve_link;
struct verve_wire_packet;
struct verve_xport;

/* A message of so many bytes that came over the link of this id was consumed; the link may be gone. */
void verve_credit_return(struct verve_xport *xport, uint32_t link_id, uint64_t len);
/* CREDIT has arrived: nothing is left to do, because every packet's credits are counted already. */
void verve_credit_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);

#endif
