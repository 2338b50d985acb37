/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Monitor: the listeners are told what the kernel, or the application, reports. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <semaphore.h>
#include <unistd.h>

#include "../support/child.h"
#include "../support/fake_memory.h"
#include "../support/fake_net.h"
#include "base/config.h"
#include "base/log.h"
#include "mr/monitor.h"

struct ear {
	struct verve_mr_listener listener; /* must be first */
	int heard;	      /* number of calls */
	uintptr_t start, end; /* of the last call */
	int spared, buried;   /* calls of spare; of bury */
	bool has;	      /* it has something to give, or to bury */
};

enum { SECOND = 1000000000, SETTLE = 100000 /* microseconds */ };

static struct fi_provider provider = {.name = "verve"};
static struct ear a, b;

static bool gone(struct verve_mr_listener *listener, uintptr_t start, uintptr_t end)
{
	struct ear *ear = (struct ear *)listener;

	ear->heard++;
	ear->start = start;
	ear->end = end;
	return ear->has;
}

static void bury(struct verve_mr_listener *listener)
{
	((struct ear *)listener)->buried++;
}

static bool spare(struct verve_mr_listener *listener)
{
	struct ear *ear = (struct ear *)listener;

	ear->spared++;
	return ear->has;
}

static void setup(void)
{
	verve_log_provider = &provider;
	a.listener.gone = b.listener.gone = gone;
	a.listener.spare = b.listener.spare = spare;
	a.listener.bury = b.listener.bury = bury;
	verve_config.mr_cache_monitor = "userfaultfd";
	fake_net_watch_allow(true);
}

TestSuite(monitor, .init = setup);

Test(monitor, every_listener_hears_of_lost_memory)
{
	cr_assert_eq(verve_mr_monitor_add(&a.listener), 0);
	cr_assert_eq(verve_mr_monitor_add(&b.listener), 0);
	fake_net_watch_gone((void *)0x10000, 0x3000);
	cr_expect(a.heard == 1 && b.heard == 1);
	cr_expect(a.start == 0x10000 && a.end == 0x13000);
	cr_expect(b.start == 0x10000 && b.end == 0x13000);
	verve_mr_monitor_notify(0x20000, 0x20001);
	cr_expect(a.heard == 2 && b.heard == 2);
	cr_expect(b.start == 0x20000 && b.end == 0x20001);
	cr_expect(fake_net_watch_forgot((void *)0x20000), "its mapping may go without an event");
	verve_mr_monitor_remove(&a.listener);
	fake_net_watch_gone((void *)0x30000, 1);
	cr_expect_not(fake_net_watch_forgot((void *)0x30000), "the watch knows what it says");
	verve_mr_monitor_notify(0x30000, 0x30001);
	cr_expect(a.heard == 2 && b.heard == 4);
	verve_mr_monitor_remove(&b.listener);
	fake_net_watch_gone((void *)0x40000, 1);
	verve_mr_monitor_notify(0x40000, 0x40001);
	cr_expect(a.heard == 2 && b.heard == 4);
}

/* The fake refuses a second watch, so that one left open would be noticed. */
Test(monitor, there_is_one_watch_while_anybody_listens)
{
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(verve_mr_monitor_add(&a.listener), 0);
		cr_assert_eq(verve_mr_monitor_add(&b.listener), 0);
		cr_expect(verve_mr_monitor_quiet());
		verve_mr_monitor_remove(&b.listener);
		cr_expect(verve_mr_monitor_quiet());
		verve_mr_monitor_remove(&a.listener);
	}
}

Test(monitor, says_what_the_watch_says)
{
	cr_assert_eq(verve_mr_monitor_add(&a.listener), 0);
	fake_net_watch_pending(true);
	cr_expect_not(verve_mr_monitor_quiet());
	fake_net_watch_pending(false);
	cr_expect(verve_mr_monitor_quiet());
	cr_expect_eq(verve_mr_monitor_watch(0x1000, 0x2000), 0);
	fake_net_watch_refuse(true);
	cr_expect_eq(verve_mr_monitor_watch(0x1000, 0x2000), -FI_EOPNOTSUPP);
	verve_mr_monitor_remove(&a.listener);
}

Test(monitor, all_others_are_asked_for_what_they_do_not_use)
{
	cr_expect_not(verve_mr_monitor_spare(NULL));
	cr_assert_eq(verve_mr_monitor_add(&a.listener), 0);
	cr_assert_eq(verve_mr_monitor_add(&b.listener), 0);
	a.has = true;
	cr_expect_not(verve_mr_monitor_spare(&a.listener));
	cr_expect(verve_mr_monitor_spare(&b.listener));
	cr_expect(verve_mr_monitor_spare(NULL));
	cr_expect(a.spared == 2 && b.spared == 2);
	verve_mr_monitor_remove(&a.listener);
	cr_expect_not(verve_mr_monitor_spare(NULL));
	verve_mr_monitor_remove(&b.listener);
	cr_expect(a.spared == 2 && b.spared == 3);
}

static sem_t giving;

/* As a cache that deregisters its last region, which takes a while. */
static bool give_slowly(struct verve_mr_listener *listener)
{
	sem_post(&giving);
	usleep(SETTLE);
	return spare(listener);
}

static void *spare_all(void *arg)
{
	cr_expect(verve_mr_monitor_spare(NULL));
	return arg;
}

