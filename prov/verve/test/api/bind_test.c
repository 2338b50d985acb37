/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bind: two threads bind counters to one enabled endpoint. The program is linked with --wrap for
 * each __wrap_ function: there the first thread is interrupted by the second one, which runs as far
 * as the locks let it. ep_test.c has all other binds.
 */
#include "ep_pair.h"

#include <pthread.h>

#include "api/domain.h"
#include "engine/engine.h"

static struct ep_pair pair;
static struct fid_cntr *cntr[2];
static pthread_mutex_t *events_lock;
/* The bind of the second thread, and where it interrupts the first one; 0: no more. */
static uint64_t second_flags;
static enum { BEFORE_EVENTS_LOCK, BEFORE_SINK } interrupted;
static int second_ret;

static void setup(void)
{
	struct verve_domain *domain;

	fixture_init(&pair.fix, FI_VERSION(1, 17));
	ep_pair_open(&pair);
	domain = verve_domain_from_fid(&pair.fix.domain->fid);
	events_lock = &domain->events.lock;
	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_cntr_open(pair.fix.domain, NULL, &cntr[i], NULL), 0);
}

/* A reference that was lost would keep a counter open for ever. */
static void teardown(void)
{
	ep_side_close(&pair.a);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(fi_close(&cntr[i]->fid), 0);
	ep_side_close(&pair.b);
	fixture_fini(&pair.fix);
}

TestSuite(bind, .init = setup, .fini = teardown);

static void second_thread(void)
{
	uint64_t flags = second_flags;

	if (!flags)
		return;
	second_flags = 0;
	second_ret = fi_ep_bind(pair.a.ep, &cntr[1]->fid, flags);
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (mutex == events_lock && interrupted == BEFORE_EVENTS_LOCK)
		second_thread();
	return __real_pthread_mutex_lock(mutex);
}

void __real_verve_engine_set_sink(struct verve_engine *engine, const struct verve_sink *sink);
void __wrap_verve_engine_set_sink(struct verve_engine *engine, const struct verve_sink *sink);

/* If the first thread holds the lock of events, the second one waits for it. */
void __wrap_verve_engine_set_sink(struct verve_engine *engine, const struct verve_sink *sink)
{
	if (interrupted == BEFORE_SINK && !pthread_mutex_trylock(events_lock)) {
		pthread_mutex_unlock(events_lock);
		second_thread();
	}
	__real_verve_engine_set_sink(engine, sink);
}

Test(bind, counters_that_two_threads_bind_late_both_count)
{
	char byte;

	interrupted = BEFORE_SINK;
	second_flags = FI_RECV;
	cr_expect_eq(fi_ep_bind(pair.a.ep, &cntr[0]->fid, FI_SEND), 0);
	second_thread(); /* the lock is free now */
	cr_expect_eq(second_ret, 0);
	cr_assert_eq(fi_recv(pair.a.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_inject(pair.b.ep, "x", 1, pair.b.peer), 0);
	cr_assert_eq(fi_inject(pair.a.ep, "x", 1, pair.a.peer), 0);
	ep_pair_run(&pair, 50);
	cr_expect_eq(fi_cntr_read(cntr[0]), 1);
	cr_expect_eq(fi_cntr_read(cntr[1]), 1);
}

Test(bind, of_two_threads_one_binds_the_counter_of_an_event)
{
	interrupted = BEFORE_EVENTS_LOCK;
	second_flags = FI_SEND;
	cr_expect_eq(fi_ep_bind(pair.a.ep, &cntr[0]->fid, FI_SEND), -FI_EINVAL);
	cr_expect_eq(second_ret, 0);
}
