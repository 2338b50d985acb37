/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wire format: the encoder and the decoder. */
#include "xport/wire.h"

#include <endian.h>
#include <string.h>

#include "mr/segments.h"
#include <rdma/fi_errno.h>

struct header {
	uint8_t type;
	uint8_t flags;
	uint16_t credits;
	uint32_t dest;
	uint64_t tag;
};
_Static_assert(sizeof(struct header) == VERVE_WIRE_HEADER, "the header has no padding");
_Static_assert(offsetof(struct header, dest) == 4 && offsetof(struct header, tag) == 8, "layout");

struct rts {
	uint64_t len;
	uint32_t op_id;
	uint32_t segment_count;
};
_Static_assert(sizeof(struct rts) == 16, "the RTS has no padding");

struct segment {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};
_Static_assert(sizeof(struct segment) == 24, "a segment has no padding");

struct key_reply {
	uint64_t generation;
	uint32_t access;
	uint16_t total;
	uint16_t first;
};
_Static_assert(sizeof(struct key_reply) == 16, "the KEY_REPLY has no padding");

/* What the last 8 bytes of a header are. */
enum word {
	WORD_NONE,   /* there is no such packet */
	WORD_TAG,    /* a tag, or a key */
	WORD_ID,     /* an operation id, and a status */
	WORD_ATOMIC, /* an operation id, the operation, its type, and the number of segments */
};

/* What the packets of one type look like. */
struct layout {
	uint8_t word;  /* enum word */
	uint8_t flags; /* that such a packet may have */
	/* Writes the body but its payload; NULL: it has none. Returns the end. */
	uint8_t *(*put)(uint8_t *at, const struct verve_wire_packet *packet);
	/* Reads the body of left bytes; NULL: it has none. 0 or -FI_EINVAL. */
	int (*get)(const uint8_t *at, size_t left, struct verve_wire_packet *packet);
};

static uint64_t get64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, 8);
	return le64toh(value);
}

static uint8_t *put_segments(uint8_t *at, const struct verve_wire_packet *packet)
{
	for (uint32_t i = 0; i < packet->segment_count; i++) {
		struct segment segment = {
			.addr = htole64(packet->segment[i].addr),
			.len = htole64(packet->segment[i].len),
			.key = htole64(packet->segment[i].key),
		};

		memcpy(at, &segment, sizeof(segment));
		at += sizeof(segment);
	}
	return at;
}

static uint8_t *put_rts(uint8_t *at, const struct verve_wire_packet *packet)
{
	struct rts rts = {
		.len = htole64(packet->len),
		.op_id = htole32(packet->op_id),
		.segment_count = htole32(packet->segment_count),
	};

	memcpy(at, &rts, sizeof(rts));
	return put_segments(at + sizeof(rts), packet);
}

static uint8_t *put_event(uint8_t *at, const struct verve_wire_packet *packet)
{
	at = verve_wire_put64(at, packet->len);
	for (uint32_t i = 0; i < packet->segment_count; i++)
		at = verve_wire_put64(at, packet->segment[i].key);
	return at;
}

static uint8_t *put_key_reply(uint8_t *at, const struct verve_wire_packet *packet)
{
	struct key_reply reply = {
		.generation = htole64(packet->key.generation),
		.access = htole32(packet->key.access),
		.total = htole16(packet->key.total),
		.first = htole16(packet->key.first),
	};

	memcpy(at, &reply, sizeof(reply));
	return put_segments(at + sizeof(reply), packet);
}

static uint8_t *put_len(uint8_t *at, const struct verve_wire_packet *packet)
{
	return verve_wire_put64(at, packet->len);
}

static uint8_t *put_generation(uint8_t *at, const struct verve_wire_packet *packet)
{
	return verve_wire_put64(at, packet->key.generation);
}

