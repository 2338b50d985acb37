/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wire format: decoding gives what was encoded, and rejects all other bytes. */
#include "xport/wire.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

static uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15;
	uint64_t z = (*state ^ *state >> 30) * 0xbf58476d1ce4e5b9;

	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void assert_round_trip(const struct verve_wire_packet *in, const void *payload, size_t len)
{
	unsigned char buf[VERVE_WIRE_RTS_MAX + 64];
	struct verve_wire_packet out;
	size_t size = verve_wire_encode(in, buf);

	cr_assert_leq(size, VERVE_WIRE_RTS_MAX);
	memcpy(buf + size, payload, len);
	cr_assert_eq(verve_wire_decode(buf, size + len, &out), 0);
	cr_assert_eq(out.type, in->type);
	cr_assert_eq(out.flags, in->flags);
	cr_assert_eq(out.credits, in->credits);
	cr_assert_eq(out.dest, in->dest);
	if (in->flags & VERVE_WIRE_DATA)
		cr_assert_eq(out.data, in->data);
	if (in->type == VERVE_WIRE_EAGER) {
		cr_assert_eq(size, verve_wire_prefix(in->flags));
		cr_assert_eq(out.tag, in->tag);
		cr_assert_eq(out.len, len);
		cr_assert_eq(memcmp(out.payload, payload, len), 0);
	}
}

Test(wire, eager_with_every_flag_round_trips)
{
	for (int flags = 0; flags <= 7; flags++) {
		struct verve_wire_packet packet = {
			.type = VERVE_WIRE_EAGER, .flags = flags, .credits = 513,
			.dest = 0xabcdef01, .tag = 0x1122334455667788,
			.data = 0x99aabbccddeeff00, .op_id = 77,
		};

		assert_round_trip(&packet, "payload", 7);
		assert_round_trip(&packet, "", 0);
	}
}

Test(wire, header_bytes_are_fixed)
{
	static const unsigned char expected[] = {
		1, 3, 2, 1, 4, 3, 2, 1,
		8, 7, 6, 5, 4, 3, 2, 1,
		0x10, 0xf, 0xe, 0xd, 0xc, 0xb, 0xa, 9,
	};
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_EAGER, .flags = VERVE_WIRE_TAGGED | VERVE_WIRE_DATA,
		.credits = 0x102, .dest = 0x1020304, .tag = 0x102030405060708,
		.data = 0x90a0b0c0d0e0f10,
	};
	unsigned char buf[VERVE_WIRE_RTS_MAX];

	cr_assert_eq(verve_wire_encode(&packet, buf), sizeof(expected));
	cr_assert_eq(memcmp(buf, expected, sizeof(expected)), 0);
}

Test(wire, resume_round_trips)
{
	struct verve_wire_packet out, in = {
		.type = VERVE_WIRE_RESUME, .dest = 1, .op_id = 0x81828384, .status = 0x91929394};
	unsigned char buf[VERVE_WIRE_RTS_MAX];
	size_t size = verve_wire_encode(&in, buf);

	verve_wire_readdress(buf, 0xa1a2a3a4);
	cr_assert_eq(verve_wire_decode(buf, size, &out), 0);
	cr_assert_eq(out.type, VERVE_WIRE_RESUME);
	cr_assert_eq(out.dest, 0xa1a2a3a4);
	cr_assert_eq(out.op_id, in.op_id);
	cr_assert_eq(out.status, in.status);
	cr_assert_eq(verve_wire_decode(buf, size + 1, &out), -FI_EINVAL);
}

Test(wire, fences_round_trip)
{
	static const uint8_t types[] = {VERVE_WIRE_FENCE, VERVE_WIRE_FENCED};

	for (int i = 0; i < 4; i++) {
		struct verve_wire_packet out, in = {
			.type = types[i / 2], .dest = 1, .op_id = 0x81828384, .status = i % 2};
		unsigned char buf[VERVE_WIRE_RTS_MAX];
		size_t size = verve_wire_encode(&in, buf);

		cr_assert_eq(verve_wire_decode(buf, size, &out), 0);
		cr_assert_eq(out.type, in.type);
		cr_assert_eq(out.op_id, in.op_id);
		cr_assert_eq(out.status, in.status);
		cr_assert_eq(verve_wire_decode(buf, size + 1, &out), -FI_EINVAL);
		buf[12] = 2; /* neither handled nor matched */
		cr_assert_eq(verve_wire_decode(buf, size, &out), -FI_EINVAL);
	}
}

