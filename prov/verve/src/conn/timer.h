/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Timers: a binary heap of timers, the earliest first. A timer is embedded in its object. Setting a
 * timer takes O(log n) steps for n running timers; finding the first takes none. The heap has no
 * lock: one thread uses it.
 */
#ifndef VERVE_CONN_TIMER_H
#define VERVE_CONN_TIMER_H

#include <stddef.h>
#include <stdint.h>

#define VERVE_TIMER_NEVER UINT64_MAX

/* A timer of all zeros does not run. */
struct verve_timer {
	uint64_t when; /* nanoseconds of verve_net_now() */
	size_t place;  /* index in the heap, from 1; 0: the timer does not run */
};

struct verve_timers {
	struct verve_timer **heap;
	size_t count; /* timers that run */
	size_t room;  /* timers that may run */
};

void verve_timers_init(struct verve_timers *timers);
/* Frees the heap; touches no timer. */
void verve_timers_fini(struct verve_timers *timers);

/* Makes room for count timers to run at the same time. -FI_ENOMEM. */
int verve_timers_reserve(struct verve_timers *timers, size_t count);

/*
 * Starts a timer, or moves it; when VERVE_TIMER_NEVER stops it. verve_timers_reserve must have made
 * room for it.
 */
void verve_timers_set(struct verve_timers *timers, struct verve_timer *timer, uint64_t when);

/* The timer with the earliest time; NULL: no timer runs. */
static inline struct verve_timer *verve_timers_first(const struct verve_timers *timers)
{
	return timers->count ? timers->heap[1] : NULL;
}

#endif
