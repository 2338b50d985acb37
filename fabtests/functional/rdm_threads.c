/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_threads: one process, many threads: on one endpoint; on several endpoints that share a queue,
 * a counter and an address vector, with readers of every kind; with endpoints that close and
 * receives that are cancelled meanwhile; on an event queue; and each threading model by its own
 * rules. Made to run under a thread sanitizer, too.
 */
#include <sched.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/hall.h"
#include "common/pattern.h"
#include "common/suite.h"

enum kind { KIND_CANCEL, KIND_CLOSE, KIND_LATE, KIND_NEVER };

struct model {
	enum fi_threading threading;
	enum fi_progress progress;
	bool own_domains; /* each endpoint has one */
	unsigned locks;	  /* 0, 1 for an endpoint with its queue, 2 for each of them */
};

/* Two endpoints, each with one queue; eight threads use both of them in all ways. */
static void run_model(struct env *env, const struct model *model)
{
	struct node_attr attr = { .caps = HALL_CAPS, .one_cq = true, .threading = model->threading,
				  .progress = model->progress };
	pthread_mutex_t mutex[4];
	struct parallel workers;
	struct hall hall;

	hall_init(&hall, env, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct end *end = &hall.ends[i];

		attr.share = i && !model->own_domains ? &hall.ends[0].node : NULL;
		node_open(&end->node, env, &attr);
		CHECK_EQ(end->node.info->domain_attr->threading, model->threading);
		node_enable(&end->node);
		pthread_mutex_init(&mutex[2 * i], NULL);
		pthread_mutex_init(&mutex[2 * i + 1], NULL);
		end->ep_lock = model->locks ? &mutex[2 * i] : NULL;
		end->cq_lock = model->locks ? &mutex[2 * i + model->locks - 1] : NULL;
	}
	hall_introduce(&hall);
	parallel_start(&workers, HALL_WORKERS, hall_work, &hall);
	parallel_join(&workers);
	for (unsigned i = 0; i < HALL_WORKERS * hall.rounds; i++)
		CHECK_EQ(hall.seen[i], 1);
	hall_close(&hall, HALL_WORKERS);
	for (unsigned i = 0; i < 4; i++)
		pthread_mutex_destroy(&mutex[i]);
}

static void run_one_endpoint(struct env *env)
{
	run_model(env, &(struct model){ .threading = FI_THREAD_SAFE });
}

static void run_auto(struct env *env)
{
	run_model(env, &(struct model){ .threading = FI_THREAD_SAFE,
					.progress = FI_PROGRESS_AUTO });
}

static void run_fid(struct env *env)
{
	run_model(env, &(struct model){ .threading = FI_THREAD_FID, .locks = 2 });
}

static void run_endpoint(struct env *env)
{
	run_model(env, &(struct model){ .threading = FI_THREAD_ENDPOINT, .locks = 2 });
}

static void run_completion(struct env *env)
{
	run_model(env, &(struct model){ .threading = FI_THREAD_COMPLETION, .locks = 1 });
}

static void run_domain(struct env *env)
{
	run_model(env, &(struct model){ .threading = FI_THREAD_DOMAIN, .locks = 1,
					.own_domains = true });
}

/* The application serializes; the provider's own thread does not know of its locks. */
static void run_domain_auto(struct env *env)
{
	run_model(env, &(struct model){ .threading = FI_THREAD_DOMAIN, .locks = 1,
					.own_domains = true, .progress = FI_PROGRESS_AUTO });
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
	struct node_attr attr = { .caps = HALL_CAPS, .one_cq = true, .cq_wait = FI_WAIT_UNSPEC };
	struct parallel workers, readers, waiters;
	struct count_waiter waiter;
	struct hall hall;

	hall_init(&hall, env, HALL_ENDS);
	open_shared(&hall, env, &attr, &waiter.cntr);
	hall.readers = true;
	waiter.value = 2ull * HALL_ROUND_SENDS * HALL_WORKERS * hall.rounds;
	parallel_start(&readers, 4, read_queue, &hall);
	parallel_start(&waiters, 2, await_counter, &waiter);
	parallel_start(&workers, HALL_WORKERS, hall_work, &hall);
	parallel_join(&workers);
	parallel_join(&waiters);
	stop_readers(&hall, &readers);
	CHECK_EQ(fi_cntr_read(waiter.cntr), waiter.value);
	CHECK_EQ(fi_cntr_readerr(waiter.cntr), 0);
	for (unsigned i = 1; i < HALL_ENDS; i++)
		node_close_ep(&hall.ends[i].node);
	node_close_ep(&hall.ends[0].node);
	CHECK_RET(fi_close(&waiter.cntr->fid), 0);
	hall_close(&hall, HALL_WORKERS);
}

