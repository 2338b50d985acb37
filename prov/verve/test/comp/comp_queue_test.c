/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue: order through ring, overflow and errors; arming; memory that runs out; threads.
 */
#include "comp/comp_queue.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdlib.h>
#include <string.h>

#include "../support/oom.h"
#include "base/log.h"

static struct fi_provider provider = {.name = "verve"};
static struct verve_comp_queue queue;
static int wakes;

static void setup(void)
{
	verve_log_provider = &provider;
	wakes = 0;
}

static void teardown(void)
{
	oom_stop();
}

TestSuite(comp_queue, .init = setup, .fini = teardown);

static void wake(void *arg)
{
	cr_assert_eq(arg, &queue);
	cr_assert_not(verve_lock_held(&queue.lock));
	wakes++;
}

static void init(size_t size)
{
	cr_assert_eq(verve_comp_queue_init(&queue, size, false), 0);
	queue.wake = wake;
	queue.arg = &queue;
}

static void write_one(uintptr_t n)
{
	struct verve_comp comp = {
		.context = (void *)n,
		.flags = n + 1,
		.len = n + 2,
		.buf = (void *)(n + 3),
		.data = n + 4,
		.tag = n + 5,
		.src = n + 6,
	};

	verve_comp_queue_write(&queue, &comp);
}

static void check_comp(const struct verve_comp *comp, uintptr_t n)
{
	cr_assert_eq(comp->context, (void *)n);
	cr_assert_eq(comp->flags, n + 1);
	cr_assert_eq(comp->len, n + 2);
	cr_assert_eq(comp->buf, (void *)(n + 3));
	cr_assert_eq(comp->data, n + 4);
	cr_assert_eq(comp->tag, n + 5);
	cr_assert_eq(comp->src, n + 6);
}

static void write_error(uintptr_t n, const char *reason)
{
	struct verve_comp_error error = {
		.comp = {(void *)n, n + 1, n + 2, (void *)(n + 3), n + 4, n + 5, n + 6},
		.olen = n + 7,
		.err = FI_EIO,
		.prov_errno = 10,
	};

	strcpy(error.reason, reason);
	verve_comp_queue_write_error(&queue, &error);
}

static void read_one(uintptr_t n)
{
	struct verve_comp comp;

	cr_assert_eq(verve_comp_queue_read(&queue, &comp, 1), 1);
	check_comp(&comp, n);
}

static void read_error(uintptr_t n, const char *reason)
{
	struct verve_comp_error error;
	struct verve_comp comp;

	cr_assert_eq(verve_comp_queue_read(&queue, &comp, 1), -FI_EAVAIL);
	cr_assert_eq(verve_comp_queue_read_error(&queue, &error), 0);
	check_comp(&error.comp, n);
	cr_assert_eq(error.olen, n + 7);
	cr_assert_eq(error.err, FI_EIO);
	cr_assert_eq(error.prov_errno, 10);
	cr_assert_str_eq(error.reason, reason);
}

static void check_empty(void)
{
	struct verve_comp_error error;
	struct verve_comp comp;

	cr_assert(verve_comp_queue_is_empty(&queue));
	cr_assert_eq(verve_comp_queue_read(&queue, &comp, 1), 0);
	cr_assert_eq(verve_comp_queue_read_error(&queue, &error), -FI_EAGAIN);
}

Test(comp_queue, size_is_rounded_up)
{
	static const struct {
		size_t size;
		uint32_t mask;
	} cases[] = {{0, 0}, {1, 0}, {2, 1}, {3, 3}, {100, 127}, {1024, 1023}, {1025, 2047}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		init(cases[i].size);
		cr_expect_eq(queue.mask, cases[i].mask);
		verve_comp_queue_fini(&queue);
	}
}

Test(comp_queue, absurd_size_is_refused)
{
	cr_expect_eq(verve_comp_queue_init(&queue, SIZE_MAX, false), -FI_ENOMEM);
}

