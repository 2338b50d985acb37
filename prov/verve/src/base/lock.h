/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lock: a mutex with a flag that tells whether it is held. The mutex can be elided at init, if the
 * application has promised to serialize its calls (FI_THREAD_DOMAIN).
 *
 * The mutex is a word that a thread waits for by futex(2). A message of 8 bytes takes several
 * locks, which nobody else holds, so that their atomic instructions are much of its time. Taking a
 * lock needs one. Releasing it needs none before a thread has slept for the lock, once: that
 * thread makes the lock a contended one, for good (lock.c).
 *
 * A thread that waits asks those that only try to give way once: a thread that polls in a loop has
 * the lock nearly all the time, and takes it again before another processor sees it free.
 *
 * The flag is exact in the thread that holds the lock, and only a hint in others; it is for
 * assertions only.
 */
#ifndef VERVE_BASE_LOCK_H
#define VERVE_BASE_LOCK_H

#include <atomic_ops.h>
#include <limits.h>
#include <stdbool.h>

/* WAITED_FOR: taken, and another thread may wait for it. */
enum { VERVE_LOCK_FREE, VERVE_LOCK_TAKEN, VERVE_LOCK_WAITED_FOR };

struct verve_lock {
	volatile unsigned word; /* VERVE_LOCK_FREE, ... */
	bool elided;		/* the word is never changed */
	bool held;		/* for verve_lock_held; not kept where NDEBUG is defined */
	volatile unsigned char wanted; /* a thread waits: the next verve_lock_try fails */
	/*
	 * Not 0: the lock is contended. It lies outside the lock, whose memory may end as soon as
	 * the next thread has it, while the thread that releases it still looks here.
	 */
	volatile unsigned *contended;
};

/*
 * elided: the owner's calls are serialized without the lock. Keeps errno. The first call of a
 * process registers for membarrier(2). Many locks share a few marks of contention, so that waiting
 * for one of them makes others contended, too.
 */
void verve_lock_init(struct verve_lock *lock, bool elided);
/* For verve_lock_acquire alone: waits until the word is free, and takes it. */
void verve_lock_wait(struct verve_lock *lock);
/* For verve_lock_release alone: wakes up to count of the threads that wait for the word. */
void verve_lock_wake(volatile unsigned *word, int count);

/* Without assertions nobody asks, and a message saves some ten stores. */
static inline void verve_lock_note(struct verve_lock *lock, bool held)
{
#ifdef NDEBUG
	(void)lock, (void)held;
#else
	lock->held = held;
#endif
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
	verve_lock_note(lock, true);
}

/* True, once, if a thread waits for the lock. */
static inline bool verve_lock_gives_way(struct verve_lock *lock)
{
	if (__builtin_expect(!AO_char_load(&lock->wanted), 1))
		return false;
	AO_char_store(&lock->wanted, 0);
	return true;
}

/*
 * True: the caller holds the lock now. False: another thread holds it, or waits for it. An elided
 * lock: always true.
 */
static inline bool verve_lock_try(struct verve_lock *lock)
{
	/* To look first is cheaper than to take the word's cache line from the holder in vain. */
	if (!lock->elided && (AO_int_load(&lock->word) != VERVE_LOCK_FREE ||
			      verve_lock_gives_way(lock) || !verve_lock_take_word(lock)))
		return false;
	verve_lock_note(lock, true);
	return true;
}

/* For verve_lock_release alone. */
static inline void verve_lock_release_contended(volatile unsigned *word)
{
	/* From here on the memory of the lock may end: the next thread may have it. */
	if (AO_int_fetch_and_sub1_release(word) == VERVE_LOCK_TAKEN)
		return;
	AO_int_store_release(word, VERVE_LOCK_FREE);
	verve_lock_wake(word, 1);
}

static inline void verve_lock_release(struct verve_lock *lock)
{
	volatile unsigned *contended = lock->contended, *word = &lock->word;

	verve_lock_note(lock, false);
	if (lock->elided)
		return;
	if (__builtin_expect(AO_int_load(contended), 0)) {
		verve_lock_release_contended(word);
		return;
	}
	AO_int_store_release(word, VERVE_LOCK_FREE);
	AO_compiler_barrier();
	/* The store may have taken the mark away of threads that sleep since: wake all. */
	if (__builtin_expect(AO_int_load(contended), 0))
		verve_lock_wake(word, INT_MAX);
}

/* For assertions alone, in code that must run under the lock. */
static inline bool verve_lock_held(const struct verve_lock *lock)
{
	return lock->held;
}

#endif
