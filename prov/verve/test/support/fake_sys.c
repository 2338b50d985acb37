/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake net/sys.h: the simulated clock, seeded randomness, and threads that are events. */
#include "net/sys.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fake_world.h"

static const uint64_t pause_max = 1000000; /* ns that pass when nothing happens */

struct verve_net_thread {
	struct fake_event event;
	LIST_ENTRY(verve_net_thread) link;
	const char *name;
	uint64_t (*step)(void *arg);
	void *arg;
	bool running, woken;
	int epoll_fd;
	uint32_t watched, devices; /* descriptors; how many of them are of devices */
};

static LIST_HEAD(, verve_net_thread) threads = LIST_HEAD_INITIALIZER(threads);

uint64_t verve_net_now(void)
{
	/* Only where nothing is under way: events that become due do not run. */
	fake_world.now += fake_world.config.look_time;
	/* No program may rely on a clock that starts at 0. */
	return fake_world.now + 1000000000;
}

void verve_net_random(void *buf, size_t len)
{
	uint8_t *at = buf;

	while (len) {
		uint64_t random = fake_net_random();
		size_t n = len < sizeof(random) ? len : sizeof(random);

		memcpy(at, &random, n);
		at += n;
		len -= n;
	}
}

void fake_net_on_pause(void (*fn)(void *arg), void *arg)
{
	fake_world.on_pause = fn;
	fake_world.on_pause_arg = arg;
}

void verve_net_pause(void)
{
	struct fake_world *world = &fake_world;
	uint64_t next;

	if (world->on_pause && !world->in_pause) {
		world->in_pause = true;
		world->on_pause(world->on_pause_arg);
		world->in_pause = false;
	}
	next = fake_net_next();
	if (next > world->now + pause_max)
		next = world->now + pause_max;
	fake_net_run_until(next + fake_between(0, 200));
}

void verve_net_yield(void)
{
}

void verve_net_back_off(void)
{
}

static void run(struct fake_event *event);

static void wake_at(struct verve_net_thread *thread, uint64_t when)
{
	thread->woken = true;
	if (fake_world.config.starved && !strcmp(thread->name, fake_world.config.starved))
		return;
	if (thread->running || (fake_event_is_set(&thread->event) && thread->event.time <= when))
		return;
	fake_event_at(&thread->event, when, run);
}

static void wake(struct verve_net_thread *thread)
{
	wake_at(thread, fake_world.now + fake_between(0, fake_world.config.thread_delay));
}

static void step(struct verve_net_thread *thread)
{
	const char *before = fake_world.thread;
	uint64_t sleep;

	fake_event_cancel(&thread->event);
	thread->running = true;
	thread->woken = false;
	fake_world.thread = thread->name;
	sleep = thread->step(thread->arg);
	fake_world.thread = before;
	thread->running = false;
	if (thread->woken)
		wake(thread);
	else if (sleep != UINT64_MAX)
		fake_event_at(&thread->event, fake_world.now + (sleep ? sleep : 1), run);
}

static void run(struct fake_event *event)
{
	step((struct verve_net_thread *)event);
}

void fake_net_step_threads(void)
{
	struct verve_net_thread *thread;

	LIST_FOREACH (thread, &threads, link)
		step(thread);
}

void fake_threads_wake(void)
{
	struct verve_net_thread *thread;

	LIST_FOREACH (thread, &threads, link)
		wake(thread);
}

/* Asking the kernel takes longer than most events, so not where only quiet devices are watched. */
static bool has_readable(const struct verve_net_thread *thread)
{
	struct epoll_event event;

	return (fake_world.eventful ? thread->watched : thread->watched - thread->devices) &&
	       epoll_wait(thread->epoll_fd, &event, 1, 0) > 0;
}

void fake_threads_look(void)
{
	struct verve_net_thread *thread;

	LIST_FOREACH (thread, &threads, link)
		if (has_readable(thread))
			wake(thread);
}

bool fake_threads_run(const char *name)
{
	const struct verve_net_thread *thread;

	LIST_FOREACH (thread, &threads, link)
		if (!strcmp(thread->name, name))
			return true;
	return false;
}

int verve_net_thread_start(const char *name, uint64_t (*step_fn)(void *arg), void *arg,
			   struct verve_net_thread **threadp)
{
	/*
	 * The first worker starts before there is a job. It draws no random number, so that a world
	 * goes on as if it started with the first job.
	 */
	bool is_idle = !strcmp(name, "verve-worker") && !fake_threads_run(name);
	struct verve_net_thread *thread;
	int ret = fake_gate(FAKE_NET_THREAD_START);

	if (ret)
		return ret;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return -FI_ENOMEM;
	thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (thread->epoll_fd < 0)
		fake_fatal("no descriptor");
	thread->name = name;
	thread->step = step_fn;
	thread->arg = arg;
	LIST_INSERT_HEAD(&threads, thread, link);
	fake_opened(FAKE_THREAD);
	if (is_idle)
		wake_at(thread, fake_world.now);
	else
		wake(thread);
	*threadp = thread;
	return 0;
}

void verve_net_thread_stop(struct verve_net_thread *thread)
{
	if (thread->running)
		fake_fatal("thread %s stops itself", thread->name);
	fake_event_cancel(&thread->event);
	LIST_REMOVE(thread, link);
	close(thread->epoll_fd);
	free(thread);
	fake_closed(FAKE_THREAD);
}

void verve_net_thread_wake(struct verve_net_thread *thread)
{
	wake(thread);
}

int verve_net_thread_watch(struct verve_net_thread *thread, int fd)
{
	int ret = fd < 0 ? 0 : fake_gate(FAKE_NET_THREAD_WATCH);
	struct epoll_event event = {.events = EPOLLIN};

	if (ret || fd < 0)
		return ret;
	if (epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		fake_fatal("thread %s cannot watch descriptor %d", thread->name, fd);
	thread->watched++;
	thread->devices += fake_device_has_fd(fd);
	return 0;
}

void verve_net_thread_unwatch(struct verve_net_thread *thread, int fd)
{
	if (fd < 0 || epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, fd, NULL))
		return;
	thread->watched--;
	thread->devices -= fake_device_has_fd(fd);
}
