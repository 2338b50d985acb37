/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching: the number of comparisons for a match does not grow with the number of receives and
 * messages that wait, whatever tags applications and hostile peers choose.
 */
#include "msg/match.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/*
 * The cost of a match, in nodes that were compared and did not match. The patterns are those of
 * applications, among them the tag bits that Open MPI ignores; messages arrive in another order
 * than the receives were posted.
 */
struct pattern {
	uint64_t start, stride; /* of the tags */
	uint64_t ignore;
	uint32_t sources; /* 0: receives take messages from any source */
};

static const struct pattern patterns[] = {
	{0, 1, 0, 0},
	{0, 1, 3ull << 62, 0},
	{0, 1ull << 32, 3ull << 62, 0},
	{0, (1ull << 32) + 1, 0xff00000000000000, 16},
	{0x4000000000000000, 0x10000, 0xf, 100},
	{0, 0, 0, 100000},
	{7, 0, UINT64_MAX, 0},
};

static uint64_t tag_at(const struct pattern *pattern, uint32_t i)
{
	uint64_t n = pattern->sources ? i / pattern->sources : i;

	return pattern->start + pattern->stride * n;
}

static uint32_t source_at(const struct pattern *pattern, uint32_t i)
{
	return 1 + (pattern->sources ? i % pattern->sources : 0) * 4096;
}

/* Maps 0 .. count - 1 to the same numbers in another order. */
static uint32_t shuffled(uint32_t i, uint32_t count)
{
	return (uint32_t)((uint64_t)i * 7919 % count);
}

/* Misses for each match of a message with a posted receive, on average. */
static double misses_posted(const struct pattern *pattern, uint32_t count)
{
	struct verve_match_recv *recv = calloc(count, sizeof(*recv));
	struct verve_match match;
	double misses;

	verve_match_init(&match);
	for (uint32_t i = 0; i < count; i++) {
		recv[i].source = pattern->sources ? source_at(pattern, i) : VERVE_MATCH_ANY;
		recv[i].tag = tag_at(pattern, i);
		recv[i].ignore = pattern->ignore;
		cr_assert_eq(verve_match_post(&match, &recv[i]), 0);
	}
	misses = (double)match.misses;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = shuffled(i, count);

		cr_assert_not_null(
			verve_match_arrive(&match, source_at(pattern, at), tag_at(pattern, at)));
	}
	misses = ((double)match.misses - misses) / count;
	verve_match_fini(&match);
	free(recv);
	return misses;
}

static double misses_unexpected(const struct pattern *pattern, uint32_t count)
{
	struct verve_match_msg *msg = calloc(count, sizeof(*msg)), *found;
	struct verve_match match;
	double misses;

	verve_match_init(&match);
	for (uint32_t i = 0; i < count; i++) {
		msg[i].source = source_at(pattern, i);
		msg[i].tag = tag_at(pattern, i);
		cr_assert_eq(verve_match_add(&match, &msg[i]), 0);
	}
	/* The first find makes the index. */
	cr_assert_null(verve_match_find(&match, UINT32_MAX - 1, 0, pattern->ignore));
	cr_assert_null(verve_match_find(&match, VERVE_MATCH_ANY, 1ull << 61, 0));
	verve_match_find(&match, VERVE_MATCH_ANY, tag_at(pattern, count - 1), pattern->ignore);
	misses = (double)match.misses;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = shuffled(i, count);

		found = verve_match_find(
			&match, pattern->sources ? source_at(pattern, at) : VERVE_MATCH_ANY,
			tag_at(pattern, at), pattern->ignore);
		cr_assert_not_null(found);
		verve_match_remove(&match, found);
	}
	misses = ((double)match.misses - misses) / count;
	verve_match_fini(&match);
	free(msg);
	return misses;
}

Test(match_cost, cost_of_an_arrival_does_not_grow_with_what_is_posted)
{
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		double few = misses_posted(&patterns[i], 10),
		       many = misses_posted(&patterns[i], 100000);

		cr_expect_lt(few, 0.5, "pattern %zu: %f of 10", i, few);
		cr_expect_lt(many, 0.5, "pattern %zu: %f of 100,000", i, many);
	}
}

/* One find and one removal for each message; a removal does a lookup in each of three indexes. */
Test(match_cost, cost_of_a_receive_does_not_grow_with_what_is_unexpected)
{
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		double few = misses_unexpected(&patterns[i], 10);
		double many = misses_unexpected(&patterns[i], 100000);

		cr_expect_lt(few, 1.5, "pattern %zu: %f of 10", i, few);
		cr_expect_lt(many, 1.5, "pattern %zu: %f of 100,000", i, many);
	}
}

/* Receives of 100 classes: a message costs a lookup in each class, not a walk through receives. */
Test(match_cost, cost_of_many_masks_is_one_look_into_each)
{
	enum { MASKS = 100, EACH = 100 };
	struct verve_match_recv *recv = calloc(MASKS * EACH, sizeof(*recv));
	struct verve_match match;
	uint64_t misses;

	verve_match_init(&match);
	for (uint64_t i = 0; i < MASKS * EACH; i++) {
		recv[i].source = VERVE_MATCH_ANY;
		recv[i].tag = i << 20;
		recv[i].ignore = i % MASKS;
		cr_assert_eq(verve_match_post(&match, &recv[i]), 0);
	}
	misses = match.misses;
	for (uint64_t i = MASKS * EACH; i-- > 0;)
		cr_assert_eq(verve_match_arrive(&match, 3, i << 20), &recv[i]);
	cr_expect_lt(match.misses - misses, (uint64_t)MASKS * EACH * MASKS);
	verve_match_fini(&match);
	free(recv);
}

/*
 * Tags of one bucket, if the factors of the hash were these constants: a peer that knows the source
 * code would send such tags.
 */
Test(match_cost, nobody_can_choose_tags_of_one_bucket)
{
	enum { COUNT = 5000 };
	const uint64_t factor = 0x9e3779b97f4a7c15ull;
	struct verve_match_msg *msg = calloc(COUNT, sizeof(*msg));
	uint64_t inverse = factor;
	struct verve_match match;

	cr_assert_not_null(msg);
	cr_assert_eq(verve_match_init(&match), 0);
	for (int i = 0; i < 6; i++)
		inverse *= 2 - factor * inverse;
	cr_assert_eq(inverse * factor, 1);
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t mix = i * inverse;

		msg[i].source = 0;
		msg[i].tag = mix ^ mix >> 32;
		cr_assert_eq(verve_match_add(&match, &msg[i]), 0);
	}
	cr_expect_null(verve_match_find(&match, 0, UINT64_MAX, 0));
	cr_expect_lt(match.misses, 10 * COUNT);
	for (uint64_t i = 0; i < COUNT; i++)
		verve_match_remove(&match, &msg[i]);
	verve_match_fini(&match);
	free(msg);
}
