/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Dispatching: takes packets off the device and hands each to the handler of its type (xport->protocols). Packets are
 * handled in the order in which they arrived, whoever polls. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_DISPATCH_H
#define VERVE_XPORT_DISPATCH_H

#include <stdbool.h>

struct verve_xport;

enum verve_dispatch_result {
	VERVE_DISPATCH_NONE,    /* no packet has arrived */
	VERVE_DISPATCH_SOME,    /* a batch was handled */
	VERVE_DISPATCH_STALLED, /* the next packet's connection may be among the manager's events: handle those first */
};

/* Makes all receive buffers, and posts them; verve_xport_fini frees them. -FI_ENOMEM, or what the device said. */
int verve_dispatch_open(struct verve_xport *xport);
/* Posts every buffer that is free. Negative: what the device said; the rest is posted later. */
int verve_dispatch_refill(struct verve_xport *xport);

/* One batch of arrived packets. */
enum verve_dispatch_result verve_dispatch_poll(struct verve_xport *xport);
/*
 * All packets that have arrived by now: attr.rx_buffers at most, however many more come meanwhile. False: stalled, so
 * that some are left.
 */
bool verve_dispatch_drain(struct verve_xport *xport);

#endif
