/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Timers: a binary heap of points in time, earliest first. Embedded in what they are for; setting
 * one costs the logarithm of how many run, finding the first costs nothing. The owner's thread.
 */
#ifndef VERVE_CONN_TIMER_H
#define VERVE_CONN_TIMER_H

#include <stddef.h>
#include <stdint.h>

#define VERVE_TIMER_NEVER UINT64_MAX

/* All zero: not running. */
struct verve_timer {
	uint64_t when; /* nanoseconds */
	size_t place;  /* in the heap, from 1; 0: not running */
};

struct verve_timers {
	struct verve_timer **heap;
	size_t count;
	size_t room;
};

void verve_timers_init(struct verve_timers *timers);
/* No timer is touched. */
void verve_timers_fini(struct verve_timers *timers);

/* Makes room for count timers to run at the same time. -FI_ENOMEM. */
int verve_timers_reserve(struct verve_timers *timers, size_t count);

/* Starts or moves a timer, for which there must be room; VERVE_TIMER_NEVER stops it. */
void verve_timers_set(struct verve_timers *timers, struct verve_timer *timer, uint64_t when);

/* The earliest; NULL: none runs. */
static inline struct verve_timer *verve_timers_first(const struct verve_timers *timers)
{
	return timers->count ? timers->heap[1] : NULL;
}

#endif
