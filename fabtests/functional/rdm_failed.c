/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_failed: the client's device, or a queue of its endpoint, fails in the middle of everything.
 * Another program makes it fail once the client has said "under way"; it heals it when the client
 * has closed its endpoint and stops (SIGSTOP), and lets the client go on. Every operation under way
 * ends, once, with an error that says why; so does each later one. The endpoint closes, and a new
 * one, over the healed device, reaches the server, whose endpoint lives through all that. -v prints
 * the errors.
 */
#include <signal.h>
#include <stdio.h>

#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/comp.h"
#include "common/env.h"
#include "common/node.h"
#include "common/op.h"
#include "common/suite.h"
#include "common/xfer.h"

#define COUNT 24 /* messages from either side, and receives of the client, that nothing matches */
#define SMALL 2000
#define LONG (2 << 20)

#define CAPS (FI_MSG | FI_TAGGED)

static const struct node_attr attr = { .caps = CAPS, .one_cq = true };

static size_t length_of(unsigned i)
{
	return i % 4 == 3 ? LONG : SMALL;
}

static void check_end(struct node *node, struct op *op, bool (*is_right)(int err))
{
	op_await(node, op);
	if (!is_right(op->err))
		check_fail("an operation has ended with %s", fi_strerror(op->err));
	op_free(op);
}

/* The server: its peer's device fails, or its peer is gone. */

static bool is_of_peer(int err)
{
	return op_is_departure(err) || err == FI_EREMOTEIO;
}

static void run_server(struct env *env)
{
	struct op ops[COUNT] = { 0 };
	struct node node;

	node_start(&node, env, &attr);
	op_hello(&node);
	for (unsigned i = 0; i < COUNT; i++)
		op_send(&node, &ops[i], length_of(i), false, node.peer);
	env_sync(env, "under way");
	for (unsigned i = 0; i < COUNT; i++)
		check_end(&node, &ops[i], is_of_peer);
	env_sync(env, "closed");
	node_connect(&node);
	op_hello(&node);
	node_close(&node);
}

/* The client. */

static bool is_of_device(int err)
{
	return err == FI_ENODEV || err == FI_EIO;
}

/* A call says that the endpoint has failed. */
static void check_call(struct node *node)
{
	char byte = 0;
	struct xfer send = { .op = XFER_SEND, .buf = &byte, .len = 1, .addr = node->peer };
	ssize_t ret = xfer_try(node, &send);

	if (!is_of_device((int)-ret))
		check_fail("a send of the failed endpoint: %s", fi_strerror((int)-ret));
}

static void live_through_failure(struct env *env)
{
	struct op sends[COUNT] = { 0 }, recvs[COUNT] = { 0 };
	struct node node;

	node_start(&node, env, &attr);
	op_hello(&node);
	for (unsigned i = 0; i < COUNT; i++) {
		op_recv(&node, &recvs[i], SMALL, true);
		op_send(&node, &sends[i], length_of(i), false, node.peer);
	}
	env_sync(env, "under way");
	printf("under way\n");
	for (unsigned i = 0; i < COUNT; i++) {
		check_end(&node, &sends[i], is_of_device);
		check_end(&node, &recvs[i], is_of_device);
	}
	check_call(&node);
	comp_expect_none(&node, node.txcq);
	node_close(&node);
}

static void run_client(struct env *env)
{
	struct node node;

	live_through_failure(env);
	raise(SIGSTOP);
	env_sync(env, "closed");
	node_start(&node, env, &attr);
	op_hello(&node);
	node_close(&node);
}

static void run(struct env *env)
{
	if (env->server)
		run_server(env);
	else
		run_client(env);
}

static const struct suite_case cases[] = {
	{ "failed", CAPS, run },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_failed", "The client's device, or a queue of it, fails.", true },
		.cases = cases,
		.count = 1,
	};

	return suite_main(&suite, argc, argv);
}
