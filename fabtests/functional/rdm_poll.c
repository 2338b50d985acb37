/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_poll: poll sets tell which queue or counter has something, and make progress. */
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

static struct fid_poll *open_poll(struct node *node)
{
	struct fi_poll_attr attr = { 0 };
	struct fid_poll *pollset = NULL;

	REQUIRE_RET(fi_poll_open(node->domain, &attr, &pollset), 0);
	return pollset;
}

/* Polls until context is there. Spurious ones are allowed, so others do not matter. */
static void poll_until(struct node *node, struct fid_poll *pollset, void *context)
{
	uint64_t end = env_deadline(node->env);

	while (clock_now() < end) {
		void *contexts[4];
		int n = fi_poll(pollset, contexts, 4);

		REQUIRE(n >= 0 && n <= 4);
		for (int i = 0; i < n; i++)
			if (contexts[i] == context)
				return;
	}
	check_fatal("fi_poll never named the queue that has a completion");
}

static void run_queues(struct env *env)
{
	struct xfer send = { .op = XFER_SEND, .context = &send };
	struct xfer recv = { .op = XFER_RECV, .addr = FI_ADDR_UNSPEC, .context = &recv };
	struct fid_poll *pollset;
	struct fid_cq *cq = NULL;
	struct node node;
	struct comp comp;

	node_start(&node, env, NULL);
	send.addr = node.peer;
	pollset = open_poll(&node);
	/* The node's queues have the node as their context: only one of the two is in the set. */
	cq = env->server ? node.rxcq : node.txcq;
	CHECK_RET(fi_poll_add(pollset, &cq->fid, 0), 0);
	for (int i = 0; i < 50; i++) {
		if (env->server)
			REQUIRE_RET(xfer_post(&node, &recv), 0);
		node_sync(&node);
		if (!env->server)
			REQUIRE_RET(xfer_post(&node, &send), 0);
		poll_until(&node, pollset, &node);
		comp_expect(&node, cq, env->server ? &recv : &send, &comp);
		node_sync(&node);
	}
	CHECK_RET(fi_poll_del(pollset, &cq->fid, 0), 0);
	CHECK_RET(fi_close(&pollset->fid), 0);
	node_close(&node);
}

static void run_counter(struct env *env)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct xfer send = { .op = XFER_SEND, .context = &send };
	struct xfer recv = { .op = XFER_RECV, .addr = FI_ADDR_UNSPEC, .context = &recv };
	struct fid_poll *pollset;
	struct fid_cntr *cntr;
	struct node node;
	int mark;

	node_open(&node, env, NULL);
	REQUIRE_RET(fi_cntr_open(node.domain, &attr, &cntr, &mark), 0);
	REQUIRE_RET(fi_ep_bind(node.ep, &cntr->fid, FI_RECV | FI_SEND), 0);
	node_enable(&node);
	node_connect(&node);
	send.addr = node.peer;
	pollset = open_poll(&node);
	CHECK_RET(fi_poll_add(pollset, &cntr->fid, 0), 0);
	if (env->server)
		REQUIRE_RET(xfer_post(&node, &recv), 0);
	node_sync(&node);
	if (!env->server)
		REQUIRE_RET(xfer_post(&node, &send), 0);
	poll_until(&node, pollset, &mark);
	CHECK_EQ(fi_cntr_read(cntr), 1);
	node_sync(&node);
	CHECK_RET(fi_poll_del(pollset, &cntr->fid, 0), 0);
	CHECK_RET(fi_close(&pollset->fid), 0);
	node_close_ep(&node);
	CHECK_RET(fi_close(&cntr->fid), 0);
	node_close(&node);
}

static void run_busy(struct env *env)
{
	struct fid_poll *pollset;
	struct node node;

	node_start(&node, env, NULL);
	pollset = open_poll(&node);
	CHECK_RET(fi_poll_add(pollset, &node.rxcq->fid, 0), 0);
	REQUIRE_RET(fi_close(&pollset->fid), -FI_EBUSY);
	CHECK_RET(fi_poll_del(pollset, &node.rxcq->fid, 0), 0);
	CHECK_RET(fi_close(&pollset->fid), 0);
	node_close(&node);
}

static void run_bad_input(struct env *env)
{
	struct fid_poll *pollset;
	struct node node;
	void *context;

	node_start(&node, env, NULL);
	pollset = open_poll(&node);
	CHECK_RET(fi_poll(pollset, &context, 1), 0);
	CHECK_ERROR(fi_poll_add(pollset, &node.domain->fid, 0));
	CHECK_ERROR(fi_poll_add(pollset, &node.av->fid, 0));
	CHECK_RET(fi_poll_add(pollset, &node.rxcq->fid, 0), 0);
	CHECK_RET(fi_poll(pollset, &context, 0), 0);
	CHECK_RET(fi_poll_del(pollset, &node.rxcq->fid, 0), 0);
	CHECK_RET(fi_close(&pollset->fid), 0);
	exchange_hello(&node);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "queues", FI_MSG, run_queues },
	{ "counter", FI_MSG, run_counter },
	{ "busy", FI_MSG, run_busy },
	{ "bad_input", FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_poll", "Poll sets.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
