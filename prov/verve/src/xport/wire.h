/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wire format of what travels on a connected queue pair. Little-endian, fixed layout; the version is
 * agreed in the handshake. One encoder and one bounds-checked decoder; nothing else reads packets.
 *
 *   0      1      2         4                     8                                    16
 *   | type | flags| credits | destination         | tag, key, or operation id           |
 *   then, in this order, if the flag says so: 8 bytes remote CQ data, 8 bytes operation id;
 *   then the body:
 *   EAGER: payload.
 *   RTS: 8 bytes length, 4 operation id, 4 number of segments; segments.
 *   WRITE_DATA: 8 bytes length.
 *   ATOMIC: segments, then operands. ATOMIC_REPLY: what was in the memory before. Operands and results
 *   travel as they lie in memory.
 *   RMA_EVENT: 8 bytes length, and the 8-byte keys of the regions, each once.
 *   KEY_REPLY: 8 bytes generation, 4 access, 2 segments of the key, 2 number of the first segment here;
 *   segments. KEY_REVOKE: 8 bytes generation.
 *   PULL: operation id of the sender, in the upper half the receiver's; 8 bytes length.
 *   CHUNK: operation id; payload.
 *   FENCE, FENCED: a number of the asker's, in the upper half 1: they are, or are to be, matched.
 */
#ifndef VERVE_XPORT_WIRE_H
#define VERVE_XPORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verve_wire_type {
	VERVE_WIRE_EAGER = 1,	   /* a whole message; if it is not small, it costs the sender one credit */
	VERVE_WIRE_RTS = 2,	   /* a message to be read from the sender's memory; without segments, pulled */
	VERVE_WIRE_FIN = 3,	   /* operation id: read, or processed; status in the upper half */
	VERVE_WIRE_CREDIT = 4,	   /* nothing but credits */
	VERVE_WIRE_WRITE_DATA = 5, /* remote CQ data of the RMA write that came just before */
	VERVE_WIRE_BYE = 6,	   /* the last packet of a connection */
	VERVE_WIRE_ATOMIC = 7,	   /* to be executed on the recipient's memory; answered by */
	VERVE_WIRE_ATOMIC_REPLY = 8, /* operation id: executed, or why not, in the upper half */
	VERVE_WIRE_RMA_EVENT = 9,  /* what the RMA operation that came just before touched */
	VERVE_WIRE_KEY_QUERY = 10, /* what does this key of yours open; answered by */
	VERVE_WIRE_KEY_REPLY = 11, /* segments, in as many packets as they need; or none: no such key */
	VERVE_WIRE_KEY_REVOKE = 12, /* forget the key, of this or an older generation */
	VERVE_WIRE_QUIESCE = 13,    /* how many packets arrived; in the upper half xport/quiesce.c */
	VERVE_WIRE_WITHDRAW = 14,   /* operation id: RTS, or EAGER with ACK; FIN says FI_ECANCELED if nobody took it */
	VERVE_WIRE_PULL = 15,	    /* the next bytes of a message that was offered; answered by */
	VERVE_WIRE_CHUNK = 16,	    /* operation id: the receiver's; so many bytes */
	VERVE_WIRE_RESUME = 17,	    /* on another queue pair: how many packets arrived; xport/replay.c */
	VERVE_WIRE_FENCE = 18,	    /* have you handled, or matched, what came before; answered by */
	VERVE_WIRE_FENCED = 19,	    /* yes; xport/fence.h */
	VERVE_WIRE_TYPES = 20,
};

enum {
	VERVE_WIRE_TAGGED = 1 << 0, /* EAGER, RTS: matches tagged receives */
	VERVE_WIRE_DATA = 1 << 1,   /* EAGER, RTS, WRITE_DATA, RMA_EVENT: remote CQ data follows the header */
	VERVE_WIRE_ACK = 1 << 2,    /* EAGER: operation id follows; FIN wanted once it is in place */
	VERVE_WIRE_FETCH = 1 << 3,  /* ATOMIC: the reply is to bring what was there before */
	VERVE_WIRE_FLAGS = 15,
};

