/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hall: endpoints that many threads use at a time, and the work of one thread with them: messages,
 * remote accesses and atomics, all verified, each completing once. Any thread may read any
 * completion. Locks are the application's, as its threading model asks.
 */
#ifndef FABTESTS_HALL_H
#define FABTESTS_HALL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/node.h"
#include "common/parallel.h"
#include "common/rma.h"
#include "common/xfer.h"

#define HALL_WORKERS 8
#define HALL_ENDS 4
#define HALL_LONGEST 70000 /* bytes of a message */
#define HALL_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define HALL_ROUND_SENDS 3 /* that a worker's round counts as, and as many receives */

/* A tag that nobody else uses: kinds below 100 are the program's. */
#define HALL_TAG(thread, kind, n) ((uint64_t)(thread) << 40 | (uint64_t)(kind) << 32 | (n))

struct end {
	struct node node;
	struct region region; /* a slice for each worker, behind them the word of the atomics */
	pthread_mutex_t *ep_lock, *cq_lock; /* NULL: the model asks for none */
};

struct hall {
	struct env *env;
	struct end ends[HALL_ENDS];
	unsigned count;
	/* [a][b]: the address of end b in end a's address vector */
	fi_addr_t addrs[HALL_ENDS][HALL_ENDS];
	struct parallel_pool pools[2 * HALL_WORKERS];
	atomic_uint *seen; /* how often each untagged message came, by its payload */
	unsigned rounds;
	atomic_bool readers; /* others read the queues */
	atomic_bool stop;
	/* Endpoints that come and go: the one that can be sent to. */
	pthread_mutex_t guest_lock;
	fi_addr_t guest;
	atomic_uint cancelled;
};

void hall_init(struct hall *hall, struct env *env, unsigned count);
/* The ends are enabled: regions, and everybody's address for everybody. */
void hall_introduce(struct hall *hall);
/* Checks that all has completed once and that the atomics of so many workers have counted. */
void hall_close(struct hall *hall, unsigned workers);

/* -I rounds of all kinds of transfers; a function for parallel_start. */
void hall_work(void *arg, unsigned thread);

/* The size of the n-th message. */
size_t hall_size(unsigned n);
/* Called while a thread cannot go on. Ends the program past the deadline. */
void hall_progress(struct hall *hall, uint64_t deadline);
void hall_post(struct hall *hall, struct end *end, const struct xfer *xfer);
void hall_await(struct hall *hall, const struct parallel_op *op);
/* flags: those of FI_SEND, FI_RECV, FI_RMA and FI_ATOMIC that the completion must have. */
void hall_await_success(struct hall *hall, const struct parallel_op *op, uint64_t flags);

#endif
