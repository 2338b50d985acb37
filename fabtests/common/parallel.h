/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * parallel: threads, and operations whose completion any of them may read. Nothing here touches the
 * list of open nodes, so threads may open and close nodes of environments of their own.
 */
#ifndef FABTESTS_PARALLEL_H
#define FABTESTS_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include "common/env.h"

#define PARALLEL_MAX 64

/* An operation; its address is its context. The thread that reads its completion fills it in. */
struct parallel_op {
	struct parallel_op *next; /* in its pool */
	atomic_uint done;         /* completions so far; the fields below are valid once it is 1 */
	int err;                  /* positive FI errno; 0: success */
	size_t len;
	uint64_t flags, data, tag;
	bool dropped; /* its endpoint was closed first: no completion need come */
};

/* Operations of one thread, kept until the end so that a second completion shows. */
struct parallel_pool {
	struct parallel_op *first;
};

struct parallel_op *parallel_op_get(struct parallel_pool *pool);
/* A check that each has completed once; frees them. Returns how many there were. */
size_t parallel_pool_close(struct parallel_pool *pool);

/* Reads all completions from a queue of format FI_CQ_FORMAT_TAGGED; returns how many. */
size_t parallel_read(struct fid_cq *cq);
/* Sleeps in fi_cq_sread, without a time-out, until there is something or the queue is signalled. */
size_t parallel_sread(struct fid_cq *cq);

/* Threads that each call fn(arg, index). */
struct parallel {
	pthread_t threads[PARALLEL_MAX];
	unsigned count;
};

void parallel_start(struct parallel *parallel, unsigned count, void (*fn)(void *arg, unsigned i),
		    void *arg);
void parallel_join(struct parallel *parallel);

#endif
