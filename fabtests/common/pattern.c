/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pattern: eight bytes at a time from a mixing function of the seed and the word's index. */
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/pattern.h"

#define PAGE 4096
#define GUARD 64
#define GUARD_BYTE 0xa5

/* In the page before the payload. */
struct head {
	size_t len;
};

static uint64_t word_at(uint64_t seed, size_t index)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + index;

	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	return x;
}

void pattern_fill(void *buf, size_t len, uint64_t seed)
{
	uint8_t *at = buf;
	size_t words = len / 8;

	for (size_t i = 0; i < words; i++) {
		uint64_t word = word_at(seed, i);

		memcpy(at + 8 * i, &word, 8);
	}
	if (len % 8) {
		uint64_t word = word_at(seed, words);

		memcpy(at + 8 * words, &word, len % 8);
	}
}

/* Blocks are compared by memcmp: most of a test's time would go into comparing byte by byte. */
static size_t first_wrong(const uint8_t *at, size_t len, uint64_t seed)
{
	uint64_t block[512];
	const uint8_t *expected = (const uint8_t *)block;

	for (size_t begin = 0; begin < len; begin += sizeof(block)) {
		size_t part = len - begin < sizeof(block) ? len - begin : sizeof(block);

		for (size_t i = 0; 8 * i < part; i++)
			block[i] = word_at(seed, begin / 8 + i);
		if (!memcmp(at + begin, expected, part))
			continue;
		for (size_t i = 0; i < part; i++)
			if (at[begin + i] != expected[i])
				return begin + i;
	}
	return len;
}

bool pattern_holds(const void *buf, size_t len, uint64_t seed)
{
	return first_wrong(buf, len, seed) == len;
}

bool pattern_check(const void *buf, size_t len, uint64_t seed)
{
	size_t wrong = first_wrong(buf, len, seed);

	if (wrong != len)
		check_fail("payload with seed %llu differs at byte %zu of %zu (it is 0x%02x)",
			   (unsigned long long)seed, wrong, len, ((const uint8_t *)buf)[wrong]);
	else
		CHECK(wrong == len);
	return wrong == len;
}

bool pattern_check_byte(const void *buf, size_t len, uint8_t value)
{
	const uint8_t *at = buf;
	size_t i = 0;

	/* All bytes are the same if the first one has the value, and each is the one before it. */
	if (len && at[0] == value && !memcmp(at, at + 1, len - 1))
		i = len;
	while (i < len && at[i] == value)
		i++;
	if (i != len)
		check_fail("byte %zu of %zu is 0x%02x, expected 0x%02x", i, len, at[i], value);
	return i == len;
}

void *pattern_alloc(size_t len)
{
	size_t total = (PAGE + len + GUARD + PAGE - 1) / PAGE * PAGE;
	uint8_t *page = aligned_alloc(PAGE, total);

	if (!page)
		check_fatal("out of memory (%zu bytes)", len);
	((struct head *)page)->len = len;
	memset(page + PAGE, PATTERN_EMPTY, len);
	memset(page + PAGE + len, GUARD_BYTE, GUARD);
	return page + PAGE;
}

void pattern_free(void *buf)
{
	uint8_t *page;

	if (!buf)
		return;
	page = (uint8_t *)buf - PAGE;
	if (!pattern_check_byte((uint8_t *)buf + ((struct head *)page)->len, GUARD, GUARD_BYTE))
		check_fail("something wrote past the end of a buffer");
	free(page);
}
