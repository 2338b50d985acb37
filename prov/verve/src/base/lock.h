/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lock: a mutex with a flag that tells whether it is held. The mutex can be elided at init, if the
 * application has promised to serialize its calls (FI_THREAD_DOMAIN).
 *
 * The mutex is a word that a thread waits for by futex(2). A send of 8 bytes takes two locks, which
 * nobody else holds: with pthread_mutex_lock(3), which serves every kind of mutex, these alone were
 * a sixth of its instructions.
 *
 * The flag is exact in the thread that holds the lock, and only a hint in others; it is for
 * assertions only.
 */
#ifndef VERVE_BASE_LOCK_H
#define VERVE_BASE_LOCK_H

#include <atomic_ops.h>
#include <stdbool.h>

/* WAITED_FOR: taken, and another thread may wait for it. */
enum { VERVE_LOCK_FREE, VERVE_LOCK_TAKEN, VERVE_LOCK_WAITED_FOR };

struct verve_lock {
	volatile unsigned word; /* VERVE_LOCK_FREE, ... */
	bool elided;		/* the word is never changed */
	bool held;   /* for verve_lock_held */
};

/* For verve_lock_acquire alone: waits until the word is free, and takes it. */
void verve_lock_wait(struct verve_lock *lock);
/* For verve_lock_release alone: frees the word, which is WAITED_FOR, and wakes one thread. */
void verve_lock_wake(struct verve_lock *lock);

/* elided: the owner's calls are serialized without the lock. */
static inline void verve_lock_init(struct verve_lock *lock, bool elided)
{
	AO_int_store(&lock->word, VERVE_LOCK_FREE);
	lock->elided = elided;
	lock->held = false;
}

/* Nobody holds the lock, nor waits for it. */
static inline void verve_lock_fini(struct verve_lock *lock)
{
	(void)lock;
}

static inline bool verve_lock_take_word(struct verve_lock *lock)
{
	return AO_int_compare_and_swap_acquire(&lock->word, VERVE_LOCK_FREE, VERVE_LOCK_TAKEN);
}

static inline void verve_lock_acquire(struct verve_lock *lock)
{
	if (!lock->elided && __builtin_expect(!verve_lock_take_word(lock), 0))
		verve_lock_wait(lock);
	lock->held = true;
}

/*
 * True: the caller holds the lock now. False: another thread holds it. An elided lock: always true.
 */
static inline bool verve_lock_try(struct verve_lock *lock)
{
	if (!lock->elided && !verve_lock_take_word(lock))
		return false;
	lock->held = true;
	return true;
}

static inline void verve_lock_release(struct verve_lock *lock)
{
	lock->held = false;
	if (lock->elided)
		return;
	/* A word that is WAITED_FOR is not free yet: verve_lock_wake frees it. */
	if (__builtin_expect(AO_int_fetch_and_sub1_release(&lock->word) != VERVE_LOCK_TAKEN, 0))
		verve_lock_wake(lock);
}

/* For assertions in code that must run under the lock. */
static inline bool verve_lock_held(const struct verve_lock *lock)
{
	return lock->held;
}

#endif
