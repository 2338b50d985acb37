/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The guard's limits of what any sender can cause. */
#include "conn/guard.h"

#include <criterion/criterion.h>

static const uint64_t second = 1000000000;

/* Uses the limit up. Returns how many refusals it allowed. */
static unsigned flood(struct verve_guard *guard, enum verve_guard_answer kind, uint64_t now)
{
	unsigned count = 0;

	while (count < 1000000 && verve_guard_may_answer(guard, kind, now))
		count++;
	return count;
}

Test(guard, refusals_have_a_limit_per_second)
{
	struct verve_guard guard = {0};
	unsigned limit = flood(&guard, VERVE_GUARD_ANSWER_KEY, second);

	cr_expect_gt(limit, 0);
	cr_expect_lt(limit, 1000000);
	cr_expect_eq(flood(&guard, VERVE_GUARD_ANSWER_KEY, 2 * second - 1), 0);
	cr_expect_eq(flood(&guard, VERVE_GUARD_ANSWER_KEY, 2 * second), limit);
}

Test(guard, a_flood_of_one_kind_does_not_silence_the_other)
{
	struct verve_guard guard = {0};

	flood(&guard, VERVE_GUARD_ANSWER_ELSEWHERE, second);
	cr_expect(verve_guard_may_answer(&guard, VERVE_GUARD_ANSWER_KEY, second));
}
