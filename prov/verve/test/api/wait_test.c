/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waiting: the real code with threads and fi_trywait. */
#include "api/wait.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/oom.h"
#include "comp/comp_queue.h"
#include "fake_engine.h"

/* A queue and its wait object, as api/cq.c has them. */
struct subject {
	struct verve_wait wait;
	struct verve_comp_queue queue;
	volatile AO_t read;
	AO_t total; /* entries until all threads end */
};

static struct subject subject;

static void put(void *arg, uintptr_t n)
{
	struct verve_comp comp = {.context = (void *)n};

	(void)arg;
	verve_comp_queue_write(&subject.queue, &comp);
}

static ssize_t look(void *arg)
{
	struct verve_comp comp;
	ssize_t n;

	(void)arg;
	verve_wait_progress(&subject.wait);
	n = verve_comp_queue_read(&subject.queue, &comp, 1);
	return n ? n : -FI_EAGAIN;
}

static bool arm(void *arg)
{
	(void)arg;
	return verve_comp_queue_arm(&subject.queue, 1);
}

static const struct verve_wait_ops ops = {.look = look, .arm = arm};

static void subject_init(enum fi_wait_obj obj, AO_t total)
{
	fake_domain(FI_VERSION(1, 17), FI_THREAD_SAFE);
	cr_assert_eq(verve_comp_queue_init(&subject.queue, 8, false), 0);
	cr_assert_eq(verve_wait_init(&subject.wait, obj, false), 0);
	subject.queue.wake = verve_wait_wake;
	subject.queue.arg = &subject.wait;
	AO_store(&subject.read, 0);
	subject.total = total;
}

static void subject_fini(void)
{
	verve_wait_fini(&subject.wait);
	verve_comp_queue_fini(&subject.queue);
}

/*
 * Reads until all entries are read. The thread that reads the last entry wakes the others, so that
 * they end.
 */
static void *caller(void *arg)
{
	(void)arg;
	while (AO_load(&subject.read) < subject.total) {
		if (verve_wait_for(&subject.wait, -1, &ops, NULL) != 1)
			continue;
		if (AO_fetch_and_add1(&subject.read) + 1 == subject.total)
			verve_wait_signal(&subject.wait);
	}
	return NULL;
}

static void *poller(void *arg)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd, epoll = epoll_create1(EPOLL_CLOEXEC);

	(void)arg;
	cr_assert_eq(verve_wait_control(&subject.wait, FI_GETWAIT, &fd), 0);
	cr_assert_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	while (AO_load(&subject.read) < subject.total) {
		/* Reading the last entry, or one behind it, leaves one for the others. */
		while (AO_load(&subject.read) < subject.total && look(NULL) == 1)
			if (AO_fetch_and_add1(&subject.read) + 1 >= subject.total)
				put(NULL, 0);
		if (AO_load(&subject.read) >= subject.total ||
		    verve_wait_try(&subject.wait, &ops, NULL))
			continue;
		cr_assert_gt(epoll_wait(epoll, &event, 1, -1), 0);
	}
	close(epoll);
	return NULL;
}

enum { THREADS = 3, ENGINES = 2, PIECES = 3000 };

static void *device(void *arg)
{
	for (int i = 0; i < PIECES; i++) {
		fake_engine_complete(arg);
		if (i % 16 == 0)
			sched_yield();
	}
	return NULL;
}

