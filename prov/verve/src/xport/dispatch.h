/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Dispatching: takes packets off the device, hands each to the handler of its type
 * (xport->protocols), and gives its buffer back to the device. Packets are handled in the order in
 * which they arrived, whoever polls. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_DISPATCH_H
#define VERVE_XPORT_DISPATCH_H

#include <stdbool.h>

struct verve_xport;

enum verve_dispatch_result {
	VERVE_DISPATCH_NONE,    /* no packet has arrived */
	VERVE_DISPATCH_SOME,    /* a batch was handled */
	/*
	 * No link has the next packet's id, and the manager has events: call verve_events_step
	 * first.
	 */
	VERVE_DISPATCH_STALLED,
};

/* Makes all receive buffers, and posts them; verve_xport_fini frees them. -FI_ENOMEM, or what the device said. */
int verve_dispatch_open(struct verve_xport *xport);
/* Posts every buffer that is free. Negative: what the device said; the rest is posted later. */
int verve_dispatch_refill(struct verve_xport *xport);

/* One batch of arrived packets. */
enum verve_dispatch_result verve_dispatch_poll(struct verve_xport *xport);
/*
 * Handles all packets that have arrived by now: attr.rx_buffers at most, however many more come
 * meanwhile. False: stalled, and packets are left; the caller tries again in a later turn, or uses
 * verve_events_drain.
 */
bool verve_dispatch_drain(struct verve_xport *xport);

#endif
