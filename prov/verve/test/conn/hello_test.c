/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hello: round trips, a stable layout, and random bytes. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn/hello.h"

static const struct verve_hello sample = {
	.kind = VERVE_HELLO_HELLO,
	.version_min = 1,
	.version_max = 3,
	.features = 0x80000000,
	.sender_incarnation = 0x1112131415161718,
	.recipient_incarnation = 0x2122232425262728,
	.sender_id = 0x31323334,
	.recipient_id = 0x41424344,
	.serial = 0x5152535455565758,
	.nonce = 0x6162636465666768,
	.echo = 0x7172737475767778,
	.qp = {
		.gid.raw = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		.lid = 0x8182,
		.mtu_log2 = 12,
		.rd_atomic_target = 16,
		.qp_num = 0x919293,
		.psn = 0xa1a2a3,
		.pkey = 0xb1b2,
		.grh = true,
	},
	.window = 0xb3b4,
	.eager_size = 0xc1c2c3c4,
	.resumes = 0xd1d2d3d4,
};

static const uint8_t golden[VERVE_HELLO_SIZE] = {
	'V', 'R', 'V', 'E', 136, 0, 1, 0,
	1, 3, 0, 0, 0x40, 0, 0, 0x80,
	0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
	0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
	0x34, 0x33, 0x32, 0x31, 0x44, 0x43, 0x42, 0x41,
	0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51,
	0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61,
	0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71,
	0, 1, 2, 3, 4, 5, 6, 7,
	8, 9, 10, 11, 12, 13, 14, 15,
	0x93, 0x92, 0x91, 0, 0xa3, 0xa2, 0xa1, 0,
	0x82, 0x81, 12, 16, 0xb4, 0xb3, 0xb2, 0xb1,
	0xc4, 0xc3, 0xc2, 0xc1, 0xd4, 0xd3, 0xd2, 0xd1,
};

static uint8_t bytes[VERVE_HELLO_SIZE_MAX + 1];
static struct verve_hello hello;

static int decode(size_t len)
{
	uint8_t *exact = malloc(len ? len : 1); /* exact, so that ASan sees a read beyond it */
	int ret;

	memcpy(exact, bytes, len);
	ret = verve_hello_decode(exact, len, &hello);
	free(exact);
	return ret;
}

static int decode_changed(size_t offset, uint8_t byte)
{
	verve_hello_encode(&sample, bytes);
	bytes[offset] = byte;
	return decode(VERVE_HELLO_SIZE);
}

static int decode_zeroed(const struct verve_hello *from, size_t offset, size_t count)
{
	verve_hello_encode(from, bytes);
	memset(bytes + offset, 0, count);
	return decode(VERVE_HELLO_SIZE);
}

Test(hello, bytes_are_stable)
{
	verve_hello_encode(&sample, bytes);
	cr_assert_arr_eq(bytes, golden, sizeof(golden));
}

Test(hello, every_kind_survives_a_round_trip)
{
	for (uint8_t kind = VERVE_HELLO_HELLO; kind < VERVE_HELLO_KINDS; kind++) {
		struct verve_hello sent = sample;

		sent.kind = kind;
		sent.reason = VERVE_HELLO_UNKNOWN;
		verve_hello_encode(&sent, bytes);
		cr_assert_eq(decode(VERVE_HELLO_SIZE), 0);
		cr_assert_eq(memcmp(&hello, &sent, sizeof(sent)), 0);
	}
}

Test(hello, every_other_length_is_refused)
{
	verve_hello_encode(&sample, bytes);
	for (size_t len = 0; len < VERVE_HELLO_SIZE; len++)
		cr_assert_eq(decode(len), -FI_EINVAL);
	cr_assert_eq(decode(VERVE_HELLO_SIZE + 1), -FI_EINVAL);
	cr_assert_eq(decode(VERVE_HELLO_SIZE_MAX + 1), -FI_EINVAL);
}

