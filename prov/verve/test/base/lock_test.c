/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lock: holding, trying, elision, and the turn of a lock for which threads begin to wait. */
#include "base/lock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct verve_lock lock;
static volatile AO_t passed; /* threads that pass() has let through */

static void fini(void)
{
	verve_lock_fini(&lock);
}

TestSuite(lock, .fini = fini);

static void *try_in_another_thread(void *arg)
{
	bool *had = arg;

	*had = verve_lock_try(&lock);
	if (*had)
		verve_lock_release(&lock);
	return NULL;
}

static bool another_thread_gets_it(void)
{
	pthread_t thread;
	bool had;

	cr_assert_eq(pthread_create(&thread, NULL, try_in_another_thread, &had), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	return had;
}

Test(lock, excludes_others_while_it_is_held)
{
	verve_lock_init(&lock, false);
	cr_expect_not(verve_lock_held(&lock));
	cr_expect(another_thread_gets_it());
	verve_lock_acquire(&lock);
	cr_expect(verve_lock_held(&lock));
	cr_expect_not(another_thread_gets_it());
	cr_expect(verve_lock_held(&lock)); /* the failed try has changed nothing */
	verve_lock_release(&lock);
	cr_expect_not(verve_lock_held(&lock));
	cr_expect(another_thread_gets_it());
}

Test(lock, had_by_trying_is_held)
{
	verve_lock_init(&lock, false);
	cr_expect(verve_lock_try(&lock));
	cr_expect(verve_lock_held(&lock));
	cr_expect_not(another_thread_gets_it());
	verve_lock_release(&lock);
	cr_expect(another_thread_gets_it());
}

/* A thread that polls in a loop lets a thread in that waits, and goes on after that. */
Test(lock, trying_gives_way_once_to_a_thread_that_waits)
{
	verve_lock_init(&lock, false);
	AO_char_store(&lock.wanted, 1);
	cr_expect_not(verve_lock_try(&lock));
	cr_expect_not(verve_lock_held(&lock));
	cr_expect(verve_lock_try(&lock));
	verve_lock_release(&lock);
	AO_char_store(&lock.wanted, 1);
	verve_lock_acquire(&lock);
	verve_lock_release(&lock);
}

Test(lock, elided_one_is_always_had_and_still_knows)
{
	verve_lock_init(&lock, true);
	verve_lock_acquire(&lock);
	cr_expect(verve_lock_held(&lock));
	cr_expect(verve_lock_try(&lock));
	cr_expect(another_thread_gets_it());
	verve_lock_acquire(&lock);
	verve_lock_release(&lock);
	cr_expect_not(verve_lock_held(&lock));
}

/* Holds the lock across yields, so that others wait for it. */
static void *count(void *arg)
{
	unsigned long *counter = arg;

	errno = EBADE;
	for (int i = 0; i < 100000; i++) {
		verve_lock_acquire(&lock);
		++*counter;
		if (i % 64 == 0)
			sched_yield();
		verve_lock_release(&lock);
	}
	cr_assert_eq(errno, EBADE);
	return NULL;
}

static void count_in_threads(void)
{
	unsigned long counter = 0;
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, count, &counter), 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_join(thread[i], NULL), 0);
	cr_expect_eq(counter, 400000);
}

Test(lock, protects_what_threads_change)
{
	verve_lock_init(&lock, false);
	count_in_threads();
}

static void forbid_membarrier(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	/* Emulated user space (qemu-user) has no filters: contrib/check-systems says so. */
	if (getenv("VERVE_EMULATED"))
		cr_skip_test("no seccomp(2) here");
	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

Test(lock, without_membarrier_is_contended_from_the_beginning)
{
	forbid_membarrier();
	verve_lock_init(&lock, false);
	cr_expect(AO_int_load(lock.contended));
	count_in_threads();
}

Test(lock, protects_when_a_sandbox_takes_membarrier_away)
{
	verve_lock_init(&lock, false);
	cr_expect_not(AO_int_load(lock.contended));
	forbid_membarrier();
	count_in_threads();
}

/* Each lock is fresh, so that each round has the first wait of a lock. */
struct turn {
	struct verve_lock lock;
	pthread_barrier_t begin, end;
	bool stop;
};

enum { TURNS = 2000 };

static void *take_fresh_locks(void *arg)
{
	struct turn *turn = arg;

	for (;;) {
		pthread_barrier_wait(&turn->begin);
		if (turn->stop)
			return NULL;
		for (int i = 0; i < 10; i++) {
			verve_lock_acquire(&turn->lock);
			if (i == 5)
				sched_yield();
			verve_lock_release(&turn->lock);
		}
		pthread_barrier_wait(&turn->end);
	}
}

/* A wake-up that was lost would leave a thread asleep for ever. */
Test(lock, first_thread_that_waits_is_seen)
{
	static struct turn turn;
	pthread_t thread[2];

	pthread_barrier_init(&turn.begin, NULL, 3);
	pthread_barrier_init(&turn.end, NULL, 3);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, take_fresh_locks, &turn), 0);
	for (int i = 0; i < TURNS; i++) {
		verve_lock_init(&turn.lock, false);
		/* Locks of earlier rounds have made their places contended. */
		AO_int_store(turn.lock.contended, 0);
		pthread_barrier_wait(&turn.begin);
		pthread_barrier_wait(&turn.end);
		cr_assert_eq(AO_int_load(&turn.lock.word), VERVE_LOCK_FREE);
	}
	turn.stop = true;
	pthread_barrier_wait(&turn.begin);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(thread[i], NULL), 0);
}

static void *pass(void *arg)
{
	verve_lock_acquire(&lock);
	AO_fetch_and_add1(&passed);
	verve_lock_release(&lock);
	return arg;
}

enum { SLEEPERS = 3 };

/* The main thread has the lock. At least one of the threads waits in the kernel, or is about to. */
static void start_sleepers(pthread_t *thread)
{
	verve_lock_init(&lock, false);
	verve_lock_acquire(&lock);
	for (int i = 0; i < SLEEPERS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, pass, NULL), 0);
	while (AO_int_load(&lock.word) != VERVE_LOCK_WAITED_FOR)
		sched_yield();
}

static void join_sleepers(const pthread_t *thread)
{
	for (int i = 0; i < SLEEPERS; i++)
		cr_assert_eq(pthread_join(thread[i], NULL), 0);
	cr_expect_eq(AO_int_load(&lock.word), VERVE_LOCK_FREE);
}

Test(lock, wakes_every_thread_that_waits)
{
	pthread_t thread[SLEEPERS];

	start_sleepers(thread);
	verve_lock_release(&lock);
	join_sleepers(thread);
}

/*
 * A release that began before the first thread waited frees the word by a plain store, so that the
 * mark of the waiting threads is gone: all of them are woken. The test makes the two steps itself.
 */
Test(lock, wakes_threads_whose_mark_is_gone)
{
	pthread_t thread[SLEEPERS];

	start_sleepers(thread);
	cr_expect(AO_int_load(lock.contended));
	AO_int_store_release(&lock.word, VERVE_LOCK_FREE);
	verve_lock_wake(&lock.word, INT_MAX);
	join_sleepers(thread);
}

/* The main thread has the lock nearly always; without its giving way, the others would starve. */
Test(lock, lets_threads_in_beside_one_that_tries_on_and_on)
{
	pthread_t thread[3];

	verve_lock_init(&lock, false);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, pass, NULL), 0);
	while (AO_load(&passed) < 3)
		if (verve_lock_try(&lock))
			verve_lock_release(&lock);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_join(thread[i], NULL), 0);
	cr_expect(verve_lock_try(&lock));
}
