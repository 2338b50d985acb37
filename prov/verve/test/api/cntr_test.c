/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counter as libfabric sees it: arithmetic, waiting in a call and by descriptor, several waiting
 * threads.
 */
#include "api/cntr.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>

#include "../support/oom.h"
#include "fake_engine.h"

static struct fid_domain *domain;

static void setup(void)
{
	domain = fake_domain(FI_VERSION(1, 17), FI_THREAD_SAFE);
}

static void teardown(void)
{
	oom_stop();
	cr_expect_eq(fake_domain_references(), 0);
}

TestSuite(cntr, .init = setup, .fini = teardown);

static struct fid_cntr *open_cntr(enum fi_wait_obj obj)
{
	struct fi_cntr_attr attr = {.wait_obj = obj};
	struct fid_cntr *cntr;

	cr_assert_eq(fi_cntr_open(domain, &attr, &cntr, &attr), 0);
	return cntr;
}

static void close_cntr(struct fid_cntr *cntr)
{
	cr_assert_eq(fi_close(&cntr->fid), 0);
}

static void count(void *arg, uintptr_t n)
{
	struct fid_cntr *cntr = arg;

	(void)n;
	verve_comp_counter_add(&verve_cntr_from_fid(&cntr->fid)->counter, 1);
}

static void count_error(void *arg, uintptr_t n)
{
	struct fid_cntr *cntr = arg;

	(void)n;
	verve_comp_counter_add_error(&verve_cntr_from_fid(&cntr->fid)->counter, 1);
}

static struct verve_engine *open_engine(struct fid_cntr *cntr, void (*work)(void *arg, uintptr_t n))
{
	struct verve_engine *engine = fake_engine_open(work, cntr);

	cr_assert_eq(verve_cntr_bind_engine(verve_cntr_from_fid(&cntr->fid), engine), 0);
	return engine;
}

static void close_engine(struct fid_cntr *cntr, struct verve_engine *engine)
{
	verve_cntr_unbind_engine(verve_cntr_from_fid(&cntr->fid), engine);
	fake_engine_close(engine);
}

Test(cntr, every_operation_is_there)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_NONE);
	void *const *op = (void *const *)&cntr->ops->read;
	void *const *fid_op = (void *const *)&cntr->fid.ops->close;

	cr_expect_eq(cntr->fid.fclass, FI_CLASS_CNTR);
	cr_expect_not_null(cntr->fid.context);
	cr_expect_eq(cntr->ops->size, sizeof(*cntr->ops));
	for (size_t i = 0; i < (sizeof(*cntr->ops) - sizeof(size_t)) / sizeof(void *); i++)
		cr_expect_not_null(op[i]);
	for (size_t i = 0; i < (sizeof(*cntr->fid.ops) - sizeof(size_t)) / sizeof(void *); i++)
		cr_expect_not_null(fid_op[i]);
	close_cntr(cntr);
}

Test(cntr, bad_attributes_are_refused)
{
	struct fi_cntr_attr bad[] = {
		{.events = (enum fi_cntr_events)99},
		{.flags = 1},
		{.wait_obj = (enum fi_wait_obj)99},
		{.wait_obj = FI_WAIT_SET},
	};
	const int error[] = {-FI_EINVAL, -FI_EBADFLAGS, -FI_EINVAL, -FI_ENOSYS};
	struct fid_cntr *cntr;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(fi_cntr_open(domain, &bad[i], &cntr, NULL), error[i], "case %zu", i);
}

Test(cntr, attributes_may_be_left_out)
{
	struct fid_cntr *cntr;

	cr_assert_eq(fi_cntr_open(domain, NULL, &cntr, NULL), 0);
	cr_expect_eq(fi_cntr_wait(cntr, 0, 0), -FI_ENOSYS);
	close_cntr(cntr);
}

Test(cntr, open_without_memory_fails)
{
	struct fid_cntr *cntr;

	oom_fail(0, false);
	cr_expect_eq(fi_cntr_open(domain, NULL, &cntr, NULL), -FI_ENOMEM);
	cr_expect_eq(oom_stop(), 1);
}

