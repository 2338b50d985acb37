/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Service thread: the list of its clients (managers and devices), the lock of that list, and the
 * thread's step.
 */
#include "engine/service.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/log.h"
#include "conn/cm.h"
#include "conn/cm_fault.h"
#include "conn/worker.h"
#include "net/device.h"
#include "net/sys.h"
#include <rdma/fi_errno.h>

struct client {
	LIST_ENTRY(client) link;
	struct verve_cm *cm;
	struct verve_net_device *dev;
	bool lost; /* the device is gone */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/*
 * Guards only the pointer to the thread, which changes under both locks. So a request wakes the
 * thread without waiting for its step. Taken last.
 */
static pthread_mutex_t thread_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, client) clients = LIST_HEAD_INITIALIZER(clients);
/* In a child: the first one at the fork. volatile: the store stays, though nothing reads it. */
static struct client *volatile of_parent;
static struct verve_net_thread *thread;
/* when the thread wakes without a call, verve_net_now(); UINT64_MAX: never */
static uint64_t next_step;

/*
 * A child after fork(2) has no copy of its parent's service thread. It has no copy of a thread that
 * held the lock either, so the list may be half changed: the child starts with an empty list, and
 * frees nothing of the old one, which a checker for leaks still finds by of_parent. (The lock is
 * not taken before the fork. Otherwise the process could hang: the application's fork handler may
 * wait for a thread which waits for this lock.)
 */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&thread_lock, NULL);
	if (!LIST_EMPTY(&clients))
		of_parent = LIST_FIRST(&clients);
	LIST_INIT(&clients);
	thread = NULL;
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* The event was taken for one client, and may be about another one of the device. */
static void tell_fault(const struct verve_net_device *dev, const struct verve_net_fault *fault)
{
	const struct client *client;

	LIST_FOREACH(client, &clients, link)
		if (client->dev == dev)
			verve_cm_fault(client->cm, fault);
}

/* A device that is gone keeps its descriptor readable for ever, so the thread stops watching it. */
static void step_device(struct client *client)
{
	struct verve_net_fault fault;
	int ret;

	if (client->lost)
		return;
	while (!(ret = verve_net_device_async_next(client->dev, &fault)))
		tell_fault(client->dev, &fault);
	if (ret != -FI_ENODEV)
		return;
	client->lost = true;
	if (thread)
		verve_net_thread_unwatch(thread, verve_net_device_async_fd(client->dev));
	verve_cm_abandon(client->cm, FI_ENODEV);
}

static uint64_t service_step(void *arg)
{
	uint64_t now = verve_net_now(), next = UINT64_MAX;
	struct client *client;

	(void)arg;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(client, &clients, link) {
		uint64_t timer;

		step_device(client);
		timer = verve_cm_step(client->cm, now);
		if (timer < next)
			next = timer;
	}
	next_step = next;
	pthread_mutex_unlock(&lock);
	if (next == UINT64_MAX)
		return UINT64_MAX;
	now = verve_net_now();
	return next > now ? next - now : 0;
}

/* True if the list has an endpoint on the device. */
static bool is_watched(const struct verve_net_device *dev)
{
	const struct client *client;

	LIST_FOREACH(client, &clients, link)
		if (client->dev == dev)
			return true;
	return false;
}

static void set_thread(struct verve_net_thread *new)
{
	pthread_mutex_lock(&thread_lock);
	thread = new;
	pthread_mutex_unlock(&thread_lock);
}

/*
 * Returns the thread if no client is left, and forgets it; else NULL. The caller stops the thread
 * after releasing the lock, because the thread needs the lock to end.
 */
static struct verve_net_thread *take_idle(void)
{
	struct verve_net_thread *idle = LIST_EMPTY(&clients) ? thread : NULL;

	if (idle)
		set_thread(NULL);
	return idle;
}

static int start_thread(void)
{
	struct verve_net_thread *started;
	int ret = verve_net_thread_start("verve-service", service_step, NULL, &started);

	if (!ret)
		set_thread(started);
	return ret;
}

static int watch_client(const struct client *client)
{
	int ret = verve_net_thread_watch(thread, verve_cm_fd(client->cm));

	if (ret || is_watched(client->dev))
		return ret;
	ret = verve_net_thread_watch(thread, verve_net_device_async_fd(client->dev));
	if (ret)
		verve_net_thread_unwatch(thread, verve_cm_fd(client->cm));
	return ret;
}

int verve_service_add(struct verve_cm *cm, struct verve_net_device *dev)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct client *client = malloc(sizeof(*client));
	struct verve_net_thread *idle = NULL;
	int ret = 0;

	if (!client)
		return -FI_ENOMEM;
	client->cm = cm;
	client->dev = dev;
	client->lost = false;
	pthread_once(&once, register_fork);
	pthread_mutex_lock(&lock);
	if (!thread)
		ret = start_thread();
	if (!ret)
		ret = watch_client(client);
	if (ret) {
		VERVE_WARN(EP_CTRL, "the service thread cannot serve an endpoint: %s\n",
			   fi_strerror(-ret));
		free(client);
		idle = take_idle();
	} else {
		LIST_INSERT_HEAD(&clients, client, link);
		verve_net_thread_wake(thread);
	}
	pthread_mutex_unlock(&lock);
	if (idle)
		verve_net_thread_stop(idle);
	return ret;
}

void verve_service_remove(struct verve_cm *cm)
{
	struct verve_net_thread *idle;
	struct client *client;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(client, &clients, link)
		if (client->cm == cm)
			break;
	if (client) {
		LIST_REMOVE(client, link);
		if (thread) {
			verve_net_thread_unwatch(thread, verve_cm_fd(cm));
			if (!is_watched(client->dev))
				verve_net_thread_unwatch(thread,
							 verve_net_device_async_fd(client->dev));
		}
		free(client);
	}
	idle = take_idle();
	pthread_mutex_unlock(&lock);
	if (idle)
		verve_net_thread_stop(idle);
}

void verve_service_wake(void)
{
	pthread_mutex_lock(&thread_lock);
	if (thread)
		verve_net_thread_wake(thread);
	pthread_mutex_unlock(&thread_lock);
}

void verve_service_help(struct verve_cm *cm, uint64_t now)
{
	uint64_t timer;

	if (pthread_mutex_trylock(&lock))
		return;
	/*
	 * The thread was stopped, or belonged to the parent before fork(2): no client is served any
	 * more.
	 */
	if (!thread)
		goto out;
	timer = verve_cm_step(cm, now);
	if (timer < next_step) {
		next_step = timer;
		verve_net_thread_wake(thread);
	}
out:
	pthread_mutex_unlock(&lock);
}

void verve_service_fini(void)
{
	struct verve_net_thread *last;

	pthread_mutex_lock(&lock);
	last = thread;
	set_thread(NULL);
	pthread_mutex_unlock(&lock);
	if (last)
		verve_net_thread_stop(last);
	verve_worker_fini();
}