static void get_segments(const uint8_t *at, struct verve_wire_packet *packet)
{
	for (uint32_t i = 0; i < packet->segment_count; i++, at += sizeof(struct segment)) {
		struct segment segment;

		memcpy(&segment, at, sizeof(segment));
		packet->segment[i].addr = le64toh(segment.addr);
		packet->segment[i].len = le64toh(segment.len);
		packet->segment[i].key = le64toh(segment.key);
	}
}

/*
 * The segments add up to the message's length at most, without wrap-around; each key is an rkey.
 * Segments of no bytes are no offer.
 */
static int get_rts(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	struct rts rts;
	uint64_t sum = 0;

	if (left < sizeof(rts))
		return -FI_EINVAL;
	memcpy(&rts, at, sizeof(rts));
	packet->len = le64toh(rts.len);
	packet->op_id = le32toh(rts.op_id);
	packet->segment_count = le32toh(rts.segment_count);
	if (packet->segment_count > VERVE_WIRE_SEGMENTS ||
	    left != sizeof(rts) + packet->segment_count * sizeof(struct segment))
		return -FI_EINVAL;

	get_segments(at + sizeof(rts), packet);
	for (uint32_t i = 0; i < packet->segment_count; i++) {
		if (packet->segment[i].len > packet->len - sum ||
		    packet->segment[i].key > UINT32_MAX)
			return -FI_EINVAL;
		sum += packet->segment[i].len;
	}
	return sum || !packet->len || !packet->segment_count ? 0 : -FI_EINVAL;
}

/*
 * Either segments or an error. Whether the segments are of the message, only its link knows
 * (msg/parts.c).
 */
static int get_part(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	if (left % sizeof(struct segment) || left / sizeof(struct segment) > VERVE_WIRE_SEGMENTS ||
	    !left == !packet->status)
		return -FI_EINVAL;
	packet->segment_count = left / sizeof(struct segment);
	get_segments(at, packet);
	for (uint32_t i = 0; i < packet->segment_count; i++)
		if (packet->segment[i].key > UINT32_MAX)
			return -FI_EINVAL;
	return 0;
}

/* Does not check that operands fit the segments: that depends on the operation (rma/atomic.c). */
static int get_atomic(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	size_t segments = packet->segment_count * sizeof(struct segment);

	if (packet->segment_count > VERVE_WIRE_SEGMENTS || left < segments)
		return -FI_EINVAL;
	get_segments(at, packet);
	packet->payload = at + segments;
	packet->len = left - segments;
	return 0;
}

static int get_event(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	if (packet->tag > VERVE_WIRE_READ ||
	    (packet->tag == VERVE_WIRE_READ && packet->flags & VERVE_WIRE_DATA))
		return -FI_EINVAL;
	if (left < 8 || left % 8 ||
	    left > 8 + 8 * VERVE_WIRE_SEGMENTS)
		return -FI_EINVAL;
	packet->len = get64(at);
	packet->segment_count = left / 8 - 1;
	for (uint32_t i = 0; i < packet->segment_count; i++)
		packet->segment[i] = (struct verve_wire_segment) {.key = get64(at + 8 + 8 * i)};
	return 0;
}

/*
 * The packet's segments must be among the key's, at least one of them if the key has any. Each
 * segment's key is an rkey.
 */
static int get_key_reply(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	struct key_reply reply;
	uint32_t total, first, count;

	if (left < sizeof(reply) || (left - sizeof(reply)) % sizeof(struct segment))
		return -FI_EINVAL;
	memcpy(&reply, at, sizeof(reply));
	total = le16toh(reply.total);
	first = le16toh(reply.first);
	left = (left - sizeof(reply)) / sizeof(struct segment);
	if (total > VERVE_MR_SEGMENTS_MAX || left > VERVE_WIRE_SEGMENTS)
		return -FI_EINVAL;
	count = left;
	if (first + count > total || (total && !count) || (!total && first))
		return -FI_EINVAL;
	packet->key = (struct verve_wire_key) {
		le64toh(reply.generation), le32toh(reply.access), total, first};
	packet->segment_count = count;
	get_segments(at + sizeof(reply), packet);
	for (uint32_t i = 0; i < count; i++)
		if (packet->segment[i].key > UINT32_MAX)
			return -FI_EINVAL;
	return 0;
}

