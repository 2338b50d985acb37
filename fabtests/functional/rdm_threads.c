/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_threads: one process, many threads: on one endpoint; on several endpoints that share a queue,
 * a counter and an address vector, with readers of every kind; with endpoints that close and
 * receives that are cancelled meanwhile; and each threading model by its own rules. Made to run
 * under a thread sanitizer, too.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/parallel.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/xfer.h"

#define WORKERS 8
#define ENDS 4
#define LONGEST 70000
#define SLICE 4096
#define ITERATIONS 24
#define TAG(thread, kind, n) ((uint64_t)(thread) << 40 | (uint64_t)(kind) << 32 | (n))
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define ROUND_SENDS 3 /* that a worker's round counts as, and as many receives */

enum kind { KIND_TAGGED, KIND_INJECT, KIND_CANCEL, KIND_CLOSE, KIND_LATE, KIND_NEVER };

struct end {
	struct node node;
	struct region region; /* a slice for each worker, behind them the word of the atomics */
	pthread_mutex_t *ep_lock, *cq_lock; /* NULL: the model asks for none */
};

struct hall {
	struct env *env;
	struct end ends[ENDS];
	unsigned count;
	fi_addr_t addrs[ENDS][ENDS]; /* what one calls another */
	struct parallel_pool pools[2 * WORKERS];
	atomic_uint *seen; /* untagged messages, by what they carry */
	unsigned rounds;
	atomic_bool readers; /* others read the queues */
	atomic_bool stop;
	/* Endpoints that come and go: the one that can be sent to. */
	pthread_mutex_t guest_lock;
	fi_addr_t guest;
	atomic_uint cancelled;
};

static const size_t sizes[] = { 8, 300, 5000, LONGEST, 0, 64, 20000 };

static size_t size_of(unsigned n)
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

/* What a thread does while it cannot go on. */
static void progress(struct hall *hall, uint64_t deadline)
{
	if (!hall->readers)
		for (unsigned i = 0; i < hall->count; i++)
			if (!i || !hall->ends[i].node.shared_queues)
				read_end(&hall->ends[i]);
	sched_yield();
	if (env_now() > deadline)
		check_fatal("a thread got no further for %u s", hall->env->opts.timeout);
}

static void await(struct hall *hall, const struct parallel_op *op)
{
	uint64_t deadline = env_deadline(hall->env);

	while (!op->done)
		progress(hall, deadline);
}

static void await_success(struct hall *hall, const struct parallel_op *op, uint64_t flags)
{
	await(hall, op);
	CHECK_RET(op->err, 0);
	CHECK_EQ(op->flags & (FI_SEND | FI_RECV | FI_RMA | FI_ATOMIC), flags);
}

static void post(struct hall *hall, struct end *end, const struct xfer *xfer)
{
	uint64_t deadline = env_deadline(hall->env);
	ssize_t ret;

	for (;;) {
		lock(end->ep_lock);
		ret = xfer_try(&end->node, xfer);
		unlock(end->ep_lock);
		if (ret != -FI_EAGAIN)
			break;
		progress(hall, deadline);
	}
	REQUIRE_RET(ret, 0);
}

/* A message with a tag of its own; every other one is there before its receive. */
static void exchange_tagged(struct hall *hall, unsigned thread, unsigned n, struct end *from,
			    struct end *to, fi_addr_t addr, bool inject)
{
	struct parallel_op *sent = inject ? NULL : parallel_op_get(&hall->pools[thread]);
	struct parallel_op *received = parallel_op_get(&hall->pools[thread]);
	size_t size = inject ? 16 : size_of(n + thread);
	uint64_t tag = TAG(thread, inject ? KIND_INJECT : KIND_TAGGED, n);
	struct xfer send = { .op = inject ? XFER_INJECT : XFER_SEND, .tagged = true, .tag = tag,
			     .len = size, .addr = addr, .buf = pattern_alloc(size),
			     .context = sent };
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = tag, .len = LONGEST,
			     .addr = FI_ADDR_UNSPEC, .buf = pattern_alloc(LONGEST),
			     .context = received };

	pattern_fill(send.buf, size, tag);
	if (n % 2) {
		post(hall, to, &recv);
		post(hall, from, &send);
	} else {
		post(hall, from, &send);
		post(hall, to, &recv);
	}
	await_success(hall, received, FI_RECV);
	CHECK_EQ(received->len, size);
	CHECK_EQ(received->tag, tag);
	pattern_check(recv.buf, size, tag);
	if (sent)
		await_success(hall, sent, FI_SEND);
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
	struct xfer send = { .op = XFER_SENDDATA, .len = size_of(n), .data = number, .addr = addr,
			     .buf = pattern_alloc(size_of(n)), .context = sent };
	struct xfer recv = { .op = XFER_RECV, .len = LONGEST, .addr = FI_ADDR_UNSPEC,
			     .buf = pattern_alloc(LONGEST), .context = received };

	pattern_fill(send.buf, send.len, number);
	post(hall, to, &recv);
	post(hall, from, &send);
	await_success(hall, received, FI_RECV);
	REQUIRE(received->data < (uint64_t)WORKERS * hall->rounds);
	CHECK_EQ(atomic_fetch_add(&hall->seen[received->data], 1), 0);
	CHECK_EQ(received->len, size_of((unsigned)(received->data % hall->rounds)));
	pattern_check(recv.buf, received->len, received->data);
	await_success(hall, sent, FI_SEND);
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
		progress(hall, deadline);
	}
	REQUIRE_RET(ret, 0);
	await_success(hall, rma->context, FI_RMA);
}