Test(cntr, values_are_what_was_added_and_set)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_NONE);

	cr_expect_eq(fi_cntr_read(cntr), 0);
	cr_expect_eq(fi_cntr_readerr(cntr), 0);
	cr_expect_eq(fi_cntr_add(cntr, 5), 0);
	cr_expect_eq(fi_cntr_add(cntr, 1ull << 40), 0);
	cr_expect_eq(fi_cntr_adderr(cntr, 3), 0);
	cr_expect_eq(fi_cntr_read(cntr), 5 + (1ull << 40));
	cr_expect_eq(fi_cntr_readerr(cntr), 3);
	cr_expect_eq(fi_cntr_set(cntr, UINT64_MAX), 0);
	cr_expect_eq(fi_cntr_seterr(cntr, 1), 0);
	cr_expect_eq(fi_cntr_read(cntr), UINT64_MAX);
	cr_expect_eq(fi_cntr_readerr(cntr), 1);
	close_cntr(cntr);
}

Test(cntr, reading_makes_progress)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_NONE);
	struct verve_engine *engine = open_engine(cntr, count),
			    *failing = open_engine(cntr, count_error);

	fake_engine_complete(engine);
	cr_expect_eq(fi_cntr_read(cntr), 1);
	fake_engine_complete(failing);
	cr_expect_eq(fi_cntr_readerr(cntr), 1);
	close_engine(cntr, engine);
	close_engine(cntr, failing);
	close_cntr(cntr);
}

Test(cntr, stays_open_while_it_is_used)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_UNSPEC);
	struct verve_engine *engine = open_engine(cntr, count);

	cr_expect_eq(fake_domain_references(), 1);
	cr_expect_eq(fi_close(&cntr->fid), -FI_EBUSY);
	close_engine(cntr, engine);
	verve_cntr_get(verve_cntr_from_fid(&cntr->fid));
	cr_expect_eq(fi_close(&cntr->fid), -FI_EBUSY);
	verve_cntr_put(verve_cntr_from_fid(&cntr->fid));
	close_cntr(cntr);
}

Test(cntr, wait_ends_at_the_threshold)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_UNSPEC);
	struct verve_engine *engine = open_engine(cntr, count);

	cr_expect_eq(fi_cntr_wait(cntr, 0, 0), 0);
	for (int i = 0; i < 5; i++)
		fake_engine_complete(engine);
	cr_expect_eq(fi_cntr_wait(cntr, 5, -1), 0);
	cr_expect_eq(fi_cntr_wait(cntr, 3, 0), 0);
	close_engine(cntr, engine);
	close_cntr(cntr);
}

Test(cntr, wait_runs_out_of_time)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_UNSPEC);

	cr_expect_eq(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	cr_expect_eq(fi_cntr_wait(cntr, 1, 110), -FI_ETIMEDOUT);
	cr_expect_eq(fi_cntr_readerr(cntr), 0);
	close_cntr(cntr);
}

Test(cntr, error_ends_the_wait)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_UNSPEC);
	struct verve_engine *engine = open_engine(cntr, count_error);

	fake_engine_complete(engine);
	cr_expect_eq(fi_cntr_wait(cntr, 1, -1), -FI_EAVAIL);
	cr_expect_eq(fi_cntr_readerr(cntr), 1);
	/* The application knows this error now, so it ends no wait. */
	cr_expect_eq(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	fi_cntr_add(cntr, 1);
	cr_expect_eq(fi_cntr_wait(cntr, 1, -1), 0);
	/* The next error ends a wait, unless the threshold is reached. */
	fake_engine_complete(engine);
	cr_expect_eq(fi_cntr_wait(cntr, 1, -1), 0);
	cr_expect_eq(fi_cntr_wait(cntr, 2, -1), -FI_EAVAIL);
	close_engine(cntr, engine);
	close_cntr(cntr);
}

