/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hall: endpoints that many threads use at a time, and the work of one thread with them. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/hall.h"
#include "common/pattern.h"

#define SLICE 4096 /* bytes of a region for each worker */
#define ITERATIONS 24

enum kind { KIND_TAGGED = 100, KIND_INJECT, KIND_MR };

static const size_t sizes[] = { 8, 300, 5000, HALL_LONGEST, 0, 64, 20000 };

size_t hall_size(unsigned n)
{
	return sizes[n % (sizeof(sizes) / sizeof(*sizes))];
}

static void lock(pthread_mutex_t *mutex)
{
	if (mutex)
		pthread_mutex_lock(mutex);
}

static void unlock(pthread_mutex_t *mutex)
{
	if (mutex)
		pthread_mutex_unlock(mutex);
}

static void read_end(struct end *end)
{
	lock(end->cq_lock);
	parallel_read(end->node.txcq);
	unlock(end->cq_lock);
}

/* Called while a thread cannot go on. */
void hall_progress(struct hall *hall, uint64_t deadline)
{
	if (!hall->readers)
		for (unsigned i = 0; i < hall->count; i++)
			if (!i || !hall->ends[i].node.shared_queues)
				read_end(&hall->ends[i]);
	sched_yield();
	if (clock_now() > deadline)
		check_fatal("a thread got no further for %u s", hall->env->opts.timeout);
}

void hall_await(struct hall *hall, const struct parallel_op *op)
{
	uint64_t deadline = env_deadline(hall->env);

	while (!op->done)
		hall_progress(hall, deadline);
}

void hall_await_success(struct hall *hall, const struct parallel_op *op, uint64_t flags)
{
	hall_await(hall, op);
	CHECK_RET(op->err, 0);
	CHECK_EQ(op->flags & (FI_SEND | FI_RECV | FI_RMA | FI_ATOMIC), flags);
}

void hall_post(struct hall *hall, struct end *end, const struct xfer *xfer)
{
	uint64_t deadline = env_deadline(hall->env);
	ssize_t ret;

	for (;;) {
		lock(end->ep_lock);
		ret = xfer_try(&end->node, xfer);
		unlock(end->ep_lock);
		if (ret != -FI_EAGAIN)
			break;
		hall_progress(hall, deadline);
	}
	REQUIRE_RET(ret, 0);
}

/* A message with a tag of its own; every other one is there before its receive. */
static void exchange_tagged(struct hall *hall, unsigned thread, unsigned n, struct end *from,
			    struct end *to, fi_addr_t addr, bool inject)
{
	struct parallel_op *sent = inject ? NULL : parallel_op_get(&hall->pools[thread]);
	struct parallel_op *received = parallel_op_get(&hall->pools[thread]);
	size_t size = inject ? 16 : hall_size(n + thread);
	uint64_t tag = HALL_TAG(thread, inject ? KIND_INJECT : KIND_TAGGED, n);
	struct xfer send = { .op = inject ? XFER_INJECT : XFER_SEND, .tagged = true, .tag = tag,
			     .len = size, .addr = addr, .buf = pattern_alloc(size),
			     .context = sent };
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = tag, .len = HALL_LONGEST,
			     .addr = FI_ADDR_UNSPEC, .buf = pattern_alloc(HALL_LONGEST),
			     .context = received };

	pattern_fill(send.buf, size, tag);
	if (n % 2) {
		hall_post(hall, to, &recv);
		hall_post(hall, from, &send);
	} else {
		hall_post(hall, from, &send);
		hall_post(hall, to, &recv);
	}
	hall_await_success(hall, received, FI_RECV);
	CHECK_EQ(received->len, size);
	CHECK_EQ(received->tag, tag);
	pattern_check(recv.buf, size, tag);
	if (sent)
		hall_await_success(hall, sent, FI_SEND);
	pattern_free(send.buf);
	pattern_free(recv.buf);
}

