/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_buffers: the cost of a message and its answer, or of a write, from buffers without a
 * descriptor: one buffer used again and again (kept), one from malloc(3) for each message (malloc),
 * one from mmap(2) for each (mmap). Every byte of a buffer is written before. Run it with and
 * without a registration cache.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/bench.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/suite.h"

enum buffers { KEPT, MALLOC, MMAP, KINDS };

static const char *const names[] = { "kept", "malloc", "mmap" };

static void *get_buffer(const struct region *kept, enum buffers kind, size_t size)
{
	void *buf = kept->buf;

	if (kind == MALLOC)
		buf = malloc(size);
	else if (kind == MMAP)
		buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(buf && buf != MAP_FAILED);
	memset(buf, (int)size, size);
	return buf;
}

static void put_buffer(void *buf, enum buffers kind, size_t size)
{
	if (kind == MALLOC)
		free(buf);
	else if (kind == MMAP)
		munmap(buf, size);
}

static void one_round(struct bench *b, enum buffers kind, size_t size)
{
	struct region tx = b->tx, rx = b->rx;
	bool server = b->node.env->server;

	b->tx.buf = get_buffer(&tx, kind, size);
	b->rx.buf = get_buffer(&rx, kind, size);
	bench_post_rx(b, size);
	if (!server)
		bench_post_tx(b, size);
	if (b->op == BENCH_TAGGED)
		bench_wait_rx(b, b->rx_posted);
	if (server)
		bench_post_tx(b, size);
	bench_wait_tx(b, b->tx_posted);
	put_buffer(b->tx.buf, kind, size);
	put_buffer(b->rx.buf, kind, size);
	b->tx.buf = tx.buf;
	b->rx.buf = rx.buf;
}

static void run_row(struct bench *b, enum buffers kind, size_t size)
{
	struct env *env = b->node.env;
	unsigned count = bench_iterations(env, size);
	uint64_t *values = calloc(count, sizeof(*values));

	REQUIRE(values != NULL);
	node_sync(&b->node);
	for (unsigned i = 0; i < env->opts.warmup + count; i++) {
		uint64_t start = clock_now();

		/* The target of writes has nothing to do. */
		if (b->op == BENCH_TAGGED || !env->server)
			one_round(b, kind, size);
		if (i >= env->opts.warmup)
			values[i - env->opts.warmup] = clock_now() - start;
	}
	node_sync(&b->node);
	bench_row(env, size, values, count, (double)size);
	free(values);
}

static void run(struct env *env, enum bench_op op)
{
	struct bench b;

	bench_open(&b, env, op);
	b.tx.desc = b.rx.desc = NULL;
	for (enum buffers kind = KEPT; kind < KINDS; kind++) {
		if (!env->server)
			printf("# %s\n", names[kind]);
		bench_head(env, op);
		for (size_t i = 0; i < env->opts.size_count; i++)
			run_row(&b, kind, env->opts.sizes[i]);
	}
	bench_close(&b);
}

static void run_tagged(struct env *env)
{
	run(env, BENCH_TAGGED);
}

static void run_write(struct env *env)
{
	run(env, BENCH_WRITE);
}

static const struct suite_case cases[] = {
	{ "tagged", FI_TAGGED, run_tagged },
	{ "write", FI_RMA, run_write },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_buffers", "Messages and writes from buffers without a descriptor.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
