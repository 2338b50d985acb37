/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_conns: many processes, half of them of the server and half of the client, connect all to all:
 * each sends a message to every other, then -I - 1 more in any order. Prints the time of the first
 * messages, and the memory of the connections. -W sets the processes of a half.
 *
 * The processes of a half meet in shared memory. Their parent, which never calls libfabric, meets
 * the other half's parent.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/usage.h"
#include "common/xfer.h"

#define DEFAULT_PROCESSES 8
#define MOST_PROCESSES (OOB_MAX / NODE_ADDR_MAX)
#define PEERS (2 * MOST_PROCESSES)
#define POSTED 16 /* receives */

/* Bytes of this process; pinned: by the device's driver; resident: its part of shared pages. */
struct memory {
	long heap, pinned, resident;
};

struct board {
	char names[2][MOST_PROCESSES][NODE_ADDR_MAX]; /* ours, theirs */
	struct memory grown[MOST_PROCESSES];	      /* by connecting */
	atomic_uint arrived; /* at all meetings so far */
	atomic_uint started; /* meetings that are over */
};

struct message {
	uint32_t from, to, round;
};

struct process {
	struct env env;
	struct node node;
	struct board *board;
	unsigned half, index, processes; /* of a half */
	unsigned meetings;
	fi_addr_t addrs[PEERS];
	struct message out[PEERS], in[POSTED];
	unsigned sent, completed, received;
	unsigned next[PEERS]; /* round of a peer's message that is to come */
};

/* The parent's part is start_meeting. */
static void meet(struct process *p)
{
	uint64_t end = env_deadline(&p->env);

	p->board->arrived++;
	p->meetings++;
	while (p->board->started < p->meetings) {
		env_progress(&p->env, 0);
		sched_yield();
		if (clock_now() > end)
			check_fatal("process %u waited %u s for the others", p->index,
				    p->env.opts.timeout);
	}
}

static struct memory measure(void)
{
	return (struct memory){ usage_heap(), 1024 * usage_status_kb(getpid(), "VmPin:"),
				1024 * usage_share_kb(getpid()) };
}

static unsigned peers_of(const struct process *p)
{
	return 2 * p->processes;
}

static unsigned self_of(const struct process *p)
{
	return p->half * p->processes + p->index;
}

static void post_recv(struct process *p, struct message *buf)
{
	const struct xfer recv = { .op = XFER_RECV, .tagged = true, .buf = buf, .len = sizeof(*buf),
				   .addr = FI_ADDR_UNSPEC, .ignore = UINT64_MAX, .context = buf };

	REQUIRE_RET(xfer_post(&p->node, &recv), 0);
}

static void take(struct process *p, const struct comp *comp)
{
	struct message *message = comp->context;

	REQUIRE_RET(comp->err, 0);
	REQUIRE(comp->len == sizeof(*message) && message->from < peers_of(p));
	CHECK_EQ(message->to, self_of(p));
	CHECK_EQ(message->round, p->next[message->from]);
	p->next[message->from] = message->round + 1;
	p->received++;
	post_recv(p, message);
}

/* Returns whether there was any. */
static bool read_all(struct process *p)
{
	struct comp comp;
	bool any = false;

	while (comp_read(&p->node, p->node.rxcq, &comp)) {
		take(p, &comp);
		any = true;
	}
	while (comp_read(&p->node, p->node.txcq, &comp)) {
		REQUIRE_RET(comp.err, 0);
		p->completed++;
		any = true;
	}
	return any;
}

/* To the next one behind us, and so on round the circle. */
static bool send_next(struct process *p, unsigned round)
{
	unsigned to = (self_of(p) + 1 + p->sent) % peers_of(p);
	struct message *message = &p->out[to];
	const struct xfer send = { .op = XFER_SEND,
				   .tagged = true,
				   .buf = message,
				   .len = sizeof(*message),
				   .addr = p->addrs[to],
				   .context = message };
	ssize_t ret;

	*message = (struct message){ self_of(p), to, round };
	ret = xfer_try(&p->node, &send);
	if (ret == -FI_EAGAIN)
		return false;
	REQUIRE_RET(ret, 0);
	p->sent++;
	return true;
}

/* A message to each, and one from each. */
static void exchange(struct process *p, unsigned round)
{
	unsigned others = peers_of(p) - 1;
	uint64_t end = env_deadline(&p->env);

	p->sent = p->completed = 0;
	while (p->sent < others || p->completed < others || p->received < (round + 1) * others) {
		bool any = p->sent < others && send_next(p, round);

		if (read_all(p) || any)
			end = env_deadline(&p->env);
		else
			sched_yield();
		if (clock_now() > end)
			check_fatal("process %u: round %u, %u sent, %u completed, %u received",
				    p->index, round, p->sent, p->completed, p->received);
	}
}