static int get_payload(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	packet->payload = at;
	packet->len = left;
	return 0;
}

static int get_len(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	if (left != 8)
		return -FI_EINVAL;
	packet->len = get64(at);
	return 0;
}

/* Without remote CQ data, there is nothing to tell. */
static int get_write_data(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	return packet->flags & VERVE_WIRE_DATA ? get_len(at, left, packet) : -FI_EINVAL;
}

static int get_generation(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	if (left != 8)
		return -FI_EINVAL;
	packet->key.generation = get64(at);
	return 0;
}

/* The status says which of two questions it is. */
static int get_fence(const uint8_t *at, size_t left, struct verve_wire_packet *packet)
{
	(void)at;
	return left || packet->status > 1 ? -FI_EINVAL : 0;
}

/* For every value of a header's type. The decoder refuses a type without a row. */
static const struct layout layouts[UINT8_MAX + 1] = {
	/* verve_wire_encode_eager writes it, too. */
	[VERVE_WIRE_EAGER] = {WORD_TAG, VERVE_WIRE_TAGGED | VERVE_WIRE_DATA | VERVE_WIRE_ACK,
			      NULL, get_payload},
	[VERVE_WIRE_RTS] = {WORD_TAG, VERVE_WIRE_TAGGED | VERVE_WIRE_DATA | VERVE_WIRE_BOUND,
			    put_rts, get_rts},
	[VERVE_WIRE_FIN] = {WORD_ID, 0, NULL, NULL},
	[VERVE_WIRE_CREDIT] = {WORD_TAG, 0, NULL, NULL},
	[VERVE_WIRE_WRITE_DATA] = {WORD_TAG, VERVE_WIRE_DATA, put_len, get_write_data},
	[VERVE_WIRE_BYE] = {WORD_TAG, 0, NULL, NULL},
	[VERVE_WIRE_ATOMIC] = {WORD_ATOMIC, VERVE_WIRE_FETCH, put_segments, get_atomic},
	[VERVE_WIRE_ATOMIC_REPLY] = {WORD_ID, 0, NULL, get_payload},
	[VERVE_WIRE_RMA_EVENT] = {WORD_TAG, VERVE_WIRE_DATA, put_event, get_event},
	[VERVE_WIRE_KEY_QUERY] = {WORD_TAG, 0, NULL, NULL},
	[VERVE_WIRE_KEY_REPLY] = {WORD_TAG, 0, put_key_reply, get_key_reply},
	[VERVE_WIRE_KEY_REVOKE] = {WORD_TAG, 0, put_generation, get_generation},
	[VERVE_WIRE_QUIESCE] = {WORD_ID, 0, NULL, NULL},
	[VERVE_WIRE_WITHDRAW] = {WORD_ID, 0, NULL, NULL},
	[VERVE_WIRE_PULL] = {WORD_ID, 0, put_len, get_len},
	[VERVE_WIRE_CHUNK] = {WORD_ID, 0, NULL, get_payload},
	[VERVE_WIRE_RESUME] = {WORD_ID, 0, NULL, NULL},
	[VERVE_WIRE_FENCE] = {WORD_ID, 0, NULL, get_fence},
	[VERVE_WIRE_FENCED] = {WORD_ID, 0, NULL, get_fence},
	/* The packets within are decoded one by one (msg/batch.c). */
	[VERVE_WIRE_BATCH] = {WORD_TAG, 0, NULL, get_payload},
	[VERVE_WIRE_PART] = {WORD_ID, 0, put_segments, get_part},
};

