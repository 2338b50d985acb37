/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lock: a mutex with a flag that tells whether it is held. The mutex can be elided at init, if the
 * application has promised to serialize its calls (FI_THREAD_DOMAIN).
 *
 * The flag is exact in the thread that holds the lock, and only a hint in others; it is for
 * assertions only.
 */
#ifndef VERVE_BASE_LOCK_H
#define VERVE_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct verve_lock {
	pthread_mutex_t mutex;
	bool elided; /* the mutex is never locked */
	bool held;   /* for verve_lock_held */
};

/* elided: the owner's calls are serialized without the lock. */
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

/*
 * True: the caller holds the lock now. False: another thread holds it. An elided lock: always true.
 */
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

/* For assertions in code that must run under the lock. */
static inline bool verve_lock_held(const struct verve_lock *lock)
{
	return lock->held;
}

#endif