/* The receive may get another thread's message, which says whose it is. */
static void exchange_untagged(struct hall *hall, unsigned thread, unsigned n, struct end *from,
			      struct end *to, fi_addr_t addr)
{
	struct parallel_op *sent = parallel_op_get(&hall->pools[thread]);
	struct parallel_op *received = parallel_op_get(&hall->pools[thread]);
	uint64_t number = (uint64_t)thread * hall->rounds + n;
	struct xfer send = { .op = XFER_SENDDATA, .len = hall_size(n), .data = number, .addr = addr,
			     .buf = pattern_alloc(hall_size(n)), .context = sent };
	struct xfer recv = { .op = XFER_RECV, .len = HALL_LONGEST, .addr = FI_ADDR_UNSPEC,
			     .buf = pattern_alloc(HALL_LONGEST), .context = received };

	pattern_fill(send.buf, send.len, number);
	hall_post(hall, to, &recv);
	hall_post(hall, from, &send);
	hall_await_success(hall, received, FI_RECV);
	REQUIRE(received->data < (uint64_t)HALL_WORKERS * hall->rounds);
	CHECK_EQ(atomic_fetch_add(&hall->seen[received->data], 1), 0);
	CHECK_EQ(received->len, hall_size((unsigned)(received->data % hall->rounds)));
	pattern_check(recv.buf, received->len, received->data);
	hall_await_success(hall, sent, FI_SEND);
	pattern_free(send.buf);
	pattern_free(recv.buf);
}

static void access_remote(struct hall *hall, struct end *from, const struct rma *rma)
{
	uint64_t deadline = env_deadline(hall->env);
	ssize_t ret;

	for (;;) {
		lock(from->ep_lock);
		ret = rma_try(&from->node, rma);
		unlock(from->ep_lock);
		if (ret != -FI_EAGAIN)
			break;
		hall_progress(hall, deadline);
	}
	REQUIRE_RET(ret, 0);
	hall_await_success(hall, rma->context, FI_RMA);
}

/* Writes the thread's own slice and reads it back, out of memory that is registered for that. */
static void write_and_read(struct hall *hall, unsigned thread, unsigned n, struct end *from,
			   struct end *to, fi_addr_t addr)
{
	struct remote remote = region_remote(&to->node, &to->region);
	struct fid_mr *mr = NULL;
	struct rma rma = { .op = RMA_WRITE, .len = n % 2 ? SLICE : 32, .addr = addr,
			   .remote_addr = remote.addr + thread * SLICE, .key = remote.key,
			   .buf = pattern_alloc(SLICE) };

	/* Threads may register memory in a domain only where the model asks for no lock. */
	if (!from->ep_lock) {
		REQUIRE_RET(fi_mr_reg(from->node.domain, rma.buf, SLICE, FI_READ | FI_WRITE, 0,
				      HALL_TAG(thread, KIND_MR, n), 0, &mr, NULL), 0);
		rma.desc = fi_mr_desc(mr);
	}
	pattern_fill(rma.buf, rma.len, HALL_TAG(thread, 0, n));
	rma.context = parallel_op_get(&hall->pools[thread]);
	access_remote(hall, from, &rma);
	memset(rma.buf, PATTERN_EMPTY, SLICE);
	rma.op = RMA_READ;
	rma.context = parallel_op_get(&hall->pools[thread]);
	access_remote(hall, from, &rma);
	pattern_check(rma.buf, rma.len, HALL_TAG(thread, 0, n));
	if (mr)
		CHECK_RET(fi_close(&mr->fid), 0);
	pattern_free(rma.buf);
}

