/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Dispatching: takes packets off the device, hands each packet to the handler of its type
 * (xport->protocols), and posts its buffer again. Packets are handled in the order in which they
 * arrived, wherever the poll is called from. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_DISPATCH_H
#define VERVE_XPORT_DISPATCH_H

#include <stdbool.h>

#include "comp/comp_queue.h"
#include "xport/xport.h"

enum verve_dispatch_result {
	VERVE_DISPATCH_NONE, /* no packet has arrived */
	VERVE_DISPATCH_SOME, /* some packets were handled */
	/*
	 * No link has the next packet's connection id, but an event of the manager may bring it:
	 * the caller calls verve_cm_events_step first.
	 */
	VERVE_DISPATCH_STALLED,
};

/*
 * Allocates the first receive buffers, and posts them; verve_xport_fini frees them. -FI_ENOMEM, or
 * the device's error.
 */
int verve_dispatch_open(struct verve_xport *xport);

/* Posts all free buffers. The device's error: a later turn posts the rest. */
int verve_dispatch_refill(struct verve_xport *xport);

/*
 * True if the receive completion queue holds so many completions of peers' writes, beyond its ring,
 * that no more packets are to be taken (VERVE_COMP_UNINVITED).
 */
static inline bool verve_dispatch_is_flooded(const struct verve_xport *xport)
{
	const struct verve_comp_queue *queue = xport->attr.sink.rx_queue;

	return queue && verve_comp_queue_is_flooded(queue);
}

/*
 * For verve_dispatch_poll alone: polls what waits (false: nothing does); handles a part of it. Not
 * from within a packet's handler.
 */
bool verve_dispatch_fill(struct verve_xport *xport);
enum verve_dispatch_result verve_dispatch_handle(struct verve_xport *xport);
/*
 * Handles some of the packets that have arrived, VERVE_POLL_BATCH at most: others, and threads that
 * wait for the lock, get their turn meanwhile.
 */
static inline enum verve_dispatch_result verve_dispatch_poll(struct verve_xport *xport)
{
	if (xport->batch.at == xport->batch.count && !verve_dispatch_fill(xport))
		return VERVE_DISPATCH_NONE;
	return verve_dispatch_handle(xport);
}

/*
 * Handles all packets that have arrived by now: about xport->rx_count at most, however many more
 * arrive meanwhile. False: stalled, and packets are left; the caller tries again in a later turn,
 * or uses verve_cm_events_drain.
 */
bool verve_dispatch_drain(struct verve_xport *xport);

#endif
