/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What packets say: types, flags, sizes, and a packet that was decoded. xport/wire.h has the
 * layout, and encodes and decodes.
 */
#ifndef VERVE_XPORT_PACKET_H
#define VERVE_XPORT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verve_wire_type {
	VERVE_WIRE_EAGER = 1,	   /* a whole message, for which credits pay (xport/credit.h) */
	/* offers a message; without segments, it is to be pulled; with too few, PART comes */
	VERVE_WIRE_RTS = 2,
	VERVE_WIRE_FIN = 3,	   /* the sender's operation has ended at the receiver */
	VERVE_WIRE_CREDIT = 4,	   /* credits in the header, no more */
	VERVE_WIRE_WRITE_DATA = 5, /* remote CQ data of the RMA write just before; dispatch.c */
	VERVE_WIRE_BYE = 6,	   /* the last packet of a connection */
	VERVE_WIRE_ATOMIC = 7,	   /* to be executed on the recipient's memory: ATOMIC_REPLY */
	VERVE_WIRE_ATOMIC_REPLY = 8, /* the atomic was executed, or failed with the status */
	VERVE_WIRE_RMA_EVENT = 9,  /* regions that the RMA operation just before has touched */
	VERVE_WIRE_KEY_QUERY = 10, /* asks for the segments of the recipient's key: KEY_REPLY */
	VERVE_WIRE_KEY_REPLY = 11, /* one of the packets with the segments; or no such key */
	VERVE_WIRE_KEY_REVOKE = 12, /* the recipient forgets the key up to this generation */
	VERVE_WIRE_QUIESCE = 13,    /* asks to close an idle link, or answers: xport/quiesce.c */
	VERVE_WIRE_WITHDRAW = 14,   /* takes back an RTS, or an EAGER with ACK; FIN answers */
	VERVE_WIRE_PULL = 15,	    /* asks for the next bytes of an offered message: CHUNK */
	VERVE_WIRE_CHUNK = 16,	    /* bytes of a message that is pulled */
	VERVE_WIRE_RESUME = 17,	    /* first packet of another queue pair: xport/replay.c */
	VERVE_WIRE_FENCE = 18,	    /* asks if the messages before it are handled, or matched */
	VERVE_WIRE_FENCED = 19,	    /* answers a FENCE: they are; xport/fence.h */
	VERVE_WIRE_BATCH = 20,	    /* several small messages: EAGER packets without ACK */
	VERVE_WIRE_PART = 21,	    /* further segments of an offered message; msg/parts.h */
	VERVE_WIRE_TYPES,	    /* one more than the last */
};

enum {
	VERVE_WIRE_TAGGED = 1 << 0, /* EAGER, RTS: matches tagged receives */
	VERVE_WIRE_DATA = 1 << 1,   /* EAGER, RTS, WRITE_DATA, RMA_EVENT: has remote CQ data */
	VERVE_WIRE_ACK = 1 << 2,    /* EAGER: has an operation id; FIN is due when received */
	VERVE_WIRE_FETCH = 1 << 3,  /* ATOMIC: the reply brings the previous content */
	/* RTS: its keys end with the queue pair that it comes over; then the message is pulled */
	VERVE_WIRE_BOUND = 1 << 4,
	VERVE_WIRE_FLAGS = 31,	    /* all of them */
};

/* Bytes, but for VERVE_WIRE_SEGMENTS. */
enum {
	VERVE_WIRE_HEADER = 16,
	VERVE_WIRE_SEGMENTS = 4,		       /* segments of a packet, at most */
	VERVE_WIRE_PREFIX = VERVE_WIRE_HEADER + 8 + 8, /* before the body, at most */
	VERVE_WIRE_RTS_MAX = VERVE_WIRE_PREFIX + 16 + 24 * VERVE_WIRE_SEGMENTS,
	VERVE_WIRE_ATOMIC_PREFIX = VERVE_WIRE_HEADER + 24 * VERVE_WIRE_SEGMENTS, /* at most */
	VERVE_WIRE_SMALL = 64, /* keeping such a payload costs a receiver no more than an RTS */
	VERVE_WIRE_WEIGHT = 2048, /* a credit buys messages of so much weight, on both sides */
};

/* The tag of an RMA_EVENT. */
enum { VERVE_WIRE_WROTE = 0, VERVE_WIRE_READ = 1 };

/*
 * A piece of memory. In RTS, PART and KEY_REPLY of the packet's sender; its key is an rkey. In
 * ATOMIC of the recipient. In RMA_EVENT of the recipient, and only the key is on the wire.
 */
struct verve_wire_segment {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

/* KEY_REPLY: the access that a key grants; VIRT: the key's region goes by virtual addresses. */
enum { VERVE_WIRE_KEY_READ = 1, VERVE_WIRE_KEY_WRITE = 2, VERVE_WIRE_KEY_VIRT = 4 };

struct verve_wire_key {
	uint64_t generation; /* KEY_REPLY, KEY_REVOKE */
	uint32_t access;     /* KEY_REPLY: VERVE_WIRE_KEY_* */
	uint16_t total;	     /* segments of the key, VERVE_MR_SEGMENTS_MAX at most; 0: no key */
	uint16_t first;	     /* index of the packet's first segment; the last is below total */
};

/* A packet that was decoded, or is to be encoded. Fields count for the types that they name. */
struct verve_wire_packet {
	uint8_t type;
	uint8_t flags;
	uint16_t credits;
	uint32_t dest;	   /* the recipient's connection id; in a BATCH: bytes of this EAGER */
	uint64_t tag;	   /* EAGER, RTS, RMA_EVENT; KEY_*: the key */
	uint64_t data;	   /* with flag DATA */
	/*
	 * An operation of the packet's sender: RTS, PART, EAGER with ACK, ATOMIC, WITHDRAW; of its
	 * recipient: FIN, ATOMIC_REPLY, PULL, CHUNK. QUIESCE, RESUME: packets that its sender has
	 * received. FENCE, FENCED: a number that the asking side chose.
	 */
	uint32_t op_id;
	/*
	 * FIN, PART: positive FI errno; 0: success. PULL: an operation of the sender. QUIESCE,
	 * RESUME, ATOMIC_REPLY: xport/wire_status.h. FENCE, FENCED: 1: matched, 0: handled.
	 */
	uint32_t status;
	uint8_t amo_op;	   /* ATOMIC: enum verve_amo_op, not checked */
	uint8_t amo_type;  /* ATOMIC: enum verve_amo_type, not checked */
	/*
	 * Bytes. EAGER, CHUNK, BATCH, ATOMIC, ATOMIC_REPLY: payload, set by decoding. RTS: message.
	 * PULL: wanted. WRITE_DATA, RMA_EVENT: moved by the RMA operation.
	 */
	uint64_t len;
	struct verve_wire_key key; /* KEY_REPLY, KEY_REVOKE */
	uint32_t segment_count; /* RTS, PART, ATOMIC, RMA_EVENT, KEY_REPLY */
	struct verve_wire_segment segment[VERVE_WIRE_SEGMENTS];
	const void *payload; /* as len's: in the decoded buffer */
};

/* True if a packet of this type has whole messages. */
static inline bool verve_wire_is_whole(uint8_t type)
{
	return type == VERVE_WIRE_EAGER || type == VERVE_WIRE_BATCH;
}

#endif
