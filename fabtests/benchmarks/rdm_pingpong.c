/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_pingpong: latency of a message, tagged or not, and of a write with remote CQ data. */
#include <stdlib.h>
#include <string.h>

#include "common/bench.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/pattern.h"
#include "common/suite.h"

/* The receive for the answer is posted before the message that asks for it. */
static void one_round(struct bench *b, size_t size)
{
	if (b->node.env->server)
		bench_wait_rx(b, b->rx_posted);
	bench_post_rx(b, size);
	bench_post_tx(b, size);
	if (!b->node.env->server)
		bench_wait_rx(b, b->rx_posted);
	bench_wait_tx(b, b->tx_posted);
}

/* One message and its answer, the payload checked: outside the measured loop. */
static void verify(struct bench *b, size_t size)
{
	pattern_fill(b->tx.buf, size, size);
	memset(b->rx.buf, PATTERN_EMPTY, size);
	node_sync(&b->node);
	one_round(b, size);
	pattern_check(b->rx.buf, size, size);
}

static void run_size(struct bench *b, size_t size, uint64_t *values, unsigned count)
{
	struct env *env = b->node.env;

	if (env->server)
		bench_post_rx(b, size);
	node_sync(&b->node);
	if (env->opts.verify)
		verify(b, size);
	for (unsigned i = 0; i < env->opts.warmup; i++)
		one_round(b, size);
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = clock_now();

		one_round(b, size);
		/* One way. */
		values[i] = (clock_now() - start) / 2;
	}
	/* The server's last receive was one too many. */
	if (env->server)
		bench_wait_rx(b, b->rx_posted);
	else
		bench_post_tx(b, size);
	bench_wait_tx(b, b->tx_posted);
	bench_row(env, size, values, count, (double)size);
}

static void run(struct env *env, enum bench_op op)
{
	struct bench b;

	bench_open(&b, env, op);
	bench_head(env, op);
	for (size_t i = 0; i < env->opts.size_count; i++) {
		size_t size = env->opts.sizes[i];
		unsigned count = bench_iterations(env, size);
		uint64_t *values = calloc(count, sizeof(*values));

		REQUIRE(values != NULL);
		run_size(&b, size, values, count);
		free(values);
	}
	bench_close(&b);
}

static void run_tagged(struct env *env)
{
	run(env, BENCH_TAGGED);
}

static void run_msg(struct env *env)
{
	run(env, BENCH_MSG);
}

static void run_rma(struct env *env)
{
	run(env, BENCH_WRITEDATA);
}

static const struct suite_case cases[] = {
	{ "tagged", FI_TAGGED, run_tagged },
	{ "msg", FI_MSG, run_msg },
	{ "rma", FI_RMA | FI_MSG, run_rma },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_pingpong", "Latency by message size.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
