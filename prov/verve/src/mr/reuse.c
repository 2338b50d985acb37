/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reuse: each place of the table is one word, so that two threads cannot mix two ranges. The word
 * has a part of the range's hash, the misses that are needed until the range is kept, and the
 * misses counted so far. Two threads that miss at the same moment may count as one miss, which is
 * harmless.
 */
#include "mr/reuse.h"

#include <stdint.h>

enum { COUNT_BITS = 8, NEED_BITS = 8, HASH_SHIFT = COUNT_BITS + NEED_BITS };

_Static_assert(VERVE_MR_REUSE_MAX < 1 << COUNT_BITS, "a count has room for what is needed");

/* The mixing function of splitmix64. */
static uint64_t hash_mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t hash_of(const struct verve_mr_want *want)
{
	uint64_t range = hash_mix(hash_mix(want->start) + want->end);

	return hash_mix(range + want->access * 2 + want->exact);
}

/* need: misses until the range is kept; count: misses so far, less than need. */
static AO_t word_of(uint64_t hash, unsigned need, unsigned count)
{
	return (AO_t)hash >> HASH_SHIFT << HASH_SHIFT | need << COUNT_BITS | count;
}

static volatile AO_t *place_of(struct verve_mr_reuse *reuse, uint64_t hash)
{
	return &reuse->places[(hash >> 32) % VERVE_MR_REUSE_PLACES];
}

bool verve_mr_reuse_missed(struct verve_mr_reuse *reuse, const struct verve_mr_want *want)
{
	uint64_t hash = hash_of(want);
	volatile AO_t *place = place_of(reuse, hash);
	AO_t word = AO_load(place);
	unsigned need = word >> COUNT_BITS & ((1 << NEED_BITS) - 1);
	unsigned count = (word & ((1 << COUNT_BITS) - 1)) + 1;

	if (word >> HASH_SHIFT != (AO_t)hash >> HASH_SHIFT || !need) {
		AO_store(place, word_of(hash, 1, 0));
		return false;
	}
	if (count < need) {
		AO_store(place, word_of(hash, need, count));
		return false;
	}
	/* Assume that keeping will not pay, until verve_mr_reuse_paid says otherwise. */
	need = need < VERVE_MR_REUSE_MAX ? 2 * need : need;
	AO_store(place, word_of(hash, need, 0));
	return true;
}

void verve_mr_reuse_paid(struct verve_mr_reuse *reuse, const struct verve_mr_want *want)
{
	uint64_t hash = hash_of(want);

	AO_store(place_of(reuse, hash), word_of(hash, 1, 0));
}