/* Writes the thread's own slice and reads it back. */
static void write_and_read(struct hall *hall, unsigned thread, unsigned n, struct end *from,
			   struct end *to, fi_addr_t addr)
{
	struct remote remote = region_remote(&to->node, &to->region);
	struct rma rma = { .op = RMA_WRITE, .len = n % 2 ? SLICE : 32, .addr = addr,
			   .remote_addr = remote.addr + thread * SLICE, .key = remote.key,
			   .buf = pattern_alloc(SLICE) };

	pattern_fill(rma.buf, rma.len, TAG(thread, 0, n));
	rma.context = parallel_op_get(&hall->pools[thread]);
	access_remote(hall, from, &rma);
	memset(rma.buf, PATTERN_EMPTY, SLICE);
	rma.op = RMA_READ;
	rma.context = parallel_op_get(&hall->pools[thread]);
	access_remote(hall, from, &rma);
	pattern_check(rma.buf, rma.len, TAG(thread, 0, n));
	pattern_free(rma.buf);
}

/* One more on the word that all threads count on. */
static void count_up(struct hall *hall, unsigned thread, struct end *from, struct end *to,
		     fi_addr_t addr)
{
	struct remote remote = region_remote(&to->node, &to->region);
	struct parallel_op *op = parallel_op_get(&hall->pools[thread]);
	uint64_t deadline = env_deadline(hall->env), one = 1, before = 0;
	struct atomic add = { .call = ATOMIC_FETCH, .datatype = FI_UINT64, .op = FI_SUM, .count = 1,
			      .buf = &one, .result = &before, .addr = addr, .context = op,
			      .remote_addr = remote.addr + WORKERS * SLICE, .key = remote.key };
	ssize_t ret;

	for (;;) {
		lock(from->ep_lock);
		ret = atomic_try(&from->node, &add);
		unlock(from->ep_lock);
		if (ret != -FI_EAGAIN)
			break;
		progress(hall, deadline);
	}
	REQUIRE_RET(ret, 0);
	await_success(hall, op, FI_ATOMIC);
	CHECK(before < (uint64_t)WORKERS * hall->rounds);
}

static void work(void *arg, unsigned thread)
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

static void hall_init(struct hall *hall, struct env *env, unsigned count)
{
	memset(hall, 0, sizeof(*hall));
	hall->env = env;
	hall->count = count;
	hall->rounds = env->opts.iterations ? env->opts.iterations : ITERATIONS;
	hall->guest = FI_ADDR_NOTAVAIL;
	hall->seen = calloc((size_t)WORKERS * hall->rounds, sizeof(*hall->seen));
	if (!hall->seen)
		check_fatal("out of memory");
	pthread_mutex_init(&hall->guest_lock, NULL);
}

