/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counter: values, and that a change calls wake if the counter is armed. */
#include "comp/counter.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>

static struct verve_comp_counter counter;
static int wakes;

static void wake(void *arg)
{
	cr_assert_eq(arg, &wakes);
	wakes++;
}

static void setup(void)
{
	counter = (struct verve_comp_counter){.wake = wake, .arg = &wakes};
	wakes = 0;
}

TestSuite(comp, .init = setup);

Test(comp, values_add_up)
{
	verve_comp_counter_add(&counter, 1);
	verve_comp_counter_add(&counter, 1ull << 40);
	verve_comp_counter_add_error(&counter, 3);
	cr_expect_eq(AO_load(&counter.value), 1 + (1ull << 40));
	cr_expect_eq(AO_load(&counter.errors), 3);
	verve_comp_counter_set(&counter, 7);
	verve_comp_counter_set_error(&counter, 0);
	cr_expect_eq(AO_load(&counter.value), 7);
	cr_expect_eq(AO_load(&counter.errors), 0);
	cr_expect_eq(wakes, 0);
}

Test(comp, zeroed_is_a_good_counter)
{
	struct verve_comp_counter plain = {0};

	verve_comp_counter_add(&plain, 2);
	verve_comp_counter_add_error(&plain, 1);
	cr_expect_eq(AO_load(&plain.value), 2);
}

Test(comp, every_kind_of_change_wakes_once_for_each_arming)
{
	void (*const change[])(struct verve_comp_counter *, uint64_t) = {
		verve_comp_counter_add,
		verve_comp_counter_add_error,
		verve_comp_counter_set,
		verve_comp_counter_set_error,
	};

	for (int i = 0; i < 4; i++) {
		verve_comp_counter_arm(&counter);
		cr_expect_eq(wakes, i);
		change[i](&counter, 1);
		change[i](&counter, 1);
		cr_expect_eq(wakes, i + 1);
	}
}

enum { ADDERS = 3, EACH = 20000 };

static sem_t woken;

static void post(void *arg)
{
	sem_post(arg);
}

static void *adder(void *arg)
{
	(void)arg;
	for (int i = 0; i < EACH; i++)
		verve_comp_counter_add(&counter, 1);
	return NULL;
}

/* If a wake-up were lost, the last sleep would never end. */
Test(comp, waiter_never_misses_the_last_change, .timeout = 120)
{
	pthread_t thread[ADDERS];

	counter = (struct verve_comp_counter){.wake = post, .arg = &woken};
	sem_init(&woken, 0, 0);
	for (int i = 0; i < ADDERS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, adder, NULL), 0);
	for (;;) {
		while (sem_trywait(&woken) == 0)
			;
		verve_comp_counter_arm(&counter);
		if (AO_load(&counter.value) == ADDERS * EACH)
			break;
		sem_wait(&woken);
	}
	for (int i = 0; i < ADDERS; i++)
		pthread_join(thread[i], NULL);
	sem_destroy(&woken);
}
