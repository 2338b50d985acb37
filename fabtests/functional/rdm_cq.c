/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_cq: completion queues: formats, reading many, waiting by sread, signal and descriptor, poll
 * sets, more completions than entries, and the calls that a queue refuses.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

/* libfabric 2.x deprecates poll sets; applications still have them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void run_format(struct env *env, enum fi_cq_format format, bool one_cq)
{
	struct node_attr attr = { .cq_format = format, .one_cq = one_cq };
	struct exchange x = { .send = XFER_SENDDATA, .recv = XFER_RECV, .tagged = true };
	struct node node;

	node_start(&node, env, &attr);
	for (size_t size = 0; size <= 1 << 20; size = size ? size * 32 : 1) {
		exchange_one(&node, &x, !env->server, size, size + 1);
		exchange_one(&node, &x, env->server, size, size + 2);
	}
	node_sync(&node);
	comp_expect_none(&node, node.txcq);
	comp_expect_none(&node, node.rxcq);
	node_close(&node);
}

static void run_context(struct env *env)
{
	run_format(env, FI_CQ_FORMAT_CONTEXT, false);
}

static void run_msg(struct env *env)
{
	run_format(env, FI_CQ_FORMAT_MSG, false);
}

static void run_data(struct env *env)
{
	run_format(env, FI_CQ_FORMAT_DATA, false);
}

static void run_tagged(struct env *env)
{
	run_format(env, FI_CQ_FORMAT_TAGGED, false);
}

static void run_one_cq(struct env *env)
{
	run_format(env, FI_CQ_FORMAT_TAGGED, true);
}

static void send_many(struct node *node, unsigned count)
{
	struct xfer send = { .op = XFER_SEND, .addr = node->peer };
	struct comp comp;

	for (uintptr_t i = 0; i < count; i++) {
		send.context = (void *)i;
		REQUIRE_RET(xfer_post(node, &send), 0);
	}
	for (uintptr_t i = 0; i < count; i++) {
		comp_wait(node, node->txcq, &comp);
		REQUIRE_RET(comp.err, 0);
	}
}

static void post_many(struct node *node, unsigned count)
{
	struct xfer recv = { .op = XFER_RECV, .addr = FI_ADDR_UNSPEC };

	for (uintptr_t i = 0; i < count; i++) {
		recv.context = (void *)i;
		REQUIRE_RET(xfer_post(node, &recv), 0);
	}
}

/* Several entries by one read, never more than asked for, each once. */
static void run_batch(struct env *env)
{
	enum { COUNT = 50, BATCH = 8 };
	struct fi_cq_tagged_entry entries[BATCH + 1];
	struct node_attr attr = { .msg_order = FI_ORDER_SAS };
	uint64_t end = env_deadline(env);
	uintptr_t done = 0, sum = 0;
	struct node node;

	node_start(&node, env, &attr);
	if (env->server)
		post_many(&node, COUNT);
	node_sync(&node);
	if (!env->server)
		send_many(&node, COUNT);
	node_sync(&node);
	memset(&entries[BATCH], 0x77, sizeof(entries[BATCH]));
	while (env->server && done < COUNT) {
		ssize_t n = fi_cq_read(node.rxcq, entries, BATCH);

		if (n == -FI_EAGAIN) {
			if (clock_now() > end)
				check_fatal("%lu of %d completions came", done, COUNT);
			continue;
		}
		REQUIRE(n > 0 && n <= BATCH);
		for (ssize_t i = 0; i < n; i++, done++)
			sum += (uintptr_t)entries[i].op_context;
	}
	if (env->server)
		CHECK_EQ(sum, COUNT * (COUNT - 1) / 2);
	pattern_check_byte(&entries[BATCH], sizeof(entries[BATCH]), 0x77);
	CHECK_RET(fi_cq_read(node.rxcq, entries, BATCH), -FI_EAGAIN);
	node_sync(&node);
	node_close(&node);
}

