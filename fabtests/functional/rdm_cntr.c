/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_cntr: counters: their arithmetic, waiting, and the operations that they count on an endpoint.
 */
#include <pthread.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define COUNT 20
#define SIZE 3000

/* Progress is manual: the application makes it between two looks. */
static void wait_value(struct node *node, struct fid_cntr *cntr, uint64_t value)
{
	uint64_t end = env_deadline(node->env);
	unsigned turns = 0;

	while (fi_cntr_read(cntr) < value) {
		env_progress(node->env, turns++);
		if (clock_now() > end)
			check_fatal("a counter is at %llu, expected %llu",
				    (unsigned long long)fi_cntr_read(cntr),
				    (unsigned long long)value);
	}
	CHECK_EQ(fi_cntr_read(cntr), value);
}

static void run_arithmetic(struct env *env)
{
	struct fid_cntr *cntr;
	struct node node;

	node_open(&node, env, NULL);
	cntr = node_open_cntr(&node, FI_WAIT_UNSPEC);
	CHECK_EQ(fi_cntr_read(cntr), 0);
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
	CHECK_RET(fi_cntr_add(cntr, 5), 0);
	CHECK_RET(fi_cntr_add(cntr, 1ull << 40), 0);
	CHECK_EQ(fi_cntr_read(cntr), 5 + (1ull << 40));
	CHECK_RET(fi_cntr_set(cntr, 7), 0);
	CHECK_EQ(fi_cntr_read(cntr), 7);
	CHECK_RET(fi_cntr_adderr(cntr, 3), 0);
	CHECK_EQ(fi_cntr_readerr(cntr), 3);
	CHECK_RET(fi_cntr_seterr(cntr, 0), 0);
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
	CHECK_EQ(fi_cntr_read(cntr), 7);
	CHECK_RET(fi_close(&cntr->fid), 0);
	node_close(&node);
}

static void *add_later(void *arg)
{
	usleep(50000);
	fi_cntr_add(arg, 4);
	return NULL;
}

static void *fail_later(void *arg)
{
	usleep(50000);
	fi_cntr_adderr(arg, 1);
	return NULL;
}

static void run_wait(struct env *env)
{
	struct fid_cntr *cntr;
	struct node node;
	pthread_t thread;
	uint64_t start;

	node_open(&node, env, NULL);
	cntr = node_open_cntr(&node, FI_WAIT_UNSPEC);
	CHECK_RET(fi_cntr_wait(cntr, 0, 0), 0);
	start = clock_now();
	CHECK_RET(fi_cntr_wait(cntr, 1, 100), -FI_ETIMEDOUT);
	CHECK(clock_now() - start >= 99000000);
	CHECK_RET(fi_cntr_add(cntr, 2), 0);
	CHECK_RET(fi_cntr_wait(cntr, 2, 0), 0);
	CHECK_RET(fi_cntr_wait(cntr, 1, -1), 0);
	REQUIRE(!pthread_create(&thread, NULL, add_later, cntr));
	CHECK_RET(fi_cntr_wait(cntr, 6, -1), 0);
	pthread_join(thread, NULL);
	REQUIRE(!pthread_create(&thread, NULL, fail_later, cntr));
	CHECK_RET(fi_cntr_wait(cntr, 100, -1), -FI_EAVAIL);
	pthread_join(thread, NULL);
	CHECK_RET(fi_close(&cntr->fid), 0);
	node_close(&node);
}

/* Binds one counter to each of the flags, between open and enable. */
static void open_counted(struct node *node, struct env *env, const struct node_attr *attr,
			 struct fid_cntr **cntrs, const uint64_t *flags, size_t count)
{
	node_open(node, env, attr);
	for (size_t i = 0; i < count; i++) {
		cntrs[i] = node_open_cntr(node, FI_WAIT_UNSPEC);
		REQUIRE_RET(fi_ep_bind(node->ep, &cntrs[i]->fid, flags[i]), 0);
	}
	node_enable(node);
	node_connect(node);
}

