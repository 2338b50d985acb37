/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_moved: the client's port changes under open endpoints: its IP address goes and comes back,
 * at another index of the device's table, or the port gets another LID, MTU or order of partitions.
 * Another program makes such a change each time the client has said "ready" and stops (SIGSTOP), -I
 * times, and then lets the client go on. Connections that are made after a change work, whichever
 * side asks for them, between open endpoints and new ones. One from before goes on, or it ends with
 * an error and the next message makes another: the kernel may take an address that went from the
 * queue pairs that have it.
 */
#include <signal.h>
#include <stdio.h>

#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/env.h"
#include "common/node.h"
#include "common/op.h"
#include "common/suite.h"

#define CAPS (FI_MSG | FI_TAGGED)

#define LONG (1 << 20)

static const struct node_attr attr = { .caps = CAPS, .one_cq = true };

/* A long message from one half to the other, and a short one back. */
static void talk(struct node *node, bool first)
{
	struct op out = { 0 }, in = { 0 };

	op_recv(node, &in, first ? 1 : LONG, true);
	if (!first)
		op_finish(node, &in);
	op_send(node, &out, first ? LONG : 1, true, node->peer);
	op_finish(node, &out);
	if (first)
		op_finish(node, &in);
	node_sync(node);
}

/* The client's message over the connection from before. The server has posted its receive. */
static void try_old(struct node *node, struct op *probe)
{
	if (!node->env->server) {
		op_send(node, probe, 1, false, node->peer);
		op_await(node, probe);
		if (probe->err && probe->err != FI_EIO && !op_is_departure(probe->err))
			check_fail("the old connection: %s", fi_strerror(probe->err));
		op_free(probe);
	}
	node_sync(node);
}

/* The server's receive for that: an earlier one may be left. */
static void expect_old(struct node *node, struct op *probe)
{
	if (!node->env->server || (probe->xfer.buf && !probe->done))
		return;
	op_free(probe);
	op_recv(node, probe, 1, false);
}

/* An endpoint of the same domain as before, which has no connection yet. */
static void open_beside(struct node *node, struct env *env, const struct node *before)
{
	const struct node_attr beside = { .caps = CAPS, .one_cq = true, .share = before };

	node_start(node, env, &beside);
}

static void wait_for_change(struct env *env, unsigned round)
{
	env_sync(env, "ready");
	if (!env->server) {
		printf("ready %u\n", round);
		fflush(stdout);
		raise(SIGSTOP);
	}
	env_sync(env, "changed");
}

static void run(struct env *env)
{
	unsigned rounds = env->opts.iterations ? env->opts.iterations : 1;
	struct node node, idle, made;
	struct op probe = { 0 };

	node_start(&node, env, &attr);
	op_hello(&node);
	for (unsigned i = 0; i < rounds; i++) {
		open_beside(&idle, env, &node);
		expect_old(&node, &probe);
		wait_for_change(env, i);
		talk(&idle, env->server == i % 2);
		node_close(&idle);
		try_old(&node, &probe);
		talk(&node, !env->server);
		open_beside(&made, env, &node);
		talk(&made, env->server != i % 2);
		node_close(&made);
	}
	node_close(&node);
	op_free(&probe);
}

static const struct suite_case cases[] = {
	{ "moved", CAPS, run },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_moved", "The client's port changes under open endpoints.", true },
		.cases = cases,
		.count = 1,
	};

	return suite_main(&suite, argc, argv);
}