Test(comp_queue, order_holds_around_the_ring)
{
	init(4);
	for (uintptr_t n = 0; n < 100; n++) {
		write_one(2 * n);
		write_one(2 * n + 1);
		read_one(2 * n);
		read_one(2 * n + 1);
	}
	check_empty();
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, order_holds_through_overflow)
{
	struct verve_comp comp[40];
	uintptr_t n;

	init(4);
	for (n = 0; n < 30; n++)
		write_one(n);
	cr_assert_eq(verve_comp_queue_read(&queue, comp, 2), 2);
	/* The ring has room again, but the completions in the list come before a new one. */
	write_one(n);
	cr_assert_eq(verve_comp_queue_read(&queue, &comp[2], 38), 29);
	for (n = 0; n < 31; n++)
		check_comp(&comp[n], n);
	check_empty();
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, read_never_exceeds_what_is_asked_for)
{
	struct verve_comp comp[3];

	init(4);
	for (uintptr_t n = 0; n < 10; n++)
		write_one(n);
	memset(&comp[2], 0x5a, sizeof(comp[2]));
	cr_assert_eq(verve_comp_queue_read(&queue, comp, 2), 2);
	for (size_t i = 0; i < sizeof(comp[2]); i++)
		cr_assert_eq(((unsigned char *)&comp[2])[i], 0x5a);
	cr_assert_eq(verve_comp_queue_read(&queue, NULL, 0), 0);
	cr_assert_eq(queue.count, 8);
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, error_blocks_until_it_is_fetched)
{
	struct verve_comp_error error;
	struct verve_comp comp[4];

	init(16);
	write_one(0);
	write_error(1, "a reason");
	write_one(2);
	/* The completions before the error are to be read first. */
	cr_assert_eq(verve_comp_queue_read_error(&queue, &error), -FI_EAGAIN);
	cr_assert_eq(verve_comp_queue_read(&queue, comp, 4), 1);
	check_comp(&comp[0], 0);
	cr_assert_not(verve_comp_queue_is_empty(&queue));
	cr_assert_eq(verve_comp_queue_read(&queue, comp, 4), -FI_EAVAIL);
	cr_assert_eq(verve_comp_queue_read(&queue, comp, 0), 0);
	read_error(1, "a reason");
	cr_assert_eq(verve_comp_queue_read_error(&queue, &error), -FI_EAGAIN);
	read_one(2);
	check_empty();
	verve_comp_queue_fini(&queue);
}

/* Those in the ring take no memory, and errors never lie there. */
Test(comp_queue, uninvited_ones_of_the_list_are_counted_until_they_are_read)
{
	struct verve_comp_error error = {.err = FI_EIO, .uninvited = true};
	struct verve_comp comp = {0};

	init(1);
	verve_comp_queue_write_uninvited(&queue, &comp);
	cr_expect_eq(AO_load(&queue.uninvited), 0);
	verve_comp_queue_write_uninvited(&queue, &comp);
	verve_comp_queue_write(&queue, &comp);
	verve_comp_queue_write_error(&queue, &error);
	cr_expect_eq(AO_load(&queue.uninvited), 2);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(verve_comp_queue_read(&queue, &comp, 1), 1);
	cr_expect_eq(AO_load(&queue.uninvited), 1);
	cr_assert_eq(verve_comp_queue_read_error(&queue, &error), 0);
	cr_expect_eq(AO_load(&queue.uninvited), 0);
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, reason_of_any_length_arrives)
{
	char reason[VERVE_COMP_REASON_MAX];

	init(4);
	for (size_t len = 0; len < sizeof(reason); len++) {
		memset(reason, 'x', len);
		reason[len] = '\0';
		write_error(len, reason);
		read_error(len, reason);
	}
	check_empty();
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, unread_entries_are_freed)
{
	init(2);
	for (uintptr_t n = 0; n < 10; n++) {
		write_one(n);
		write_error(n, "unread");
	}
	verve_comp_queue_fini(&queue);
}