/* If a wake-up is lost, the test does not end. */
static void run_threads(void *(*waiter)(void *))
{
	struct verve_engine *engine[ENGINES];
	pthread_t thread[THREADS + ENGINES];

	subject_init(FI_WAIT_FD, ENGINES * PIECES);
	for (int i = 0; i < ENGINES; i++) {
		struct verve_lock *lock = i ? NULL : verve_wait_lend(&subject.wait);

		engine[i] = fake_engine_open_with(lock, put, NULL);
		cr_assert_eq(verve_wait_bind(&subject.wait, engine[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, waiter, NULL), 0);
	for (int i = 0; i < ENGINES; i++)
		cr_assert_eq(pthread_create(&thread[THREADS + i], NULL, device, engine[i]), 0);
	for (int i = 0; i < THREADS + ENGINES; i++)
		pthread_join(thread[i], NULL);
	cr_assert_geq(AO_load(&subject.read), ENGINES * PIECES);
	for (int i = 0; i < ENGINES; i++) {
		verve_wait_unbind(&subject.wait, engine[i]);
		fake_engine_close(engine[i]);
	}
	subject_fini();
}

Test(wait, callers_lose_no_wake_up, .timeout = 300)
{
	run_threads(caller);
}

Test(wait, pollers_lose_no_wake_up, .timeout = 300)
{
	run_threads(poller);
}

/* Engines are bound and unbound while threads wait. */
Test(wait, engines_may_come_and_go, .timeout = 300)
{
	struct verve_engine *engine, *guest;
	pthread_t thread[THREADS + 1];
	struct verve_lock *lock;

	subject_init(FI_WAIT_FD, PIECES);
	engine = fake_engine_open_with(verve_wait_lend(&subject.wait), put, NULL);
	cr_assert_eq(verve_wait_bind(&subject.wait, engine), 0);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, i ? caller : poller, NULL), 0);
	cr_assert_eq(pthread_create(&thread[THREADS], NULL, device, engine), 0);
	for (int i = 0; i < 100; i++) {
		lock = i % 2 ? verve_wait_lend(&subject.wait) : NULL;
		guest = fake_engine_open_with(lock, put, NULL);
		cr_assert_eq(verve_wait_bind(&subject.wait, guest), 0);
		verve_wait_unbind(&subject.wait, guest);
		fake_engine_close(guest);
		if (lock)
			verve_wait_take_back(&subject.wait, lock);
	}
	pthread_join(thread[THREADS], NULL);
	/*
	 * At the end, pollers are woken by an entry and callers by a signal. The test cannot tell
	 * which threads are left, so it gives both.
	 */
	while (AO_load(&subject.read) < PIECES)
		sched_yield();
	for (int i = 0; i < THREADS; i++) {
		put(NULL, 0);
		verve_wait_signal(&subject.wait);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	verve_wait_unbind(&subject.wait, engine);
	fake_engine_close(engine);
	subject_fini();
}

static bool is_readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

Test(wait, descriptor_is_readable_until_what_woke_it_is_read)
{
	int fd;

	subject_init(FI_WAIT_FD, 0);
	cr_assert_eq(verve_wait_control(&subject.wait, FI_GETWAIT, &fd), 0);
	cr_assert_eq(verve_wait_try(&subject.wait, &ops, NULL), 0);
	cr_assert_not(is_readable(fd));
	put(NULL, 0);
	cr_assert(is_readable(fd));
	cr_assert_eq(verve_wait_try(&subject.wait, &ops, NULL), -FI_EAGAIN);
	cr_assert(is_readable(fd));
	cr_assert_eq(look(NULL), 1);
	cr_assert_eq(verve_wait_try(&subject.wait, &ops, NULL), 0);
	cr_assert_not(is_readable(fd));
	subject_fini();
}

Test(wait, descriptor_wakes_for_an_engines_work)
{
	struct verve_engine *engine = fake_engine_open(put, NULL);
	int fd;

	subject_init(FI_WAIT_FD, 0);
	cr_assert_eq(verve_wait_bind(&subject.wait, engine), 0);
	cr_assert_eq(verve_wait_control(&subject.wait, FI_GETWAIT, &fd), 0);
	fake_engine_complete(engine);
	cr_assert_eq(verve_wait_try(&subject.wait, &ops, NULL), -FI_EAGAIN);
	cr_assert_eq(look(NULL), 1);
	cr_assert_eq(verve_wait_try(&subject.wait, &ops, NULL), 0);
	cr_assert_not(is_readable(fd));
	fake_engine_complete(engine);
	cr_assert(is_readable(fd));
	cr_assert_eq(look(NULL), 1);
	verve_wait_unbind(&subject.wait, engine);
	cr_assert_eq(verve_wait_try(&subject.wait, &ops, NULL), 0);
	fake_engine_complete(engine);
	cr_assert_not(is_readable(fd));
	fake_engine_close(engine);
	subject_fini();
}

Test(wait, binding_twice_is_binding_once)
{
	struct verve_engine *engine = fake_engine_open(put, NULL);

	subject_init(FI_WAIT_FD, 0);
	verve_wait_unbind(&subject.wait, engine);
	oom_fail(0, false);
	cr_assert_eq(verve_wait_bind(&subject.wait, engine), -FI_ENOMEM);
	cr_assert_eq(oom_stop(), 1);
	cr_assert_not(verve_wait_is_bound(&subject.wait));
	cr_assert_eq(verve_wait_bind(&subject.wait, engine), 0);
	cr_assert_eq(verve_wait_bind(&subject.wait, engine), 0);
	verve_wait_progress(&subject.wait);
	cr_assert_eq(fake_engine_turns(engine), 1);
	verve_wait_unbind(&subject.wait, engine);
	cr_assert_not(verve_wait_is_bound(&subject.wait));
	verve_wait_unbind(&subject.wait, engine);
	verve_wait_progress(&subject.wait);
	cr_assert_eq(fake_engine_turns(engine), 1);
	fake_engine_close(engine);
	subject_fini();
}

/* A lock is one engine's only, until it is given back; then it serves the next one. */
Test(wait, lends_each_lock_once)
{
	struct verve_lock *lock[2];
	struct verve_engine *engine[2];

	subject_init(FI_WAIT_NONE, 0);
	for (int i = 0; i < 2; i++) {
		lock[i] = verve_wait_lend(&subject.wait);
		engine[i] = fake_engine_open_with(lock[i], put, NULL);
		cr_assert_eq(verve_wait_bind(&subject.wait, engine[i]), 0);
	}
	/* A thread that works on one engine keeps nobody from the others. */
	verve_lock_acquire(lock[0]);
	verve_wait_progress(&subject.wait);
	verve_lock_release(lock[0]);
	cr_expect_eq(fake_engine_turns(engine[0]), 0);
	cr_expect_eq(fake_engine_turns(engine[1]), 1);
	for (int i = 0; i < 2; i++) {
		verve_wait_unbind(&subject.wait, engine[i]);
		fake_engine_close(engine[i]);
	}
	verve_wait_take_back(&subject.wait, lock[0]);
	oom_fail(0, false);
	cr_expect_eq(verve_wait_lend(&subject.wait), lock[0]);
	cr_expect_null(verve_wait_lend(&subject.wait));
	oom_stop();
	subject_fini();
}

static void poll_in_vain(int polls)
{
	uintptr_t before = fake_yields();

	for (int i = 0; i < polls; i++)
		verve_wait_progress(&subject.wait);
	cr_expect_eq(fake_yields(), before);
}

/* It has the lock that the queue lent for as long as its queue pairs take to stop. */
Test(wait, endpoint_that_closes_keeps_nobody_waiting, .timeout = 60)
{
	struct verve_lock *lock, *next;
	struct verve_engine *engine;
	uintptr_t before;

	subject_init(FI_WAIT_FD, 0);
	lock = verve_wait_lend(&subject.wait);
	engine = fake_engine_open_with(lock, put, NULL);
	cr_assert_eq(verve_wait_bind(&subject.wait, engine), 0);
	verve_wait_unbind(&subject.wait, engine);
	verve_lock_acquire(lock);
	/* Threads that poll do not take it for one of theirs. */
	before = fake_yields();
	verve_wait_progress(&subject.wait);
	cr_expect_eq(fake_yields(), before);
	cr_expect_eq(verve_wait_try(&subject.wait, &ops, NULL), 0);
	cr_expect_eq(verve_wait_for(&subject.wait, 0, &ops, NULL), -FI_ETIMEDOUT);
	next = verve_wait_lend(&subject.wait);
	cr_expect_neq(next, lock);
	/* Each is in cache lines of its own. */
	cr_expect_geq(labs((char *)next - (char *)lock), 64);
	cr_expect_eq((uintptr_t)next % 64, 0);
	verve_lock_release(lock);
	fake_engine_close(engine);
	subject_fini();
}

/* Where threads are more than processors, another one may have the message in its hand. */
Test(wait, polling_in_vain_yields_the_processor)
{
	uintptr_t before = fake_yields();
	struct verve_engine *engine;
	struct verve_lock *lock;

	subject_init(FI_WAIT_FD, 1);
	lock = verve_wait_lend(&subject.wait);
	engine = fake_engine_open_with(lock, put, NULL);
	cr_assert_eq(verve_wait_bind(&subject.wait, engine), 0);
	for (uintptr_t yields = 1; yields < 4; yields++) {
		poll_in_vain(1023);
		verve_wait_progress(&subject.wait);
		cr_expect_eq(fake_yields(), before + yields);
	}
	/* A poll that finds something begins the count of empty polls anew. */
	poll_in_vain(1023);
	fake_engine_complete(engine);
	poll_in_vain(1);
	poll_in_vain(1023);
	before = fake_yields();
	/* Another thread polls, and perhaps has no processor. */
	verve_lock_acquire(lock);
	verve_wait_progress(&subject.wait);
	cr_expect_eq(fake_yields(), before + 1);
	verve_lock_release(lock);
	verve_wait_unbind(&subject.wait, engine);
	fake_engine_close(engine);
	subject_fini();
}

Test(wait, engine_that_cannot_be_watched_is_not_bound)
{
	struct verve_engine *engine = fake_engine_open(put, NULL);

	subject_init(FI_WAIT_FD, 0);
	close(verve_engine_fd(engine));
	cr_assert_lt(verve_wait_bind(&subject.wait, engine), 0);
	cr_assert_not(verve_wait_is_bound(&subject.wait));
	fake_engine_close(engine);
	subject_fini();
}

Test(wait, time_runs_out_while_polling_and_while_sleeping)
{
	subject_init(FI_WAIT_UNSPEC, 0);
	cr_assert_eq(verve_wait_for(&subject.wait, 0, &ops, NULL), -FI_ETIMEDOUT);
	cr_assert_eq(verve_wait_for(&subject.wait, 20, &ops, NULL), -FI_ETIMEDOUT);
	cr_assert_eq(verve_wait_for(&subject.wait, 110, &ops, NULL), -FI_ETIMEDOUT);
	put(NULL, 0);
	cr_assert_eq(verve_wait_for(&subject.wait, 0, &ops, NULL), 1);
	subject_fini();
}

static void *sleeper(void *arg)
{
	ssize_t *ret = arg;

	*ret = verve_wait_for(&subject.wait, 110, &ops, NULL);
	return NULL;
}

Test(wait, time_runs_out_for_every_sleeper)
{
	pthread_t thread[THREADS];
	ssize_t ret[THREADS];

	subject_init(FI_WAIT_UNSPEC, 0);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, sleeper, &ret[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		cr_expect_eq(ret[i], -FI_ETIMEDOUT);
	}
	subject_fini();
}

Test(wait, signal_without_a_waiter_ends_the_next_wait)
{
	subject_init(FI_WAIT_UNSPEC, 0);
	verve_wait_signal(&subject.wait);
	cr_assert_eq(verve_wait_for(&subject.wait, -1, &ops, NULL), -FI_EAGAIN);
	cr_assert_eq(verve_wait_for(&subject.wait, 20, &ops, NULL), -FI_ETIMEDOUT);
	subject_fini();
}

/* A thread of the application sleeps on the descriptor, or looks before it does. */
Test(wait, signal_makes_the_descriptor_readable)
{
	int fd;

	subject_init(FI_WAIT_FD, 0);
	cr_assert_eq(verve_wait_control(&subject.wait, FI_GETWAIT, &fd), 0);
	cr_assert_eq(verve_wait_try(&subject.wait, &ops, NULL), 0);
	cr_assert_not(is_readable(fd));
	verve_wait_signal(&subject.wait);
	cr_expect(is_readable(fd));
	cr_expect_eq(verve_wait_try(&subject.wait, &ops, NULL), -FI_EAGAIN);
	cr_expect(is_readable(fd)); /* for other threads that sleep on it */
	cr_expect_eq(verve_wait_try(&subject.wait, &ops, NULL), 0);
	cr_expect_not(is_readable(fd));
	/* Calls that wait hear of it all the same. */
	cr_expect_eq(verve_wait_for(&subject.wait, -1, &ops, NULL), -FI_EAGAIN);
	subject_fini();
}

struct waiter {
	pthread_t thread;
	volatile AO_t looks;
	ssize_t ret;
};

static ssize_t look_in_vain(void *arg)
{
	struct waiter *waiter = arg;

	AO_fetch_and_add1(&waiter->looks);
	return -FI_EAGAIN;
}

static void *wait_in_vain(void *arg)
{
	static const struct verve_wait_ops in_vain = {.look = look_in_vain, .arm = arm};
	struct waiter *waiter = arg;

	waiter->ret = verve_wait_for(&subject.wait, -1, &in_vain, waiter);
	return NULL;
}

/* A thread may be polling, about to sleep, asleep, leading or following. */
Test(wait, signal_ends_every_wait, .timeout = 120)
{
	for (AO_t round = 0; round < 200; round++) {
		struct waiter waiter[THREADS] = {0};

		subject_init(round % 4 ? FI_WAIT_UNSPEC : FI_WAIT_YIELD, 0);
		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(
				pthread_create(&waiter[i].thread, NULL, wait_in_vain, &waiter[i]),
				0);
		for (int i = 0; i < THREADS; i++)
			while (AO_load(&waiter[i].looks) < 1 + round % 100)
				sched_yield();
		verve_wait_signal(&subject.wait);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(waiter[i].thread, NULL);
			cr_assert_eq(waiter[i].ret, -FI_EAGAIN);
		}
		subject_fini();
	}
}

