/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slot: describes an outstanding work request: the memory that it holds, and all that is needed to
 * post it again on another queue pair (xport/replay.h). The engine's lock protects it.
 */
#ifndef VERVE_XPORT_SLOT_H
#define VERVE_XPORT_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "net/qp.h"

struct verve_op;
struct verve_slab;

enum verve_slot_kind {
	/* a write of no bytes, RESUME, or a request for a window: is not repeated as such */
	VERVE_SLOT_NOTHING,
	VERVE_SLOT_SLAB,    /* a packet in a slab */
	VERVE_SLOT_COPY,    /* a packet that was posted inline, and lies in link->copies */
	VERVE_SLOT_MEMORY,  /* a part of its operation's transfer */
	VERVE_SLOT_HEADED,  /* a packet: its header in a slab, its payload the operation's memory */
};

struct verve_slot {
	struct verve_op *op; /* the operation of the request; NULL: none */
	union {
		struct verve_slab *slab; /* others: freed when it retires; NULL: none */
		uint64_t copied;	 /* COPY: link->copied behind the packet */
		uint64_t offset;	 /* MEMORY: bytes into the transfer */
	};
	uint64_t remote_addr; /* MEMORY: of the peer */
	uint32_t rkey;	      /* MEMORY: of the peer */
	uint32_t length;      /* bytes of the packet, of the part, or of the header */
	uint8_t kind;	      /* enum verve_slot_kind */
	uint8_t verb;	      /* MEMORY, or of a window: enum verve_net_wr_op; else 0 */
	uint8_t at;	      /* SLAB, HEADED: bytes into the slab at which the packet begins */
	bool tell;	      /* the class's done is called when the request ended well */
	bool has_slab;	      /* counted in link->slabs */
	bool asks;	      /* asks for a completion: counted in xport->asked */
	bool shares;	      /* tells, but does not ask: counted in link->sharing */
};

/* True for a request by which the peer gets a receive: both sides count it as a packet. */
static inline bool verve_slot_is_received(const struct verve_slot *slot)
{
	return slot->kind == VERVE_SLOT_SLAB || slot->kind == VERVE_SLOT_HEADED ||
	       slot->kind == VERVE_SLOT_COPY ||
	       (slot->kind == VERVE_SLOT_MEMORY && slot->verb == VERVE_NET_WRITE_IMM);
}

/* True if the packet, or its header, lies in a slab. */
static inline bool verve_slot_is_in_slab(const struct verve_slot *slot)
{
	return slot->kind == VERVE_SLOT_SLAB || slot->kind == VERVE_SLOT_HEADED;
}

#endif
