/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA events: a target hears of a peer's RMA by remote CQ data, and by counters of the endpoint and
 * of each region (FI_RMA_EVENT). For a read or write, the initiator sends a packet behind it. An
 * atomic by the processor needs no such packet: the target executes it itself. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_RMA_RMA_EVENT_H
#define VERVE_RMA_RMA_EVENT_H

#include <stdbool.h>

struct verve_link;
struct verve_transfer;
struct verve_wire_packet;
struct verve_xport;

/* Makes packet the RMA_EVENT of this transfer. read: the transfer is a read; false: a write. */
void verve_rma_event_describe(const struct verve_transfer *transfer, bool read,
			      struct verve_wire_packet *packet);
/*
 * Counts an operation of a peer on the regions that the packet names: adds one to the endpoint's
 * counter and, if the endpoint has FI_RMA_EVENT, to the counter of each region that grants peers
 * such an access. packet: RMA_EVENT or ATOMIC. read: count a read; false: a write.
 */
void verve_rma_event_count(struct verve_xport *xport, const struct verve_wire_packet *packet,
			   bool read);

/* WRITE_DATA has arrived. */
void verve_rma_event_write_data(struct verve_xport *xport, struct verve_link *link,
				struct verve_wire_packet *packet);
/* RMA_EVENT has arrived. No region counts if the named regions cannot hold the bytes. */
void verve_rma_event_receive(struct verve_xport *xport, struct verve_link *link,
			     struct verve_wire_packet *packet);

#endif
