/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lock: a mutex that can be elided at open, when the application promised to serialize
 * (FI_THREAD_DOMAIN), and that knows whether it is held.
 *
 * "held" is exact in the holder's own thread and a hint elsewhere; it serves assertions only.
 */
#ifndef VERVE_BASE_LOCK_H
#define VERVE_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct verve_lock {
	pthread_mutex_t mutex;
	bool elided;
	bool held;
};

static inline void verve_lock_init(struct verve_lock *lock, bool elided)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->elided = elided;
	lock->held = false;
}

static inline void verve_lock_fini(struct verve_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static inline void verve_lock_acquire(struct verve_lock *lock)
{
	if (!lock->elided)
		pthread_mutex_lock(&lock->mutex);
	lock->held = true;
}

/* False: another thread has it. An elided lock is always had. */
static inline bool verve_lock_try(struct verve_lock *lock)
{
	if (!lock->elided && pthread_mutex_trylock(&lock->mutex))
		return false;
	lock->held = true;
	return true;
}

static inline void verve_lock_release(struct verve_lock *lock)
{
	lock->held = false;
	if (!lock->elided)
		pthread_mutex_unlock(&lock->mutex);
}

/* For assertions by code that must run under the lock. */
static inline bool verve_lock_held(const struct verve_lock *lock)
{
	return lock->held;
}

#endif