static void hall_introduce(struct hall *hall)
{
	for (unsigned i = 0; i < hall->count; i++) {
		struct node *node = &hall->ends[i].node;

		region_open(node, &hall->ends[i].region, WORKERS * SLICE + sizeof(uint64_t),
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
static void hall_close(struct hall *hall, unsigned workers)
{
	uint64_t sum = 0;

	comp_expect_none(&hall->ends[0].node, hall->ends[0].node.txcq);
	for (unsigned i = 0; i < 2 * WORKERS; i++)
		parallel_pool_close(&hall->pools[i]);
	for (unsigned i = hall->count; i--;) {
		struct end *end = &hall->ends[i];
		uint64_t word;

		memcpy(&word, (char *)end->region.buf + WORKERS * SLICE, sizeof(word));
		sum += word;
		region_close(&end->region);
		node_close(&end->node);
	}
	CHECK_EQ(sum, (uint64_t)workers * hall->rounds);
	pthread_mutex_destroy(&hall->guest_lock);
	free(hall->seen);
}

/*
 * Two endpoints, each with one queue; eight threads use both of them in all ways. own_domains: each
 * endpoint has a domain of its own. locks: 0, or one for each endpoint and its queue, or for each.
 */
static void run_model(struct env *env, enum fi_threading threading, bool own_domains, int locks)
{
	struct node_attr attr = { .caps = CAPS, .one_cq = true, .threading = threading };
	pthread_mutex_t mutex[4];
	struct parallel workers;
	struct hall hall;

	hall_init(&hall, env, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct end *end = &hall.ends[i];

		attr.share = i && !own_domains ? &hall.ends[0].node : NULL;
		node_open(&end->node, env, &attr);
		node_enable(&end->node);
		pthread_mutex_init(&mutex[2 * i], NULL);
		pthread_mutex_init(&mutex[2 * i + 1], NULL);
		end->ep_lock = locks ? &mutex[2 * i] : NULL;
		end->cq_lock = locks ? &mutex[2 * i + (unsigned)locks - 1] : NULL;
	}
	hall_introduce(&hall);
	parallel_start(&workers, WORKERS, work, &hall);
	parallel_join(&workers);
	for (unsigned i = 0; i < WORKERS * hall.rounds; i++)
		CHECK_EQ(hall.seen[i], 1);
	hall_close(&hall, WORKERS);
	for (unsigned i = 0; i < 4; i++)
		pthread_mutex_destroy(&mutex[i]);
}

static void run_one_endpoint(struct env *env)
{
	run_model(env, FI_THREAD_SAFE, false, 0);
}

static void run_fid(struct env *env)
{
	run_model(env, FI_THREAD_FID, false, 2);
}

static void run_endpoint(struct env *env)
{
	run_model(env, FI_THREAD_ENDPOINT, false, 2);
}

static void run_completion(struct env *env)
{
	run_model(env, FI_THREAD_COMPLETION, false, 1);
}

static void run_domain(struct env *env)
{
	run_model(env, FI_THREAD_DOMAIN, true, 1);
}

/* The first two sleep in fi_cq_sread, the others poll. */
static void read_queue(void *arg, unsigned thread)
{
	struct hall *hall = arg;
	struct fid_cq *cq = hall->ends[0].node.txcq;

	while (!hall->stop) {
		if (thread < 2)
			parallel_sread(cq);
		else if (!parallel_read(cq))
			sched_yield();
	}
}

struct count_waiter {
	struct fid_cntr *cntr;
	uint64_t value;
};

static void await_counter(void *arg, unsigned thread)
{
	struct count_waiter *waiter = arg;

	(void)thread;
	CHECK_RET(fi_cntr_wait(waiter->cntr, waiter->value, -1), 0);
}

/* Wakes readers until none sleeps any more. */
static void stop_readers(struct hall *hall, struct parallel *readers)
{
	struct parallel one = { .count = 1 };

	hall->stop = true;
	for (unsigned i = 0; i < readers->count; i++) {
		one.threads[0] = readers->threads[i];
		while (pthread_tryjoin_np(one.threads[0], NULL)) {
			CHECK_RET(fi_cq_signal(hall->ends[0].node.txcq), 0);
			usleep(1000);
		}
	}
}

static void open_shared(struct hall *hall, struct env *env, const struct node_attr *attr,
			struct fid_cntr **cntr)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP,
					  .wait_obj = FI_WAIT_UNSPEC };
	struct node_attr share = *attr;

	node_open(&hall->ends[0].node, env, attr);
	if (cntr) {
		REQUIRE_RET(fi_cntr_open(hall->ends[0].node.domain, &cntr_attr, cntr, NULL), 0);
		REQUIRE_RET(fi_ep_bind(hall->ends[0].node.ep, &(*cntr)->fid, FI_SEND | FI_RECV), 0);
		share.cntr = *cntr;
	}
	share.share = &hall->ends[0].node;
	share.share_queues = true;
	node_enable(&hall->ends[0].node);
	for (unsigned i = 1; i < hall->count; i++) {
		node_open(&hall->ends[i].node, env, &share);
		node_enable(&hall->ends[i].node);
	}
	hall_introduce(hall);
}

static void run_shared_queue(struct env *env)
{
	struct node_attr attr = { .caps = CAPS, .one_cq = true, .cq_wait = FI_WAIT_UNSPEC };
	struct parallel workers, readers, waiters;
	struct count_waiter waiter;
	struct hall hall;

	hall_init(&hall, env, ENDS);
	open_shared(&hall, env, &attr, &waiter.cntr);
	hall.readers = true;
	waiter.value = 2ull * ROUND_SENDS * WORKERS * hall.rounds;
	parallel_start(&readers, 4, read_queue, &hall);
	parallel_start(&waiters, 2, await_counter, &waiter);
	parallel_start(&workers, WORKERS, work, &hall);
	parallel_join(&workers);
	parallel_join(&waiters);
	stop_readers(&hall, &readers);
	CHECK_EQ(fi_cntr_read(waiter.cntr), waiter.value);
	CHECK_EQ(fi_cntr_readerr(waiter.cntr), 0);
	for (unsigned i = 1; i < ENDS; i++)
		node_close_ep(&hall.ends[i].node);
	node_close_ep(&hall.ends[0].node);
	CHECK_RET(fi_close(&waiter.cntr->fid), 0);
	hall_close(&hall, WORKERS);
}

/* A receive with a tag that nobody else uses on end 1, cancelled; in every other round its message comes. */
static void cancel_round(struct hall *hall, unsigned thread, unsigned n)
{
	struct parallel_op *received = parallel_op_get(&hall->pools[thread]), *sent = NULL;
	uint64_t tag = TAG(thread, KIND_CANCEL, n);
	size_t size = size_of(n / 2);
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = tag, .len = LONGEST,
			     .addr = FI_ADDR_UNSPEC, .buf = pattern_alloc(LONGEST),
			     .context = received };
	struct xfer send = { .op = XFER_SEND, .tagged = true, .tag = tag, .len = size,
			     .addr = hall->addrs[0][1], .buf = pattern_alloc(size) };

	post(hall, &hall->ends[1], &recv);
	if (n % 2) {
		send.context = sent = parallel_op_get(&hall->pools[thread]);
		pattern_fill(send.buf, size, tag);
		post(hall, &hall->ends[0], &send);
	}
	/* What it returns is not promised: it may be too late. */
	fi_cancel(&hall->ends[1].node.ep->fid, received);
	await(hall, received);
	if (received->err) {
		CHECK_RET(received->err, FI_ECANCELED);
		hall->cancelled++;
		pattern_check_byte(recv.buf, LONGEST, PATTERN_EMPTY);
		if (sent) {
			recv.context = received = parallel_op_get(&hall->pools[thread]);
			post(hall, &hall->ends[1], &recv);
			await_success(hall, received, FI_RECV);
		}
	} else {
		CHECK(sent != NULL);
	}
	if (sent) {
		CHECK_EQ(received->len, size);
		pattern_check(recv.buf, size, tag);
		await_success(hall, sent, FI_SEND);
	}
	pattern_free(send.buf);
	pattern_free(recv.buf);
}

