/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counter: values that change, and the flag of those who wait for it.
 *
 * Changing and arming both end in a read-modify-write of armed, which orders them: whichever comes
 * second sees what the other did. Either the change finds the flag set and wakes, or who armed
 * finds the change. Clearing it is one too, so that the chain does not break there.
 */
#include "comp/comp.h"

static void changed(struct verve_comp_counter *counter)
{
	if (__builtin_expect(!AO_fetch_and_add_full(&counter->armed, 0), 1))
		return;
	/* Before the wake: who arms again after it has cleared its descriptor before. */
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
