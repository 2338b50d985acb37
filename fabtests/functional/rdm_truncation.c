/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_truncation: a message longer than its receive completes the receive with FI_ETRUNC, the count
 * of bytes that fit (len) and of bytes that did not (olen). The sender sees a success.
 */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

struct cut {
	size_t sent;
	size_t room;
};

/* Inline, eager and long messages. */
static const struct cut cuts[] = {
	{ 1, 0 }, { 100, 60 }, { 4096, 4095 }, { 16384, 1 }, { 65537, 65536 }, { 300000, 0 },
	{ 1 << 20, 4096 }, { (1 << 20) + 1, 1 << 20 },
};

static void receive(struct node *node, const struct cut *cut, struct xfer *recv, uint64_t seed,
		    bool unexpected)
{
	struct comp comp;

	recv->buf = pattern_alloc(cut->room);
	recv->len = cut->room;
	recv->context = recv;
	if (!unexpected)
		REQUIRE_RET(xfer_post(node, recv), 0);
	node_sync(node);
	if (unexpected) {
		env_settle(node->env, 20);
		REQUIRE_RET(xfer_post(node, recv), 0);
	}
	comp_expect_error(node, node->rxcq, recv, FI_ETRUNC, &comp);
	CHECK_EQ(comp.len, cut->room);
	CHECK_EQ(comp.olen, cut->sent - cut->room);
	if (recv->tagged)
		CHECK_EQ(comp.tag, seed);
	pattern_check(recv->buf, cut->room, seed);
	pattern_free(recv->buf);
}

static void run_cuts(struct env *env, bool tagged, bool unexpected)
{
	struct node node;

	node_start(&node, env, NULL);
	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		uint64_t seed = 100 + i;
		struct xfer send = { .op = XFER_SEND, .tagged = tagged, .tag = seed,
				     .len = cuts[i].sent, .addr = node.peer, .context = &send };
		struct xfer recv = { .op = i % 2 ? XFER_RECVV : XFER_RECV, .tagged = tagged,
				     .tag = seed, .addr = FI_ADDR_UNSPEC };

		if (env->server) {
			receive(&node, &cuts[i], &recv, seed, unexpected);
		} else {
			send.buf = pattern_alloc(send.len);
			pattern_fill(send.buf, send.len, seed);
			node_sync(&node);
			xfer_send(&node, &send);
			pattern_free(send.buf);
		}
		/* The next message is not hurt. */
		exchange_hello(&node);
	}
	node_close(&node);
}

static void run_msg(struct env *env)
{
	run_cuts(env, false, false);
}

static void run_tagged(struct env *env)
{
	run_cuts(env, true, false);
}

static void run_msg_unexpected(struct env *env)
{
	run_cuts(env, false, true);
}

static void run_tagged_unexpected(struct env *env)
{
	run_cuts(env, true, true);
}

static const struct suite_case cases[] = {
	{ "msg", FI_MSG, run_msg },
	{ "tagged", FI_TAGGED, run_tagged },
	{ "msg_unexpected", FI_MSG, run_msg_unexpected },
	{ "tagged_unexpected", FI_TAGGED, run_tagged_unexpected },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_truncation", "Messages longer than their receive.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
