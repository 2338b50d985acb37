/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_wait: no wake-up is lost: threads sleep on the descriptors of queues and counters by the
 * protocol of fi_trywait, without a time-out. After a lost wake-up the program never ends, and its
 * caller's time limit fails the test.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/parallel.h"
#include "common/pattern.h"
#include "common/suite.h"
#include "common/xfer.h"

#define ROUNDS 400
#define LONGEST 70000
#define WAITERS 4
#define PRODUCERS 2
#define WINDOW 16 /* receives posted; sends in flight for each producer */

static const size_t sizes[] = { 0, 1, 300, 5000, 65537, LONGEST };

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static unsigned rounds_of(const struct env *env)
{
	return env->opts.iterations ? env->opts.iterations : ROUNDS;
}

/* Now and then long enough for everybody to fall asleep, now and then just long enough to hit. */
static void dawdle(uint64_t *random)
{
	uint64_t r = next_random(random);

	if (r % 8 == 0)
		usleep((useconds_t)(r / 8 % 3000));
	else if (r % 2)
		for (uint64_t i = r / 8 % 4000; i; i--)
			__asm__ volatile("");
}

/* The queue or counter on which a thread sleeps. */
struct bed {
	struct fid_fabric *fabric;
	struct fid *fids[2];
	int count;
	int epoll;
};

static void bed_watch(struct bed *bed, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	REQUIRE(!epoll_ctl(bed->epoll, EPOLL_CTL_ADD, fd, &event));
}

static void bed_add(struct bed *bed, struct fid *fid)
{
	int fd = -1;

	REQUIRE_RET(fi_control(fid, FI_GETWAIT, &fd), 0);
	bed_watch(bed, fd);
	bed->fids[bed->count++] = fid;
}

static void bed_open(struct bed *bed, struct node *node)
{
	*bed = (struct bed){ .fabric = node->fabric, .epoll = epoll_create1(EPOLL_CLOEXEC) };
	REQUIRE(bed->epoll >= 0);
}

static void bed_close(struct bed *bed)
{
	close(bed->epoll);
}

/* Returns when there may be something to see. */
static void bed_sleep(struct bed *bed)
{
	struct epoll_event event;
	int ret = fi_trywait(bed->fabric, bed->fids, bed->count);

	if (ret == -FI_EAGAIN)
		return;
	REQUIRE_RET(ret, 0);
	REQUIRE(epoll_wait(bed->epoll, &event, 1, -1) == 1);
}

enum source { BY_QUEUE = 1, BY_COUNTER = 2, BY_BOTH = 3 };

struct rally {
	struct node node;
	struct fid_cntr *cntr;
	struct bed bed;
	enum source source;
	struct parallel_pool pool;
	uint64_t done; /* completions and count that are expected */
};

/*
 * Until the operation has completed and the counter has counted it. A counter is as it was when it
 * was last read until it changes, so it is read before the queue and the sleep.
 */
static void rally_await(struct rally *rally, const struct parallel_op *op)
{
	rally->done++;
	for (;;) {
		bool counted = !(rally->source & BY_COUNTER) ||
			       fi_cntr_read(rally->cntr) >= rally->done;

		if (parallel_read(rally->node.txcq))
			continue;
		if (op->done && counted)
			break;
		bed_sleep(&rally->bed);
	}
	CHECK_RET(op->err, 0);
}

static void rally_open(struct rally *rally, struct env *env, enum source source)
{
	struct node_attr attr = { .one_cq = true, .cq_wait = FI_WAIT_FD };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD };

	*rally = (struct rally){ .source = source };
	node_open(&rally->node, env, &attr);
	REQUIRE_RET(fi_cntr_open(rally->node.domain, &cntr_attr, &rally->cntr, NULL), 0);
	REQUIRE_RET(fi_ep_bind(rally->node.ep, &rally->cntr->fid, FI_SEND | FI_RECV), 0);
	node_enable(&rally->node);
	node_connect(&rally->node);
	bed_open(&rally->bed, &rally->node);
	if (source & BY_QUEUE)
		bed_add(&rally->bed, &rally->node.txcq->fid);
	if (source & BY_COUNTER)
		bed_add(&rally->bed, &rally->cntr->fid);
}

static void rally_close(struct rally *rally)
{
	node_sync(&rally->node);
	CHECK_EQ(parallel_pool_close(&rally->pool), rally->done);
	CHECK_EQ(fi_cntr_read(rally->cntr), rally->done);
	bed_close(&rally->bed);
	node_close_ep(&rally->node);
	CHECK_RET(fi_close(&rally->cntr->fid), 0);
	node_close(&rally->node);
}

