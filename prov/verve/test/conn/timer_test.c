/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Timers: order under random starts, moves and stops. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "conn/timer.h"

enum { COUNT = 500 };

static struct verve_timers timers;
static struct verve_timer timer[COUNT];

static void setup(void)
{
	verve_timers_init(&timers);
	cr_assert_eq(verve_timers_reserve(&timers, COUNT), 0);
	cr_assert_geq(timers.room, COUNT);
}

static void teardown(void)
{
	verve_timers_fini(&timers);
}

TestSuite(timer, .init = setup, .fini = teardown);

Test(timer, none_runs_at_first)
{
	cr_assert_null(verve_timers_first(&timers));
	verve_timers_set(&timers, &timer[0], VERVE_TIMER_NEVER);
	cr_assert_null(verve_timers_first(&timers));
}

Test(timer, earliest_comes_first)
{
	uint64_t last = 0;

	srandom(3);
	for (int i = 0; i < COUNT; i++)
		verve_timers_set(&timers, &timer[i], (uint64_t)random() % 1000);
	for (int i = 0; i < COUNT; i++) {
		struct verve_timer *first = verve_timers_first(&timers);

		cr_assert_geq(first->when, last);
		last = first->when;
		verve_timers_set(&timers, first, VERVE_TIMER_NEVER);
		cr_assert_eq(first->place, 0);
	}
	cr_assert_null(verve_timers_first(&timers));
}

static uint64_t earliest(const uint64_t *when)
{
	uint64_t min = VERVE_TIMER_NEVER;

	for (int i = 0; i < COUNT; i++)
		if (when[i] < min)
			min = when[i];
	return min;
}

Test(timer, random_against_a_model)
{
	uint64_t when[COUNT];

	srandom(4);
	for (int i = 0; i < COUNT; i++)
		when[i] = VERVE_TIMER_NEVER;
	for (int round = 0; round < 20000; round++) {
		long i = random() % COUNT;
		const struct verve_timer *first;

		when[i] = random() % 3 ? (uint64_t)random() % 10000 : VERVE_TIMER_NEVER;
		verve_timers_set(&timers, &timer[i], when[i]);
		first = verve_timers_first(&timers);
		if ((first ? first->when : VERVE_TIMER_NEVER) != earliest(when))
			cr_assert_fail("round %d: not the earliest", round);
	}
}
