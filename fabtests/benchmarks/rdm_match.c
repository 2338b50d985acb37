/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_match: the cost of a match beside waiting receives, or waiting messages: 10, 1,000 and
 * 100,000 of them. Rows called "pingpong" time a message and its answer past all that wait, rows
 * called "take" a receive of a message that is there already; rows called "reverse" match the
 * waiting ones from the last to the first. -I sets the samples of a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/suite.h"
#include "common/xfer.h"

#define SAMPLES 200
#define BATCH 500
#define PROBE (1ull << 60) /* tag of messages that do not wait */
#define ANSWER (1ull << 61)
#define REFUSED_NS 2000000000ull /* -FI_EAGAIN for so long is a refusal */

enum how { PINGPONG, REVERSE, TAKE };

struct row {
	const char *name;
	bool unexpected; /* messages wait, at the server; else receives */
	enum how how;
	unsigned shift; /* bits that waiting receives ignore in tags */
	bool directed;
};

struct match {
	struct node node;
	const struct row *row;
	uint64_t count; /* that wait */
	uint64_t word, *words;
	uint64_t *values; /* nanoseconds */
	uint64_t samples;
};

static const uint64_t depths[] = { 10, 1000, 100000 };

static uint64_t tag_of(const struct match *m, uint64_t i)
{
	return (i + 1) << m->row->shift;
}

static struct xfer recv_of(const struct match *m, uint64_t tag, void *buf)
{
	return (struct xfer){
		.op = XFER_RECV, .tagged = true, .tag = tag, .len = sizeof(uint64_t), .buf = buf,
		.addr = m->row->directed ? m->node.peer : FI_ADDR_UNSPEC, .context = buf,
	};
}

/* Whether it was accepted. */
static bool post(struct match *m, const struct xfer *xfer)
{
	uint64_t end = 0;
	ssize_t ret;

	while ((ret = xfer_try(&m->node, xfer)) == -FI_EAGAIN) {
		if (!end)
			end = clock_now() + REFUSED_NS;
		env_progress(m->node.env, 0);
		if (clock_now() > end)
			return false;
	}
	return !ret;
}

static uint64_t post_receives(struct match *m, uint64_t depth)
{
	for (uint64_t i = 0; i < depth; i++) {
		struct xfer recv = recv_of(m, tag_of(m, i), &m->words[i]);

		recv.ignore = (1ull << m->row->shift) - 1;
		if (!post(m, &recv))
			return i;
	}
	return depth;
}

static uint64_t send_messages(struct match *m, uint64_t from, uint64_t until)
{
	for (uint64_t i = from; i < until; i++) {
		struct xfer send = { .op = XFER_INJECT, .tagged = true, .tag = tag_of(m, i),
				     .len = sizeof(i), .buf = &i, .addr = m->node.peer };

		if (!post(m, &send))
			return i;
	}
	return until;
}

/* The half that decides tells the other half its count. */
static uint64_t agree(struct match *m, bool decides, uint64_t count)
{
	uint64_t theirs;

	oob_exchange(&m->node.env->oob, &count, sizeof(count), &theirs, sizeof(theirs));
	return decides ? count : theirs;
}

static void fill(struct match *m, uint64_t depth)
{
	bool server = m->node.env->server;

	if (!m->row->unexpected) {
		m->count = agree(m, server, server ? post_receives(m, depth) : 0);
		return;
	}
	for (uint64_t n = 0; n < depth; n += BATCH) {
		uint64_t until = n + BATCH < depth ? n + BATCH : depth;

		m->count = agree(m, !server, server ? 0 : send_messages(m, n, until));
		if (m->count < until)
			return;
	}
}

static void wait_recv(struct match *m)
{
	struct comp comp;

	comp_wait(&m->node, m->node.rxcq, &comp);
	REQUIRE_RET(comp.err, 0);
}

static void send_tag(struct match *m, uint64_t tag)
{
	struct xfer send = { .op = XFER_INJECT, .tagged = true, .tag = tag,
			     .len = sizeof(tag), .buf = &tag, .addr = m->node.peer };

	REQUIRE(post(m, &send));
}

/* The client's side: sends a message that passes the waiting ones, or matches one of them. */
static void ask(struct match *m, uint64_t tag)
{
	struct xfer recv = recv_of(m, ANSWER, &m->word);

	REQUIRE(post(m, &recv));
	send_tag(m, tag);
	wait_recv(m);
}

