/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lock: holding, trying, and elision. */
#include "base/lock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

static struct verve_lock lock;

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

Test(lock, protects_what_threads_change)
{
	unsigned long counter = 0;
	pthread_t thread[4];

	verve_lock_init(&lock, false);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, count, &counter), 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_join(thread[i], NULL), 0);
	cr_expect_eq(counter, 400000);
}

static void *pass(void *arg)
{
	verve_lock_acquire(&lock);
	verve_lock_release(&lock);
	return arg;
}

Test(lock, wakes_every_thread_that_waits)
{
	pthread_t thread[3];

	verve_lock_init(&lock, false);
	verve_lock_acquire(&lock);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, pass, NULL), 0);
	/* At least one of them waits in the kernel, or is about to. */
	while (AO_int_load(&lock.word) != VERVE_LOCK_WAITED_FOR)
		sched_yield();
	verve_lock_release(&lock);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_join(thread[i], NULL), 0);
	cr_expect_eq(AO_int_load(&lock.word), VERVE_LOCK_FREE);
}
