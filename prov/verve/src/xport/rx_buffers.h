/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive buffers: attr.rx_first of them always; more, up to attr.rx_limit, while peers send faster
 * than this side handles packets. doc/links.md says why so many are enough, and why fewer are
 * faster.
 *
 * The device does not tell how many buffers it has left. But a poll tells how many packets wait,
 * because it asks for all. If these are more than half of the buffers, there are to be twice as
 * many buffers as packets; if more than three quarters, so many again, as packets may wait at the
 * senders, too. Each turn adds a step until then. That polls find packets one after the other says
 * nothing: peers that send without a pause cause it, too, while this side keeps up.
 *
 * The device gives no posted buffer back. So buffers leave as packets arrive in them: once half of
 * the buffers have been enough for a quiet time, those of the steps that are not needed are put
 * aside when they come back, and a step whose buffers are all there is freed, the newest first.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_RX_BUFFERS_H
#define VERVE_XPORT_RX_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/slab.h"
#include "xport/xport.h"

enum { VERVE_RX_STEP = 32 }; /* buffers that are added together */

/*
 * Allocates the first free buffers: attr.rx_first, and so many more that whole steps lead from
 * there to attr.rx_uncredited. verve_xport_fini frees all buffers, and the list of them.
 * -FI_ENOMEM, or the error of registering them.
 */
int verve_rx_buffers_open(struct verve_xport *xport);

/* Puts a receive buffer into the list of free buffers. No queue pair may have it. */
static inline void verve_rx_buffers_take_back(struct verve_xport *xport, struct verve_slab *slab)
{
	slab->lent = VERVE_RX_LOST_HERE;
	slab->next = xport->rx_free;
	xport->rx_free = slab;
	xport->rx_free_count++;
}

/* Buffers that the device has, or had before it filled them: not those that are put aside. */
static inline uint32_t verve_rx_buffers_in_use(const struct verve_xport *xport)
{
	return xport->rx_count - xport->rx_load.aside_count;
}

/*
 * The pool has more slabs, or could not have them (verve_slab_request): the free ones become free
 * buffers.
 */
void verve_rx_buffers_added(struct verve_xport *xport);
/* Ends shrinking: buffers that were put aside are free again. */
void verve_rx_buffers_stop_shrinking(struct verve_xport *xport);

/*
 * Many buffers are taken, but have no packet yet: adds a step, up to attr.rx_uncredited, now or
 * soon. False: no more, or not in this turn.
 */
bool verve_rx_buffers_reinforce(struct verve_xport *xport);

/*
 * Buffers that packets can wait in: those in use, but for those in question, of which some may have
 * completed since they were counted.
 */
static inline uint32_t verve_rx_buffers_usable(const struct verve_xport *xport)
{
	uint32_t in_use = verve_rx_buffers_in_use(xport);

	return in_use > xport->lost.count ? in_use - xport->lost.count : 0;
}

/* For the functions below alone: many packets wait; buffers are wanted. */
void verve_rx_buffers_judge(struct verve_xport *xport, uint32_t waiting);
void verve_rx_buffers_press(struct verve_xport *xport);

/* A poll has found so many packets, at least 1. */
static inline void verve_rx_buffers_count(struct verve_xport *xport, uint32_t count)
{
	/* Less than a batch shows too few buffers only where some are in question. */
	if (__builtin_expect(count >= xport->rx_batch || xport->lost.count, 0))
		verve_rx_buffers_judge(xport, count);
}

/* Called when some packets have been handled: adds buffers if there are too few. */
static inline void verve_rx_buffers_turn(struct verve_xport *xport)
{
	if (__builtin_expect(xport->rx_load.wanted, 0))
		verve_rx_buffers_press(xport);
}

/*
 * Called every attr.keepalive with the time in nanoseconds: begins to shrink after a quiet time,
 * and lets a refused step be tried again.
 */
void verve_rx_buffers_watch(struct verve_xport *xport, uint64_t now);
/* While rx_load.shrinking: puts free buffers of unneeded steps aside, and frees complete steps. */
void verve_rx_buffers_shrink(struct verve_xport *xport);

#endif