Test(wire, rma_event_round_trips_with_every_key_count)
{
	for (uint32_t count = 0; count <= VERVE_WIRE_SEGMENTS; count++) {
		struct verve_wire_packet out, in = {
			.type = VERVE_WIRE_RMA_EVENT, .flags = count % 2 ? VERVE_WIRE_DATA : 0,
			.tag = count % 2 ? VERVE_WIRE_WROTE : VERVE_WIRE_READ, .data = 5,
			.len = 1ull << 40, .segment_count = count,
		};
		unsigned char buf[VERVE_WIRE_RTS_MAX];
		size_t size;

		for (uint32_t i = 0; i < count; i++)
			in.segment[i].key = 0xfffffffff0 + i;
		size = verve_wire_encode(&in, buf);
		cr_assert_eq(verve_wire_decode(buf, size, &out), 0);
		cr_assert_eq(out.tag, in.tag);
		cr_assert_eq(out.len, in.len);
		cr_assert_eq(out.segment_count, count);
		for (uint32_t i = 0; i < count; i++)
			cr_assert_eq(out.segment[i].key, in.segment[i].key);
		cr_assert_eq(verve_wire_decode(buf, size - 1, &out), -FI_EINVAL);
		buf[8] = 2; /* neither VERVE_WIRE_WROTE nor VERVE_WIRE_READ */
		cr_assert_eq(verve_wire_decode(buf, size, &out), -FI_EINVAL);
	}
}

Test(wire, rma_event_with_too_many_keys_is_refused)
{
	unsigned char buf[VERVE_WIRE_HEADER + 8 + 8 * (VERVE_WIRE_SEGMENTS + 1)] = {
		VERVE_WIRE_RMA_EVENT};
	struct verve_wire_packet out;

	cr_assert_eq(verve_wire_decode(buf, sizeof(buf) - 8, &out), 0);
	cr_assert_eq(verve_wire_decode(buf, sizeof(buf), &out), -FI_EINVAL);
	cr_assert_eq(verve_wire_decode(buf, VERVE_WIRE_HEADER + 4, &out), -FI_EINVAL);
}

Test(wire, rts_round_trips_with_every_segment_count)
{
	for (uint32_t count = 0; count <= VERVE_WIRE_SEGMENTS; count++) {
		struct verve_wire_packet out, in = {
			.type = VERVE_WIRE_RTS, .flags = VERVE_WIRE_TAGGED, .dest = 3, .tag = 9,
			.op_id = 0x80000001, .segment_count = count,
		};
		unsigned char buf[VERVE_WIRE_RTS_MAX];
		size_t size;

		for (uint32_t i = 0; i < count; i++) {
			in.segment[i] = (struct verve_wire_segment) {0x1000 * i, 1ull << 33, i};
			in.len += 1ull << 33;
		}
		size = verve_wire_encode(&in, buf);
		cr_assert_eq(verve_wire_decode(buf, size, &out), 0);
		cr_assert_eq(out.len, in.len);
		cr_assert_eq(out.op_id, in.op_id);
		cr_assert_eq(out.segment_count, count);
		for (uint32_t i = 0; i < count; i++) {
			cr_assert_eq(out.segment[i].addr, in.segment[i].addr);
			cr_assert_eq(out.segment[i].len, in.segment[i].len);
			cr_assert_eq(out.segment[i].key, in.segment[i].key);
		}
		for (size_t cut = 0; cut < size; cut++)
			cr_assert_eq(verve_wire_decode(buf, cut, &out), -FI_EINVAL);
	}
}

Test(wire, rts_whose_segments_exceed_its_length_or_are_empty_is_refused)
{
	struct verve_wire_packet out, in = {
		.type = VERVE_WIRE_RTS, .len = 100, .segment_count = 2,
		.segment = {{.len = 60}, {.len = 60}},
	};
	unsigned char buf[VERVE_WIRE_RTS_MAX];

	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), -FI_EINVAL);
	in.segment[0].len = in.segment[1].len = 0;
	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), -FI_EINVAL);
	in.segment[0].len = 60;
	in.segment[1].len = UINT64_MAX - 10;
	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), -FI_EINVAL);
	in.segment[1].len = 40;
	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), 0);
	in.segment[1].key = 1ull << 32; /* not an rkey */
	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), -FI_EINVAL);
}

