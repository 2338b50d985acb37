/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Timers: the heap. Element n's children are 2n and 2n + 1; element 0 is not used. */
#include "conn/timer.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

void verve_timers_init(struct verve_timers *timers)
{
	memset(timers, 0, sizeof(*timers));
}

void verve_timers_fini(struct verve_timers *timers)
{
	free(timers->heap);
	memset(timers, 0, sizeof(*timers));
}

int verve_timers_reserve(struct verve_timers *timers, size_t count)
{
	size_t room = timers->room ? timers->room : FIRST_ROOM;
	struct verve_timer **heap;

	if (count <= timers->room)
		return 0;
	while (room < count)
		room *= 2;
	heap = realloc(timers->heap, (room + 1) * sizeof(*heap));
	if (!heap)
		return -FI_ENOMEM;
	timers->heap = heap;
	timers->room = room;
	return 0;
}

static void heap_put(struct verve_timers *timers, size_t place, struct verve_timer *timer)
{
	timers->heap[place] = timer;
	timer->place = place;
}

/* Inserts timer at place, or nearer to the root if it is earlier than its parents. */
static void sift_up(struct verve_timers *timers, size_t place, struct verve_timer *timer)
{
	for (; place > 1 && timers->heap[place / 2]->when > timer->when; place /= 2)
		heap_put(timers, place, timers->heap[place / 2]);
	heap_put(timers, place, timer);
}

/* Inserts timer at place, or further from the root if it is later than its children. */
static void sift_down(struct verve_timers *timers, size_t place, struct verve_timer *timer)
{
	size_t child;

	for (; (child = 2 * place) <= timers->count; place = child) {
		if (child < timers->count &&
		    timers->heap[child + 1]->when < timers->heap[child]->when)
			child++;
		if (timers->heap[child]->when >= timer->when)
			break;
		heap_put(timers, place, timers->heap[child]);
	}
	heap_put(timers, place, timer);
}

static void timer_stop(struct verve_timers *timers, struct verve_timer *timer)
{
	struct verve_timer *last = timers->heap[timers->count--];
	size_t place = timer->place;

	timer->place = 0;
	if (last == timer)
		return;
	if (last->when < timer->when)
		sift_up(timers, place, last);
	else
		sift_down(timers, place, last);
}

void verve_timers_set(struct verve_timers *timers, struct verve_timer *timer, uint64_t when)
{
	if (timer->place && timer->when == when)
		return;
	if (timer->place)
		timer_stop(timers, timer);
	if (when == VERVE_TIMER_NEVER)
		return;
	assert(timers->count < timers->room);
	timer->when = when;
	sift_up(timers, ++timers->count, timer);
}