static void close_counted(struct node *node, struct fid_cntr **cntrs, size_t count)
{
	node_sync(node);
	for (size_t i = 0; i < count; i++)
		CHECK_RET(fi_close(&cntrs[i]->fid), -FI_EBUSY);
	node_close_ep(node);
	for (size_t i = 0; i < count; i++)
		CHECK_RET(fi_close(&cntrs[i]->fid), 0);
	node_close(node);
}

static void post_recvs(struct node *node, void *buf)
{
	struct xfer recv = { .op = XFER_RECV, .buf = buf, .len = SIZE, .addr = FI_ADDR_UNSPEC };

	for (unsigned i = 0; i < 2 * COUNT; i++) {
		recv.tagged = i % 2;
		recv.ignore = ~0ull;
		REQUIRE_RET(xfer_post(node, &recv), 0);
	}
}

static void send_all(struct node *node, void *buf)
{
	struct xfer send = { .buf = buf, .len = 16, .addr = node->peer };

	for (unsigned i = 0; i < 2 * COUNT; i++) {
		send.tagged = i % 2;
		send.op = i % 3 ? XFER_SEND : XFER_INJECT;
		send.len = send.op == XFER_INJECT ? 16 : SIZE;
		REQUIRE_RET(xfer_post(node, &send), 0);
	}
}

/* Tagged and untagged, injected or not: each message counts once on each side. */
static void run_messages(struct env *env)
{
	static const uint64_t flags[] = { FI_SEND, FI_RECV };
	struct fid_cntr *cntrs[2];
	void *buf = pattern_alloc(SIZE);
	struct node node;

	open_counted(&node, env, NULL, cntrs, flags, 2);
	CHECK_EQ(fi_cntr_read(cntrs[0]), 0);
	if (env->server)
		post_recvs(&node, buf);
	node_sync(&node);
	if (env->server) {
		wait_value(&node, cntrs[1], 2 * COUNT);
		CHECK_EQ(fi_cntr_read(cntrs[0]), 0);
	} else {
		send_all(&node, buf);
		wait_value(&node, cntrs[0], 2 * COUNT);
		CHECK_EQ(fi_cntr_read(cntrs[1]), 0);
	}
	CHECK_EQ(fi_cntr_readerr(cntrs[0]), 0);
	CHECK_EQ(fi_cntr_readerr(cntrs[1]), 0);
	close_counted(&node, cntrs, 2);
	pattern_free(buf);
}

/* fi_cntr_wait itself makes the progress that it waits for. */
static void run_wait_messages(struct env *env)
{
	static const uint64_t flags[] = { FI_SEND | FI_RECV };
	struct fid_cntr *cntr;
	void *buf = pattern_alloc(SIZE);
	struct node node;

	open_counted(&node, env, NULL, &cntr, flags, 1);
	if (env->server)
		post_recvs(&node, buf);
	node_sync(&node);
	if (!env->server)
		send_all(&node, buf);
	CHECK_RET(fi_cntr_wait(cntr, 2 * COUNT, (int)env->opts.timeout * 1000), 0);
	close_counted(&node, &cntr, 1);
	pattern_free(buf);
}

/* A receive that fails counts as an error only. */
static void run_error(struct env *env)
{
	static const uint64_t flags[] = { FI_RECV };
	struct xfer recv = { .op = XFER_RECV, .addr = FI_ADDR_UNSPEC, .context = &recv };
	struct xfer send = { .op = XFER_SEND, .len = SIZE, .context = &send };
	struct fid_cntr *cntr;
	struct node node;
	struct comp comp;

	open_counted(&node, env, NULL, &cntr, flags, 1);
	send.buf = pattern_alloc(SIZE);
	send.addr = node.peer;
	if (env->server) {
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		comp_expect_error(&node, node.rxcq, &recv, FI_ETRUNC, &comp);
		CHECK_RET(fi_cntr_wait(cntr, 1, 1000), -FI_EAVAIL);
		CHECK_EQ(fi_cntr_readerr(cntr), 1);
		CHECK_EQ(fi_cntr_read(cntr), 0);
		/* The next wait does not report the same error again. */
		CHECK_RET(fi_cntr_wait(cntr, 1, 100), -FI_ETIMEDOUT);
	} else {
		xfer_send(&node, &send);
	}
	close_counted(&node, &cntr, 1);
	pattern_free(send.buf);
}