/* Without this, a wait for operations that have failed before would never end. */
Test(cntr, error_that_nobody_was_told_of_ends_the_next_wait)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_UNSPEC);
	struct verve_engine *engine = open_engine(cntr, count_error);

	fake_engine_complete(engine);
	/* Progress alone tells the application nothing about the error. */
	cr_expect_eq(fi_cntr_read(cntr), 0);
	cr_expect_eq(fi_cntr_wait(cntr, 1, -1), -FI_EAVAIL);
	cr_expect_eq(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	/* fi_cntr_readerr tells it. */
	fake_engine_complete(engine);
	cr_expect_eq(fi_cntr_readerr(cntr), 2);
	cr_expect_eq(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	/* One thread may add an error to wake another thread that is not yet in its wait. */
	fi_cntr_adderr(cntr, 3);
	cr_expect_eq(fi_cntr_wait(cntr, 1, -1), -FI_EAVAIL);
	cr_expect_eq(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	/* An application that resets the error value knows it. */
	fi_cntr_seterr(cntr, 0);
	cr_expect_eq(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	fake_engine_complete(engine);
	cr_expect_eq(fi_cntr_wait(cntr, 1, -1), -FI_EAVAIL);
	close_engine(cntr, engine);
	close_cntr(cntr);
}

Test(cntr, poll_reports_a_change_once_and_not_the_applications_own)
{
	struct fid_cntr *fid = open_cntr(FI_WAIT_NONE);
	struct verve_cntr *cntr = verve_cntr_from_fid(&fid->fid);

	cr_expect_not(verve_cntr_poll(cntr));
	verve_comp_counter_add(&cntr->counter, 1);
	cr_expect(verve_cntr_poll(cntr));
	cr_expect_not(verve_cntr_poll(cntr));
	verve_comp_counter_add_error(&cntr->counter, 1);
	cr_expect_eq(fi_cntr_readerr(fid), 1);
	cr_expect(verve_cntr_poll(cntr));
	fi_cntr_add(fid, 2);
	fi_cntr_adderr(fid, 2);
	cr_expect_not(verve_cntr_poll(cntr));
	fi_cntr_set(fid, 9);
	fi_cntr_seterr(fid, 9);
	cr_expect_not(verve_cntr_poll(cntr));
	close_cntr(fid);
}

Test(cntr, trywait_tells_when_to_poll)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_FD);
	struct fid_fabric *fabric = fake_fabric(FI_VERSION(1, 17));
	struct verve_engine *engine = open_engine(cntr, count);
	struct pollfd pfd = {.events = POLLIN};
	struct fid *fid = &cntr->fid;

	cr_assert_eq(fi_control(fid, FI_GETWAIT, &pfd.fd), 0);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), 0);
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	fi_cntr_add(cntr, 1);
	cr_assert_eq(poll(&pfd, 1, 0), 1);
	/* The counter stays changed until the application has read it. */
	cr_assert_eq(fi_trywait(fabric, &fid, 1), -FI_EAGAIN);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), -FI_EAGAIN);
	cr_assert_eq(fi_cntr_read(cntr), 1);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), 0);
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	fake_engine_complete(engine);
	cr_assert_eq(poll(&pfd, 1, 0), 1);
	cr_assert_eq(fi_cntr_read(cntr), 2);
	close_engine(cntr, engine);
	close_cntr(cntr);
}

enum { WAITERS = 4, STEPS = 3000 };

struct waiter {
	struct fid_cntr *cntr;
	uint64_t every;
};

/*
 * Each thread waits for other values. A thread whose wake-up another thread took would never come
 * back.
 */
static void *waiter(void *arg)
{
	struct waiter *waiter = arg;

	for (uint64_t value = waiter->every; value <= STEPS; value += waiter->every)
		cr_assert_eq(fi_cntr_wait(waiter->cntr, value, -1), 0);
	return NULL;
}

Test(cntr, several_waiters_all_come_back, .timeout = 300)
{
	struct fid_cntr *cntr = open_cntr(FI_WAIT_UNSPEC);
	struct verve_engine *engine = open_engine(cntr, count);
	struct waiter arg[WAITERS];
	pthread_t thread[WAITERS];

	for (int i = 0; i < WAITERS; i++) {
		arg[i] = (struct waiter){cntr, (uint64_t)(i + 1) * 5};
		cr_assert_eq(pthread_create(&thread[i], NULL, waiter, &arg[i]), 0);
	}
	for (int i = 0; i < STEPS; i++) {
		if (i % 2)
			fi_cntr_add(cntr, 1);
		else
			fake_engine_complete(engine);
		if (i % 64 == 0)
			sched_yield();
	}
	for (int i = 0; i < WAITERS; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(fi_cntr_wait(cntr, STEPS, -1), 0);
	close_engine(cntr, engine);
	close_cntr(cntr);
}
