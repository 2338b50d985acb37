/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_cancel: a cancelled receive completes once, as cancelled; the others are as they were. */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/xfer.h"

#define RECVS 8
#define SIZE 128

static void post(struct node *node, struct xfer *recvs, bool tagged)
{
	for (unsigned i = 0; i < RECVS; i++) {
		recvs[i] = (struct xfer){
			.op = XFER_RECV, .tagged = tagged, .tag = 7, .len = SIZE,
			.buf = pattern_alloc(SIZE), .addr = FI_ADDR_UNSPEC, .context = &recvs[i],
		};
		REQUIRE_RET(xfer_post(node, &recvs[i]), 0);
	}
}

static void cancel(struct node *node, void *context)
{
	struct comp comp;

	CHECK_RET(fi_cancel(&node->ep->fid, context), 0);
	comp_expect_error(node, node->rxcq, context, FI_ECANCELED, &comp);
	CHECK_EQ(comp.flags & FI_RECV, FI_RECV);
}

static bool is_cancelled(unsigned i)
{
	return i == 0 || i == 3 || i == RECVS - 1;
}

static void send_rest(struct node *node, bool tagged)
{
	for (unsigned i = 0; i < RECVS; i++) {
		struct xfer send = { .op = XFER_SEND, .tagged = tagged, .tag = 7, .len = SIZE,
				     .addr = node->peer, .context = &send };

		if (is_cancelled(i))
			continue;
		send.buf = pattern_alloc(SIZE);
		pattern_fill(send.buf, SIZE, i);
		xfer_send(node, &send);
		pattern_free(send.buf);
	}
}

static void receive_rest(struct node *node, struct xfer *recvs, bool tagged)
{
	struct xfer sent = { .op = XFER_SEND, .tagged = tagged, .tag = 7 };

	for (unsigned n = 0; n < RECVS; n++) {
		size_t i;

		if (is_cancelled(n))
			continue;
		i = xfer_finish_any(node, recvs, RECVS, &sent, SIZE);
		CHECK(!is_cancelled((unsigned)i));
		pattern_check(recvs[i].buf, SIZE, i);
	}
	for (unsigned i = 0; i < RECVS; i++) {
		if (is_cancelled(i))
			pattern_check_byte(recvs[i].buf, SIZE, PATTERN_EMPTY);
		pattern_free(recvs[i].buf);
	}
}

static void run(struct env *env, bool tagged)
{
	struct xfer recvs[RECVS];
	struct node node;

	node_start(&node, env, NULL);
	if (env->server) {
		post(&node, recvs, tagged);
		for (unsigned i = 0; i < RECVS; i++)
			if (is_cancelled(i))
				cancel(&node, &recvs[i]);
	}
	node_sync(&node);
	if (env->server)
		receive_rest(&node, recvs, tagged);
	else
		send_rest(&node, tagged);
	node_sync(&node);
	comp_expect_none(&node, node.rxcq);
	node_close(&node);
}

static void run_msg(struct env *env)
{
	run(env, false);
}

static void run_tagged(struct env *env)
{
	run(env, true);
}

/* Of two receives with one context, one is cancelled. */
static void run_same_context(struct env *env)
{
	struct xfer recv = { .op = XFER_RECV, .len = SIZE, .addr = FI_ADDR_UNSPEC,
			     .context = &recv };
	struct xfer send = { .op = XFER_SEND, .len = SIZE, .context = &send };
	struct node node;
	void *second;

	node_start(&node, env, NULL);
	send.buf = recv.buf = pattern_alloc(SIZE);
	second = pattern_alloc(SIZE);
	send.addr = node.peer;
	if (env->server) {
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		recv.buf = second;
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		cancel(&node, &recv);
		node_sync(&node);
		xfer_finish_recv(&node, &recv, &send, SIZE);
	} else {
		node_sync(&node);
		xfer_send(&node, &send);
	}
	node_sync(&node);
	comp_expect_none(&node, node.rxcq);
	pattern_free(send.buf);
	pattern_free(second);
	node_close(&node);
}

/* Too late, or never posted: no completion, no harm. What fi_cancel returns is not promised. */
static void run_nothing_to_cancel(struct env *env)
{
	struct node node;
	int never;

	node_start(&node, env, NULL);
	fi_cancel(&node.ep->fid, &never);
	fi_cancel(&node.ep->fid, NULL);
	comp_expect_none(&node, node.rxcq);
	comp_expect_none(&node, node.txcq);
	exchange_hello(&node);
	fi_cancel(&node.ep->fid, &node);
	comp_expect_none(&node, node.rxcq);
	exchange_hello(&node);
	node_close(&node);
}

/* Closing with receives posted is allowed. */
static void run_close_posted(struct env *env)
{
	struct xfer recvs[RECVS];
	struct node node;

	node_start(&node, env, NULL);
	exchange_hello(&node);
	post(&node, recvs, false);
	node_close(&node);
	for (unsigned i = 0; i < RECVS; i++) {
		pattern_check_byte(recvs[i].buf, SIZE, PATTERN_EMPTY);
		pattern_free(recvs[i].buf);
	}
}

static const struct suite_case cases[] = {
	{ "msg", FI_MSG, run_msg },
	{ "tagged", FI_TAGGED, run_tagged },
	{ "same_context", FI_MSG, run_same_context },
	{ "nothing_to_cancel", FI_MSG, run_nothing_to_cancel },
	{ "close_posted", FI_MSG, run_close_posted },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_cancel", "fi_cancel of posted receives.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