/* A message there, a message back, each awaited asleep. */
static void run_rally(struct env *env, enum source source)
{
	void *in = pattern_alloc(LONGEST), *out = pattern_alloc(LONGEST);
	struct parallel_op *received, *sent;
	uint64_t random = env->server;
	struct rally rally;

	rally_open(&rally, env, source);
	for (unsigned n = 0; n < rounds_of(env); n++) {
		size_t size = sizes[n % (sizeof(sizes) / sizeof(*sizes))];
		struct xfer recv = { .op = XFER_RECV, .buf = in, .len = LONGEST,
				     .addr = FI_ADDR_UNSPEC };
		struct xfer send = { .op = XFER_SEND, .buf = out, .len = size,
				     .addr = rally.node.peer };

		recv.context = received = parallel_op_get(&rally.pool);
		send.context = sent = parallel_op_get(&rally.pool);
		pattern_fill(out, size, n);
		REQUIRE_RET(xfer_post(&rally.node, &recv), 0);
		if (env->server)
			rally_await(&rally, received);
		dawdle(&random);
		REQUIRE_RET(xfer_post(&rally.node, &send), 0);
		if (!env->server)
			rally_await(&rally, received);
		rally_await(&rally, sent);
		CHECK_EQ(received->len, size);
		pattern_check(in, size, n);
	}
	rally_close(&rally);
	pattern_free(in);
	pattern_free(out);
}

static void run_queue(struct env *env)
{
	run_rally(env, BY_QUEUE);
}

static void run_counter(struct env *env)
{
	run_rally(env, BY_COUNTER);
}

static void run_both(struct env *env)
{
	run_rally(env, BY_BOTH);
}

struct slot {
	bool recv;
	void *buf;
	sem_t *room; /* of the producer */
};

/* Many threads on one queue, on both sides. */
struct market {
	struct env *env;
	struct node node;
	struct fid_cntr *cntr;
	struct slot recvs[WINDOW];
	atomic_uint *seen; /* how often each message came, by its payload */
	atomic_uint left;  /* completions to come */
	unsigned each, total; /* messages of a producer, and of all */
	bool mixed;	   /* half of the waiters sleep in fi_cq_sread */
	int stop;	   /* eventfd: nothing is to come */
};

static void post_recv(struct market *m, struct slot *slot)
{
	ssize_t ret;

	do
		ret = fi_recv(m->node.ep, slot->buf, LONGEST, NULL, FI_ADDR_UNSPEC, slot);
	while (ret == -FI_EAGAIN);
	REQUIRE_RET(ret, 0);
}

static void take_one(struct market *m, const struct fi_cq_tagged_entry *e)
{
	struct slot *slot = e->op_context;
	uint64_t one = 1;

	if (slot->recv) {
		REQUIRE(e->data < m->total);
		CHECK_EQ(atomic_fetch_add(&m->seen[e->data], 1), 0);
		pattern_check(slot->buf, e->len, e->data);
		post_recv(m, slot);
	} else {
		sem_post(slot->room);
		pattern_free(slot->buf);
		free(slot);
	}
	if (atomic_fetch_sub(&m->left, 1) == 1)
		REQUIRE(write(m->stop, &one, sizeof(one)) == sizeof(one));
}

static bool take(struct market *m, bool sleep)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret = sleep ? fi_cq_sread(m->node.txcq, &e, 1, NULL, -1)
			    : fi_cq_read(m->node.txcq, &e, 1);

	if (ret == -FI_EAGAIN)
		return false;
	REQUIRE_RET(ret, 1);
	take_one(m, &e);
	return true;
}

static void consume(void *arg, unsigned thread)
{
	struct market *m = arg;
	bool sleep = m->mixed && thread % 2;
	struct bed bed;

	bed_open(&bed, &m->node);
	bed_add(&bed, &m->node.txcq->fid);
	bed_watch(&bed, m->stop);
	while (m->left)
		if (!take(m, sleep) && !sleep)
			bed_sleep(&bed);
	bed_close(&bed);
}

static void await_count(void *arg, unsigned thread)
{
	struct market *m = arg;
	struct bed bed;

	if (thread % 2) {
		CHECK_RET(fi_cntr_wait(m->cntr, 2 * m->total, -1), 0);
		return;
	}
	bed_open(&bed, &m->node);
	bed_add(&bed, &m->cntr->fid);
	while (fi_cntr_read(m->cntr) < 2 * m->total)
		bed_sleep(&bed);
	bed_close(&bed);
}

static void produce(void *arg, unsigned thread)
{
	struct market *m = arg;
	uint64_t random = 2 * thread + m->env->server;
	sem_t room;

	REQUIRE(!sem_init(&room, 0, WINDOW));
	for (unsigned n = 0; n < m->each; n++) {
		size_t size = sizes[next_random(&random) % (sizeof(sizes) / sizeof(*sizes))];
		struct slot *slot = malloc(sizeof(*slot));
		uint64_t number = thread * m->each + n;
		ssize_t ret;

		if (!slot)
			check_fatal("out of memory");
		*slot = (struct slot){ .buf = pattern_alloc(size), .room = &room };
		pattern_fill(slot->buf, size, number);
		dawdle(&random);
		while (sem_wait(&room))
			;
		while ((ret = fi_senddata(m->node.ep, slot->buf, size, NULL, number, m->node.peer,
					  slot)) == -FI_EAGAIN)
			take(m, false);
		REQUIRE_RET(ret, 0);
	}
	for (unsigned i = 0; i < WINDOW; i++)
		while (sem_wait(&room))
			;
	sem_destroy(&room);
}

