/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lost receives: a queue pair that ends in the middle of an incoming message has taken a buffer off the shared
 * receive queue, whose completion may never be seen: doc/receiving.md says why no event is waited for.
 *
 * A buffer that is posted begins with a mark that no peer can guess. One that has lost its mark, and did not
 * complete, was taken by a queue pair. It is in question until no queue pair can have it: until each that was open
 * when that was seen is closed, or has completed another receive since (a queue pair fills one after the other). If
 * so many are in question that receiving may stop, connections that say nothing are given other queue pairs
 * (proto/replay.h), and all is known.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_PROTO_LOST_H
#define VERVE_PROTO_LOST_H

#include <stdint.h>
#include <string.h>

#include "proto/slab.h"

struct verve_xport;

/* Where a receive buffer is. */
enum verve_lost_state {
	VERVE_LOST_HERE,   /* free, or being looked at */
	VERVE_LOST_POSTED, /* the device has it */
	VERVE_LOST_ASKED,  /* the same, and it is in question */
};

struct verve_lost {
	uint64_t mark;
	struct verve_slab **buffers; /* all of the transport's; NULL: none yet */
	uint32_t count;		     /* in question */
	uint32_t before; /* serial number: queue pairs opened from here on do not have them */
	uint32_t closed; /* queue pairs, when buffers were last looked at */
};

/* The transport has attr.rx_buffers buffers, all of them free. -FI_ENOMEM. */
int verve_lost_init(struct verve_xport *xport);
void verve_lost_fini(struct verve_xport *xport);

/* Before the buffer is posted. */
static inline void verve_lost_mark(const struct verve_lost *lost, struct verve_slab *slab)
{
	memcpy(slab->data, &lost->mark, sizeof(lost->mark));
}

/* Looks for lost buffers if queue pairs were closed since the last time. Not from inside other work on links. */
void verve_lost_step(struct verve_xport *xport);

#endif