Test(wire, key_query_carries_a_key_and_nothing_else)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_KEY_QUERY, .tag = UINT64_MAX - 1};
	unsigned char buf[VERVE_WIRE_RTS_MAX] = {0};

	cr_assert_eq(verve_wire_encode(&in, buf), VERVE_WIRE_HEADER);
	cr_assert_eq(verve_wire_decode(buf, VERVE_WIRE_HEADER, &out), 0);
	cr_assert_eq(out.tag, in.tag);
	cr_assert_eq(verve_wire_decode(buf, VERVE_WIRE_HEADER + 1, &out), -FI_EINVAL);
	buf[1] = VERVE_WIRE_DATA;
	cr_assert_eq(verve_wire_decode(buf, VERVE_WIRE_HEADER + 8, &out), -FI_EINVAL);
}

Test(wire, key_revoke_carries_a_generation)
{
	struct verve_wire_packet out, in = {
		.type = VERVE_WIRE_KEY_REVOKE, .tag = 7, .key.generation = UINT64_MAX - 2};
	unsigned char buf[VERVE_WIRE_RTS_MAX];
	size_t size = verve_wire_encode(&in, buf);

	cr_assert_eq(verve_wire_decode(buf, size, &out), 0);
	cr_assert_eq(out.tag, 7);
	cr_assert_eq(out.key.generation, in.key.generation);
	for (size_t cut = 0; cut < size; cut++)
		cr_assert_eq(verve_wire_decode(buf, cut, &out), -FI_EINVAL);
	cr_assert_eq(verve_wire_decode(buf, size + 1, &out), -FI_EINVAL);
}

Test(wire, key_reply_round_trips_with_every_segment_count)
{
	for (uint32_t count = 0; count <= VERVE_WIRE_SEGMENTS; count++) {
		struct verve_wire_packet out, in = {
			.type = VERVE_WIRE_KEY_REPLY, .tag = 1ull << 63, .segment_count = count,
			.key = {5, VERVE_WIRE_KEY_READ | VERVE_WIRE_KEY_VIRT, count ? 64 : 0,
				count ? 64 - count : 0},
		};
		unsigned char buf[VERVE_WIRE_RTS_MAX];
		size_t size;

		for (uint32_t i = 0; i < count; i++)
			in.segment[i] = (struct verve_wire_segment) {~i, UINT64_MAX,
								     UINT32_MAX - i};
		size = verve_wire_encode(&in, buf);
		cr_assert_leq(size, sizeof(buf));
		cr_assert_eq(verve_wire_decode(buf, size, &out), 0);
		cr_assert_eq(out.tag, in.tag);
		cr_assert_eq(out.key.generation, in.key.generation);
		cr_assert_eq(out.key.access, in.key.access);
		cr_assert_eq(out.key.total, in.key.total);
		cr_assert_eq(out.key.first, in.key.first);
		cr_assert_eq(out.segment_count, count);
		for (uint32_t i = 0; i < count; i++) {
			cr_assert_eq(out.segment[i].addr, in.segment[i].addr);
			cr_assert_eq(out.segment[i].len, in.segment[i].len);
			cr_assert_eq(out.segment[i].key, in.segment[i].key);
		}
		/* Fewer whole segments are valid; a part of a segment, or none, is not. */
		for (size_t cut = 0; cut < size; cut++)
			cr_assert_eq(verve_wire_decode(buf, cut, &out),
				     cut > VERVE_WIRE_HEADER + 16 && (size - cut) % 24 == 0 ?
					     0 : -FI_EINVAL);
	}
}

/* Decodes a reply of count segments from index first on; the key has total segments. */
static int decode_key_reply(uint16_t total, uint16_t first, uint32_t count, uint64_t key)
{
	unsigned char buf[VERVE_WIRE_HEADER + 16 + 24 * (VERVE_WIRE_SEGMENTS + 1)] = {0};
	struct verve_wire_packet out, in = {
		.type = VERVE_WIRE_KEY_REPLY, .key = {1, 0, total, first}, .segment[0].key = key,
		.segment_count = count <= VERVE_WIRE_SEGMENTS ? count : VERVE_WIRE_SEGMENTS};

	verve_wire_encode(&in, buf);
	return verve_wire_decode(buf, VERVE_WIRE_HEADER + 16 + 24 * count, &out);
}

