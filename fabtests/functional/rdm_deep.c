/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_deep: many more receives and messages than anybody waits for: all are accepted, and each
 * meets the one that is meant for it. -I sets how many.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/suite.h"
#include "common/xfer.h"

#define COUNT 100000
#define BATCH 500 /* messages between two meetings of the halves */

/* Message and receive i have a tag that only they have, in no order that repeats early. */
static uint64_t tag_of(uint64_t i)
{
	return i * 0x9e3779b97f4a7c15ull;
}

/* A walk that meets every number below count once: count and step have no common divisor. */
static uint64_t nth(uint64_t n, uint64_t count)
{
	uint64_t step = 61, a = count, b = step;

	for (;; b = ++step, a = count) {
		while (b) {
			uint64_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return n * step % count;
	}
}

struct deep {
	struct node node;
	uint64_t count;
	uint64_t *values; /* buffer of receive i; a message's payload is its number */
	uint64_t received;
	bool *seen;
};

static void deep_open(struct deep *deep, struct env *env)
{
	struct node_attr attr = { .caps = FI_TAGGED | FI_DIRECTED_RECV };

	memset(deep, 0, sizeof(*deep));
	deep->count = env->opts.iterations ? env->opts.iterations : COUNT;
	deep->values = malloc(deep->count * sizeof(*deep->values));
	deep->seen = calloc(deep->count, sizeof(*deep->seen));
	if (!deep->values || !deep->seen)
		check_fatal("out of memory");
	memset(deep->values, PATTERN_EMPTY, deep->count * sizeof(*deep->values));
	node_start(&deep->node, env, &attr);
}

static void deep_close(struct deep *deep)
{
	if (deep->node.env->server) {
		CHECK_EQ(deep->received, deep->count);
		for (uint64_t i = 0; i < deep->count; i++)
			CHECK_EQ(deep->values[i], i);
		comp_expect_none(&deep->node, deep->node.rxcq);
	}
	node_sync(&deep->node);
	node_close(&deep->node);
	free(deep->values);
	free(deep->seen);
}

static void post(struct deep *deep, uint64_t i)
{
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = tag_of(i),
			     .len = sizeof(uint64_t), .addr = i % 2 ? FI_ADDR_UNSPEC
								    : deep->node.peer,
			     .buf = &deep->values[i], .context = &deep->values[i] };

	REQUIRE_RET(xfer_post(&deep->node, &recv), 0);
}

static void receive_until(struct deep *deep, uint64_t received)
{
	while (deep->received < received) {
		struct comp comp;
		uint64_t i;

		comp_wait(&deep->node, deep->node.rxcq, &comp);
		REQUIRE_RET(comp.err, 0);
		i = (uint64_t)((uint64_t *)comp.context - deep->values);
		REQUIRE(i < deep->count);
		CHECK_EQ(comp.tag, tag_of(i));
		CHECK_EQ(comp.len, sizeof(uint64_t));
		CHECK(!deep->seen[i]);
		deep->seen[i] = true;
		deep->received++;
	}
}

/* Messages from to until, in the order of the walk, all completed. */
static void send_batch(struct deep *deep, uint64_t from, uint64_t until)
{
	uint64_t numbers[BATCH];
	struct comp comp;

	for (uint64_t n = from; n < until; n++) {
		uint64_t i = nth(n, deep->count), *number = &numbers[n - from];
		struct xfer send = { .op = XFER_SEND, .tagged = true, .tag = tag_of(i),
				     .len = sizeof(*number), .addr = deep->node.peer,
				     .buf = number, .context = number };

		*number = i;
		REQUIRE_RET(xfer_post(&deep->node, &send), 0);
	}
	for (uint64_t n = from; n < until; n++) {
		comp_wait(&deep->node, deep->node.txcq, &comp);
		REQUIRE_RET(comp.err, 0);
	}
}

/* In batches, so that the wait of one half for the other stays short. */
static void exchange(struct deep *deep, bool receive)
{
	for (uint64_t n = 0; n < deep->count; n += BATCH) {
		uint64_t until = n + BATCH < deep->count ? n + BATCH : deep->count;

		if (!deep->node.env->server)
			send_batch(deep, n, until);
		else if (receive)
			receive_until(deep, until);
		node_sync(&deep->node);
	}
}

/* All receives first; the messages come in another order. */
static void run_posted(struct env *env)
{
	struct deep deep;

	deep_open(&deep, env);
	if (env->server)
		for (uint64_t i = 0; i < deep.count; i++)
			post(&deep, i);
	node_sync(&deep.node);
	exchange(&deep, true);
	deep_close(&deep);
}

/* All messages first; the receives ask for them in another order. */
static void run_unexpected(struct env *env)
{
	struct deep deep;

	deep_open(&deep, env);
	exchange(&deep, false);
	if (env->server) {
		comp_expect_none(&deep.node, deep.node.rxcq);
		for (uint64_t i = 0; i < deep.count; i++) {
			post(&deep, deep.count - 1 - i);
			if (i % BATCH == 0)
				receive_until(&deep, i);
		}
		receive_until(&deep, deep.count);
	}
	node_sync(&deep.node);
	deep_close(&deep);
}

static const struct suite_case cases[] = {
	{ "posted", FI_TAGGED | FI_DIRECTED_RECV, run_posted },
	{ "unexpected", FI_TAGGED | FI_DIRECTED_RECV, run_unexpected },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_deep", "Very many receives, and messages, that wait.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
