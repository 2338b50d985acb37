/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_beside: from a short message to its answer, while -W long messages of -S bytes come from the
 * same peer all the time, or are read from its memory. Size 0: nothing else is under way.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "common/bench.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"
#include "common/rma.h"
#include "common/suite.h"

enum { TAG_ASK, TAG_ANSWER, TAG_BULK };
enum { LOOKS = 4096 }; /* turns between two looks at the time */

/* The client asks, and says how many long messages it has posted a receive for in all. */
struct note {
	uint64_t last, bulk;
};

struct side {
	struct node node;
	struct region in, out, bulk;
	struct remote remote;
	size_t size;
	bool reads; /* the client reads; otherwise the server sends */
	uint64_t posted, done; /* of the long ones */
	unsigned notes_in, notes_out; /* completions of short messages */
	uint64_t end;	 /* no completion has come until then: the test has failed */
	unsigned turns;	 /* without a completion */
};

static const struct node_attr attr = { .caps = FI_TAGGED | FI_MSG | FI_RMA, .one_cq = true,
				       .cq_size = 4096 };

/* Takes one completion, if there is one. A long message's context is bulk, a note's its region. */
static void progress(struct side *s)
{
	struct comp comp;

	if (!comp_read(&s->node, s->node.txcq, &comp)) {
		if (s->node.env->opts.method != OPTS_SPIN)
			sched_yield();
		if (!(++s->turns % LOOKS) && clock_now() > s->end)
			check_fatal("no completion within %u s", s->node.env->opts.timeout);
		return;
	}
	if (s->turns >= LOOKS)
		s->end = env_deadline(s->node.env);
	s->turns = 0;
	REQUIRE_RET(comp.err, 0);
	s->done += comp.context == &s->bulk;
	s->notes_in += comp.context == &s->in;
	s->notes_out += comp.context == &s->out;
}

/* True if the call was accepted. */
static bool accepted(struct side *s, ssize_t ret)
{
	if (ret == -FI_EAGAIN) {
		progress(s);
		return false;
	}
	REQUIRE_RET(ret, 0);
	return true;
}

static void post_note(struct side *s, const struct note *note, uint64_t tag)
{
	*(struct note *)s->out.buf = *note;
	while (!accepted(s, fi_tsend(s->node.ep, s->out.buf, sizeof(*note), s->out.desc,
				     s->node.peer, tag, &s->out)))
		;
}

static void post_receive(struct side *s, uint64_t tag)
{
	while (!accepted(s, fi_trecv(s->node.ep, s->in.buf, sizeof(struct note), s->in.desc,
				     s->node.peer, tag, 0, &s->in)))
		;
}

static ssize_t bulk_try(struct side *s)
{
	struct node *node = &s->node;

	if (s->reads)
		return fi_read(node->ep, s->bulk.buf, s->size, s->bulk.desc, node->peer,
			       s->remote.addr, s->remote.key, &s->bulk);
	if (node->env->server)
		return fi_tsend(node->ep, s->bulk.buf, s->size, s->bulk.desc, node->peer, TAG_BULK,
				&s->bulk);
	return fi_trecv(node->ep, s->bulk.buf, s->size, s->bulk.desc, node->peer, TAG_BULK, 0,
			&s->bulk);
}

/* Keeps -W long ones under way, total in all. */
static void bulk_go_on(struct side *s, uint64_t total)
{
	while (s->size && s->posted < total && s->posted - s->done < s->node.env->opts.window) {
		ssize_t ret = bulk_try(s);

		if (ret == -FI_EAGAIN)
			return;
		REQUIRE_RET(ret, 0);
		s->posted++;
	}
}

static void ask(struct side *s, bool last)
{
	unsigned out = s->notes_out + 1, in = s->notes_in + 1;

	if (!last)
		bulk_go_on(s, UINT64_MAX);
	post_receive(s, TAG_ANSWER);
	post_note(s, &(struct note){ .last = last, .bulk = s->posted }, TAG_ASK);
	while (s->notes_out < out || s->notes_in < in)
		progress(s);
}

/* The server answers, and sends as many long messages as the client has receives. */
static void serve(struct side *s)
{
	struct note note = { 0 };

	while (!note.last) {
		unsigned in = s->notes_in + 1;

		post_receive(s, TAG_ASK);
		while (s->notes_in < in) {
			progress(s);
			if (!s->reads)
				bulk_go_on(s, note.bulk);
		}
		note = *(struct note *)s->in.buf;
		post_note(s, &note, TAG_ANSWER);
	}
	while (!s->reads && (s->posted < note.bulk || s->done < s->posted)) {
		bulk_go_on(s, note.bulk);
		progress(s);
	}
}

static void measure(struct side *s)
{
	struct env *env = s->node.env;
	unsigned warmup = env->opts.warmup, count = bench_iterations(env, sizeof(struct note));
	uint64_t *values = calloc(count, sizeof(*values)), begin = 0, before = 0, ns;

	REQUIRE(values != NULL);
	for (unsigned i = 0; i < warmup + count; i++) {
		uint64_t start = clock_now();

		if (i == warmup) {
			begin = start;
			before = s->done;
		}
		ask(s, false);
		if (i >= warmup)
			values[i - warmup] = clock_now() - start;
	}
	ns = clock_now() - begin;
	before = s->done - before;
	bench_row(env, s->size, values, count, 0);
	printf("%10s %.0f MB/s\n", "beside", (double)before * s->size * 1000 / ns);
	ask(s, true);
	while (s->done < s->posted)
		progress(s);
	free(values);
}

static void run_size(struct side *s, size_t size)
{
	s->size = size;
	s->posted = s->done = 0;
	s->end = env_deadline(s->node.env);
	node_sync(&s->node);
	if (s->node.env->server)
		serve(s);
	else
		measure(s);
	node_sync(&s->node);
}

static void run(struct env *env, bool reads)
{
	size_t len = env->opts.max_size ? env->opts.max_size : 1;
	struct side side = { .reads = reads };

	node_start(&side.node, env, &attr);
	region_open(&side.node, &side.in, sizeof(struct note), FI_RECV);
	region_open(&side.node, &side.out, sizeof(struct note), FI_SEND);
	region_open(&side.node, &side.bulk, len, FI_SEND | FI_RECV | FI_READ | FI_REMOTE_READ);
	side.remote = region_exchange(&side.node, &side.bulk);
	if (!env->server)
		printf("# beside %s\n%10s %10s %12s %12s\n", reads ? "reads" : "messages", "bytes",
		       "iterations", "median us", "90% us");
	for (size_t i = 0; i < env->opts.size_count; i++)
		run_size(&side, env->opts.sizes[i]);
	node_sync(&side.node);
	node_close_ep(&side.node);
	region_close(&side.in);
	region_close(&side.out);
	region_close(&side.bulk);
	node_close(&side.node);
}

static void run_messages(struct env *env)
{
	run(env, false);
}

static void run_reads(struct env *env)
{
	run(env, true);
}

static const struct suite_case cases[] = {
	{ "messages", FI_TAGGED | FI_RMA, run_messages },
	{ "reads", FI_TAGGED | FI_RMA, run_reads },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_beside", "Latency of a short message beside long ones.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
