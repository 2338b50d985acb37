/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Monitor: the listeners and the watch that they share. open_lock serializes adding, removing and
 * sparing; the watch's thread never takes it, so that these may allocate.
 */
#include "mr/monitor.h"

#include <atomic_ops.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/config.h"
#include "net/unmaps.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, verve_mr_listener) listeners = LIST_HEAD_INITIALIZER(listeners);
/* Constant while there are listeners. NULL: only the application tells. */
static struct verve_net_unmaps *watch;
/* This process is a child that has no listener of its own, but may have the parent's. */
static volatile AO_t forked;

/*
 * The child has no thread that could release a lock, and the listeners are the parent's: start
 * anew. The locks cannot be taken before the fork instead, because fork(2) allocates, which the
 * rule in monitor.h forbids under them.
 */
static void monitor_in_child(void)
{
	pthread_mutex_init(&open_lock, NULL);
	pthread_mutex_init(&lock, NULL);
	LIST_INIT(&listeners);
	watch = NULL;
	AO_store(&forked, 1);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, monitor_in_child);
}

/* The lock is held. */
static void listeners_tell(uintptr_t start, uintptr_t end)
{
	struct verve_mr_listener *listener;

	LIST_FOREACH(listener, &listeners, link)
		listener->gone(listener, start, end);
}

void verve_mr_monitor_notify(uintptr_t start, uintptr_t end)
{
	pthread_mutex_lock(&lock);
	/*
	 * The watched mapping itself may go without an event (shmat(2)): watch it anew next time.
	 */
	if (!LIST_EMPTY(&listeners) && watch)
		verve_net_unmaps_forget(watch, start, end);
	listeners_tell(start, end);
	pthread_mutex_unlock(&lock);
}

/* Under open_lock the list stays as it is, and spare may wait for memory to be unmapped. */
bool verve_mr_monitor_spare(const struct verve_mr_listener *but)
{
	struct verve_mr_listener *listener;
	bool any = false;

	pthread_mutex_lock(&open_lock);
	LIST_FOREACH(listener, &listeners, link)
		if (listener != but)
			any |= listener->spare(listener);
	pthread_mutex_unlock(&open_lock);
	return any;
}

static void monitor_gone(void *arg, uintptr_t start, uintptr_t end)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	listeners_tell(start, end);
	pthread_mutex_unlock(&lock);
}

/* Called for the first listener. */
static int monitor_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_fork);
	if (strcmp(verve_config.mr_cache_monitor, "notify"))
		return verve_net_unmaps_open(monitor_gone, NULL, &watch);
	return 0;
}

int verve_mr_monitor_add(struct verve_mr_listener *listener)
{
	int ret = 0;

	pthread_mutex_lock(&open_lock);
	if (LIST_EMPTY(&listeners))
		ret = monitor_open();
	if (!ret) {
		/* What the parent opened, the child does not use in any case. */
		AO_store(&forked, 0);
		pthread_mutex_lock(&lock);
		LIST_INSERT_HEAD(&listeners, listener, link);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_unlock(&open_lock);
	return ret;
}

void verve_mr_monitor_remove(struct verve_mr_listener *listener)
{
	struct verve_mr_listener *listed;
	bool last;

	pthread_mutex_lock(&open_lock);
	pthread_mutex_lock(&lock);
	/* In a child after fork(2) the parent's listeners are not in the list. */
	LIST_FOREACH(listed, &listeners, link)
		if (listed == listener)
			break;
	if (listed)
		LIST_REMOVE(listed, link);
	last = LIST_EMPTY(&listeners);
	pthread_mutex_unlock(&lock);
	if (last && watch) {
		verve_net_unmaps_close(watch);
		watch = NULL;
	}
	pthread_mutex_unlock(&open_lock);
}

int verve_mr_monitor_watch(uintptr_t start, uintptr_t end)
{
	return watch ? verve_net_unmaps_add(watch, start, end) : 0;
}

bool verve_mr_monitor_quiet(void)
{
	return watch ? verve_net_unmaps_quiet(watch) : !AO_load(&forked);
}
