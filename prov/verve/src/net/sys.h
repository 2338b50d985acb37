/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * System: time, randomness, and the service thread with its sleep. In the simulation the clock is
 * simulated, random numbers come from the test's seed, and no thread starts: the test calls the
 * thread's step itself. Any thread.
 *
 * Source: clock_gettime(2), epoll(7), eventfd(2), pthread_create(3), libsodium's randombytes_buf.
 */
#ifndef VERVE_NET_SYS_H
#define VERVE_NET_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds on the monotonic clock. */
uint64_t verve_net_now(void);
/* Fills buf with len random bytes, cryptographically strong (libsodium). */
void verve_net_random(void *buf, size_t len);
static inline uint64_t verve_net_random64(void)
{
	uint64_t random;

	verve_net_random(&random, sizeof(random));
	return random;
}

/*
 * For a loop that polls for an event: yields the processor; in the simulation, lets time pass.
 */
void verve_net_pause(void);
/* Yields the processor; in the simulation, nothing happens. */
void verve_net_yield(void);
/*
 * This thread could not poll, because another one does: yields in one call of 256, so that a thread
 * that lost its processor while it polls gets it back. Harmless in the simulation.
 */
void verve_net_back_off(void);

struct verve_net_thread;

/*
 * Starts a thread that calls step(arg) again and again until it is stopped; all signals are blocked
 * in it. step returns the longest sleep in nanoseconds (UINT64_MAX: no limit). The thread sleeps
 * that long, or until a watched descriptor is readable, or until it is woken. name: at most 15
 * letters (pthread_setname_np(3)). -FI_ENOMEM, or the error of epoll_create1(2), eventfd(2) or
 * pthread_create(3). Does not log.
 */
int verve_net_thread_start(const char *name, uint64_t (*step)(void *arg), void *arg,
			   struct verve_net_thread **thread);
/*
 * Returns when the thread has ended; frees it. Not from the thread itself. In a child after
 * fork(2), which does not have the thread, only frees.
 */
void verve_net_thread_stop(struct verve_net_thread *thread);
/* Any thread. Ends the thread's present sleep, or its next one, at once. */
void verve_net_thread_wake(struct verve_net_thread *thread);
/*
 * Adds a descriptor that ends the sleep while it is readable; fd stays the caller's. A negative fd
 * (simulation) is ignored. Any thread. The error of epoll_ctl(2).
 */
int verve_net_thread_watch(struct verve_net_thread *thread, int fd);
void verve_net_thread_unwatch(struct verve_net_thread *thread, int fd);

#endif