/* A receive on end 1 with a tag of its own, cancelled; in every other round its message comes. */
static void cancel_round(struct hall *hall, unsigned thread, unsigned n)
{
	struct parallel_op *received = parallel_op_get(&hall->pools[thread]), *sent = NULL;
	uint64_t tag = HALL_TAG(thread, KIND_CANCEL, n);
	size_t size = hall_size(n / 2);
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = tag, .len = HALL_LONGEST,
			     .addr = FI_ADDR_UNSPEC, .buf = pattern_alloc(HALL_LONGEST),
			     .context = received };
	struct xfer send = { .op = XFER_SEND, .tagged = true, .tag = tag, .len = size,
			     .addr = hall->addrs[0][1], .buf = pattern_alloc(size) };

	hall_post(hall, &hall->ends[1], &recv);
	if (n % 2) {
		send.context = sent = parallel_op_get(&hall->pools[thread]);
		pattern_fill(send.buf, size, tag);
		hall_post(hall, &hall->ends[0], &send);
	}
	/* The cancel may be too late, so its result is not promised. */
	fi_cancel(&hall->ends[1].node.ep->fid, received);
	hall_await(hall, received);
	if (received->err) {
		CHECK_RET(received->err, FI_ECANCELED);
		hall->cancelled++;
		pattern_check_byte(recv.buf, HALL_LONGEST, PATTERN_EMPTY);
		if (sent) {
			recv.context = received = parallel_op_get(&hall->pools[thread]);
			hall_post(hall, &hall->ends[1], &recv);
			hall_await_success(hall, received, FI_RECV);
		}
	} else {
		CHECK(sent != NULL);
	}
	if (sent) {
		CHECK_EQ(received->len, size);
		pattern_check(recv.buf, size, tag);
		hall_await_success(hall, sent, FI_SEND);
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

static fi_addr_t insert_self(struct node *node)
{
	char name[NODE_ADDR_MAX], got[NODE_ADDR_MAX];
	size_t len = node_name(node, name), got_len = sizeof(got);
	fi_addr_t addr = node_insert(node, name);

	CHECK_RET(fi_av_lookup(node->av, addr, got, &got_len), 0);
	CHECK_EQ(got_len, len);
	CHECK(!memcmp(got, name, len));
	return addr;
}

/*
 * An endpoint comes, posts receives that get no message, sends messages of which the long ones are
 * under way when it closes, and goes. All messages arrive. Operations that have not completed when
 * it closes never complete, although its queue lives on: fi_close, fi_endpoint(3).
 */
static void guest_round(struct hall *hall, unsigned thread, unsigned n)
{
	struct parallel_op *never[GUEST_OPS], *sent[GUEST_OPS], *received[GUEST_OPS];
	struct node_attr attr = { .caps = HALL_CAPS, .one_cq = true, .cq_wait = FI_WAIT_UNSPEC,
				  .share = &hall->ends[0].node, .share_queues = true };
	struct env own = { .opts = hall->env->opts, .members = LIST_HEAD_INITIALIZER(own.members) };
	void *out[GUEST_OPS], *in[GUEST_OPS];
	struct end guest = { .ep_lock = NULL };
	fi_addr_t addr;

	node_open(&guest.node, &own, &attr);
	node_enable(&guest.node);
	addr = insert_self(&guest.node);
	publish(hall, addr);
	for (unsigned i = 0; i < GUEST_OPS; i++) {
		size_t size = hall_size(n + i);
		uint64_t tag = HALL_TAG(thread, KIND_CLOSE, n * GUEST_OPS + i);
		struct xfer x = { .op = XFER_RECV, .tagged = true, .len = HALL_LONGEST,
				  .addr = FI_ADDR_UNSPEC, .tag = HALL_TAG(thread, KIND_NEVER, n) };

		in[i] = pattern_alloc(HALL_LONGEST);
		out[i] = pattern_alloc(size);
		pattern_fill(out[i], size, tag);
		x.context = never[i] = parallel_op_get(&hall->pools[thread]);
		x.buf = out[i];
		x.len = size;
		hall_post(hall, &guest, &x);
		x.tag = tag;
		x.context = received[i] = parallel_op_get(&hall->pools[thread]);
		x.buf = in[i];
		x.len = HALL_LONGEST;
		hall_post(hall, &hall->ends[2], &x);
		x.op = XFER_SEND;
		x.context = sent[i] = parallel_op_get(&hall->pools[thread]);
		x.buf = out[i];
		x.len = size;
		x.addr = hall->addrs[0][2];
		hall_post(hall, &guest, &x);
	}
	node_close(&guest.node);
	for (unsigned i = 0; i < GUEST_OPS; i++) {
		uint64_t tag = HALL_TAG(thread, KIND_CLOSE, n * GUEST_OPS + i);

		hall_await_success(hall, received[i], FI_RECV);
		CHECK(!never[i]->done);
		CHECK(!sent[i]->done || !sent[i]->err);
		never[i]->dropped = sent[i]->dropped = true;
		CHECK_EQ(received[i]->len, hall_size(n + i));
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
	size_t size = hall_size(n);
	struct xfer send = { .op = XFER_SEND, .tagged = true, .len = size, .context = op,
			     .tag = HALL_TAG(thread, KIND_LATE, n), .buf = pattern_alloc(size) };
	ssize_t ret = -FI_EAGAIN;

	for (uint64_t deadline = env_deadline(hall->env); ret == -FI_EAGAIN;) {
		pthread_mutex_lock(&hall->guest_lock);
		send.addr = hall->guest;
		if (send.addr != FI_ADDR_NOTAVAIL)
			ret = xfer_try(&hall->ends[3].node, &send);
		pthread_mutex_unlock(&hall->guest_lock);
		if (hall->stop)
			break;
		hall_progress(hall, deadline);
	}
	if (ret) {
		CHECK(hall->stop);
		op->done = 1;
	} else {
		hall_await(hall, op);
	}
	pattern_free(send.buf);
}

/* Two threads work, two cancel, three are guests, and one visits them. */
static void mingle(void *arg, unsigned thread)
{
	struct hall *hall = arg;

	if (thread < 2) {
		hall_work(hall, thread);
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
	struct node_attr attr = { .caps = HALL_CAPS, .one_cq = true, .cq_wait = FI_WAIT_UNSPEC };
	struct parallel workers, readers, last = { .count = 1 };
	struct hall hall;

	hall_init(&hall, env, HALL_ENDS);
	open_shared(&hall, env, &attr, NULL);
	hall.readers = true;
	parallel_start(&readers, 3, read_queue, &hall);
	parallel_start(&workers, HALL_WORKERS, mingle, &hall);
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

enum {
	EVENT_WRITERS = 2,
	EVENT_READERS = 3,
	EVENTS_READ = 200, /* by each reader */
	EVENTS = EVENT_READERS * EVENTS_READ,
};

struct events {
	struct env *env;
	struct fid_eq *eq;
	atomic_uint seen[EVENTS];
};

static void write_events(struct events *events, unsigned writer)
{
	for (unsigned i = writer; i < EVENTS; i += EVENT_WRITERS) {
		struct fi_eq_entry entry = { .fid = &events->eq->fid, .data = i };

		REQUIRE(fi_eq_write(events->eq, FI_NOTIFY, &entry, sizeof(entry), 0) ==
			sizeof(entry));
		if (i % 16 == writer)
			usleep(100); /* so that readers sleep, now and then */
	}
}

static void read_events(struct events *events)
{
	int timeout = (int)events->env->opts.timeout * 1000;

	for (unsigned i = 0; i < EVENTS_READ; i++) {
		struct fi_eq_entry entry;
		uint32_t event;

		REQUIRE(fi_eq_sread(events->eq, &event, &entry, sizeof(entry), timeout, 0) ==
			sizeof(entry));
		REQUIRE(entry.data < EVENTS);
		events->seen[entry.data]++;
	}
}

static void pass_events(void *arg, unsigned thread)
{
	if (thread < EVENT_WRITERS)
		write_events(arg, thread);
	else
		read_events(arg);
}

/* An event queue that some threads write and others sleep on: each event comes to one reader. */
static void run_events(struct env *env)
{
	struct fi_eq_attr attr = { .flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC };
	struct events events = { .env = env };
	struct parallel threads;
	struct node node;

	node_open(&node, env, NULL);
	REQUIRE_RET(fi_eq_open(node.fabric, &attr, &events.eq, NULL), 0);
	parallel_start(&threads, EVENT_WRITERS + EVENT_READERS, pass_events, &events);
	parallel_join(&threads);
	for (unsigned i = 0; i < EVENTS; i++)
		CHECK_EQ(events.seen[i], 1);
	CHECK_RET(fi_close(&events.eq->fid), 0);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "one_endpoint", HALL_CAPS, run_one_endpoint },
	{ "shared_queue", HALL_CAPS, run_shared_queue },
	{ "close_and_cancel", HALL_CAPS, run_close_and_cancel },
	{ "events", FI_MSG, run_events },
	{ "auto", HALL_CAPS, run_auto },
	{ "fid", HALL_CAPS, run_fid },
	{ "endpoint", HALL_CAPS, run_endpoint },
	{ "completion", HALL_CAPS, run_completion },
	{ "domain", HALL_CAPS, run_domain },
	{ "domain_auto", HALL_CAPS, run_domain_auto },
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