static uint64_t encode_word(enum word word, const struct verve_wire_packet *packet)
{
	switch (word) {
	case WORD_ID:
		return packet->op_id | (uint64_t)packet->status << 32;
	case WORD_ATOMIC:
		return packet->op_id | (uint64_t)packet->amo_op << 32 |
		       (uint64_t)packet->amo_type << 40 | (uint64_t)packet->segment_count << 48;
	case WORD_TAG:
	case WORD_NONE:
		break;
	}
	return packet->tag;
}

static void decode_word(enum word word, struct verve_wire_packet *packet)
{
	switch (word) {
	case WORD_ID:
		packet->op_id = (uint32_t)packet->tag;
		packet->status = packet->tag >> 32;
		break;
	case WORD_ATOMIC:
		packet->op_id = (uint32_t)packet->tag;
		packet->amo_op = packet->tag >> 32;
		packet->amo_type = packet->tag >> 40;
		packet->segment_count = packet->tag >> 48;
		break;
	case WORD_TAG:
	case WORD_NONE:
		break;
	}
}

size_t verve_wire_encode(const struct verve_wire_packet *packet, void *buf)
{
	const struct layout *layout = &layouts[packet->type];
	uint8_t *end = verve_wire_encode_head(packet, encode_word(layout->word, packet), buf);

	if (layout->put)
		end = layout->put(end, packet);
	return end - (uint8_t *)buf;
}

void verve_wire_readdress(void *buf, uint32_t dest)
{
	uint32_t le = htole32(dest);

	memcpy((uint8_t *)buf + offsetof(struct header, dest), &le, sizeof(le));
}

size_t verve_wire_drop_bound(void *buf, size_t len)
{
	uint8_t *flags = (uint8_t *)buf + offsetof(struct header, flags), *at;
	struct rts rts;

	if (verve_wire_type_of(buf) != VERVE_WIRE_RTS || !(*flags & VERVE_WIRE_BOUND))
		return len;
	*flags &= ~VERVE_WIRE_BOUND;
	at = (uint8_t *)buf + verve_wire_prefix(*flags);
	memcpy(&rts, at, sizeof(rts));
	rts.segment_count = 0;
	memcpy(at, &rts, sizeof(rts));
	return at + sizeof(rts) - (uint8_t *)buf;
}

uint32_t verve_wire_dest(const void *buf)
{
	uint32_t le;

	memcpy(&le, (const uint8_t *)buf + offsetof(struct header, dest), sizeof(le));
	return le32toh(le);
}

uint8_t verve_wire_type_of(const void *buf)
{
	return *((const uint8_t *)buf + offsetof(struct header, type));
}

uint16_t verve_wire_credits(const void *buf)
{
	uint16_t le;

	memcpy(&le, (const uint8_t *)buf + offsetof(struct header, credits), sizeof(le));
	return le16toh(le);
}

int verve_wire_decode(const void *buf, size_t len, struct verve_wire_packet *packet)
{
	const uint8_t *at = buf, *end = at + len;
	const struct layout *layout;
	struct header header;

	if (len < sizeof(header))
		return -FI_EINVAL;
	memcpy(&header, at, sizeof(header));
	at += sizeof(header);
	layout = &layouts[header.type];
	if (layout->word == WORD_NONE || header.flags & ~layout->flags)
		return -FI_EINVAL;

	packet->type = header.type;
	packet->flags = header.flags;
	packet->credits = le16toh(header.credits);
	packet->dest = le32toh(header.dest);
	packet->tag = le64toh(header.tag);
	decode_word(layout->word, packet);
	if (header.flags & VERVE_WIRE_DATA) {
		if (end - at < 8)
			return -FI_EINVAL;
		packet->data = get64(at);
		at += 8;
	}
	if (header.flags & VERVE_WIRE_ACK) {
		if (end - at < 8)
			return -FI_EINVAL;
		packet->op_id = (uint32_t)get64(at);
		at += 8;
	}
	if (layout->get)
		return layout->get(at, end - at, packet);
	return at == end ? 0 : -FI_EINVAL;
}