Test(wait, objects_are_what_they_say)
{
	static const struct {
		enum fi_wait_obj obj;
		int init, getwait, wait;
	} cases[] = {
		{FI_WAIT_NONE, 0, -FI_ENODATA, -FI_ENOSYS},
		{FI_WAIT_UNSPEC, 0, -FI_ENODATA, -FI_ETIMEDOUT},
		{FI_WAIT_FD, 0, 0, -FI_ETIMEDOUT},
		{FI_WAIT_YIELD, 0, -FI_ENODATA, -FI_ETIMEDOUT},
		{FI_WAIT_SET, -FI_ENOSYS, 0, 0},
		{FI_WAIT_MUTEX_COND, -FI_ENOSYS, 0, 0},
		{FI_WAIT_POLLFD, -FI_ENOSYS, 0, 0},
		{(enum fi_wait_obj)99, -FI_EINVAL, 0, 0},
	};

	fake_domain(FI_VERSION(1, 17), FI_THREAD_SAFE);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum fi_wait_obj obj = FI_WAIT_SET;
		struct verve_wait wait;
		int fd;

		cr_assert_eq(verve_wait_init(&wait, cases[i].obj, false), cases[i].init);
		if (cases[i].init)
			continue;
		cr_expect_eq(verve_wait_control(&wait, FI_GETWAIT, &fd), cases[i].getwait);
		cr_expect_eq(verve_wait_control(&wait, FI_GETWAITOBJ, &obj), 0);
		cr_expect_eq(obj, cases[i].obj);
		cr_expect_eq(verve_wait_control(&wait, FI_ENABLE, NULL), -FI_ENOSYS);
		subject_init(FI_WAIT_NONE, 0);
		cr_expect_eq(verve_wait_for(&wait, 0, &ops, NULL), cases[i].wait);
		if (cases[i].getwait)
			cr_expect_eq(verve_wait_try(&wait, &ops, NULL), -FI_EINVAL);
		subject_fini();
		verve_wait_fini(&wait);
	}
}

