/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA events: how a target hears of a peer's RMA: remote CQ data, and a count for each region
 * touched (FI_RMA_EVENT). The initiator tells of a read or write with a packet behind it; an atomic
 * by the processor needs no packet. The engine's lock protects everything here.
 */
#ifndef VERVE_RMA_EVENT_H
#define VERVE_RMA_EVENT_H

#include <stdbool.h>

struct verve_link;
struct verve_transfer;
struct verve_wire_packet;
struct verve_xport;

/* Makes packet an RMA_EVENT of this read, or else write. */
void verve_event_describe(const struct verve_transfer *transfer, bool read,
			  struct verve_wire_packet *packet);
/*
 * A peer has read, or else written, the regions that the packet names. Adds one to the endpoint's
 * counter and, if the endpoint hears of RMA, to that of each region that lets peers do so. packet: RMA_EVENT or ATOMIC.
 */
void verve_event_count(struct verve_xport *xport, const struct verve_wire_packet *packet, bool read);

/* WRITE_DATA has arrived. */
void verve_event_write_data(struct verve_xport *xport, struct verve_link *link,
			    struct verve_wire_packet *packet);
/* RMA_EVENT has arrived. */
void verve_event_receive(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet);

#endif