/* Posts and reads COUNT operations of one kind, reading only when no more can be posted. */
static void post_until_full(struct node *node, const struct xfer *kind, struct fid_cq *cq,
			    unsigned count)
{
	uint64_t end = env_deadline(node->env);
	uintptr_t posted = 0, done = 0, sum = 0;
	struct xfer xfer = *kind;

	while (done < count) {
		struct comp comp;

		REQUIRE(clock_now() < end);
		xfer.context = (void *)posted;
		if (posted < count && xfer_try(node, &xfer) == 0) {
			posted++;
			continue;
		}
		env_progress(node->env, 0);
		if (posted == done)
			continue;
		comp_wait(node, cq, &comp);
		REQUIRE_RET(comp.err, 0);
		sum += (uintptr_t)comp.context;
		done++;
	}
	/* Each message completes once, in any order. */
	CHECK_EQ(sum, (uintptr_t)count * (count - 1) / 2);
}

/* Many more completions than the queue has entries: none is lost (FI_RM_ENABLED). */
static void run_small_queue(struct env *env)
{
	struct node_attr attr = { .cq_size = 4, .msg_order = FI_ORDER_SAS };
	struct xfer recv = { .op = XFER_RECV, .addr = FI_ADDR_UNSPEC };
	struct xfer send = { .op = XFER_SEND };
	struct node node;

	node_start(&node, env, &attr);
	send.addr = node.peer;
	if (env->server)
		post_until_full(&node, &recv, node.rxcq, 1000);
	else
		post_until_full(&node, &send, node.txcq, 1000);
	node_sync(&node);
	comp_expect_none(&node, node.rxcq);
	comp_expect_none(&node, node.txcq);
	node_close(&node);
}

static uint64_t elapsed_ms(uint64_t since)
{
	return (clock_now() - since) / 1000000;
}

