/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait: what a reader of a completion queue, counter or event queue waits for: the engines that
 * report there, a descriptor for threads asleep in a call, and one for the application to poll.
 *
 * wait.c shows why no wake-up gets lost. Any thread may call anything here, except init and fini.
 */
#ifndef VERVE_API_WAIT_H
#define VERVE_API_WAIT_H

#include <atomic_ops.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/lock.h"

struct verve_engine;
struct verve_wait_engine;

/* epoll(7) descriptor of event and of each engine's; -1: none. */
struct verve_wait_fd {
	int epoll;
	int event; /* eventfd(2): something changed */
};

struct verve_wait {
	enum fi_wait_obj obj;	  /* FI_WAIT_NONE, UNSPEC, FD or YIELD */
	struct verve_wait_fd own;   /* UNSPEC, FD: a thread in a call sleeps on it */
	struct verve_wait_fd given; /* FD: the application polls it */

	struct verve_lock lock; /* guards engines; taken before an engine's */
	LIST_HEAD(, verve_wait_engine) engines;

	pthread_mutex_t sleep_lock; /* guards what follows; taken before a queue's */
	pthread_cond_t woken;
	volatile AO_t asleep; /* a thread sleeps on own, or is about to; others wait for woken */
	volatile AO_t turn;   /* changes when those who wait must look again */

	volatile AO_t signals, answered; /* verve_wait_signal, and how many a waiter saw */
};

/* What is waited for, as its owner knows it; arg is the owner's. */
struct verve_wait_ops {
	/* A result, or -FI_EAGAIN: not yet. Makes progress. */
	ssize_t (*look)(void *arg);
	/* From now on a change calls verve_wait_wake. False: there is one already, look again. */
	bool (*arm)(void *arg);
};

/*
 * elide: the application serializes. -FI_ENOSYS: no such waiting; -FI_EINVAL: no such object;
 * -errno.
 */
int verve_wait_init(struct verve_wait *wait, enum fi_wait_obj obj, bool elide);
void verve_wait_fini(struct verve_wait *wait);

/* Binding twice is binding once; unbinding what is not bound does nothing. -FI_ENOMEM, -errno. */
int verve_wait_bind(struct verve_wait *wait, struct verve_engine *engine);
/* When it returns, no call uses the engine. */
void verve_wait_unbind(struct verve_wait *wait, struct verve_engine *engine);
bool verve_wait_is_bound(const struct verve_wait *wait);

/* One turn of each engine, unless another thread is at it. */
void verve_wait_progress(struct verve_wait *wait);

/* Something changed; wait is a struct verve_wait. Does not block. */
void verve_wait_wake(void *wait);
/* Ends every verve_wait_for that is under way; if none is, the next. fi_cq(3), fi_cq_signal. */
void verve_wait_signal(struct verve_wait *wait);

/*
 * Looks until there is a result, for timeout milliseconds (negative: for ever); polls a little,
 * then sleeps. -FI_ETIMEDOUT; -FI_EAGAIN: signalled; -FI_ENOSYS: opened with FI_WAIT_NONE.
 */
ssize_t verve_wait_for(struct verve_wait *wait, int timeout, const struct verve_wait_ops *ops,
		       void *arg);

/*
 * fi_trywait(3) for one object. -FI_EAGAIN: do not poll yet; -FI_EINVAL: no descriptor was given.
 */
int verve_wait_try(struct verve_wait *wait, const struct verve_wait_ops *ops, void *arg);

/* FI_GETWAIT (-FI_ENODATA: none to give) and FI_GETWAITOBJ; others: -FI_ENOSYS. */
int verve_wait_control(const struct verve_wait *wait, int command, void *arg);

#endif