/* Random writes and reads; each entry has a number, which must come in order. */
Test(comp_queue, order_holds_in_any_mixture)
{
	for (unsigned seed = 0; seed < 50; seed++) {
		uintptr_t written = 0, read = 0;
		bool is_error[4096];
		unsigned state = seed;

		init(1 + seed % 20);
		while (written < 4096 || read < written) {
			struct verve_comp comp[7];
			ssize_t n;

			if (written < 4096 && rand_r(&state) % 5 < 3) {
				is_error[written] = rand_r(&state) % 8 == 0;
				if (is_error[written])
					write_error(written, "mixed");
				else
					write_one(written);
				written++;
				continue;
			}
			cr_assert_eq(queue.count, written - read);
			n = verve_comp_queue_read(&queue, comp, 1 + rand_r(&state) % 7);
			if (n == -FI_EAVAIL) {
				cr_assert(is_error[read]);
				read_error(read++, "mixed");
			}
			for (ssize_t i = 0; i < n; i++) {
				cr_assert_not(is_error[read]);
				check_comp(&comp[i], read++);
			}
			cr_assert(n != 0 || read == written);
		}
		check_empty();
		verve_comp_queue_fini(&queue);
	}
}

Test(comp_queue, armed_once_wakes_once)
{
	init(4);
	write_one(0);
	cr_assert_eq(wakes, 0);
	cr_assert_not(verve_comp_queue_arm(&queue, 1));
	read_one(0);
	write_one(1);
	cr_assert_eq(wakes, 0);
	read_one(1);
	cr_assert(verve_comp_queue_arm(&queue, 1));
	cr_assert_eq(wakes, 0);
	write_one(2);
	write_one(3);
	cr_assert_eq(wakes, 1);
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, error_wakes)
{
	init(4);
	cr_assert(verve_comp_queue_arm(&queue, 10));
	write_error(0, "now");
	cr_assert_eq(wakes, 1);
	cr_assert_not(verve_comp_queue_arm(&queue, 10));
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, threshold_wakes_when_it_is_reached)
{
	init(2);
	cr_assert(verve_comp_queue_arm(&queue, 5));
	for (uintptr_t n = 0; n < 4; n++)
		write_one(n);
	cr_assert_eq(wakes, 0);
	cr_assert(verve_comp_queue_arm(&queue, 5));
	write_one(4);
	cr_assert_eq(wakes, 1);
	cr_assert_not(verve_comp_queue_arm(&queue, 5));
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, smallest_threshold_of_several_readers_counts)
{
	init(8);
	cr_assert(verve_comp_queue_arm(&queue, 2));
	cr_assert(verve_comp_queue_arm(&queue, 5));
	write_one(0);
	cr_assert_eq(wakes, 0);
	write_one(1);
	cr_assert_eq(wakes, 1);
	verve_comp_queue_fini(&queue);
}