/* Publishes addr, or withdraws and removes it: nobody uses an address while it is removed. */
static void publish(struct hall *hall, fi_addr_t addr)
{
	pthread_mutex_lock(&hall->guest_lock);
	hall->guest = addr;
	pthread_mutex_unlock(&hall->guest_lock);
}

static void retire(struct hall *hall, fi_addr_t addr)
{
	pthread_mutex_lock(&hall->guest_lock);
	if (hall->guest == addr)
		hall->guest = FI_ADDR_NOTAVAIL;
	CHECK_RET(fi_av_remove(hall->ends[0].node.av, &addr, 1, 0), 0);
	pthread_mutex_unlock(&hall->guest_lock);
}

#define GUEST_OPS 4

/*
 * An endpoint comes, posts receives that nobody sends to, sends messages of which the long ones are
 * under way when it closes, and goes. What it was given completes: all of it, once.
 */
static void guest_round(struct hall *hall, unsigned thread, unsigned n)
{
	struct parallel_op *never[GUEST_OPS], *sent[GUEST_OPS], *received[GUEST_OPS];
	struct node_attr attr = { .caps = CAPS, .one_cq = true, .cq_wait = FI_WAIT_UNSPEC,
				  .share = &hall->ends[0].node, .share_queues = true };
	struct env own = { .opts = hall->env->opts, .nodes = LIST_HEAD_INITIALIZER(own.nodes) };
	void *out[GUEST_OPS], *in[GUEST_OPS];
	struct end guest = { .ep_lock = NULL };
	char name[NODE_ADDR_MAX];
	fi_addr_t addr;

	node_open(&guest.node, &own, &attr);
	node_enable(&guest.node);
	node_name(&guest.node, name);
	addr = node_insert(&guest.node, name);
	publish(hall, addr);
	for (unsigned i = 0; i < GUEST_OPS; i++) {
		size_t size = size_of(n + i);
		uint64_t tag = TAG(thread, KIND_CLOSE, n * GUEST_OPS + i);
		struct xfer x = { .op = XFER_RECV, .tagged = true, .len = LONGEST,
				  .addr = FI_ADDR_UNSPEC, .tag = TAG(thread, KIND_NEVER, n) };

		in[i] = pattern_alloc(LONGEST);
		out[i] = pattern_alloc(size);
		pattern_fill(out[i], size, tag);
		x.context = never[i] = parallel_op_get(&hall->pools[thread]);
		x.buf = out[i];
		x.len = size;
		post(hall, &guest, &x);
		x.tag = tag;
		x.context = received[i] = parallel_op_get(&hall->pools[thread]);
		x.buf = in[i];
		x.len = LONGEST;
		post(hall, &hall->ends[2], &x);
		x.op = XFER_SEND;
		x.context = sent[i] = parallel_op_get(&hall->pools[thread]);
		x.buf = out[i];
		x.len = size;
		x.addr = hall->addrs[0][2];
		post(hall, &guest, &x);
	}
	node_close(&guest.node);
	for (unsigned i = 0; i < GUEST_OPS; i++) {
		uint64_t tag = TAG(thread, KIND_CLOSE, n * GUEST_OPS + i);

		await(hall, never[i]);
		CHECK_RET(never[i]->err, FI_ECANCELED);
		await_success(hall, sent[i], FI_SEND);
		await_success(hall, received[i], FI_RECV);
		CHECK_EQ(received[i]->len, size_of(n + i));
		pattern_check(in[i], received[i]->len, tag);
		pattern_free(in[i]);
		pattern_free(out[i]);
	}
	retire(hall, addr);
}