Test(hello, a_later_version_may_be_longer)
{
	verve_hello_encode(&sample, bytes);
	memset(bytes + VERVE_HELLO_SIZE, 0xee, sizeof(bytes) - VERVE_HELLO_SIZE);
	for (size_t len = VERVE_HELLO_SIZE + 1; len <= VERVE_HELLO_SIZE_MAX; len += 8) {
		bytes[4] = (uint8_t)len;
		bytes[5] = (uint8_t)(len >> 8);
		cr_assert_eq(decode(len), 0);
		cr_assert_eq(memcmp(&hello, &sample, sizeof(sample)), 0);
		cr_assert_eq(decode(len - 1), -FI_EINVAL);
	}
}

Test(hello, unknown_zero_and_feature_bits_do_not_matter)
{
	cr_assert_eq(decode_changed(10, 0xff), 0);
	cr_assert_eq(decode_changed(11, 0xff), 0);
	cr_assert_eq(decode_changed(13, 0xff), 0);
}

Test(hello, nonsense_is_refused)
{
	cr_assert_eq(decode_changed(0, 'v'), -FI_EINVAL);
	cr_assert_eq(decode_changed(6, 0), -FI_EINVAL);
	cr_assert_eq(decode_changed(6, VERVE_HELLO_KINDS), -FI_EINVAL);
	cr_assert_eq(decode_changed(8, 0), -FI_EINVAL, "version 0");
	cr_assert_eq(decode_changed(8, 4), -FI_EINVAL, "versions from 4 to 3");
	cr_assert_eq(decode_changed(83, 1), -FI_EINVAL, "QPN of 25 bits");
	cr_assert_eq(decode_changed(87, 1), -FI_EINVAL, "PSN of 25 bits");
	cr_assert_eq(decode_changed(90, 7), -FI_EINVAL, "MTU 128");
	cr_assert_eq(decode_changed(90, 13), -FI_EINVAL, "MTU 8192");
	cr_assert_eq(decode_zeroed(&sample, 16, 8), -FI_EINVAL, "no incarnation");
	cr_assert_eq(decode_zeroed(&sample, 24, 8), -FI_EINVAL, "half a recipient");
	cr_assert_eq(decode_zeroed(&sample, 32, 4), -FI_EINVAL, "no id");
	cr_assert_eq(decode_zeroed(&sample, 40, 8), -FI_EINVAL, "no serial");
	cr_assert_eq(decode_zeroed(&sample, 48, 8), -FI_EINVAL, "no nonce");
	cr_assert_eq(decode_zeroed(&sample, 56, 8), -FI_EINVAL, "half a recipient");
	cr_assert_eq(decode_zeroed(&sample, 80, 4), -FI_EINVAL, "no QPN");
	cr_assert_eq(decode_zeroed(&sample, 36, 4), 0, "a recipient not known yet");
}

static int decode_buffers(uint32_t window, uint32_t eager_size)
{
	struct verve_hello changed = sample;

	changed.window = window;
	changed.eager_size = eager_size;
	verve_hello_encode(&changed, bytes);
	return decode(VERVE_HELLO_SIZE);
}

Test(hello, less_than_anybody_can_be_configured_for_is_refused)
{
	cr_expect_eq(decode_buffers(2, 256), 0);
	cr_expect_eq(decode_buffers(UINT32_MAX, UINT32_MAX), 0);
	cr_expect_eq(decode_buffers(2, 255), -FI_EINVAL, "eager size 255");
	cr_expect_eq(decode_buffers(2, 0), -FI_EINVAL, "eager size 0");
	cr_expect_eq(decode_buffers(1, 256), -FI_EINVAL, "window 1");
	cr_expect_eq(decode_buffers(0, 256), -FI_EINVAL, "window 0");
}

Test(hello, management_queue_pairs_are_nobodys)
{
	struct verve_hello changed = sample;

	changed.qp.qp_num = 1;
	verve_hello_encode(&changed, bytes);
	cr_expect_eq(decode(VERVE_HELLO_SIZE), -FI_EINVAL);
	changed.qp.qp_num = 2;
	verve_hello_encode(&changed, bytes);
	cr_expect_eq(decode(VERVE_HELLO_SIZE), 0);
}

