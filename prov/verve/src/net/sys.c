/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* System: clock, randomness, and a thread that sleeps in epoll(7). */
#include "net/sys.h"

#include <atomic_ops.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/wakefd.h"
#include "net/thread.h"

struct verve_net_thread {
	pthread_t thread;
	pid_t pid; /* of the process that started the thread */
	uint64_t (*step)(void *arg);
	void *arg;
	int epoll_fd;
	int wake_fd;
	volatile AO_t stop;
};

enum {
	EVENTS = 16,
	BACK_OFF_CALLS = 256, /* some microseconds */
};

uint64_t verve_net_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static void init_sodium(void)
{
	/* sodium_init fails only on a host without any source of randomness: no key is safe. */
	if (sodium_init() < 0)
		abort();
}

void verve_net_random(void *buf, size_t len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_sodium);
	randombytes_buf(buf, len);
}

void verve_net_pause(void)
{
	sched_yield();
}

void verve_net_yield(void)
{
	sched_yield();
}

void verve_net_back_off(void)
{
	static __thread uint32_t calls;

	if (!(++calls % BACK_OFF_CALLS))
		sched_yield();
}

/* epoll_wait(2) counts milliseconds. Round up: a thread that wakes too early would spin. */
static int sleep_ms(uint64_t ns)
{
	uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);

	if (ns == UINT64_MAX)
		return -1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static void *thread_run(void *arg)
{
	struct verve_net_thread *thread = arg;
	struct epoll_event events[EVENTS];

	for (;;) {
		/*
		 * Reset the counter before the step, so that a wake during the step ends the next
		 * sleep; and before stop is read, so that the wake of a stop is not lost.
		 */
		verve_wakefd_drain(thread->wake_fd);
		if (AO_load_acquire(&thread->stop))
			return NULL;
		epoll_wait(thread->epoll_fd, events, EVENTS, sleep_ms(thread->step(thread->arg)));
	}
}

int verve_net_thread_start(const char *name, uint64_t (*step)(void *arg), void *arg,
			   struct verve_net_thread **threadp)
{
	struct verve_net_thread *thread = calloc(1, sizeof(*thread));
	int ret;

	if (!thread)
		return -FI_ENOMEM;
	thread->step = step;
	thread->arg = arg;
	thread->pid = getpid();
	ret = thread->wake_fd = verve_wakefd_open();
	if (ret < 0)
		goto err_thread;
	thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (thread->epoll_fd < 0) {
		ret = -errno;
		goto err_wake_fd;
	}
	ret = verve_net_thread_watch(thread, thread->wake_fd);
	if (ret)
		goto err_epoll_fd;
	ret = verve_thread_create(&thread->thread, name, thread_run, thread);
	if (ret)
		goto err_epoll_fd;
	*threadp = thread;
	return 0;

err_epoll_fd:
	close(thread->epoll_fd);
err_wake_fd:
	close(thread->wake_fd);
err_thread:
	free(thread);
	return ret;
}

void verve_net_thread_stop(struct verve_net_thread *thread)
{
	AO_store_release(&thread->stop, 1);
	/* A child after fork(2) has the memory and the descriptors, but not the thread. */
	if (thread->pid == getpid()) {
		verve_net_thread_wake(thread);
		pthread_join(thread->thread, NULL);
	}
	close(thread->epoll_fd);
	close(thread->wake_fd);
	free(thread);
}

void verve_net_thread_wake(struct verve_net_thread *thread)
{
	verve_wakefd_signal(thread->wake_fd);
}

int verve_net_thread_watch(struct verve_net_thread *thread, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (fd < 0)
		return 0;
	return epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void verve_net_thread_unwatch(struct verve_net_thread *thread, int fd)
{
	if (fd >= 0)
		epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}
