/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_auto: FI_PROGRESS_AUTO: messages move while the application does not call libfabric. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/suite.h"
#include "common/xfer.h"

#define IDLE_MS 1000

static const size_t sizes[] = { 8, 4000, 100000, 3000000 };

/* Whether getinfo offers automatic progress to both halves; a run without it ends here. */
static bool offered(struct env *env)
{
	struct node_attr attr = { .progress = FI_PROGRESS_AUTO };
	struct fi_info *hints = node_hints(env, &attr), *info = NULL;
	char mine = !node_getinfo(env, &attr, hints, &info), theirs = 0;

	fi_freeinfo(hints);
	if (info) {
		CHECK_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
		fi_freeinfo(info);
	}
	oob_exchange(&env->oob, &mine, 1, &theirs, 1);
	CHECK(mine && theirs);
	return mine && theirs;
}

/* The sender learns that its message is in the buffer before the receiver calls anything. */
static void deliver(struct node *node, size_t size)
{
	struct xfer send = { .op = XFER_SENDMSG, .len = size, .addr = node->peer,
			     .flags = FI_DELIVERY_COMPLETE | FI_COMPLETION, .context = &send };
	struct xfer recv = { .op = XFER_RECV, .len = size, .addr = FI_ADDR_UNSPEC,
			     .context = &recv };
	char word;

	send.buf = pattern_alloc(size);
	pattern_fill(send.buf, size, size);
	recv.buf = pattern_alloc(size);
	if (node->env->server)
		REQUIRE_RET(xfer_post(node, &recv), 0);
	node_sync(node);
	if (node->env->server) {
		oob_recv_silently(&node->env->oob, &word, 1);
		pattern_check(recv.buf, size, size);
		xfer_finish_recv(node, &recv, &send, size);
	} else {
		xfer_send(node, &send);
		oob_send(&node->env->oob, "", 1);
	}
	pattern_free(send.buf);
	pattern_free(recv.buf);
}

static void run_deliver(struct env *env)
{
	struct node_attr attr = { .progress = FI_PROGRESS_AUTO };
	struct node node;

	if (!offered(env))
		return;
	node_start(&node, env, &attr);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		deliver(&node, sizes[i]);
	node_close(&node);
}

static uint64_t cpu_time(void)
{
	struct timespec now;

	REQUIRE(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A thread that polled would use all of the time that passes. */
static void run_idle(struct env *env)
{
	struct node_attr attr = { .progress = FI_PROGRESS_AUTO };
	struct node node;
	uint64_t used;

	if (!offered(env))
		return;
	node_start(&node, env, &attr);
	deliver(&node, sizes[2]);
	node_sync(&node);
	used = cpu_time();
	usleep(IDLE_MS * 1000);
	used = cpu_time() - used;
	printf("idle for %d ms: %llu us of processor time\n", IDLE_MS,
	       (unsigned long long)used / 1000);
	CHECK(used < IDLE_MS * 1000000ull / 10);
	node_close(&node);
}

/* Closing and opening again, with messages on their way, while the thread runs. */
static void run_churn(struct env *env)
{
	struct node_attr attr = { .progress = FI_PROGRESS_AUTO };
	struct node node;

	if (!offered(env))
		return;
	for (int i = 0; i < 10; i++) {
		struct xfer send = { .op = XFER_INJECT, .buf = "late", .len = 4 };

		node_start(&node, env, &attr);
		send.addr = node.peer;
		for (int j = 0; j < 20; j++)
			REQUIRE_RET(xfer_post(&node, &send), 0);
		node_close(&node);
	}
}

static const struct suite_case cases[] = {
	{ "deliver", FI_MSG, run_deliver },
	{ "idle", FI_MSG, run_idle },
	{ "churn", FI_MSG, run_churn },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_auto", "Automatic progress: peers are answered by a thread.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