/* To an endpoint that may be about to go: it completes in one way or another. */
static void visit_round(struct hall *hall, unsigned thread, unsigned n)
{
	struct parallel_op *op = parallel_op_get(&hall->pools[thread]);
	size_t size = size_of(n);
	struct xfer send = { .op = XFER_SEND, .tagged = true, .len = size, .context = op,
			     .tag = TAG(thread, KIND_LATE, n), .buf = pattern_alloc(size) };
	ssize_t ret = -FI_EAGAIN;

	for (uint64_t deadline = env_deadline(hall->env); ret == -FI_EAGAIN;) {
		pthread_mutex_lock(&hall->guest_lock);
		send.addr = hall->guest;
		if (send.addr != FI_ADDR_NOTAVAIL)
			ret = xfer_try(&hall->ends[3].node, &send);
		pthread_mutex_unlock(&hall->guest_lock);
		if (hall->stop)
			break;
		progress(hall, deadline);
	}
	if (ret) {
		CHECK(hall->stop);
		op->done = 1;
	} else {
		await(hall, op);
	}
	pattern_free(send.buf);
}

/* Three guests, one who visits them, two who cancel, two who work. */
static void mingle(void *arg, unsigned thread)
{
	struct hall *hall = arg;

	if (thread < 2) {
		work(hall, thread);
		return;
	}
	for (unsigned n = 0; n < hall->rounds; n++) {
		if (thread < 4)
			cancel_round(hall, thread, n);
		else if (thread < 7)
			guest_round(hall, thread, n);
		else if (!hall->stop)
			visit_round(hall, thread, n);
	}
}

static void run_close_and_cancel(struct env *env)
{
	struct node_attr attr = { .caps = CAPS, .one_cq = true, .cq_wait = FI_WAIT_UNSPEC };
	struct parallel workers, readers, last = { .count = 1 };
	struct hall hall;

	hall_init(&hall, env, ENDS);
	open_shared(&hall, env, &attr, NULL);
	hall.readers = true;
	parallel_start(&readers, 3, read_queue, &hall);
	parallel_start(&workers, WORKERS, mingle, &hall);
	/* The visitor ends when there is nobody to visit any more. */
	last.threads[0] = workers.threads[--workers.count];
	parallel_join(&workers);
	hall.stop = true;
	hall.readers = false;
	parallel_join(&last);
	stop_readers(&hall, &readers);
	CHECK(hall.cancelled > 0);
	hall_close(&hall, 2);
}

static const struct suite_case cases[] = {
	{ "one_endpoint", CAPS, run_one_endpoint },
	{ "shared_queue", CAPS, run_shared_queue },
	{ "close_and_cancel", CAPS, run_close_and_cancel },
	{ "fid", CAPS, run_fid },
	{ "endpoint", CAPS, run_endpoint },
	{ "completion", CAPS, run_completion },
	{ "domain", CAPS, run_domain },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_threads", "Many threads, in every threading model.", false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