/* Adds one to the word that all threads count on, through any endpoint of its domain. */
static void count_up(struct hall *hall, unsigned thread, struct end *from, struct end *to,
		     fi_addr_t addr)
{
	struct end *owner = to->node.shared ? &hall->ends[0] : to;
	struct remote remote = region_remote(&owner->node, &owner->region);
	struct parallel_op *op = parallel_op_get(&hall->pools[thread]);
	uint64_t deadline = env_deadline(hall->env), one = 1, before = 0;
	struct atomic add = { .call = ATOMIC_FETCH,
			      .datatype = FI_UINT64,
			      .op = FI_SUM,
			      .count = 1,
			      .buf = &one,
			      .result = &before,
			      .addr = addr,
			      .context = op,
			      .remote_addr = remote.addr + HALL_WORKERS * SLICE,
			      .key = remote.key };
	ssize_t ret;

	for (;;) {
		lock(from->ep_lock);
		ret = atomic_try(&from->node, &add);
		unlock(from->ep_lock);
		if (ret != -FI_EAGAIN)
			break;
		hall_progress(hall, deadline);
	}
	REQUIRE_RET(ret, 0);
	hall_await_success(hall, op, FI_ATOMIC);
	CHECK(before < (uint64_t)HALL_WORKERS * hall->rounds);
}

void hall_work(void *arg, unsigned thread)
{
	struct hall *hall = arg;

	for (unsigned n = 0; n < hall->rounds; n++) {
		unsigned from = (thread + n) % hall->count, to = (from + 1) % hall->count;
		struct end *a = &hall->ends[from], *b = &hall->ends[to];
		fi_addr_t addr = hall->addrs[from][to];

		exchange_tagged(hall, thread, n, a, b, addr, false);
		exchange_tagged(hall, thread, n, a, b, addr, true);
		exchange_untagged(hall, thread, n, a, b, addr);
		write_and_read(hall, thread, n, a, b, addr);
		count_up(hall, thread, a, b, addr);
	}
}

void hall_init(struct hall *hall, struct env *env, unsigned count)
{
	memset(hall, 0, sizeof(*hall));
	hall->env = env;
	hall->count = count;
	hall->rounds = env->opts.iterations ? env->opts.iterations : ITERATIONS;
	hall->guest = FI_ADDR_NOTAVAIL;
	hall->seen = calloc((size_t)HALL_WORKERS * hall->rounds, sizeof(*hall->seen));
	if (!hall->seen)
		check_fatal("out of memory");
	pthread_mutex_init(&hall->guest_lock, NULL);
}

void hall_introduce(struct hall *hall)
{
	for (unsigned i = 0; i < hall->count; i++) {
		struct node *node = &hall->ends[i].node;

		region_open(node, &hall->ends[i].region, HALL_WORKERS * SLICE + sizeof(uint64_t),
			    FI_REMOTE_READ | FI_REMOTE_WRITE);
		memset(hall->ends[i].region.buf, 0, hall->ends[i].region.len);
		for (unsigned j = 0; j < hall->count; j++) {
			char name[NODE_ADDR_MAX];

			node_name(&hall->ends[j].node, name);
			hall->addrs[i][j] = node_insert(node, name);
		}
	}
}

/* Every operation has completed once, and the atomics have counted each other. */
void hall_close(struct hall *hall, unsigned workers)
{
	uint64_t sum = 0;

	comp_expect_none(&hall->ends[0].node, hall->ends[0].node.txcq);
	for (unsigned i = 0; i < 2 * HALL_WORKERS; i++)
		parallel_pool_close(&hall->pools[i]);
	for (unsigned i = hall->count; i--;) {
		struct end *end = &hall->ends[i];
		uint64_t *word = (uint64_t *)((char *)end->region.buf + HALL_WORKERS * SLICE);

		/*
		 * A thread of the provider wrote the word last. ThreadSanitizer cannot see that its
		 * completion, which came through the device, orders the two.
		 */
		sum += __atomic_load_n(word, __ATOMIC_ACQUIRE);
		region_close(&end->region);
		node_close(&end->node);
	}
	CHECK_EQ(sum, (uint64_t)workers * hall->rounds);
	pthread_mutex_destroy(&hall->guest_lock);
	free(hall->seen);
}
