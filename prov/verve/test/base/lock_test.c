/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lock: holding, trying, and elision. */
#include "base/lock.h"

#include <criterion/criterion.h>

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

static void *count(void *arg)
{
	unsigned long *counter = arg;

	for (int i = 0; i < 100000; i++) {
		verve_lock_acquire(&lock);
		++*counter;
		verve_lock_release(&lock);
	}
	return NULL;
}

Test(lock, protects_what_two_threads_change)
{
	unsigned long counter = 0;
	pthread_t thread[2];

	verve_lock_init(&lock, false);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, count, &counter), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(thread[i], NULL), 0);
	cr_expect_eq(counter, 200000);
}
