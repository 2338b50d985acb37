/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slot: what an outstanding work request holds, and what it would be posted again from on another queue
 * pair (xport/replay.h).
 */
#ifndef VERVE_XPORT_SLOT_H
#define VERVE_XPORT_SLOT_H

#include <stdbool.h>
#include <stdint.h>

struct verve_op;
struct verve_slab;

enum verve_slot_kind {
	VERVE_SLOT_NOTHING, /* it moves nothing: only its end counts */
	VERVE_SLOT_SLAB,    /* a packet in a slab */
	VERVE_SLOT_COPY,    /* a packet that was posted inline, in the link's copies */
	VERVE_SLOT_MEMORY,  /* a part of its operation's transfer */
};

struct verve_slot {
	struct verve_op *op; /* whose it is; NULL: nobody's */
	union {
		struct verve_slab *slab; /* NOTHING, SLAB: goes back; NULL: none */
		uint64_t copied;	 /* COPY: the link's, behind it */
		uint64_t offset;	 /* MEMORY: bytes into the transfer */
	};
	uint64_t remote_addr; /* MEMORY */
	uint32_t rkey;	      /* MEMORY */
	uint32_t length;      /* bytes */
	uint8_t kind;	      /* enum verve_slot_kind */
	uint8_t verb;	      /* MEMORY: enum verve_net_wr_op */
	uint8_t at;	      /* SLAB: where the packet begins */
	bool tell;	      /* op hears of its end */
	bool has_slab;	      /* counted in the link's slabs */
};

#endif
