/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reuse: which miss of a range makes it kept. */
#include <criterion/criterion.h>
#include <string.h>

#include "mr/reuse.h"

static struct verve_mr_reuse reuse;

static void setup(void)
{
	memset(&reuse, 0, sizeof(reuse));
}

TestSuite(reuse, .init = setup);

static bool missed(uintptr_t start, uintptr_t end, unsigned access)
{
	return verve_mr_reuse_missed(&reuse, &(struct verve_mr_want){start, end, access, false});
}

/* Number of misses until the range is kept, the last one included. */
static unsigned misses(uintptr_t start)
{
	unsigned count = 1;

	while (!missed(start, start + 1, 0))
		count++;
	return count;
}

Test(reuse, first_is_not_kept_second_is)
{
	for (uintptr_t start = 1; start < 100; start++) {
		cr_expect_not(missed(start, 1000, 0));
		cr_expect(missed(start, 1000, 0));
	}
}

Test(reuse, range_and_access_tell_apart)
{
	static const struct verve_mr_want wants[] = {
		{1, 5, 0, false}, {2, 5, 0, false}, {1, 6, 0, false}, {1, 5, 1, false},
		{1, 5, 0, true},
	};

	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++)
		cr_expect_not(verve_mr_reuse_missed(&reuse, &wants[i]), "%zu", i);
	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++)
		cr_expect(verve_mr_reuse_missed(&reuse, &wants[i]), "%zu", i);
}

Test(reuse, what_never_pays_is_kept_half_as_often_each_time)
{
	unsigned expected = 2;

	cr_expect_eq(misses(7), expected);
	for (int i = 0; i < 12; i++) {
		cr_expect_eq(misses(7), expected, "time %d", i);
		expected = expected < VERVE_MR_REUSE_MAX ? 2 * expected : expected;
	}
	cr_expect_eq(expected, VERVE_MR_REUSE_MAX);
}

Test(reuse, what_paid_is_kept_at_the_next_miss)
{
	for (int i = 0; i < 6; i++)
		misses(7);
	verve_mr_reuse_paid(&reuse, &(struct verve_mr_want){7, 8, 0, false});
	cr_expect_eq(misses(7), 1);
	cr_expect_eq(misses(7), 2);
}

/* More ranges than places: ranges may overwrite each other, but never mix. */
Test(reuse, full_table_forgets)
{
	unsigned kept = 0;

	for (uintptr_t start = 0; start < 4 * VERVE_MR_REUSE_PLACES; start++)
		cr_expect_not(missed(start, start + 10, 0));
	for (uintptr_t start = 0; start < VERVE_MR_REUSE_PLACES / 4; start++)
		kept += missed(1 << 20 | start, 1 << 21, 0) + missed(1 << 20 | start, 1 << 21, 0);
	cr_expect_eq(kept, VERVE_MR_REUSE_PLACES / 4);
}