Test(hello, each_kind_needs_what_it_is_for)
{
	struct verve_hello bye = {
		.kind = VERVE_HELLO_BYE,
		.reason = VERVE_HELLO_CLOSED,
		.version_min = VERVE_HELLO_VERSION_MAX,
		.version_max = VERVE_HELLO_VERSION_MAX,
		.sender_incarnation = 1,
		.recipient_incarnation = 2,
		.recipient_id = 3,
		.echo = 4,
	};

	cr_assert_eq(decode_zeroed(&bye, 0, 0), 0);
	cr_assert_eq(decode_zeroed(&bye, 7, 1), -FI_EINVAL, "BYE without a reason");
	cr_assert_eq(decode_zeroed(&bye, 36, 4), -FI_EINVAL, "BYE to nobody");
	bye.kind = VERVE_HELLO_READY;
	cr_assert_eq(decode_zeroed(&bye, 0, 0), -FI_EINVAL, "READY from nobody");
	bye.kind = VERVE_HELLO_CHALLENGE;
	cr_assert_eq(decode_zeroed(&bye, 0, 0), -FI_EINVAL, "CHALLENGE without a nonce");
	bye.nonce = 5;
	cr_assert_eq(decode_zeroed(&bye, 0, 0), 0);
}

Test(hello, no_version_in_common)
{
	struct verve_hello future = sample;

	future.version_min = VERVE_HELLO_VERSION_MAX + 1;
	future.version_max = 9;
	future.qp.mtu_log2 = 77; /* another meaning in that version */
	verve_hello_encode(&future, bytes);
	cr_assert_eq(decode(VERVE_HELLO_SIZE), -FI_ENOPROTOOPT);
	cr_assert_eq(hello.sender_incarnation, sample.sender_incarnation);
	cr_assert_eq(hello.sender_id, sample.sender_id);
	cr_assert_eq(hello.nonce, sample.nonce);
	cr_assert_eq(hello.version_max, 9);
	future.kind = VERVE_HELLO_BYE;
	future.reason = VERVE_HELLO_VERSION;
	verve_hello_encode(&future, bytes);
	cr_assert_eq(decode(VERVE_HELLO_SIZE), 0);
}

Test(hello, authentication_is_zero_unless_claimed)
{
	struct verve_hello claimed = sample;

	for (size_t i = 0; i < VERVE_HELLO_AUTH_SIZE; i++)
		cr_assert_eq(decode_changed(104 + i, 1), -FI_EINVAL);
	claimed.features = VERVE_HELLO_AUTHENTICATED;
	memset(claimed.auth, 0xab, sizeof(claimed.auth));
	verve_hello_encode(&claimed, bytes);
	cr_assert_eq(decode(VERVE_HELLO_SIZE), 0);
	cr_assert_eq(memcmp(&hello, &claimed, sizeof(claimed)), 0);
}

/* A datagram that decodes makes sense, and encodes to the same bytes. */
static void expect_sense(size_t len)
{
	uint8_t again[VERVE_HELLO_SIZE];

	if (decode(len))
		return;
	if (!hello.kind || hello.kind >= VERVE_HELLO_KINDS || !hello.sender_incarnation)
		cr_assert_fail("decoded nonsense");
	if (hello.kind == VERVE_HELLO_HELLO &&
	    (!hello.qp.qp_num || hello.qp.qp_num > 0xffffff || hello.qp.psn > 0xffffff))
		cr_assert_fail("decoded an impossible queue pair");
	verve_hello_encode(&hello, again);
	again[10] = bytes[10];
	again[11] = bytes[11];
	memcpy(again + 4, bytes + 4, 2);
	memcpy(again + 100, bytes + 100, 4); /* reserved */
	if (memcmp(again, bytes, sizeof(again)))
		cr_assert_fail("decoded something else");
}

Test(hello, any_bytes)
{
	srandom(20);
	for (int round = 0; round < 100000; round++) {
		size_t len = (size_t)random() % (2 * VERVE_HELLO_SIZE);

		if (round % 2) { /* a valid datagram, mutated */
			verve_hello_encode(&sample, bytes);
			bytes[6] = (uint8_t)(1 + random() % 4);
			for (long i = random() % 4; i > 0; i--)
				bytes[random() % VERVE_HELLO_SIZE] = (uint8_t)random();
			len = random() % 8 ? VERVE_HELLO_SIZE : len;
		} else {
			for (size_t i = 0; i < len; i++)
				bytes[i] = (uint8_t)random();
			if (random() % 2)
				memcpy(bytes, golden, 6);
		}
		expect_sense(len);
	}
}