enum { DESCRIPTORS = 200 };

/* Opens descriptors until none is left. Returns their number. */
static int use_up(int fd[DESCRIPTORS])
{
	int count = 0;

	while (count < DESCRIPTORS && (fd[count] = dup(0)) >= 0)
		count++;
	return count;
}

Test(wait, descriptors_that_run_out_leave_none_open)
{
	const struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
	int all[DESCRIPTORS], again[DESCRIPTORS], count;

	fake_domain(FI_VERSION(1, 17), FI_THREAD_SAFE);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	count = use_up(all);
	for (int left = 0; left < 4; left++) {
		struct verve_wait wait;
		int reopened;

		cr_expect_eq(verve_wait_init(&wait, FI_WAIT_FD, false), -FI_EMFILE);
		reopened = use_up(again);
		cr_expect_eq(reopened, left);
		while (reopened)
			close(again[--reopened]);
		close(all[--count]);
	}
	while (count)
		close(all[--count]);
}

Test(wait, trywait_refuses_what_cannot_be_waited_for)
{
	struct fid_fabric *fabric = fake_fabric(FI_VERSION(1, 17));
	struct fid_domain *domain = fake_domain(FI_VERSION(1, 17), FI_THREAD_SAFE);
	struct fid *fids[] = {&domain->fid};

	cr_expect_eq(fi_trywait(fabric, fids, 1), -FI_EINVAL);
	cr_expect_eq(fi_trywait(fabric, fids, 0), 0);
}
