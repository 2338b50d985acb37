/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_fork: both halves fork with an endpoint open and go on: the child ends in several ways, or
 * lives on while the parent writes to registered memory that both share. With FI_VERVE_MR_CACHE the
 * memory is that of kept registrations.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_cm.h>

#include "common/check.h"
#include "common/comp.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define SIZE 300000
#define ROUNDS 8
#define CAPS (FI_MSG | FI_RMA)

struct ends {
	struct node node;
	struct region region;
	struct remote remote;
	void *out, *in; /* not registered by the application */
};

static const struct node_attr attr = { .caps = CAPS };

static void ends_open(struct ends *ends, struct env *env)
{
	node_start(&ends->node, env, &attr);
	region_open(&ends->node, &ends->region, SIZE, FI_REMOTE_READ | FI_REMOTE_WRITE);
	ends->remote = region_exchange(&ends->node, &ends->region);
	ends->out = pattern_alloc(SIZE);
	ends->in = pattern_alloc(SIZE);
}

static void ends_close(struct ends *ends)
{
	node_sync(&ends->node);
	region_close(&ends->region);
	node_close(&ends->node);
	pattern_free(ends->out);
	pattern_free(ends->in);
}

/*
 * A long message each way in the same buffers as before; then a write, and a read of the same
 * bytes.
 */
static void work(struct ends *ends, unsigned round)
{
	bool server = ends->node.env->server;
	uint64_t seed = 2 * round + server, theirs = 2 * round + !server;
	struct xfer recv = { .op = XFER_RECV, .buf = ends->in, .len = SIZE, .addr = FI_ADDR_UNSPEC,
			     .context = &recv };
	struct xfer send = { .op = XFER_SEND, .buf = ends->out, .len = SIZE,
			     .addr = ends->node.peer, .context = &send };
	struct rma rma = { .op = RMA_WRITE, .buf = ends->out, .len = SIZE, .addr = ends->node.peer,
			   .remote_addr = ends->remote.addr, .key = ends->remote.key,
			   .context = &rma };

	pattern_fill(ends->out, SIZE, seed);
	memset(ends->in, PATTERN_EMPTY, SIZE);
	REQUIRE_RET(xfer_post(&ends->node, &recv), 0);
	xfer_send(&ends->node, &send);
	xfer_finish_recv(&ends->node, &recv, &send, SIZE);
	pattern_check(ends->in, SIZE, theirs);
	rma_run(&ends->node, &rma);
	memset(ends->in, PATTERN_EMPTY, SIZE);
	rma.op = RMA_READ;
	rma.buf = ends->in;
	rma_run(&ends->node, &rma);
	pattern_check(ends->in, SIZE, seed);
	node_sync(&ends->node);
	pattern_check(ends->region.buf, SIZE, theirs);
	node_sync(&ends->node);
}

/* The work of a child with its copy of all objects. */
typedef void child_fn(struct ends *ends);

static void child_leaves(struct ends *ends)
{
	(void)ends;
	_exit(0);
}

/* Destructors of libraries run in the child, and must not touch the parent's objects. */
static void child_cleans_up(struct ends *ends)
{
	(void)ends;
	exit(0);
}

static void child_runs_another(struct ends *ends)
{
	(void)ends;
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

/* Shares all memory with us until it is killed. */
static void child_stands_still(struct ends *ends)
{
	(void)ends;
	for (;;)
		pause();
}

/* The child writes to its copies of the parent's pages. */
static void child_writes(struct ends *ends)
{
	memset(ends->out, 1, SIZE);
	memset(ends->in, 2, SIZE);
	memset(ends->region.buf, 3, SIZE);
	_exit(0);
}

static void expect_end(pid_t pid, int signal)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (signal)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pid_t begin(struct ends *ends, child_fn *child)
{
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (!pid)
		child(ends);
	return pid;
}

/* Each child has ended before the parent goes on. */
static void run_before(struct env *env, child_fn *child)
{
	struct ends ends;

	ends_open(&ends, env);
	work(&ends, 0);
	for (unsigned round = 1; round < ROUNDS; round++) {
		expect_end(begin(&ends, child), 0);
		work(&ends, round);
	}
	ends_close(&ends);
}

/*
 * The child lives while the parent and the device write to the memory. signal: kills the child; 0:
 * the child ends.
 */
static void run_beside(struct env *env, child_fn *child, int signal)
{
	struct ends ends;

	ends_open(&ends, env);
	work(&ends, 0);
	for (unsigned round = 1; round < ROUNDS; round++) {
		pid_t pid = begin(&ends, child);

		work(&ends, round);
		REQUIRE(!signal || !kill(pid, signal));
		expect_end(pid, signal);
	}
	ends_close(&ends);
}

static void run_leaves(struct env *env)
{
	run_before(env, child_leaves);
}

static void run_cleans_up(struct env *env)
{
	run_before(env, child_cleans_up);
}

static void run_another(struct env *env)
{
	run_before(env, child_runs_another);
}

static void run_shared(struct env *env)
{
	run_beside(env, child_stands_still, SIGKILL);
}

static void run_writes(struct env *env)
{
	run_beside(env, child_writes, 0);
}

static const struct suite_case cases[] = {
	{ "leaves", CAPS, run_leaves },
	{ "cleans_up", CAPS, run_cleans_up },
	{ "another", CAPS, run_another },
	{ "shared", CAPS, run_shared },
	{ "writes", CAPS, run_writes },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_fork", "Forking with an endpoint open.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
