/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA events: what a target is told behind a read or write, or sees by itself of an atomic: remote CQ data, and a count for
 * the regions touched (FI_RMA_EVENT). The engine's lock protects everything here.
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
 * A peer has read, or else written, the regions that the packet names (an RMA event, an atomic): one
 * for each region's counter, if the endpoint hears of RMA, and for the endpoint's.
 */
void verve_event_count(struct verve_xport *xport, const struct verve_wire_packet *packet, bool read);

/* WRITE_DATA has arrived. */
void verve_event_write_data(struct verve_xport *xport, struct verve_link *link,
			    struct verve_wire_packet *packet);
/* RMA_EVENT has arrived. */
void verve_event_receive(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet);

#endif
