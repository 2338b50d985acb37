/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fuzzer's bytes, read from the front; behind the end they are zeros. */
#ifndef VERVE_TEST_FUZZ_INPUT_H
#define VERVE_TEST_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
	const uint8_t *at, *end;
};

static inline size_t input_bytes(struct input *input, void *buf, size_t len)
{
	size_t left = (size_t)(input->end - input->at), n = len < left ? len : left;

	memset(buf, 0, len);
	if (n)
		memcpy(buf, input->at, n);
	input->at += n;
	return n;
}

static inline uint8_t input_u8(struct input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

static inline uint64_t input_u64(struct input *input)
{
	uint64_t value;

	input_bytes(input, &value, sizeof(value));
	return value;
}

#endif
