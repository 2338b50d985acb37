/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A peer whose process is killed: the client's operations end with errors, and it serves others on. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_cm.h>

#include "common/check.h"
#include "common/comp.h"
#include "common/env.h"
#include "common/exchange.h"
#include "common/node.h"
#include "common/pattern.h"
#include "common/xfer.h"

#define SIZE (1 << 20)
#define COUNT 4

/* The server's endpoint lives in a process of its own. */
static void serve(struct env *env, bool die)
{
	pid_t pid = fork();
	struct node node;
	int status;

	REQUIRE(pid >= 0);
	if (!pid) {
		node_start(&node, env, NULL);
		exchange_hello(&node);
		if (die)
			raise(SIGKILL);
		node_sync(&node);
		node_close(&node);
		_exit(check_failed() ? CHECK_FAIL : CHECK_PASS);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (die)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHECK_PASS);
}

/* Messages that only the peer's reading completes. */
static void post(struct node *node, struct xfer *sends, void *buf)
{
	for (int i = 0; i < COUNT; i++) {
		sends[i] = (struct xfer){ .op = XFER_SEND, .buf = buf, .len = SIZE,
					  .addr = node->peer, .context = &sends[i] };
		REQUIRE_RET(xfer_post(node, &sends[i]), 0);
	}
}

static void expect_errors(struct node *node, const struct xfer *sends)
{
	struct comp comp;

	for (int i = 0; i < COUNT; i++) {
		comp_wait(node, node->txcq, &comp);
		CHECK(comp.context == &sends[i]);
		CHECK(comp.err > 0);
	}
	comp_expect_none(node, node->txcq);
}

/* before: the messages are posted while the peer still lives. */
static void outlive(struct env *env, bool before)
{
	struct xfer sends[COUNT];
	struct node node;
	void *buf;

	if (env->server) {
		serve(env, true);
		env_sync(env, "killed");
		serve(env, false);
		env_sync(env, "served");
		return;
	}
	buf = pattern_alloc(SIZE);
	node_start(&node, env, NULL);
	exchange_hello(&node);
	if (before)
		post(&node, sends, buf);
	env_sync(env, "killed");
	if (!before)
		post(&node, sends, buf);
	expect_errors(&node, sends);
	node_connect(&node);
	exchange_hello(&node);
	node_sync(&node);
	env_sync(env, "served");
	node_close(&node);
	pattern_free(buf);
}

static void run_before(struct env *env)
{
	outlive(env, true);
}

static void run_after(struct env *env)
{
	outlive(env, false);
}

static const struct suite_case cases[] = {
	{ "before", FI_MSG, run_before },
	{ "after", FI_MSG, run_after },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_killed", "A peer whose process is killed.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