static void run_sread(struct env *env)
{
	struct node_attr attr = { .cq_wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct node node;
	uint64_t start;

	node_start(&node, env, &attr);
	exchange_hello(&node);
	start = clock_now();
	CHECK_RET(fi_cq_sread(node.rxcq, &entry, 1, NULL, 100), -FI_EAGAIN);
	CHECK(elapsed_ms(start) >= 99);
	CHECK_RET(fi_cq_sread(node.rxcq, &entry, 1, NULL, 0), -FI_EAGAIN);
	if (env->server) {
		post_many(&node, 1);
		node_sync(&node);
		CHECK_RET(fi_cq_sread(node.rxcq, &entry, 1, NULL, -1), 1);
		CHECK_EQ(entry.len, 0);
	} else {
		node_sync(&node);
		/* The reader should be asleep; if it is not, the test is only weaker. */
		env_settle(env, 100);
		send_many(&node, 1);
	}
	node_sync(&node);
	node_close(&node);
}

static void *signal_later(void *arg)
{
	usleep(100000);
	fi_cq_signal(arg);
	return NULL;
}

/* A signal ends a wait that would last for ever. */
static void run_signal(struct env *env)
{
	struct node_attr attr = { .cq_wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct node node;
	pthread_t thread;

	node_start(&node, env, &attr);
	REQUIRE(!pthread_create(&thread, NULL, signal_later, node.rxcq));
	CHECK_RET(fi_cq_sread(node.rxcq, &entry, 1, NULL, -1), -FI_EAGAIN);
	pthread_join(thread, NULL);
	exchange_hello(&node);
	node_close(&node);
}

/* Sleeps on the descriptor as an application does; returns whether a completion was read. */
static bool wait_by_epoll(struct node *node, int epoll_fd, struct fi_cq_tagged_entry *entry)
{
	struct fid *fid = &node->rxcq->fid;
	uint64_t end = env_deadline(node->env);

	while (clock_now() < end) {
		struct epoll_event event;
		ssize_t ret = fi_cq_read(node->rxcq, entry, 1);

		if (ret == 1)
			return true;
		REQUIRE_RET(ret, -FI_EAGAIN);
		ret = fi_trywait(node->fabric, &fid, 1);
		REQUIRE(ret == 0 || ret == -FI_EAGAIN);
		/* No time-out but the test's own: a lost wake-up must show. */
		if (!ret)
			epoll_wait(epoll_fd, &event, 1, (int)node->env->opts.timeout * 1000);
	}
	return false;
}

static void run_fd(struct env *env)
{
	enum { COUNT = 200 };
	struct node_attr attr = { .cq_wait = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct epoll_event event = { .events = EPOLLIN };
	int fd = -1, epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct node node;

	node_start(&node, env, &attr);
	exchange_hello(&node);
	REQUIRE_RET(fi_control(&node.rxcq->fid, FI_GETWAIT, &fd), 0);
	REQUIRE(fd >= 0);
	REQUIRE(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
	for (unsigned i = 0; i < COUNT; i++) {
		struct xfer send = { .op = XFER_SEND, .addr = node.peer, .context = &send };
		bool first = (i & 1) == env->server;
		struct comp comp;

		post_many(&node, 1);
		if (first) {
			REQUIRE_RET(xfer_post(&node, &send), 0);
			comp_expect(&node, node.txcq, &send, &comp);
		}
		REQUIRE(wait_by_epoll(&node, epoll_fd, &entry));
		if (!first) {
			REQUIRE_RET(xfer_post(&node, &send), 0);
			comp_expect(&node, node.txcq, &send, &comp);
		}
	}
	node_sync(&node);
	close(epoll_fd);
	node_close(&node);
}

static void run_no_wait(struct env *env)
{
	struct node_attr attr = { .cq_wait = FI_WAIT_NONE };
	struct fi_cq_tagged_entry entry;
	struct node node;
	int fd;

	node_start(&node, env, &attr);
	CHECK_ERROR(fi_cq_sread(node.rxcq, &entry, 1, NULL, 10));
	CHECK_ERROR(fi_control(&node.rxcq->fid, FI_GETWAIT, &fd));
	exchange_hello(&node);
	node_close(&node);
}

static void run_errors(struct env *env)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	struct xfer recv = { .op = XFER_RECV, .addr = FI_ADDR_UNSPEC, .context = &recv };
	uint64_t end = env_deadline(env);
	char text[256] = "";
	struct node node;

	node_start(&node, env, NULL);
	CHECK_RET(fi_cq_readerr(node.rxcq, &err, 0), -FI_EAGAIN);
	CHECK_RET(fi_cq_read(node.rxcq, &entry, 1), -FI_EAGAIN);
	CHECK_RET(fi_cq_read(node.rxcq, NULL, 0) > 0, 0);
	REQUIRE_RET(xfer_post(&node, &recv), 0);
	REQUIRE_RET(fi_cancel(&node.ep->fid, &recv), 0);
	while (fi_cq_read(node.rxcq, &entry, 1) == -FI_EAGAIN)
		REQUIRE(clock_now() < end);
	/* The error stays in the queue until it is read. */
	CHECK_RET(fi_cq_read(node.rxcq, &entry, 1), -FI_EAVAIL);
	CHECK_RET(fi_cq_readerr(node.rxcq, &err, 0), 1);
	CHECK_RET(err.err, FI_ECANCELED);
	CHECK(fi_cq_strerror(node.rxcq, err.prov_errno, err.err_data, text, sizeof(text)));
	CHECK_RET(fi_cq_readerr(node.rxcq, &err, 0), -FI_EAGAIN);
	CHECK_RET(fi_cq_read(node.rxcq, &entry, 1), -FI_EAGAIN);
	/* The other half's greeting must not find the receive that is to be cancelled. */
	node_sync(&node);
	exchange_hello(&node);
	node_close(&node);
}

/*
 * Makes progress by fi_poll alone until it has named both contexts. It may name an empty queue,
 * too.
 */
static void poll_for_both(struct node *node, struct fid_poll *set, void *const want[2])
{
	uint64_t end = env_deadline(node->env);
	bool named[2] = { false, false };

	while (!named[0] || !named[1]) {
		void *contexts[2];
		int n = fi_poll(set, contexts, 2);

		REQUIRE(clock_now() < end);
		REQUIRE(n >= 0 && n <= 2);
		for (int i = 0; i < n; i++)
			for (int j = 0; j < 2; j++)
				named[j] |= contexts[i] == want[j];
	}
}

/* A poll set of a queue and a counter: one message after the other completes in both. */
static void run_poll_set(struct env *env)
{
	enum { COUNT = 50 };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_poll_attr attr = { 0 };
	struct xfer xfer = { .op = env->server ? XFER_RECV : XFER_SEND, .addr = FI_ADDR_UNSPEC,
			     .context = &xfer };
	struct fid_poll *set = NULL;
	struct fid_cntr *cntr = NULL;
	struct fid_cq *cq;
	struct node node;
	struct comp comp;

	node_open(&node, env, NULL);
	REQUIRE_RET(fi_cntr_open(node.domain, &cntr_attr, &cntr, &cntr), 0);
	REQUIRE_RET(fi_ep_bind(node.ep, &cntr->fid, FI_RECV | FI_SEND), 0);
	node_enable(&node);
	node_connect(&node);
	cq = env->server ? node.rxcq : node.txcq;
	REQUIRE_RET(fi_poll_open(node.domain, &attr, &set), 0);
	CHECK_RET(fi_poll_add(set, &cq->fid, 0), 0);
	CHECK_RET(fi_poll_add(set, &cntr->fid, 0), 0);
	if (!env->server)
		xfer.addr = node.peer;
	for (unsigned i = 1; i <= COUNT; i++) {
		if (env->server)
			REQUIRE_RET(xfer_post(&node, &xfer), 0);
		node_sync(&node);
		if (!env->server)
			REQUIRE_RET(xfer_post(&node, &xfer), 0);
		/* The context of a node's queues is the node. */
		poll_for_both(&node, set, (void *[]){ &node, &cntr });
		comp_expect(&node, cq, &xfer, &comp);
		CHECK_EQ(fi_cntr_read(cntr), i);
		node_sync(&node);
	}
	CHECK_RET(fi_poll_del(set, &cq->fid, 0), 0);
	CHECK_RET(fi_poll_del(set, &cntr->fid, 0), 0);
	CHECK_RET(fi_close(&set->fid), 0);
	node_close_ep(&node);
	CHECK_RET(fi_close(&cntr->fid), 0);
	node_close(&node);
}

static void refuse_cq(struct node *node, struct fi_cq_attr *attr)
{
	struct fid_cq *cq;

	if (!CHECK_ERROR(fi_cq_open(node->domain, attr, &cq, NULL)))
		fi_close(&cq->fid);
}

static void run_bad_input(struct env *env)
{
	struct fi_cq_attr bad_format = { .format = (enum fi_cq_format)99 };
	struct fi_cq_attr bad_wait = { .wait_obj = (enum fi_wait_obj)99 };
	struct node node;

	node_start(&node, env, NULL);
	refuse_cq(&node, &bad_format);
	refuse_cq(&node, &bad_wait);
	CHECK_RET(fi_close(&node.txcq->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&node.rxcq->fid), -FI_EBUSY);
	exchange_hello(&node);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "context", FI_TAGGED, run_context },
	{ "msg", FI_TAGGED, run_msg },
	{ "data", FI_TAGGED, run_data },
	{ "tagged", FI_TAGGED, run_tagged },
	{ "one_cq", FI_TAGGED, run_one_cq },
	{ "batch", FI_MSG, run_batch },
	{ "small_queue", FI_MSG, run_small_queue },
	{ "sread", FI_MSG, run_sread },
	{ "signal", FI_MSG, run_signal },
	{ "fd", FI_MSG, run_fd },
	{ "no_wait", FI_MSG, run_no_wait },
	{ "errors", FI_MSG, run_errors },
	{ "poll_set", FI_MSG, run_poll_set },
	{ "bad_input", FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_cq", "Completion queues: formats, waiting, errors.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
