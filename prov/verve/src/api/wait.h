/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait: how a reader of a completion queue, counter or event queue sleeps. It has the engines that
 * report to the queue or counter, a descriptor on which a thread sleeps inside a call, and a
 * descriptor that the application polls.
 *
 * wait.c explains why no wake-up is lost. Any thread may call the functions here, except init and
 * fini.
 */
#ifndef VERVE_API_WAIT_H
#define VERVE_API_WAIT_H

#include <atomic_ops.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"

struct verve_engine;
struct verve_wait_engine;

/* A descriptor to sleep on, and the event that wakes it; -1: not open. */
struct verve_wait_fd {
	int epoll; /* epoll(7): has event, and the wait descriptors of the engines */
	int event; /* eventfd(2): readable when there was a change */
};

struct verve_wait {
	enum fi_wait_obj obj;	  /* FI_WAIT_NONE, _UNSPEC, _FD or _YIELD */
	struct verve_wait_fd own;   /* for _UNSPEC and _FD: a thread sleeps on it inside a call */
	struct verve_wait_fd given; /* for _FD: the application polls it */

	/*
	 * Entries of engines. Each has a lock, under which threads work on its engine. They are
	 * added and given another engine under lock, which is taken before an entry's; no entry
	 * ends before the wait object does, so verve_wait_progress walks through them without lock.
	 */
	struct verve_lock lock;
	volatile AO_t entries; /* struct verve_wait_engine *; 0: there is none */
	bool elide;
	volatile unsigned idle_polls; /* in a row; verve_wait_progress yields after some */

	pthread_mutex_t sleep_lock; /* guards the fields below; taken before a queue's lock */
	pthread_cond_t woken;
	/* a thread sleeps on own, or is about to; other threads wait for woken */
	volatile AO_t asleep;
	volatile AO_t turn;   /* changes when the waiting threads must look again */

	/*
	 * Calls of verve_wait_signal; number of them that waiting threads have seen, and that calls
	 * of verve_wait_try have.
	 */
	volatile AO_t signals, answered, tried;
};

/* How to look for a result. The owner of the wait object gives the functions, and their arg. */
struct verve_wait_ops {
	/* Makes progress and looks. Returns the result, or -FI_EAGAIN: there is none yet. */
	ssize_t (*look)(void *arg);
	/*
	 * From now on a change calls verve_wait_wake. False: there has been a change already, so
	 * the caller must look again.
	 */
	bool (*arm)(void *arg);
};

/*
 * obj: the wait object that the application asked for. elide: the application serializes, so that
 * locks are elided. -FI_ENOSYS: verve has no such wait object; -FI_EINVAL: obj is not a wait
 * object; -errno: no descriptor. Logs.
 */
int verve_wait_init(struct verve_wait *wait, enum fi_wait_obj obj, bool elide);
void verve_wait_fini(struct verve_wait *wait);

/*
 * A lock for an engine that is going to be bound (verve_engine_attr.lock): progress on wait takes
 * this one alone, and not one of the wait object before the engine's. The wait object outlives the
 * engine. NULL: no memory. Given back when the engine is closed.
 */
struct verve_lock *verve_wait_lend(struct verve_wait *wait);
void verve_wait_take_back(struct verve_wait *wait, struct verve_lock *lock);

/*
 * From now on progress on wait takes turns of engine, and engine's descriptor wakes. A second bind
 * of the same engine adds nothing. -FI_ENOMEM; -errno: the descriptor cannot be watched, which is
 * logged.
 */
int verve_wait_bind(struct verve_wait *wait, struct verve_engine *engine);
/* After this call nothing here uses the engine. An engine that is not bound: nothing. */
void verve_wait_unbind(struct verve_wait *wait, struct verve_engine *engine);
bool verve_wait_is_bound(struct verve_wait *wait);

/*
 * One turn of each engine that no other thread works on at this moment: this call waits for no
 * lock. Where threads are more than processors, others may wait for this one's: after some calls in
 * vain, yields it.
 */
void verve_wait_progress(struct verve_wait *wait);

/* There is a change: wakes the threads that sleep. wait: a struct verve_wait *. Does not block. */
void verve_wait_wake(void *wait);
/*
 * Ends every verve_wait_for that is under way; if none is, the next one. fi_cq(3), fi_cq_signal.
 * The application's descriptor becomes readable, so that a thread that sleeps on it wakes, too; if
 * none does yet, the next verve_wait_try lets none sleep. Of several threads, one may take the
 * wake-up of all: it signals again.
 */
void verve_wait_signal(struct verve_wait *wait);

/*
 * Looks until there is a result, for at most timeout milliseconds (negative: for ever). It polls a
 * little first, then sleeps. Returns the result of ops->look; -FI_ETIMEDOUT; -FI_EAGAIN:
 * verve_wait_signal was called; -FI_ENOSYS: opened with FI_WAIT_NONE. No lock may be held.
 */
ssize_t verve_wait_for(struct verve_wait *wait, int timeout, const struct verve_wait_ops *ops,
		       void *arg);

/*
 * fi_trywait of fi_poll(3), for one object. 0: the application may sleep on the descriptor.
 * -FI_EAGAIN: there may be a result, or verve_wait_signal was called: read first; -FI_EINVAL: the
 * object has no descriptor.
 */
int verve_wait_try(struct verve_wait *wait, const struct verve_wait_ops *ops, void *arg);

/*
 * fi_control for FI_GETWAIT (-FI_ENODATA: there is no descriptor) and FI_GETWAITOBJ; for others:
 * -FI_ENOSYS.
 */
int verve_wait_control(const struct verve_wait *wait, int command, void *arg);

#endif