static void time_messages(struct match *m, bool reverse)
{
	struct xfer probe = recv_of(m, PROBE, &m->word);

	if (m->node.env->server && !reverse)
		REQUIRE(post(m, &probe));
	node_sync(&m->node);
	for (uint64_t n = 0; n < m->samples; n++) {
		uint64_t start = clock_now();

		if (m->node.env->server) {
			wait_recv(m);
			if (!reverse && n + 1 < m->samples)
				REQUIRE(post(m, &probe));
			send_tag(m, ANSWER);
		} else {
			ask(m, reverse ? tag_of(m, m->count - 1 - n) : PROBE);
		}
		m->values[n] = clock_now() - start;
	}
}

static void time_takes(struct match *m)
{
	uint64_t words[2];

	for (uint64_t n = 0; m->node.env->server && n < m->samples; n++) {
		uint64_t i = m->count - 1 - n, start = clock_now();
		struct xfer recv = recv_of(m, tag_of(m, i), words);

		recv.ignore = (1ull << m->row->shift) - 1;
		REQUIRE(post(m, &recv));
		wait_recv(m);
		m->values[n] = clock_now() - start;
		CHECK_EQ(words[0], i);
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The table is the client's; takes are timed at the server. */
static void print_row(struct match *m)
{
	uint64_t mine[2], theirs[2];

	qsort(m->values, m->samples, sizeof(*m->values), compare);
	mine[0] = m->values[m->samples / 2];
	mine[1] = m->values[m->samples * 9 / 10];
	oob_exchange(&m->node.env->oob, mine, sizeof(mine), theirs, sizeof(theirs));
	if (m->node.env->server)
		return;
	if (m->row->how == TAKE)
		memcpy(mine, theirs, sizeof(mine));
	printf("%-26s %8llu %8llu %10.2f %10.2f\n", m->row->name, (unsigned long long)m->count,
	       (unsigned long long)m->samples, (double)mine[0] / 1e3, (double)mine[1] / 1e3);
}

static void run_depth(struct env *env, const struct row *row, uint64_t depth)
{
	struct node_attr attr = { .caps = FI_TAGGED | FI_DIRECTED_RECV };
	struct match m = { .row = row };

	m.samples = env->opts.iterations ? env->opts.iterations : SAMPLES;
	m.words = calloc(depth, sizeof(*m.words));
	m.values = calloc(m.samples, sizeof(*m.values));
	if (!m.words || !m.values)
		check_fatal("out of memory");
	node_start(&m.node, env, &attr);
	/* The first message pays for the connection. */
	if (env->server) {
		struct xfer recv = recv_of(&m, PROBE, &m.word);

		REQUIRE(post(&m, &recv));
		wait_recv(&m);
		send_tag(&m, ANSWER);
	} else {
		ask(&m, PROBE);
	}
	fill(&m, depth);
	if (row->how != PINGPONG && m.samples > m.count)
		m.samples = m.count;
	if (m.count < depth) {
		/* There is no room for one more to time, either. */
		if (!env->server)
			printf("%-26s %8llu  no more were accepted\n", row->name,
			       (unsigned long long)m.count);
	} else {
		if (row->how == TAKE)
			time_takes(&m);
		else
			time_messages(&m, row->how == REVERSE);
		print_row(&m);
	}
	node_sync(&m.node);
	node_close(&m.node);
	free(m.words);
	free(m.values);
}

static void run_rows(struct env *env, const struct row *rows, size_t count)
{
	if (!env->server)
		printf("%-26s %8s %8s %10s %10s\n", "beside", "waiting", "samples", "median us",
		       "90% us");
	for (size_t i = 0; i < count; i++)
		for (size_t d = 0; d < sizeof(depths) / sizeof(*depths); d++)
			run_depth(env, &rows[i], depths[d]);
}

static void run_posted(struct env *env)
{
	static const struct row rows[] = {
		{ "receives, pingpong", false, PINGPONG, 0, false },
		{ "directed, pingpong", false, PINGPONG, 0, true },
		{ "wildcards, pingpong", false, PINGPONG, 16, false },
		{ "receives, reverse", false, REVERSE, 0, false },
		{ "wildcards, reverse", false, REVERSE, 16, true },
	};

	run_rows(env, rows, sizeof(rows) / sizeof(*rows));
}

static void run_unexpected(struct env *env)
{
	static const struct row rows[] = {
		{ "messages, pingpong", true, PINGPONG, 0, false },
		{ "messages, take any", true, TAKE, 0, false },
		{ "messages, take directed", true, TAKE, 0, true },
		{ "messages, take wildcard", true, TAKE, 16, false },
	};

	run_rows(env, rows, sizeof(rows) / sizeof(*rows));
}

static const struct suite_case cases[] = {
	{ "posted", FI_TAGGED | FI_DIRECTED_RECV, run_posted },
	{ "unexpected", FI_TAGGED | FI_DIRECTED_RECV, run_unexpected },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_match", "The cost of a match beside many that wait.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