Test(wire, key_reply_that_makes_no_sense_is_refused)
{
	cr_expect_eq(decode_key_reply(64, 60, 4, 1), 0);
	cr_expect_eq(decode_key_reply(65, 60, 4, 1), -FI_EINVAL, "more than a key has");
	cr_expect_eq(decode_key_reply(UINT16_MAX, UINT16_MAX - 1, 1, 1), -FI_EINVAL);
	cr_expect_eq(decode_key_reply(64, 61, 4, 1), -FI_EINVAL, "beyond the end");
	cr_expect_eq(decode_key_reply(64, UINT16_MAX, 1, 1), -FI_EINVAL);
	cr_expect_eq(decode_key_reply(64, 0, 5, 1), -FI_EINVAL, "more than a packet has");
	cr_expect_eq(decode_key_reply(1, 0, 0, 1), -FI_EINVAL, "none of them");
	cr_expect_eq(decode_key_reply(0, 1, 0, 1), -FI_EINVAL);
	cr_expect_eq(decode_key_reply(0, 0, 1, 1), -FI_EINVAL);
	cr_expect_eq(decode_key_reply(0, 0, 0, 1), 0, "no such key");
	cr_expect_eq(decode_key_reply(1, 0, 1, 1ull << 32), -FI_EINVAL, "not an rkey");
}

Test(wire, fin_carries_id_and_status)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_FIN, .op_id = 0xfedcba98,
					    .status = 12};
	unsigned char buf[VERVE_WIRE_RTS_MAX];

	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), 0);
	cr_assert_eq(out.op_id, in.op_id);
	cr_assert_eq(out.status, 12);
}

Test(wire, pull_carries_two_ids_and_a_length)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_PULL, .op_id = 0xfedcba98,
					    .status = 0x12345678, .len = 1ull << 40};
	unsigned char buf[VERVE_WIRE_RTS_MAX];
	size_t len = verve_wire_encode(&in, buf);

	cr_assert_eq(verve_wire_decode(buf, len, &out), 0);
	cr_assert_eq(out.op_id, in.op_id);
	cr_assert_eq(out.status, in.status);
	cr_assert_eq(out.len, in.len);
	cr_expect_eq(verve_wire_decode(buf, len - 1, &out), -FI_EINVAL);
	cr_expect_eq(verve_wire_decode(buf, len + 1, &out), -FI_EINVAL);
}

Test(wire, chunk_carries_an_id_and_bytes)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_CHUNK, .op_id = 0xfedcba98};
	unsigned char buf[VERVE_WIRE_RTS_MAX];
	size_t len = verve_wire_encode(&in, buf);

	cr_assert_eq(verve_wire_decode(buf, len + 20, &out), 0);
	cr_assert_eq(out.op_id, in.op_id);
	cr_assert_eq(out.len, 20);
	cr_assert_eq(out.payload, buf + len);
}

Test(wire, part_carries_an_id_and_segments)
{
	for (uint32_t count = 1; count <= VERVE_WIRE_SEGMENTS; count++) {
		struct verve_wire_packet out, in = {
			.type = VERVE_WIRE_PART, .op_id = 0xfedcba98, .segment_count = count};
		unsigned char buf[VERVE_WIRE_RTS_MAX + 24] = {0};
		size_t len;

		for (uint32_t i = 0; i < count; i++)
			in.segment[i] = (struct verve_wire_segment){1ull << 40, 1ull << 33, i};
		len = verve_wire_encode(&in, buf);
		cr_assert_eq(verve_wire_decode(buf, len, &out), 0);
		cr_assert_eq(out.op_id, in.op_id);
		cr_assert_eq(out.segment_count, count);
		for (uint32_t i = 0; i < count; i++) {
			cr_assert_eq(out.segment[i].addr, in.segment[i].addr);
			cr_assert_eq(out.segment[i].len, in.segment[i].len);
			cr_assert_eq(out.segment[i].key, i);
		}
		cr_expect_eq(verve_wire_decode(buf, len + 1, &out), -FI_EINVAL);
		cr_expect_eq(verve_wire_decode(buf, len + 24, &out),
			     count < VERVE_WIRE_SEGMENTS ? 0 : -FI_EINVAL);
	}
}

Test(wire, part_has_either_segments_or_an_error)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_PART, .op_id = 7, .status = 12};
	unsigned char buf[VERVE_WIRE_RTS_MAX];

	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), 0);
	cr_expect_eq(out.op_id, 7);
	cr_expect_eq(out.status, 12);
	cr_expect_eq(out.segment_count, 0);
	in.segment_count = 1;
	in.segment[0].len = 1;
	cr_expect_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), -FI_EINVAL);
	in.segment_count = in.status = 0;
	cr_expect_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), -FI_EINVAL);
}

