/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_bw: one-way bandwidth: the client keeps -W operations in flight. A message is in flight until
 * the server has it: the server answers each half of a window with one empty message, so that the
 * other half keeps both sides busy meanwhile (an odd window, as a whole). Writes that fit are
 * injected, and never in flight. In the case "fresh" no two messages have a buffer in
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

static bool has_receiver(enum bench_op op)
{
	return op == BENCH_MSG || op == BENCH_TAGGED;
}

/* The operations of one size. */
struct stream {
	struct bench *b;
	size_t size;
	unsigned window, group; /* operations in flight; messages that are answered together */
	uint64_t total;		/* operations, warm-up included */
	uint64_t posted, answered; /* operations; of the client: groups of messages */
	uint64_t tx_before, rx_before; /* completions before the first of them */
};

static unsigned warmup_windows(const struct env *env)
{
	return env->opts.warmup < 2 ? env->opts.warmup : 2;
}

static uint64_t answers(const struct stream *s)
{
	return (s->total + s->group - 1) / s->group;
}

static void post_receive(struct stream *s)
{
	renew(&fresh_rx, &s->b->rx, s->size);
	bench_post_rx(s->b, s->size);
	s->posted++;
}

/* The server's side of messages: as many receives as messages in flight are posted always. */
static void serve(struct stream *s)
{
	struct bench *b = s->b;

	while (s->posted < s->window)
		post_receive(s);
	node_sync(&b->node);
	for (uint64_t i = 1; i <= s->total; i++) {
		bench_wait_rx(b, s->rx_before + i);
		if (s->posted < s->total)
			post_receive(s);
		if (!(i % s->group) || i == s->total)
			bench_post_tx(b, 0);
	}
}

/* Of the client: operations that are in flight no more. */
static uint64_t ended(const struct stream *s)
{
	uint64_t arrived = s->answered * s->group;

	if (!has_receiver(s->b->op))
		return s->b->tx_done - s->tx_before;
	return arrived < s->total ? arrived : s->total;
}

static void wait_one(struct stream *s)
{
	struct bench *b = s->b;

	if (!has_receiver(b->op)) {
		bench_wait_tx(b, b->tx_done + 1);
		return;
	}
	bench_wait_rx(b, s->rx_before + ++s->answered);
	if (b->rx_posted - s->rx_before < answers(s))
		bench_post_rx(b, 0);
}

/* values: of each window behind the warm-up, the time from the last one's end to its own. */
static void measure(struct stream *s, uint64_t *values)
{
	unsigned warmup = warmup_windows(s->b->node.env);
	uint64_t start = clock_now(), windows = 0;

	while (ended(s) < s->total) {
		if (s->posted < s->total && s->posted - ended(s) < s->window) {
			renew(&fresh_tx, &s->b->tx, s->size);
			bench_post_tx(s->b, s->size);
			s->posted++;
		} else {
			wait_one(s);
		}
		for (; ended(s) >= (windows + 1) * s->window; windows++) {
			uint64_t now = clock_now();

			if (windows >= warmup)
				values[windows - warmup] = now - start;
			start = now;
		}
	}
}

static void run_size(struct bench *b, size_t size)
{
	struct env *env = b->node.env;
	unsigned count = bench_iterations(env, size) / 10 + 1, window = env->opts.window;
	uint64_t *values = calloc(count, sizeof(*values));
	struct stream s = {
		.b = b, .size = size, .window = window, .group = window % 2 ? window : window / 2,
		.total = (uint64_t)(count + warmup_windows(env)) * window,
		.tx_before = b->tx_done, .rx_before = b->rx_done,
	};

	REQUIRE(values != NULL);
	if (wants_fresh && size)
		fresh_open(env->server ? &fresh_rx : &fresh_tx, s.total * size);
	if (env->server && has_receiver(b->op)) {
		serve(&s);
	} else {
		/* No more than two answers are under way. */
		for (unsigned i = 0; has_receiver(b->op) && i < 2 && i < answers(&s); i++)
			bench_post_rx(b, 0);
		node_sync(&b->node);
		if (!env->server) {
			measure(&s, values);
			bench_row(env, size, values, count, (double)size * window);
		}
	}
	bench_wait_tx(b, b->tx_posted);
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
