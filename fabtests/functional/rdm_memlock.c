/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_memlock: a user who may lock little memory, $MEMLOCK bytes or 8 MiB, Debian's default. Messages of
 * any length, several at a time, arrive all the same. Started by root it becomes somebody who is not.
 */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/fi_endpoint.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/xfer.h"

#define NOBODY 65534
#define TOGETHER 4

static void become_poor(void)
{
	const char *text = getenv("MEMLOCK");
	rlim_t bytes = text ? strtoull(text, NULL, 0) : 8 << 20;
	struct rlimit limit = { .rlim_cur = bytes, .rlim_max = bytes };

	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &limit));
	if (geteuid())
		return;
	REQUIRE(!setresgid(NOBODY, NOBODY, NOBODY));
	REQUIRE(!setresuid(NOBODY, NOBODY, NOBODY));
	/* Its output files are still to be written, and a core is to be had. */
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
		if (env->server == i % 2)
			send_all(&node, xfers, lens[i / 2]);
		else
			receive_all(&node, xfers, lens[i / 2]);
		node_sync(&node);
	}
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "messages", FI_MSG, run_messages },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_memlock", "Messages of a user who may lock little memory.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	/* Before the provider looks at it. */
	become_poor();
	return suite_main(&suite, argc, argv);
}