static void market_open(struct market *m, struct env *env, bool mixed)
{
	struct node_attr attr = { .one_cq = true, .cq_wait = FI_WAIT_FD };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD };

	memset(m, 0, sizeof(*m));
	m->env = env;
	m->mixed = mixed;
	m->each = rounds_of(env);
	m->total = PRODUCERS * m->each;
	m->left = 2 * m->total;
	m->seen = calloc(m->total, sizeof(*m->seen));
	m->stop = eventfd(0, EFD_CLOEXEC);
	REQUIRE(m->seen != NULL && m->stop >= 0);
	node_open(&m->node, env, &attr);
	REQUIRE_RET(fi_cntr_open(m->node.domain, &cntr_attr, &m->cntr, NULL), 0);
	REQUIRE_RET(fi_ep_bind(m->node.ep, &m->cntr->fid, FI_SEND | FI_RECV), 0);
	node_enable(&m->node);
	node_connect(&m->node);
	for (unsigned i = 0; i < WINDOW; i++) {
		m->recvs[i] = (struct slot){ .recv = true, .buf = pattern_alloc(LONGEST) };
		post_recv(m, &m->recvs[i]);
	}
	node_sync(&m->node);
}

static void market_close(struct market *m)
{
	node_sync(&m->node);
	for (unsigned i = 0; i < m->total; i++)
		CHECK_EQ(m->seen[i], 1);
	comp_expect_none(&m->node, m->node.txcq);
	node_close_ep(&m->node);
	CHECK_RET(fi_close(&m->cntr->fid), 0);
	node_close(&m->node);
	for (unsigned i = 0; i < WINDOW; i++)
		pattern_free(m->recvs[i].buf);
	close(m->stop);
	free(m->seen);
}

static void run_market(struct env *env, bool mixed)
{
	struct parallel consumers, producers, counters;
	struct market m;

	market_open(&m, env, mixed);
	parallel_start(&consumers, WAITERS, consume, &m);
	parallel_start(&counters, 2, await_count, &m);
	parallel_start(&producers, PRODUCERS, produce, &m);
	parallel_join(&producers);
	parallel_join(&counters);
	/*
	 * Threads on the descriptor see the last completion announced. Threads in fi_cq_sread must
	 * be signalled.
	 */
	for (unsigned i = 0; i < consumers.count; i++) {
		if (!mixed || i % 2 == 0) {
			pthread_join(consumers.threads[i], NULL);
			continue;
		}
		while (pthread_tryjoin_np(consumers.threads[i], NULL)) {
			if (!m.left)
				CHECK_RET(fi_cq_signal(m.node.txcq), 0);
			usleep(1000);
		}
	}
	market_close(&m);
}

static void run_waiters(struct env *env)
{
	run_market(env, false);
}

static void run_mixed(struct env *env)
{
	run_market(env, true);
}

/* Objects without a descriptor, and nothing at all. */
static void run_bad_input(struct env *env)
{
	struct node_attr attr = { .one_cq = true, .cq_wait = FI_WAIT_NONE };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE };
	struct fi_cq_tagged_entry entry;
	struct fid_cntr *cntr;
	struct node node;
	struct fid *fids[2];
	int fd = -1;

	node_start(&node, env, &attr);
	REQUIRE_RET(fi_cntr_open(node.domain, &cntr_attr, &cntr, NULL), 0);
	fids[0] = &node.txcq->fid;
	fids[1] = &cntr->fid;
	for (int i = 0; i < 2; i++) {
		CHECK_ERROR(fi_control(fids[i], FI_GETWAIT, &fd));
		CHECK_EQ(fd, -1);
		CHECK_ERROR(fi_trywait(node.fabric, &fids[i], 1));
	}
	fids[0] = &node.domain->fid;
	CHECK_ERROR(fi_trywait(node.fabric, fids, 1));
	CHECK_ERROR(fi_cq_sread(node.txcq, &entry, 1, NULL, 10));
	CHECK_ERROR(fi_cntr_wait(cntr, 1, 10));
	CHECK_RET(fi_close(&cntr->fid), 0);
	exchange_hello(&node);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "queue", FI_MSG, run_queue },
	{ "counter", FI_MSG, run_counter },
	{ "both", FI_MSG, run_both },
	{ "waiters", FI_MSG, run_waiters },
	{ "mixed", FI_MSG, run_mixed },
	{ "bad_input", FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_wait", "Sleeping on descriptors without losing a wake-up.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
