/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Many processes of both halves add to one word of the server: nothing is lost. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_domain.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/comp.h"
#include "common/env.h"
#include "common/node.h"
#include "common/rma.h"
#include "common/suite.h"

#define CAPS (FI_ATOMIC | FI_MSG)
#define CHILDREN 6 /* of each half */
#define ADDS 400   /* of each child */

static const struct node_attr attr = { .caps = CAPS };

struct target {
	char name[NODE_ADDR_MAX];
	struct remote remote;
};

struct child {
	pid_t pid;
	int pipe; /* takes the target */
};

/* -W fetch-adds in flight. The values that one process fetches grow. */
static void hammer(struct env *env, const struct target *target)
{
	unsigned window = env->opts.window, posted = 0, done = 0;
	static uint64_t results[ADDS];
	uint64_t one = 1;
	struct atomic add = {
		.call = ATOMIC_FETCH, .datatype = FI_UINT64, .op = FI_SUM, .count = 1, .buf = &one,
		.remote_addr = target->remote.addr, .key = target->remote.key,
	};
	struct node node;
	struct comp comp;

	node_open(&node, env, &attr);
	node_enable(&node);
	add.addr = node_insert(&node, target->name);
	while (done < ADDS) {
		while (posted < ADDS && posted - done < window) {
			add.result = &results[posted++];
			REQUIRE_RET(atomic_post(&node, &add), 0);
		}
		comp_wait(&node, node.txcq, &comp);
		REQUIRE_RET(comp.err, 0);
		done++;
	}
	for (unsigned i = 1; i < ADDS; i++)
		CHECK(results[i] > results[i - 1]);
	node_close(&node);
}

/* Before this process opens anything: a device is not inherited. */
static struct child child_start(struct env *env)
{
	struct target target;
	struct child child;
	int fds[2];

	REQUIRE(!pipe(fds));
	child.pid = fork();
	REQUIRE(child.pid >= 0);
	if (!child.pid) {
		close(fds[1]);
		REQUIRE(read(fds[0], &target, sizeof(target)) == sizeof(target));
		hammer(env, &target);
		_exit(check_failed() ? CHECK_FAIL : CHECK_PASS);
	}
	close(fds[0]);
	child.pipe = fds[1];
	return child;
}

static void children_wait(struct env *env, const struct child *children)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid;
		int status;

		while (!(pid = waitpid(children[i].pid, &status, WNOHANG)))
			env_progress(env, 0);
		CHECK(pid == children[i].pid && WIFEXITED(status) &&
		      WEXITSTATUS(status) == CHECK_PASS);
	}
}

static void run_one_word(struct env *env)
{
	struct child children[CHILDREN];
	struct target target = { .name = "" };
	struct region region;
	struct node node;

	for (int i = 0; i < CHILDREN; i++)
		children[i] = child_start(env);
	if (env->server) {
		node_open(&node, env, &attr);
		node_enable(&node);
		region_open(&node, &region, 8, FI_REMOTE_READ | FI_REMOTE_WRITE);
		*(volatile uint64_t *)region.buf = 0;
		node_name(&node, target.name);
		target.remote = region_remote(&node, &region);
		oob_send(&env->oob, &target, sizeof(target));
	} else {
		REQUIRE(oob_recv(&env->oob, &target, sizeof(target)) == sizeof(target));
	}
	for (int i = 0; i < CHILDREN; i++) {
		REQUIRE(write(children[i].pipe, &target, sizeof(target)) == sizeof(target));
		close(children[i].pipe);
	}
	children_wait(env, children);
	env_sync(env, "hammered");
	if (!env->server)
		return;
	CHECK_EQ(*(volatile uint64_t *)region.buf, 2 * CHILDREN * ADDS);
	region_close(&region);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "one_word", CAPS, run_one_word },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_hammer", "Many processes add to one word.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