Test(wire, segments_of_a_part_have_rkeys)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_PART, .segment_count = 1,
					    .segment = {{.len = 1, .key = 1ull << 32}}};
	unsigned char buf[VERVE_WIRE_RTS_MAX];

	cr_expect_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), -FI_EINVAL);
}

Test(wire, rts_with_too_few_segments_offers_its_beginning)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_RTS, .len = 100, .segment_count = 1,
					    .segment = {{.len = 99}}};
	unsigned char buf[VERVE_WIRE_RTS_MAX];

	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), 0);
	cr_expect_eq(out.len, 100);
	cr_expect_eq(out.segment[0].len, 99);
}

Test(wire, rts_without_segments_has_any_length)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_RTS, .op_id = 3, .len = 1ull << 50};
	unsigned char buf[VERVE_WIRE_RTS_MAX];

	cr_assert_eq(verve_wire_decode(buf, verve_wire_encode(&in, buf), &out), 0);
	cr_assert_eq(out.segment_count, 0);
	cr_assert_eq(out.len, in.len);
}

Test(wire, withdraw_carries_an_id_and_nothing_else)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_WITHDRAW, .op_id = 0xfedcba98};
	unsigned char buf[VERVE_WIRE_RTS_MAX];
	size_t len = verve_wire_encode(&in, buf);

	cr_assert_eq(verve_wire_decode(buf, len, &out), 0);
	cr_assert_eq(out.type, VERVE_WIRE_WITHDRAW);
	cr_assert_eq(out.op_id, in.op_id);
	cr_expect_eq(verve_wire_decode(buf, len + 1, &out), -FI_EINVAL);
}

Test(wire, atomic_round_trips_with_every_segment_count)
{
	for (uint32_t count = 0; count <= VERVE_WIRE_SEGMENTS; count++) {
		struct verve_wire_packet out, in = {
			.type = VERVE_WIRE_ATOMIC, .flags = VERVE_WIRE_FETCH, .dest = 3,
			.credits = 9, .op_id = 0xf0000001, .amo_op = 17, .amo_type = 254,
			.segment_count = count,
		};
		unsigned char buf[VERVE_WIRE_RTS_MAX];
		size_t size;

		for (uint32_t i = 0; i < count; i++)
			in.segment[i] = (struct verve_wire_segment) {UINT64_MAX - i, 8 * i, ~i};
		size = verve_wire_encode(&in, buf);
		cr_assert_eq(size, verve_wire_atomic_prefix(count));
		memcpy(buf + size, "operands", 8);
		cr_assert_eq(verve_wire_decode(buf, size + 8, &out), 0);
		cr_assert_eq(out.flags, VERVE_WIRE_FETCH);
		cr_assert_eq(out.op_id, in.op_id);
		cr_assert_eq(out.amo_op, 17);
		cr_assert_eq(out.amo_type, 254);
		cr_assert_eq(out.segment_count, count);
		cr_assert_eq(out.len, 8);
		cr_assert_eq(memcmp(out.payload, "operands", 8), 0);
		for (uint32_t i = 0; i < count; i++) {
			cr_assert_eq(out.segment[i].addr, in.segment[i].addr);
			cr_assert_eq(out.segment[i].len, in.segment[i].len);
			cr_assert_eq(out.segment[i].key, in.segment[i].key);
		}
		for (size_t cut = 0; cut < size; cut++)
			cr_assert_eq(verve_wire_decode(buf, cut, &out), -FI_EINVAL);
	}
}

Test(wire, atomic_with_too_many_segments_is_refused)
{
	struct verve_wire_packet out, in = {.type = VERVE_WIRE_ATOMIC, .segment_count = 1};
	unsigned char buf[VERVE_WIRE_RTS_MAX] = {0};

	verve_wire_encode(&in, buf);
	buf[14] = VERVE_WIRE_SEGMENTS;
	cr_assert_eq(verve_wire_decode(buf, sizeof(buf), &out), 0);
	buf[14]++;
	cr_assert_eq(verve_wire_decode(buf, sizeof(buf), &out), -FI_EINVAL);
	buf[14] = 0;
	buf[15] = 1;
	cr_assert_eq(verve_wire_decode(buf, sizeof(buf), &out), -FI_EINVAL);
}