static int run_process(struct process *p, unsigned rounds)
{
	struct memory before, after;

	node_open(&p->node, &p->env, NULL);
	node_enable(&p->node);
	node_name(&p->node, p->board->names[0][p->index]);
	for (unsigned i = 0; i < POSTED; i++)
		post_recv(p, &p->in[i]);
	meet(p);
	for (unsigned i = 0; i < peers_of(p); i++) {
		bool ours = i / p->processes == p->half;

		p->addrs[i] = node_insert(&p->node, p->board->names[!ours][i % p->processes]);
	}
	before = measure();
	meet(p);
	exchange(p, 0);
	meet(p);
	after = measure();
	p->board->grown[p->index] = (struct memory){ after.heap - before.heap,
						     after.pinned - before.pinned,
						     after.resident - before.resident };
	meet(p);
	for (unsigned round = 1; round < rounds; round++)
		exchange(p, round);
	meet(p);
	comp_expect_none(&p->node, p->node.txcq);
	node_close(&p->node);
	return check_failed() ? CHECK_FAIL : CHECK_PASS;
}

/* The parent. */

static void wait_arrived(const struct env *env, struct board *board, unsigned count)
{
	uint64_t end = clock_now() + 4 * (env_deadline(env) - clock_now());

	while (board->arrived < count) {
		usleep(1000);
		if (waitpid(-1, NULL, WNOHANG) > 0)
			check_fatal("a process has ended early");
		if (clock_now() > end)
			check_fatal("waited too long for the processes");
	}
}

/* All processes of both halves have come; goes on when the other half goes on. */
static void hold_meeting(struct env *env, struct board *board, unsigned processes)
{
	char theirs;

	wait_arrived(env, board, processes * (board->started + 1));
	oob_exchange(&env->oob, "m", 1, &theirs, 1);
	board->started++;
}

static void swap_names(struct env *env, struct board *board, unsigned processes)
{
	size_t len = processes * sizeof(board->names[0][0]);

	wait_arrived(env, board, processes);
	REQUIRE(oob_exchange(&env->oob, board->names[0], len, board->names[1], len) == len);
}

static void report(const struct board *board, unsigned processes, uint64_t ns)
{
	unsigned all = 2 * processes, pairs = all * (all - 1) / 2;
	long ends = (long)processes * (all - 1);
	struct memory sum = { 0 };

	for (unsigned i = 0; i < processes; i++) {
		sum.heap += board->grown[i].heap;
		sum.pinned += board->grown[i].pinned;
		sum.resident += board->grown[i].resident;
	}
	printf("%u processes, %u directed pairs: %.3f s, %.0f connections/s\n", all, 2 * pairs,
	       ns / 1e9, pairs / (ns / 1e9));
	printf("bytes a connection and end: heap %ld, pinned %ld, resident %ld\n", sum.heap / ends,
	       sum.pinned / ends, sum.resident / ends);
}

static void lead(struct env *env, struct board *board, unsigned processes)
{
	uint64_t start, ns;

	env->oob.timeout = 4 * env->opts.timeout;
	if (env->server)
		oob_serve(&env->oob, env->opts.oob_port);
	else
		oob_connect(&env->oob, env->opts.dst_addr, env->opts.oob_port);
	swap_names(env, board, processes);
	hold_meeting(env, board, processes);
	hold_meeting(env, board, processes);
	start = clock_now();
	hold_meeting(env, board, processes);
	ns = clock_now() - start;
	hold_meeting(env, board, processes);
	report(board, processes, ns);
	hold_meeting(env, board, processes);
	oob_close(&env->oob);
}

static int wait_all(const pid_t *pids, unsigned count)
{
	int worst = CHECK_PASS, status;

	for (unsigned i = 0; i < count; i++) {
		REQUIRE(waitpid(pids[i], &status, 0) == pids[i]);
		if (status)
			worst = CHECK_FAIL;
	}
	return worst;
}

int main(int argc, char **argv)
{
	static const struct opts_usage usage = { "rdm_conns", "Many processes connect all to all.",
						 true };
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static struct process process;
	pid_t pids[MOST_PROCESSES];
	struct env *env = &process.env;
	int worst;

	setvbuf(stdout, NULL, _IOLBF, 0);
	opts_parse(&env->opts, &usage, argc, argv);
	if (env->opts.list)
		return CHECK_PASS;
	REQUIRE(board != MAP_FAILED);
	env->server = !env->opts.dst_addr;
	env->oob.fd = -1;
	LIST_INIT(&env->members);
	process.board = board;
	process.half = !env->server;
	process.processes = env->opts.window;
	if (process.processes > MOST_PROCESSES) /* as the default of -W is */
		process.processes = DEFAULT_PROCESSES;
	/* Before anybody has called libfabric. */
	for (process.index = 0; process.index < process.processes; process.index++) {
		pids[process.index] = fork();
		REQUIRE(pids[process.index] >= 0);
		if (!pids[process.index])
			exit(run_process(&process,
					 env->opts.iterations ? env->opts.iterations : 1));
	}
	lead(env, board, process.processes);
	worst = wait_all(pids, process.processes);
	printf("rdm_conns: %s\n", worst ? "FAILED" : "ok");
	return worst;
}
