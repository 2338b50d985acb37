/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What else the outside world gives: time, randomness, the service thread and its sleep.
 * In the simulation the clock is simulated, randomness is seeded, and no thread starts:
 * the test calls the thread's step itself.
 */
#ifndef VERVE_NET_SYS_H
#define VERVE_NET_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Monotonic, nanoseconds. */
uint64_t verve_net_now(void);
/* Cryptographically strong (libsodium). */
void verve_net_random(void *buf, size_t len);
static inline uint64_t verve_net_random64(void)
{
	uint64_t random;

	verve_net_random(&random, sizeof(random));
	return random;
}

/* For a loop that polls until something happens: gives the processor away; lets simulated time pass. */
void verve_net_pause(void);

struct verve_net_thread;

/*
 * Starts a thread, all signals blocked, that calls step(arg) until stop. step returns how long it
 * may sleep, in nanoseconds (UINT64_MAX: until woken); the thread sleeps that long, or until one of
 * its watched descriptors is readable, or until woken.
 */
int verve_net_thread_start(const char *name, uint64_t (*step)(void *arg), void *arg,
			   struct verve_net_thread **thread);
/* Returns when the thread has ended. */
void verve_net_thread_stop(struct verve_net_thread *thread);
/* Any thread; makes the next, or the present, sleep end at once. */
void verve_net_thread_wake(struct verve_net_thread *thread);
/* Watches fd for readability; negative fd (simulation) is ignored. Any thread. */
int verve_net_thread_watch(struct verve_net_thread *thread, int fd);
void verve_net_thread_unwatch(struct verve_net_thread *thread, int fd);

#endif
