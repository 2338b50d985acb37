/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_memlock: a user with a small limit of locked memory: $MEMLOCK bytes or 8 MiB, Debian's
 * default. Messages of any length, up to somewhat more than the limit or 1 MiB, several at a time,
 * arrive all the same, and memory that cannot be registered is written from and read to. Started by
 * root, the program changes to another user.
 */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define NOBODY 65534
#define TOGETHER 4
#define HOGS 64

static size_t memlock(void)
{
	const char *text = getenv("MEMLOCK");

	return text ? strtoull(text, NULL, 0) : 8 << 20;
}

static void become_poor(void)
{
	struct rlimit limit = { .rlim_cur = memlock(), .rlim_max = memlock() };

	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &limit));
	if (geteuid())
		return;
	REQUIRE(!setresgid(NOBODY, NOBODY, NOBODY));
	REQUIRE(!setresuid(NOBODY, NOBODY, NOBODY));
	/* After a change of user, output files and core dumps need the process to be dumpable. */
	prctl(PR_SET_DUMPABLE, 1);
}

static void send_all(struct node *node, struct xfer *sends, size_t len)
{
	struct comp comp;

	for (unsigned i = 0; i < TOGETHER; i++) {
		sends[i] = (struct xfer){ .op = XFER_SEND, .len = len, .buf = pattern_alloc(len),
					  .addr = node->peer, .context = &sends[i] };
		pattern_fill(sends[i].buf, len, i);
		REQUIRE_RET(xfer_post(node, &sends[i]), 0);
	}
	for (unsigned i = 0; i < TOGETHER; i++) {
		comp_wait(node, node->txcq, &comp);
		CHECK_RET(comp.err, 0);
	}
	for (unsigned i = 0; i < TOGETHER; i++)
		pattern_free(sends[i].buf);
}

static void receive_all(struct node *node, struct xfer *recvs, size_t len)
{
	struct xfer sent = { .op = XFER_SEND };

	for (unsigned i = 0; i < TOGETHER; i++) {
		recvs[i] = (struct xfer){ .op = XFER_RECV, .len = len, .buf = pattern_alloc(len),
					  .addr = FI_ADDR_UNSPEC, .context = &recvs[i] };
		REQUIRE_RET(xfer_post(node, &recvs[i]), 0);
	}
	for (unsigned i = 0; i < TOGETHER; i++)
		xfer_finish_any(node, recvs, TOGETHER, &sent, len);
	for (unsigned i = 0; i < TOGETHER; i++) {
		pattern_check(recvs[i].buf, len, i);
		pattern_free(recvs[i].buf);
	}
}

static void run_messages(struct env *env)
{
	static const size_t lens[] = { 0, 64, 5000, 70000, 1 << 20, (3 << 20) + 5, 9 << 20 };
	struct xfer xfers[TOGETHER];
	struct node node;

	node_start(&node, env, NULL);
	for (size_t i = 0; i < 2 * sizeof(lens) / sizeof(*lens); i++) {
		/* In small pieces, long ones take long and show nothing more. */
		if (lens[i / 2] > 1 << 20 && lens[i / 2] > memlock() + memlock() / 8)
			break;
		if (env->server == i % 2)
			send_all(&node, xfers, lens[i / 2]);
		else
			receive_all(&node, xfers, lens[i / 2]);
		node_sync(&node);
	}
	node_close(&node);
}

/* Registers until no page more can be; how many regions that took. */
static unsigned hog(struct node *node, void *memory, struct fid_mr **mrs)
{
	unsigned count = 0;

	for (size_t len = memlock(); len >= 4096;) {
		REQUIRE(count < HOGS);
		if (fi_mr_reg(node->domain, memory, len, FI_SEND, 0, ++node->next_key, 0,
			      &mrs[count], NULL))
			len /= 2;
		else
			count++;
	}
	return count;
}

/* A read brings the bytes that were written, all of the peer's region. */
static void access_all(struct node *node, const struct remote *remote)
{
	struct rma rma = { .op = RMA_WRITE, .len = remote->len, .addr = node->peer,
			   .remote_addr = remote->addr, .key = remote->key, .context = &rma };

	rma.buf = pattern_alloc(rma.len);
	pattern_fill(rma.buf, rma.len, 7);
	rma_run(node, &rma);
	pattern_free(rma.buf);
	rma.op = RMA_READ;
	rma.buf = pattern_alloc(rma.len);
	rma_run(node, &rma);
	pattern_check(rma.buf, rma.len, 7);
	pattern_free(rma.buf);
}

/* Each side has a region; then each in turn has no page left that it could register. */
static void run_rma(struct env *env)
{
	static const struct node_attr attr = { .caps = FI_RMA | FI_MSG };
	void *memory = pattern_alloc(memlock());
	struct fid_mr *mrs[HOGS];
	struct region region;
	struct remote remote;
	struct node node;
	unsigned count;

	node_start(&node, env, &attr);
	region_open(&node, &region, memlock() / 4, FI_REMOTE_READ | FI_REMOTE_WRITE);
	remote = region_exchange(&node, &region);
	/* The connection's queue pair needs locked memory on devices that charge rings. */
	access_all(&node, &remote);
	node_sync(&node);
	count = hog(&node, memory, mrs);
	REQUIRE(count);
	for (unsigned turn = 0; turn < 2; turn++) {
		if (env->server == turn)
			access_all(&node, &remote);
		node_sync(&node);
	}
	pattern_check(region.buf, region.len, 7);
	while (count)
		CHECK_RET(fi_close(&mrs[--count]->fid), 0);
	region_close(&region);
	node_close(&node);
	pattern_free(memory);
}

static const struct suite_case cases[] = {
	{ "messages", FI_MSG, run_messages },
	{ "rma", FI_RMA, run_rma },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_memlock", "Messages and RMA of a user who may lock little memory.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	/* Before the provider looks at it. */
	become_poor();
	return suite_main(&suite, argc, argv);
}
