/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wire format of the packets on a connected queue pair. Little-endian, fixed layout; the version is
 * agreed in the handshake. verve_wire_encode writes packets, and verve_wire_encode_eager the one
 * type that most are; there is one bounds-checked decoder.
 *
 *   0      1      2         4                     8                                    16
 *   | type | flags| credits | destination         | tag, key, or operation id           |
 *
 * The flags say which optional fields follow, in this order: 8 bytes remote CQ data, 8 bytes
 * operation id. The body is last:
 *
 *   EAGER         payload
 *   RTS           8 bytes length, 4 operation id, 4 number of segments; segments
 *   WRITE_DATA    8 bytes length
 *   ATOMIC        segments; operands, as they lie in memory
 *   ATOMIC_REPLY  the previous content of the memory, as it lay there
 *   RMA_EVENT     8 bytes length; 8-byte keys of the regions, each once
 *   KEY_REPLY     8 bytes generation, 4 access, 2 segments of the key, 2 index of the first segment
 *                 in this packet; segments
 *   KEY_REVOKE    8 bytes generation
 *   PULL          8 bytes length
 *   CHUNK         payload
 *   BATCH         EAGER packets without ACK; the destination of each is its length in bytes
 *   PART          segments
 *
 * A segment is 8 bytes address, 8 length, 8 key. Where the header has an operation id, it is the
 * lower half of the last 8 bytes. The upper half is a status (struct verve_wire_packet); of ATOMIC,
 * 1 byte operation, 1 byte type, 2 bytes number of segments.
 */
#ifndef VERVE_XPORT_WIRE_H
#define VERVE_XPORT_WIRE_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "xport/packet.h"

/* Bytes before the payload of an EAGER packet with these flags. */
static inline size_t verve_wire_prefix(uint8_t flags)
{
	return VERVE_WIRE_HEADER + (flags & VERVE_WIRE_DATA ? 8 : 0) +
	       (flags & VERVE_WIRE_ACK ? 8 : 0);
}

/* Bytes before the operands of an ATOMIC packet. */
static inline size_t verve_wire_atomic_prefix(uint32_t segment_count)
{
	return VERVE_WIRE_HEADER + 24 * (size_t)segment_count;
}

/* Writes a number in the order of the wire. Returns the end. */
static inline uint8_t *verve_wire_put32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint8_t *verve_wire_put64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

/*
 * Writes the header and the optional fields of a packet into buf. word: the last 8 bytes of the
 * header. Returns the end. For the two encoders below alone.
 */
static inline uint8_t *verve_wire_encode_head(const struct verve_wire_packet *packet, uint64_t word,
					      uint8_t *buf)
{
	uint8_t *end = buf + VERVE_WIRE_HEADER;

	verve_wire_put32(buf, packet->type | packet->flags << 8 | (uint32_t)packet->credits << 16);
	verve_wire_put32(buf + 4, packet->dest);
	verve_wire_put64(buf + 8, word);
	if (packet->flags & VERVE_WIRE_DATA)
		end = verve_wire_put64(end, packet->data);
	if (packet->flags & VERVE_WIRE_ACK)
		end = verve_wire_put64(end, packet->op_id);
	return end;
}

/*
 * Sets packet->type, and writes an EAGER packet without its payload into buf, which has
 * verve_wire_prefix(packet->flags) bytes.
 */
static inline void verve_wire_encode_eager(struct verve_wire_packet *packet, void *buf)
{
	packet->type = VERVE_WIRE_EAGER;
	verve_wire_encode_head(packet, packet->tag, buf);
}

/*
 * Writes the packet without its payload into buf, which has VERVE_WIRE_RTS_MAX bytes. Returns the
 * bytes written. The caller puts the payload of an EAGER, CHUNK, BATCH, ATOMIC or ATOMIC_REPLY
 * packet behind them.
 */
size_t verve_wire_encode(const struct verve_wire_packet *packet, void *buf);

/* Changes the destination of an encoded packet: the connection id of the peer's next connection. */
void verve_wire_readdress(void *buf, uint32_t dest);
/*
 * The packet of len bytes leaves over another queue pair than it was made for. An RTS whose keys
 * ended with that one (VERVE_WIRE_BOUND) becomes an RTS without segments. Returns its bytes.
 */
size_t verve_wire_drop_bound(void *buf, size_t len);
/* The destination, the type, and the credits in the header of an encoded packet. */
uint32_t verve_wire_dest(const void *buf);
uint8_t verve_wire_type_of(const void *buf);
uint16_t verve_wire_credits(const void *buf);

/*
 * Decodes any len bytes; packet->payload points into buf. -FI_EINVAL: not a packet (too short,
 * unknown type or flag, lengths that disagree); the packet's content is undefined then.
 */
int verve_wire_decode(const void *buf, size_t len, struct verve_wire_packet *packet);

#endif
