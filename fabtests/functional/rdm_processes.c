/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_processes: eight processes of one host, on all its devices in turn, send to each other. They
 * meet in shared memory. -I sets the rounds.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_endpoint.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/pattern.h"
#include "common/xfer.h"

#define PROCESSES 8
#define DEVICES 4
#define ROUNDS 20
#define LONGEST 20000

static const size_t sizes[] = { 8, 0, 64, 1000, LONGEST };

struct board {
	char names[PROCESSES][NODE_ADDR_MAX];
	atomic_uint arrived; /* at all meetings so far */
};

struct process {
	struct env env;
	struct board *board;
	unsigned index, meetings;
	struct node node;
	fi_addr_t addrs[PROCESSES];
	struct xfer sends[PROCESSES], recvs[PROCESSES];
};

static void meet(struct process *p)
{
	uint64_t end = env_deadline(&p->env);

	p->board->arrived++;
	p->meetings++;
	while (p->board->arrived < p->meetings * PROCESSES) {
		env_progress(&p->env, 0);
		sched_yield();
		if (clock_now() > end)
			check_fatal("process %u waited %u s for the others", p->index,
				    p->env.opts.timeout);
	}
}

static size_t size_of(unsigned round, unsigned from, unsigned to)
{
	return sizes[(round + from + 3 * to) % (sizeof(sizes) / sizeof(*sizes))];
}

static uint64_t tag_of(unsigned round, unsigned from, unsigned to)
{
	return (uint64_t)round << 32 | from << 16 | to;
}

static void post_all(struct process *p, unsigned round)
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct xfer *recv = &p->recvs[i];

		*recv = (struct xfer){ .op = XFER_RECV, .tagged = true, .len = LONGEST,
				       .tag = tag_of(round, i, p->index), .context = recv,
				       .addr = FI_ADDR_UNSPEC, .buf = pattern_alloc(LONGEST) };
		REQUIRE_RET(xfer_post(&p->node, recv), 0);
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct xfer *send = &p->sends[i];
		size_t size = size_of(round, p->index, i);

		*send = (struct xfer){ .op = XFER_SEND, .tagged = true, .len = size,
				       .tag = tag_of(round, p->index, i), .context = send,
				       .addr = p->addrs[i], .buf = pattern_alloc(size) };
		pattern_fill(send->buf, size, send->tag);
		REQUIRE_RET(xfer_post(&p->node, send), 0);
	}
}

static void finish_all(struct process *p, unsigned round)
{
	bool seen[PROCESSES] = { false };
	struct comp comp;

	for (unsigned n = 0; n < PROCESSES; n++) {
		size_t i;

		comp_wait(&p->node, p->node.rxcq, &comp);
		REQUIRE_RET(comp.err, 0);
		i = (size_t)((struct xfer *)comp.context - p->recvs);
		REQUIRE(i < PROCESSES && !seen[i]);
		seen[i] = true;
		CHECK_EQ(comp.len, size_of(round, (unsigned)i, p->index));
		pattern_check(p->recvs[i].buf, comp.len, p->recvs[i].tag);
		pattern_free(p->recvs[i].buf);
		comp_wait(&p->node, p->node.txcq, &comp);
		REQUIRE_RET(comp.err, 0);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		pattern_free(p->sends[i].buf);
}

static int run_process(const struct opts *opts, struct board *board, unsigned index)
{
	static char devices[DEVICES][NODE_DEVICE_MAX];
	struct process p = { .env.opts = *opts, .env.server = true, .env.oob.fd = -1,
			     .board = board, .index = index };
	unsigned rounds = opts->iterations ? opts->iterations : ROUNDS, count;

	LIST_INIT(&p.env.members);
	count = node_devices(&p.env, FI_TAGGED, devices, DEVICES);
	REQUIRE(count > 0);
	p.env.opts.domain_name = devices[index % count];
	p.env.opts.src_addr = NULL;
	node_open(&p.node, &p.env, NULL);
	node_enable(&p.node);
	node_name(&p.node, board->names[index]);
	meet(&p);
	for (unsigned i = 0; i < PROCESSES; i++)
		p.addrs[i] = node_insert(&p.node, board->names[i]);
	for (unsigned round = 0; round < rounds; round++) {
		post_all(&p, round);
		finish_all(&p, round);
	}
	meet(&p);
	comp_expect_none(&p.node, p.node.txcq);
	comp_expect_none(&p.node, p.node.rxcq);
	node_close(&p.node);
	printf("process %u on %s: %lu checks passed, %lu failed\n", index, devices[index % count],
	       check_passed(), check_failed());
	return check_failed() ? CHECK_FAIL : CHECK_PASS;
}

int main(int argc, char **argv)
{
	static const struct opts_usage usage = { "rdm_processes", "Many processes of one host.",
						 false };
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[PROCESSES];
	int worst = CHECK_PASS;
	struct opts opts;

	setvbuf(stdout, NULL, _IOLBF, 0);
	opts_parse(&opts, &usage, argc, argv);
	if (opts.list)
		return CHECK_PASS;
	REQUIRE(board != MAP_FAILED);
	/* Before anybody has called libfabric. */
	for (unsigned i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		REQUIRE(pids[i] >= 0);
		if (!pids[i])
			exit(run_process(&opts, board, i));
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status;

		REQUIRE(waitpid(pids[i], &status, 0) == pids[i]);
		if (status)
			worst = CHECK_FAIL;
	}
	printf("rdm_processes: %s\n", worst ? "FAILED" : "ok");
	return worst;
}