enum {
	VERVE_WIRE_HEADER = 16,
	VERVE_WIRE_SEGMENTS = 4,			 /* of a packet, at most */
	VERVE_WIRE_PREFIX = VERVE_WIRE_HEADER + 8 + 8,	 /* longest before the body */
	VERVE_WIRE_RTS_MAX = VERVE_WIRE_PREFIX + 16 + 24 * VERVE_WIRE_SEGMENTS,
	VERVE_WIRE_ATOMIC_PREFIX = VERVE_WIRE_HEADER + 24 * VERVE_WIRE_SEGMENTS, /* longest */
	VERVE_WIRE_SMALL = 64, /* payload that costs a receiver no more to keep than an RTS does */
};

/* RMA_EVENT: its tag. */
enum { VERVE_WIRE_WROTE = 0, VERVE_WIRE_READ = 1 };

/*
 * A piece of the sender's memory, whose key is an rkey; of the recipient's in ATOMIC, and RMA_EVENT, where
 * only the key counts.
 */
struct verve_wire_segment {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

/* KEY_REPLY: what the key grants; and that it goes by virtual addresses. */
enum { VERVE_WIRE_KEY_READ = 1, VERVE_WIRE_KEY_WRITE = 2, VERVE_WIRE_KEY_VIRT = 4 };

struct verve_wire_key {
	uint64_t generation; /* KEY_REPLY, KEY_REVOKE */
	uint32_t access;     /* KEY_REPLY: VERVE_WIRE_KEY_* */
	uint16_t total;	     /* segments of the key, VERVE_MR_SEGMENTS_MAX at most; 0: no such key */
	uint16_t first;	     /* of them in this packet; first and those after it are within total */
};

/* A packet, decoded; or what to encode. */
struct verve_wire_packet {
	uint8_t type;
	uint8_t flags;
	uint16_t credits;
	uint32_t dest;
	uint64_t tag;	   /* EAGER, RTS, RMA_EVENT; KEY_*: the key */
	uint64_t data;	   /* flag DATA */
	uint32_t op_id;	   /* flag ACK; RTS; FIN; WITHDRAW; PULL; CHUNK; ATOMIC(_REPLY); QUIESCE, RESUME: packets; FENCE(D) */
	uint32_t status;   /* FIN: positive FI errno, ATOMIC_REPLY: rma/atomic.c; 0 success; PULL: an id; QUIESCE, RESUME, FENCE(D) */
	uint8_t amo_op;	   /* ATOMIC: enum verve_amo_op, not checked */
	uint8_t amo_type;  /* ATOMIC: enum verve_amo_type, not checked */
	uint64_t len;	   /* EAGER, CHUNK, ATOMIC(_REPLY): payload; RTS: message; PULL: wanted; WRITE_DATA, RMA_EVENT: moved */
	struct verve_wire_key key; /* KEY_* */
	uint32_t segment_count; /* RTS, ATOMIC, RMA_EVENT, KEY_REPLY */
	struct verve_wire_segment segment[VERVE_WIRE_SEGMENTS];
	const void *payload; /* EAGER, CHUNK, ATOMIC, ATOMIC_REPLY: into the buffer */
};

/* Bytes before the payload of an EAGER packet with these flags. */
static inline size_t verve_wire_prefix(uint8_t flags)
{
	return VERVE_WIRE_HEADER + (flags & VERVE_WIRE_DATA ? 8 : 0) + (flags & VERVE_WIRE_ACK ? 8 : 0);
}

/* Bytes before the operands of an ATOMIC packet. */
static inline size_t verve_wire_atomic_prefix(uint32_t segment_count)
{
	return VERVE_WIRE_HEADER + 24 * (size_t) segment_count;
}

/* Both sides of a connection count with it: whether an eager message of len bytes costs a credit. */
static inline bool verve_wire_costs_credit(uint64_t len)
{
	return len > VERVE_WIRE_SMALL;
}

/*
 * Header and what follows it up to the payload, into buf of VERVE_WIRE_RTS_MAX bytes. Returns the bytes
 * written; the payload of an EAGER, CHUNK, ATOMIC or ATOMIC_REPLY packet goes behind them.
 */
size_t verve_wire_encode(const struct verve_wire_packet *packet, void *buf);

/* An encoded packet goes to another connection of the peer's. */
void verve_wire_readdress(void *buf, uint32_t dest);
/* The credits that it returns. */
uint16_t verve_wire_credits(const void *buf);

/* Reads any bytes. -FI_EINVAL: not a packet (too short, unknown type or flag, lengths that disagree). */
int verve_wire_decode(const void *buf, size_t len, struct verve_wire_packet *packet);

#endif