/* Then the caller has to try again: there may be memory now, and nobody has any left to give. */
Test(monitor, who_waits_for_another_that_gives_has_been_given)
{
	pthread_t thread;

	sem_init(&giving, 0, 0);
	a.listener.spare = give_slowly;
	a.has = true;
	cr_assert_eq(verve_mr_monitor_add(&a.listener), 0);
	cr_assert_eq(pthread_create(&thread, NULL, spare_all, NULL), 0);
	sem_wait(&giving);
	cr_expect(verve_mr_monitor_spare(&a.listener));
	pthread_join(thread, NULL);
	cr_expect_not(verve_mr_monitor_spare(&a.listener));
	verve_mr_monitor_remove(&a.listener);
}

/* No operation may follow in which a cache closes registrations whose memory went. */
Test(monitor, what_is_dead_is_buried_soon)
{
	cr_assert_eq(verve_mr_monitor_add(&a.listener), 0);
	cr_assert_eq(verve_mr_monitor_add(&b.listener), 0);
	fake_net_watch_gone((void *)0x10000, 0x3000);
	fake_net_advance(SECOND);
	cr_expect_eq(a.buried, 0, "nothing is dead");
	a.has = true;
	for (int i = 0; i < 100; i++) {
		fake_net_watch_gone((void *)0x10000, 0x3000);
		fake_net_advance(SECOND / 1000);
	}
	fake_net_advance(SECOND / 10);
	cr_expect(a.buried == 1 && b.buried == 1, "not for each event");
	verve_mr_monitor_notify(0x10000, 0x13000);
	fake_net_advance(SECOND / 10 + SECOND / 100);
	cr_expect_eq(a.buried, 2);
	fake_net_watch_gone((void *)0x10000, 0x3000);
	verve_mr_monitor_remove(&a.listener);
	verve_mr_monitor_remove(&b.listener);
	fake_net_advance(SECOND);
	cr_expect_eq(a.buried, 2);
}

/* Then operations bury. */
Test(monitor, works_without_the_thread_that_buries)
{
	fake_net_fail(FAKE_NET_THREAD_START, 1, -FI_EAGAIN);
	cr_assert_eq(verve_mr_monitor_add(&a.listener), 0);
	a.has = true;
	fake_net_watch_gone((void *)0x10000, 0x3000);
	fake_net_advance(SECOND);
	cr_expect(a.heard == 1 && a.buried == 0);
	verve_mr_monitor_remove(&a.listener);
}

Test(monitor, nobody_is_added_where_the_kernel_does_not_tell)
{
	fake_net_watch_allow(false);
	cr_expect_eq(verve_mr_monitor_add(&a.listener), -FI_ENOSYS);
	verve_mr_monitor_notify(0x1000, 0x2000);
	cr_expect_eq(a.heard, 0);
	fake_net_watch_allow(true);
	cr_expect_eq(verve_mr_monitor_add(&a.listener), 0);
	verve_mr_monitor_remove(&a.listener);
}

static void setup_notify(void)
{
	setup();
	verve_config.mr_cache_monitor = "notify";
	fake_net_watch_allow(false);
	cr_assert_eq(verve_mr_monitor_add(&a.listener), 0);
}

static void teardown_notify(void)
{
	verve_mr_monitor_remove(&a.listener);
}

TestSuite(notify, .init = setup_notify, .fini = teardown_notify);

Test(notify, needs_nothing_of_the_kernel)
{
	fake_net_watch_pending(true);
	fake_net_watch_refuse(true);
	cr_expect(verve_mr_monitor_quiet());
	cr_expect_eq(verve_mr_monitor_watch(0x1000, 0x2000), 0);
	cr_assert_eq(verve_mr_monitor_add(&b.listener), 0);
	verve_mr_monitor_notify(0x1000, 0x2000);
	cr_expect(a.heard == 1 && b.heard == 1);
	verve_mr_monitor_remove(&b.listener);
	verve_mr_monitor_notify(0x1000, 0x2000);
	cr_expect(a.heard == 2 && b.heard == 1);
}

/* The child must trust no registration of the parent, nor wait for the parent's notices. */
Test(notify, a_child_is_never_quiet)
{
	pid_t child = fork();

	if (!child)
		_exit(verve_mr_monitor_quiet());
	child_expect_success(child);
	cr_expect(verve_mr_monitor_quiet());
}

/* A server that has opened a domain forks children, each of which opens one. */
Test(notify, a_child_trusts_registrations_of_its_own)
{
	pid_t child = fork();

	if (!child)
		_exit(verve_mr_monitor_quiet() || verve_mr_monitor_add(&b.listener) ||
		      !verve_mr_monitor_quiet());
	child_expect_success(child);
}

static pid_t born;

/* Called under the lock, which no thread of the child releases: a hang ends after two seconds. */
static bool fork_and_use(struct verve_mr_listener *listener, uintptr_t start, uintptr_t end)
{
	gone(listener, start, end);
	born = fork();
	if (born)
		return false;
	alarm(2);
	verve_mr_monitor_notify(start, end);
	verve_mr_monitor_remove(&a.listener);
	/* A listener that the child adds itself is told. */
	b.heard = 0;
	if (verve_mr_monitor_add(&b.listener))
		_exit(1);
	verve_mr_monitor_notify(start, end);
	verve_mr_monitor_remove(&b.listener);
	_exit(a.heard != 1 || b.heard != 1);
}

static void expect_child_that_ends(void)
{
	child_expect_success(born);
	a.listener.gone = gone;
	verve_mr_monitor_notify(0x1000, 0x2000);
	cr_expect_eq(a.heard, 2);
}

Test(notify, a_child_forked_while_somebody_tells_does_not_wait)
{
	a.listener.gone = fork_and_use;
	verve_mr_monitor_notify(0x1000, 0x2000);
	expect_child_that_ends();
}