Test(wire, atomic_reply_carries_id_status_and_values)
{
	struct verve_wire_packet out, in = {
		.type = VERVE_WIRE_ATOMIC_REPLY, .op_id = 0xfedcba98, .status = 3,
	};
	unsigned char buf[VERVE_WIRE_RTS_MAX];
	size_t size = verve_wire_encode(&in, buf);

	cr_assert_eq(size, VERVE_WIRE_HEADER);
	memcpy(buf + size, "was", 3);
	cr_assert_eq(verve_wire_decode(buf, size + 3, &out), 0);
	cr_assert_eq(out.op_id, in.op_id);
	cr_assert_eq(out.status, 3);
	cr_assert_eq(out.len, 3);
	cr_assert_eq(memcmp(out.payload, "was", 3), 0);
}

static int decode_encoded(const struct verve_wire_packet *packet)
{
	unsigned char buf[VERVE_WIRE_RTS_MAX];
	struct verve_wire_packet out;

	return verve_wire_decode(buf, verve_wire_encode(packet, buf), &out);
}

Test(wire, numbers_that_make_no_sense_are_refused)
{
	struct verve_wire_packet written = {.type = VERVE_WIRE_WRITE_DATA,
					    .flags = VERVE_WIRE_DATA};
	struct verve_wire_packet event = {.type = VERVE_WIRE_RMA_EVENT, .flags = VERVE_WIRE_DATA};

	cr_expect_eq(decode_encoded(&written), 0);
	written.flags = 0;
	cr_expect_eq(decode_encoded(&written), -FI_EINVAL, "the data of no data");
	cr_expect_eq(decode_encoded(&event), 0);
	event.tag = VERVE_WIRE_READ;
	cr_expect_eq(decode_encoded(&event), -FI_EINVAL, "data with a read");
}

/*
 * A type that has no row in the table of layouts is not decoded. WRITE_DATA always has data, and
 * PART without segments an error.
 */
Test(wire, every_type_has_a_layout)
{
	for (int type = 1; type < VERVE_WIRE_TYPES; type++) {
		struct verve_wire_packet packet = {
			.type = type, .flags = type == VERVE_WIRE_WRITE_DATA ? VERVE_WIRE_DATA : 0,
			.status = type == VERVE_WIRE_PART};

		cr_expect_eq(decode_encoded(&packet), 0, "type %d", type);
	}
}

Test(wire, unknown_types_flags_and_trailing_bytes_are_refused)
{
	struct verve_wire_packet out;
	unsigned char buf[64] = {0};

	cr_assert_eq(verve_wire_decode(buf, 16, &out), -FI_EINVAL);
	buf[0] = VERVE_WIRE_TYPES;
	cr_assert_eq(verve_wire_decode(buf, 16, &out), -FI_EINVAL);
	buf[0] = VERVE_WIRE_EAGER;
	buf[1] = VERVE_WIRE_FETCH;
	cr_assert_eq(verve_wire_decode(buf, 16, &out), -FI_EINVAL);
	buf[0] = VERVE_WIRE_CREDIT;
	buf[1] = VERVE_WIRE_DATA;
	cr_assert_eq(verve_wire_decode(buf, 24, &out), -FI_EINVAL);
	buf[1] = 0;
	cr_assert_eq(verve_wire_decode(buf, 17, &out), -FI_EINVAL);
	cr_assert_eq(verve_wire_decode(buf, 16, &out), 0);
}

Test(wire, random_bytes_never_read_out_of_bounds)
{
	uint64_t state = 1;

	for (int i = 0; i < 200000; i++) {
		size_t len = next_random(&state) % 160;
		/* Of the exact length, so that a sanitizer sees a read of one byte too many. */
		unsigned char *buf = malloc(len ? len : 1);
		struct verve_wire_packet out;

		for (size_t j = 0; j < len; j++)
			buf[j] = next_random(&state);
		if (len)
			buf[0] %= VERVE_WIRE_TYPES + 1;
		if (len > 1)
			buf[1] &= VERVE_WIRE_FLAGS;
		if (len > 15 && buf[0] == VERVE_WIRE_ATOMIC)
			buf[14] %= VERVE_WIRE_SEGMENTS + 2, buf[15] = 0;
		if (verve_wire_decode(buf, len, &out) == 0 &&
		    (out.type == VERVE_WIRE_EAGER || out.type == VERVE_WIRE_ATOMIC ||
		     out.type == VERVE_WIRE_ATOMIC_REPLY))
			cr_assert_leq((size_t)((unsigned char *)out.payload - buf) + out.len,
				      len);
		free(buf);
	}
}
