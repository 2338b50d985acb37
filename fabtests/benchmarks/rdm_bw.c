/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_bw: one-way bandwidth: the client keeps -W operations in flight; for messages the server
 * answers each window with one empty message. In the case "fresh" no two messages have a buffer in
 * common, on either side: it takes memory for all messages of a size, which is there before the
 * first one.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "common/bench.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/pattern.h"
#include "common/suite.h"

/* Memory of the messages of all windows, one behind the other. NULL: one buffer serves all. */
static struct fresh {
	char *start, *next;
	size_t len;
} fresh_tx, fresh_rx;
static bool wants_fresh;

static void fresh_open(struct fresh *fresh, size_t len)
{
	fresh->len = len;
	fresh->start = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	REQUIRE(fresh->start != MAP_FAILED);
	fresh->next = fresh->start;
}

static void fresh_close(struct fresh *fresh)
{
	if (fresh->start)
		munmap(fresh->start, fresh->len);
	fresh->start = NULL;
}

static void renew(struct fresh *fresh, struct region *region, size_t size)
{
	if (!fresh->start)
		return;
	REQUIRE(fresh->next + size <= fresh->start + fresh->len);
	region->buf = fresh->next;
	region->desc = NULL;
	fresh->next += size;
}

static void post_receives(struct bench *b, size_t size)
{
	for (unsigned i = 0; i < b->node.env->opts.window; i++) {
		renew(&fresh_rx, &b->rx, size);
		bench_post_rx(b, size);
	}
}

static void post_window(struct bench *b, size_t size)
{
	for (unsigned i = 0; i < b->node.env->opts.window; i++) {
		renew(&fresh_tx, &b->tx, size);
		bench_post_tx(b, size);
	}
}

static bool has_receiver(enum bench_op op)
{
	return op == BENCH_MSG || op == BENCH_TAGGED;
}

static void receive_window(struct bench *b, size_t size)
{
	bench_wait_rx(b, b->rx_posted);
	post_receives(b, size);
	bench_post_tx(b, 0);
	bench_wait_tx(b, b->tx_posted);
}

static void send_window(struct bench *b, size_t size)
{
	if (has_receiver(b->op))
		bench_post_rx(b, 0);
	post_window(b, size);
	bench_wait_tx(b, b->tx_posted);
	if (has_receiver(b->op))
		bench_wait_rx(b, b->rx_posted);
}

static void measure(struct bench *b, size_t size, uint64_t *values, unsigned count)
{
	struct env *env = b->node.env;
	unsigned warmup = env->opts.warmup < 2 ? env->opts.warmup : 2;

	for (unsigned i = 0; i < warmup; i++)
		send_window(b, size);
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = clock_now();

		send_window(b, size);
		values[i] = clock_now() - start;
	}
	bench_row(env, size, values, count, (double)size * env->opts.window);
}

/* The server serves as many windows as the client measures, warm-up included. */
static void serve(struct bench *b, size_t size, unsigned count)
{
	unsigned warmup = b->node.env->opts.warmup;

	post_receives(b, size);
	node_sync(&b->node);
	for (unsigned i = 0; i < count + (warmup < 2 ? warmup : 2); i++)
		receive_window(b, size);
}

static void run_size(struct bench *b, size_t size)
{
	struct env *env = b->node.env;
	unsigned count = bench_iterations(env, size) / 10 + 1;
	uint64_t *values = calloc(count, sizeof(*values));

	REQUIRE(values != NULL);
	/* Warm-up, and a last window that is not measured, too. */
	if (wants_fresh && size)
		fresh_open(env->server ? &fresh_rx : &fresh_tx,
			   (count + 3) * env->opts.window * size);
	if (env->server && has_receiver(b->op)) {
		serve(b, size, count);
	} else {
		node_sync(&b->node);
		if (!env->server)
			measure(b, size, values, count);
	}
	if (has_receiver(b->op) && !env->server) {
		/* The server's last window of receives waits for us. */
		post_window(b, size);
		bench_wait_tx(b, b->tx_posted);
	} else if (has_receiver(b->op)) {
		bench_wait_rx(b, b->rx_posted);
	}
	node_sync(&b->node);
	fresh_close(&fresh_tx);
	fresh_close(&fresh_rx);
	free(values);
}

static void run(struct env *env, enum bench_op op)
{
	struct region tx, rx;
	struct bench b;

	bench_open(&b, env, op);
	tx = b.tx;
	rx = b.rx;
	bench_head(env, op);
	for (size_t i = 0; i < env->opts.size_count; i++)
		run_size(&b, env->opts.sizes[i]);
	b.tx = tx;
	b.rx = rx;
	bench_close(&b);
}

static void run_tagged(struct env *env)
{
	run(env, BENCH_TAGGED);
}

static void run_fresh(struct env *env)
{
	wants_fresh = true;
	run(env, BENCH_TAGGED);
	wants_fresh = false;
}

static void run_msg(struct env *env)
{
	run(env, BENCH_MSG);
}

static void run_rma(struct env *env)
{
	run(env, BENCH_WRITE);
}

static void run_read(struct env *env)
{
	run(env, BENCH_READ);
}

static const struct suite_case cases[] = {
	{ "tagged", FI_TAGGED, run_tagged },
	{ "fresh", FI_TAGGED, run_fresh },
	{ "msg", FI_MSG, run_msg },
	{ "rma", FI_RMA | FI_MSG, run_rma },
	{ "read", FI_RMA | FI_MSG, run_read },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_bw", "One-way bandwidth by message size.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
