/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counter: the values, and the flag that a sleeper arms.
 *
 * A change writes its value, then does a read-modify-write of armed. A sleeper does a
 * read-modify-write of armed, then reads the values. The second of the two sees what the first has
 * written: either the change finds the flag set and calls wake, or the sleeper finds the new value.
 * Clearing the flag is a read-modify-write, too: a plain store would break this order.
 */
#include "comp/counter.h"

static void changed(struct verve_comp_counter *counter)
{
	if (__builtin_expect(!AO_fetch_and_add_full(&counter->armed, 0), 1))
		return;
	/* Cleared before wake, so that a sleeper that wakes and arms again is not disarmed here. */
	AO_and_full(&counter->armed, 0);
	counter->wake(counter->arg);
}

void verve_comp_counter_add(struct verve_comp_counter *counter, uint64_t n)
{
	AO_fetch_and_add_full(&counter->value, n);
	changed(counter);
}

void verve_comp_counter_add_error(struct verve_comp_counter *counter, uint64_t n)
{
	AO_fetch_and_add_full(&counter->errors, n);
	changed(counter);
}

void verve_comp_counter_set(struct verve_comp_counter *counter, uint64_t value)
{
	AO_store_release(&counter->value, value);
	changed(counter);
}

void verve_comp_counter_set_error(struct verve_comp_counter *counter, uint64_t value)
{
	AO_store_release(&counter->errors, value);
	changed(counter);
}

void verve_comp_counter_arm(struct verve_comp_counter *counter)
{
	AO_or_full(&counter->armed, 1);
}
