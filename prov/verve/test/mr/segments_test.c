/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Segments: positions and virtual addresses, at every border of a segment. */
#include "mr/segments.h"

#include <criterion/criterion.h>

static const struct verve_mr_segment three[] = {{5000, 10, 1}, {1000, 20, 2}, {9000, 30, 3}};
static const struct verve_mr_segments by_offset = {three, 3, false}, by_addr = {three, 3, true};

static uint64_t at;

Test(segments, offsets_go_through_all)
{
	for (uint64_t from = 0; from <= 60; from++) {
		cr_assert(verve_mr_segments_find(&by_offset, from, 60 - from, &at));
		cr_assert_eq(at, from);
		cr_assert_not(verve_mr_segments_find(&by_offset, from, 61 - from, &at));
	}
	cr_assert_not(verve_mr_segments_find(&by_offset, 61, 0, &at));
	cr_assert_not(verve_mr_segments_find(&by_offset, UINT64_MAX, 2, &at));
	cr_assert_not(verve_mr_segments_find(&by_offset, 2, UINT64_MAX, &at));
}

Test(segments, a_virtual_address_lies_in_one)
{
	cr_assert(verve_mr_segments_find(&by_addr, 5009, 1, &at));
	cr_assert_eq(at, 9);
	cr_assert(verve_mr_segments_find(&by_addr, 1000, 20, &at));
	cr_assert_eq(at, 10);
	cr_assert(verve_mr_segments_find(&by_addr, 9029, 1, &at));
	cr_assert_eq(at, 59);
	cr_assert_not(verve_mr_segments_find(&by_addr, 4999, 1, &at));
	cr_assert_not(verve_mr_segments_find(&by_addr, 5010, 1, &at));
	cr_assert_not(verve_mr_segments_find(&by_addr, 9000, 31, &at));
	cr_assert_not(verve_mr_segments_find(&by_addr, 0, 1, &at));
}

Test(segments, what_is_longer_goes_on_in_the_next)
{
	cr_assert(verve_mr_segments_find(&by_addr, 5005, 25, &at));
	cr_assert_eq(at, 5);
	cr_assert(verve_mr_segments_find(&by_addr, 5000, 60, &at));
	cr_assert_not(verve_mr_segments_find(&by_addr, 5000, 61, &at));
}

Test(segments, nothing_may_be_asked_of_an_end)
{
	cr_assert(verve_mr_segments_find(&by_addr, 5010, 0, &at));
	cr_assert_eq(at, 10);
	cr_assert_not(verve_mr_segments_find(&by_addr, 5011, 0, &at));
}

Test(segments, rest_of_each_position)
{
	struct verve_mr_segment rest;

	for (uint64_t position = 0; position < 60; position++) {
		int index = position < 10 ? 0 : position < 30 ? 1 : 2;
		const struct verve_mr_segment *in = &three[index];
		uint64_t offset = position - (position < 10 ? 0 : position < 30 ? 10 : 30);

		cr_assert(verve_mr_segments_rest(&by_addr, position, &rest));
		cr_assert_eq(rest.addr, in->addr + offset);
		cr_assert_eq(rest.len, in->len - offset);
		cr_assert_eq(rest.rkey, in->rkey);
	}
	cr_assert_not(verve_mr_segments_rest(&by_addr, 60, &rest));
}

Test(segments, empty_ones_are_passed_over)
{
	static const struct verve_mr_segment list[] = {
		{7, 0, 1}, {100, 8, 2}, {7, 0, 3}, {50, 8, 4}};
	struct verve_mr_segments segments = {list, 4, true};
	struct verve_mr_segment rest;

	cr_assert(verve_mr_segments_find(&segments, 100, 16, &at));
	cr_assert_eq(at, 0);
	cr_assert(verve_mr_segments_rest(&segments, 0, &rest));
	cr_assert_eq(rest.rkey, 2);
	cr_assert(verve_mr_segments_rest(&segments, 8, &rest));
	cr_assert_eq(rest.rkey, 4);
}
