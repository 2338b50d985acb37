/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lock: waiting, and waking a thread that waits.
 *
 * While a lock is UNCONTENDED, its release frees the word by a plain store, and then looks whether
 * the lock has become contended. The first thread that sleeps says so, and then looks at the word.
 * Each must see the other's store, so neither may look before its own store is seen by all
 * processors.
 * The thread that comes seldom pays for both: membarrier(2) makes all running threads of the
 * process do their stores before what follows. From then on the lock is CONTENDED, and a release
 * learns from the word whether a thread waits, by an atomic instruction: a lock that several
 * threads use must not interrupt all processors at each wait.
 */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* TURNING: as CONTENDED, but a release that is under way may still take it for UNCONTENDED. */
enum { UNCONTENDED, TURNING, CONTENDED };

enum { PLACES = 256 }; /* locks share them: one that is contended makes others so, too */

static volatile unsigned places[PLACES];
static volatile unsigned next_place;

static bool barrier_of_all_threads(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/*
 * False: Linux before 4.14, or a sandbox that refuses it. Two threads that come here first do no
 * harm.
 */
static bool has_barrier(void)
{
	enum { UNKNOWN, WORKS, FAILS };
	static volatile unsigned barrier;

	if (AO_int_load(&barrier) == UNKNOWN) {
		bool works = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0,
				      0);

		AO_int_store(&barrier, works && barrier_of_all_threads() ? WORKS : FAILS);
	}
	return AO_int_load(&barrier) == WORKS;
}

void verve_lock_init(struct verve_lock *lock, bool elided)
{
	int saved = errno;

	AO_int_store(&lock->word, VERVE_LOCK_FREE);
	lock->elided = elided;
	lock->held = false;
	AO_char_store(&lock->wanted, 0);
	lock->contended = &places[AO_int_fetch_and_add1(&next_place) % PLACES];
	if (!has_barrier())
		AO_int_store(lock->contended, CONTENDED);
	errno = saved;
}

/* False: a sandbox that the process has entered since verve_lock_init refuses membarrier(2). */
static bool make_contended(struct verve_lock *lock)
{
	if (AO_int_load(lock->contended) == CONTENDED)
		return true;
	AO_int_compare_and_swap(lock->contended, UNCONTENDED, TURNING);
	if (!barrier_of_all_threads())
		return false;
	AO_int_store(lock->contended, CONTENDED);
	return true;
}

/*
 * Looks before a thread sleeps: some microseconds. The lock is held for the length of a post, or of
 * a poll; to sleep and to be woken takes longer.
 */
enum { SPINS = 64 };

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/* False: the word did not become free meanwhile. */
static bool spin(struct verve_lock *lock, unsigned take_as)
{
	for (int i = 0; i < SPINS; i++) {
		if (!AO_char_load(&lock->wanted))
			AO_char_store(&lock->wanted, 1);
		cpu_relax();
		if (AO_int_load(&lock->word) == VERVE_LOCK_FREE &&
		    AO_int_compare_and_swap_acquire(&lock->word, VERVE_LOCK_FREE, take_as)) {
			AO_char_store(&lock->wanted, 0);
			return true;
		}
	}
	return false;
}

/*
 * A thread that has slept takes the word as WAITED_FOR, because it cannot know whether others wait
 * still: at worst, its release wakes nobody.
 */
void verve_lock_wait(struct verve_lock *lock)
{
	static const struct timespec a_millisecond = {.tv_nsec = 1000000};
	const struct timespec *most;
	int saved = errno;

	if (spin(lock, VERVE_LOCK_TAKEN))
		return;
	/* Without the barrier, a release may miss this thread. */
	most = make_contended(lock) ? NULL : &a_millisecond;
	do {
		AO_int_compare_and_swap(&lock->word, VERVE_LOCK_TAKEN, VERVE_LOCK_WAITED_FOR);
		/* Returns at once if the word has changed meanwhile. */
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, VERVE_LOCK_WAITED_FOR, most,
			NULL, 0);
	} while (!spin(lock, VERVE_LOCK_WAITED_FOR));
	errno = saved;
}

void verve_lock_wake(volatile unsigned *word, int count)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
	errno = saved;
}
