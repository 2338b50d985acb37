/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_fetch_add: from a fetch-and-add of 8 bytes to its completion, one at a time. */
#include <stdio.h>
#include <stdlib.h>

#include <rdma/fi_domain.h>

#include "common/atomic.h"
#include "common/bench.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"
#include "common/suite.h"
#include "common/xfer.h"

static const struct node_attr attr = { .caps = FI_ATOMIC | FI_MSG };

static void measure(struct node *node, const struct remote *remote)
{
	unsigned warmup = node->env->opts.warmup, count = bench_iterations(node->env, 8);
	uint64_t one = 1, result = 0, *values = calloc(count, sizeof(*values));
	struct atomic add = {
		.call = ATOMIC_FETCH, .datatype = FI_UINT64, .op = FI_SUM, .count = 1, .buf = &one,
		.result = &result, .addr = node->peer, .remote_addr = remote->addr,
		.key = remote->key, .context = &add,
	};

	REQUIRE(values != NULL);
	for (unsigned i = 0; i < warmup + count; i++) {
		uint64_t start = clock_now();

		atomic_run(node, &add);
		if (i >= warmup)
			values[i - warmup] = clock_now() - start;
		CHECK_EQ(result, i);
	}
	printf("# fetch-and-add\n%10s %10s %12s %12s %12s\n", "bytes", "iterations", "median us",
	       "90% us", "MB/s");
	bench_row(node->env, 8, values, count, 8);
	free(values);
}

/* A message to the server, which polls for it all the time. */
static void finish(struct node *node)
{
	bool server = node->env->server;
	char byte = 0;
	struct xfer xfer = {
		.op = server ? XFER_RECV : XFER_SEND, .buf = &byte, .len = 1,
		.addr = node->peer, .context = &xfer,
	};
	struct comp comp;

	REQUIRE_RET(xfer_post(node, &xfer), 0);
	comp_wait(node, server ? node->rxcq : node->txcq, &comp);
	REQUIRE_RET(comp.err, 0);
}

static void run(struct env *env)
{
	struct region region;
	struct remote remote;
	struct node node;

	node_start(&node, env, &attr);
	region_open(&node, &region, 8, FI_REMOTE_READ | FI_REMOTE_WRITE);
	*(uint64_t *)region.buf = 0;
	remote = region_exchange(&node, &region);
	node_sync(&node);
	if (!env->server)
		measure(&node, &remote);
	finish(&node);
	node_sync(&node);
	region_close(&region);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "fetch_add", FI_ATOMIC, run },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_fetch_add", "Latency of a fetch-and-add.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