static void rma_all(struct node *node, const struct remote *remote, enum rma_op op)
{
	static char buf[SIZE];
	struct rma rma = { .op = op, .buf = buf, .len = SIZE, .addr = node->peer,
			   .remote_addr = remote->addr, .key = remote->key };

	for (unsigned i = 0; i < COUNT; i++)
		REQUIRE_RET(rma_post(node, &rma), 0);
}

static void run_rma_caps(struct env *env, uint64_t caps, bool at_target)
{
	static const uint64_t flags[] = { FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ };
	struct node_attr attr = { .caps = caps };
	size_t count = at_target ? 4 : 2;
	struct fid_cntr *cntrs[4];
	struct region region;
	struct remote remote;
	struct node node;

	open_counted(&node, env, &attr, cntrs, flags, count);
	region_open(&node, &region, SIZE, FI_REMOTE_READ | FI_REMOTE_WRITE);
	remote = region_exchange(&node, &region);
	if (!env->server) {
		rma_all(&node, &remote, RMA_WRITE);
		wait_value(&node, cntrs[0], COUNT);
		CHECK_EQ(fi_cntr_read(cntrs[1]), 0);
		rma_all(&node, &remote, RMA_READ);
		wait_value(&node, cntrs[1], COUNT);
		CHECK_EQ(fi_cntr_read(cntrs[0]), COUNT);
	} else if (at_target) {
		wait_value(&node, cntrs[2], COUNT);
		wait_value(&node, cntrs[3], COUNT);
	}
	node_sync(&node);
	region_close(&region);
	close_counted(&node, cntrs, count);
}

static void run_rma(struct env *env)
{
	run_rma_caps(env, FI_MSG | FI_RMA, false);
}

static void run_rma_event(struct env *env)
{
	run_rma_caps(env, FI_MSG | FI_RMA | FI_RMA_EVENT, true);
}

static void refuse_cntr(struct node *node, struct fi_cntr_attr *attr)
{
	struct fid_cntr *cntr;

	if (!CHECK_ERROR(fi_cntr_open(node->domain, attr, &cntr, NULL)))
		fi_close(&cntr->fid);
}

static void run_bad_input(struct env *env)
{
	struct fi_cntr_attr bad_events = { .events = (enum fi_cntr_events)99 };
	struct fi_cntr_attr bad_wait = { .wait_obj = (enum fi_wait_obj)99 };
	struct fid_cntr *cntr;
	struct node node;

	node_open(&node, env, NULL);
	refuse_cntr(&node, &bad_events);
	refuse_cntr(&node, &bad_wait);
	cntr = node_open_cntr(&node, FI_WAIT_NONE);
	CHECK_ERROR(fi_ep_bind(node.ep, &cntr->fid, FI_MULTI_RECV));
	CHECK_RET(fi_close(&cntr->fid), 0);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "arithmetic", FI_MSG, run_arithmetic },
	{ "wait", FI_MSG, run_wait },
	{ "messages", FI_MSG | FI_TAGGED, run_messages },
	{ "wait_messages", FI_MSG | FI_TAGGED, run_wait_messages },
	{ "error", FI_MSG, run_error },
	{ "rma", FI_MSG | FI_RMA, run_rma },
	{ "rma_event", FI_MSG | FI_RMA | FI_RMA_EVENT, run_rma_event },
	{ "bad_input", FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_cntr", "Counters: arithmetic, waiting, what they count.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
