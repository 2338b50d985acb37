/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Monitor: the listeners, the watch that they share, and the thread that buries. open_lock
 * serializes adding, removing, sparing and burying; the watch's thread never takes it, so that
 * these may allocate.
 */
#include "mr/monitor.h"

#include <atomic_ops.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "net/sys.h"
#include "net/unmaps.h"
#include <rdma/fi_errno.h>

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, verve_mr_listener) listeners = LIST_HEAD_INITIALIZER(listeners);
/* Constant while there are listeners. NULL: only the application tells. */
static struct verve_net_unmaps *watch;
/* Constant likewise. NULL: it did not start, and only operations bury. */
static struct verve_net_thread *burier;
static volatile AO_t due; /* something is to be buried, and the thread was woken for it */
static uint64_t due_at;	  /* nanoseconds; 0: the thread has not seen due. The thread's own */
/* This process is a child that has no listener of its own, but may have the parent's. */
static volatile AO_t forked;
/* So that a checker for leaks finds it. */
static struct verve_net_thread *volatile burier_of_parent;

/*
 * Nanoseconds until what is dead is buried: a program that goes on has buried it by then itself,
 * and one that unmaps all the time wakes the thread only so often.
 */
static const uint64_t bury_delay = 100000000;

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
	/* Another thread may have been starting or stopping it: it is left as it is. */
	burier_of_parent = burier;
	burier = NULL;
	AO_store(&forked, 1);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, monitor_in_child);
}

static uint64_t bury_step(void *arg)
{
	struct verve_mr_listener *listener;
	uint64_t now = verve_net_now();

	(void)arg;
	if (!AO_load_acquire(&due))
		return UINT64_MAX;
	if (!due_at)
		due_at = now + bury_delay;
	if (now < due_at)
		return due_at - now;
	/* Its holder may wait for this thread to end. */
	if (pthread_mutex_trylock(&open_lock))
		return bury_delay;
	due_at = 0;
	AO_fetch_and_add_full(&due, (AO_t)0 - 1);
	LIST_FOREACH(listener, &listeners, link)
		listener->bury(listener);
	pthread_mutex_unlock(&open_lock);
	return UINT64_MAX;
}

static void burier_open(void)
{
	int ret;

	AO_store(&due, 0);
	due_at = 0;
	ret = verve_net_thread_start("verve-bury", bury_step, NULL, &burier);
	if (!ret)
		return;
	burier = NULL;
	VERVE_INFO(MR, "cannot start a thread (%s): memory that is unmapped stays pinned until a "
		   "transfer comes\n", fi_strerror(-ret));
}

static void burier_close(void)
{
	if (burier)
		verve_net_thread_stop(burier);
	burier = NULL;
}

/*
 * The lock is held. Obeys the rule for the watch's thread: waking a thread is to write to a
 * descriptor.
 */
static void listeners_tell(uintptr_t start, uintptr_t end)
{
	struct verve_mr_listener *listener;
	bool dead = false;

	LIST_FOREACH(listener, &listeners, link)
		dead |= listener->gone(listener, start, end);
	if (dead && burier && AO_compare_and_swap_full(&due, 0, 1))
		verve_net_thread_wake(burier);
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
	/* Its holder may be closing the last registrations that there were to close. */
	bool any = pthread_mutex_trylock(&open_lock);

	if (any)
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
	int ret = 0;

	pthread_once(&once, register_fork);
	if (strcmp(verve_config.mr_cache_monitor, "notify"))
		ret = verve_net_unmaps_open(monitor_gone, NULL, &watch);
	if (!ret)
		burier_open();
	return ret;
}

/* Called behind the last listener. The watch's thread wakes the other one, so it ends first. */
static void monitor_close(void)
{
	if (watch)
		verve_net_unmaps_close(watch);
	watch = NULL;
	burier_close();
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
	if (last)
		monitor_close();
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
