/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counter: counts the operations that have ended. It is behind a fid_cntr: fi_cntr(3). Engines
 * write, applications read; several engines may share a counter. It has no lock: any thread reads
 * and writes the values.
 */
#ifndef VERVE_COMP_COUNTER_H
#define VERVE_COMP_COUNTER_H

#include <atomic_ops.h>
#include <stdint.h>

/* A zeroed struct is a valid counter, which must not be armed. */
struct verve_comp_counter {
	volatile AO_t value;
	volatile AO_t errors;
	volatile AO_t armed;	 /* not 0: the next change calls wake, once */
	void (*wake)(void *arg); /* constant; must not block or re-enter. NULL: never armed */
	void *arg;
};

/* Each of these calls wake, in the calling thread, if the counter is armed. Any thread. */
void verve_comp_counter_add(struct verve_comp_counter *counter, uint64_t n);
void verve_comp_counter_add_error(struct verve_comp_counter *counter, uint64_t n);
void verve_comp_counter_set(struct verve_comp_counter *counter, uint64_t value);
void verve_comp_counter_set_error(struct verve_comp_counter *counter, uint64_t value);

/*
 * The next change of the counter calls wake, once. The caller reads the values after arming: a
 * change from before does not call wake. Any thread.
 */
void verve_comp_counter_arm(struct verve_comp_counter *counter);

#endif