/* All allocations fail from here on: the reserve keeps order and content. */
Test(comp_queue, reserve_takes_over_without_memory)
{
	init(4);
	oom_fail(0, true);
	for (uintptr_t n = 0; n < 4; n++)
		write_one(n);
	for (uintptr_t n = 4; n < 4 + VERVE_COMP_RESERVE; n++) {
		if (n % 3)
			write_one(n);
		else
			write_error(n, "does not fit into the reserve");
	}
	for (uintptr_t n = 0; n < 4 + VERVE_COMP_RESERVE; n++) {
		if (n < 4 || n % 3)
			read_one(n);
		else
			read_error(n, "");
	}
	check_empty();
	cr_assert_gt(oom_stop(), VERVE_COMP_RESERVE - 1);
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, memory_that_comes_back_keeps_the_order)
{
	init(2);
	for (uintptr_t n = 0; n < 60; n++) {
		if (n == 20)
			oom_fail(0, true);
		if (n == 40)
			oom_stop();
		write_one(n);
	}
	for (uintptr_t n = 0; n < 60; n++)
		read_one(n);
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, beyond_the_reserve_it_ends_as_overrun)
{
	struct verve_comp_error error;
	struct verve_comp comp;

	init(1);
	oom_fail(0, true);
	for (uintptr_t n = 0; n < 1 + VERVE_COMP_RESERVE; n++)
		write_one(n);
	cr_assert_eq(wakes, 0);
	write_one(1000);
	oom_stop();
	write_one(1001);
	write_error(1002, "too late");
	/* All earlier entries are there; then the overrun error, for ever. */
	for (uintptr_t n = 0; n < 1 + VERVE_COMP_RESERVE; n++)
		read_one(n);
	for (int i = 0; i < 3; i++) {
		cr_assert_not(verve_comp_queue_is_empty(&queue));
		cr_assert_eq(verve_comp_queue_read(&queue, &comp, 1), -FI_EAVAIL);
		cr_assert_eq(verve_comp_queue_read_error(&queue, &error), 0);
		cr_assert_eq(error.err, FI_EOVERRUN);
		cr_assert_eq(error.comp.src, UINT64_MAX);
		write_one(1003);
	}
	cr_assert_not(verve_comp_queue_arm(&queue, 1));
	verve_comp_queue_fini(&queue);
}

Test(comp_queue, init_without_memory_fails)
{
	for (long nth = 0; nth < 2; nth++) {
		oom_fail(nth, false);
		cr_assert_eq(verve_comp_queue_init(&queue, 4, false), -FI_ENOMEM);
		cr_assert_eq(oom_stop(), 1);
	}
}

enum { WRITERS = 3, READERS = 3, EACH = 20000 };

static struct {
	unsigned char seen[WRITERS][EACH];
	volatile AO_t left;
} shared;

static void *writer(void *arg)
{
	uintptr_t base = (uintptr_t)arg * EACH;

	for (uintptr_t n = 0; n < EACH; n++) {
		if (n % 64 == 63)
			write_error(base + n, "one of many");
		else
			write_one(base + n);
	}
	return NULL;
}

/* Each reader sees each writer's entries in order. */
static void saw(uintptr_t n, intptr_t *last)
{
	uintptr_t from = n / EACH;

	cr_assert_lt(from, WRITERS);
	cr_assert_gt((intptr_t)(n % EACH), last[from]);
	last[from] = (intptr_t)(n % EACH);
	cr_assert_eq(shared.seen[from][n % EACH]++, 0);
	AO_fetch_and_sub1(&shared.left);
}

static void *reader(void *arg)
{
	intptr_t last[WRITERS] = {-1, -1, -1};

	(void)arg;
	while (AO_load(&shared.left)) {
		struct verve_comp comp[5];
		struct verve_comp_error error;
		ssize_t n;

		if (verve_comp_queue_is_empty(&queue))
			continue;
		n = verve_comp_queue_read(&queue, comp, 5);
		/* Another reader may have taken the error meanwhile. */
		if (n == -FI_EAVAIL && !verve_comp_queue_read_error(&queue, &error)) {
			check_comp(&error.comp, (uintptr_t)error.comp.context);
			saw((uintptr_t)error.comp.context, last);
		}
		for (ssize_t i = 0; i < n; i++) {
			check_comp(&comp[i], (uintptr_t)comp[i].context);
			saw((uintptr_t)comp[i].context, last);
		}
	}
	return NULL;
}

Test(comp_queue, threads_lose_nothing_and_see_order)
{
	pthread_t thread[WRITERS + READERS];

	init(64);
	AO_store(&shared.left, WRITERS * EACH);
	for (uintptr_t i = 0; i < WRITERS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, writer, (void *)i), 0);
	for (int i = 0; i < READERS; i++)
		cr_assert_eq(pthread_create(&thread[WRITERS + i], NULL, reader, NULL), 0);
	for (int i = 0; i < WRITERS + READERS; i++)
		pthread_join(thread[i], NULL);
	check_empty();
	verve_comp_queue_fini(&queue);
}
