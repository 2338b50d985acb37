/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_new_buffers: messages, reads and writes of many MiB whose buffers are new each time, so that
 * no registration of them can be at hand: a provider may register them piece by piece while the
 * first bytes move. One at a time, as only then that pays; both ways at once; before they are
 * received; longer than their receive; a small message behind each. It passes, too, if the provider
 * registers all at once.
 */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define LONGEST (12 << 20)

static const size_t sizes[] = { 1 << 20, (5 << 20) + 1, LONGEST };

enum { SIZES = sizeof(sizes) / sizeof(*sizes), SHIFT = 100 /* bytes: no piece begins a page */ };

struct buffer {
	char *pages, *bytes;
};

static struct buffer buffer_open(size_t len)
{
	struct buffer buffer = { .pages = pattern_alloc(len + SHIFT) };

	buffer.bytes = buffer.pages + SHIFT;
	return buffer;
}

static struct xfer send_of(struct node *node, struct buffer *buffer, size_t len, uint64_t seed)
{
	pattern_fill(buffer->bytes, len, seed);
	return (struct xfer){ .op = XFER_SEND, .tagged = true, .tag = seed, .buf = buffer->bytes,
			      .len = len, .addr = node->peer, .context = buffer };
}

static struct xfer recv_of(struct buffer *buffer, size_t len, uint64_t seed)
{
	return (struct xfer){ .op = XFER_RECV, .tagged = true, .tag = seed, .buf = buffer->bytes,
			      .len = len, .addr = FI_ADDR_UNSPEC, .context = buffer };
}

static void send_one(struct node *node, size_t len, uint64_t seed)
{
	struct buffer buffer = buffer_open(len);
	struct xfer send = send_of(node, &buffer, len, seed);

	xfer_send(node, &send);
	pattern_free(buffer.pages);
}

static void run_one_way(struct env *env, bool unexpected)
{
	struct node node;

	node_start(&node, env, NULL);
	for (int i = 0; i < SIZES * 2; i++) {
		struct buffer buffer = buffer_open(sizes[i / 2]);
		struct xfer recv = recv_of(&buffer, sizes[i / 2], 7 + i);

		if (!env->server) {
			node_sync(&node);
			send_one(&node, sizes[i / 2], 7 + i);
		} else {
			if (unexpected)
				node_sync(&node);
			env_settle(env, unexpected ? 20 : 0);
			REQUIRE_RET(xfer_post(&node, &recv), 0);
			if (!unexpected)
				node_sync(&node);
			xfer_finish_recv(&node, &recv, &recv, sizes[i / 2]);
			pattern_check(buffer.bytes, sizes[i / 2], 7 + i);
		}
		pattern_free(buffer.pages);
		exchange_hello(&node);
	}
	node_close(&node);
}

static void run_expected(struct env *env)
{
	run_one_way(env, false);
}

static void run_unexpected(struct env *env)
{
	run_one_way(env, true);
}

/* Each side sends and receives at the same time, into other new buffers. */
static void run_both_ways(struct env *env)
{
	struct node node;

	node_start(&node, env, NULL);
	for (int i = 0; i < SIZES; i++) {
		uint64_t own = env->server, other = !env->server;
		struct buffer out = buffer_open(sizes[i]), in = buffer_open(sizes[i]);
		struct xfer send = send_of(&node, &out, sizes[i], own);
		struct xfer recv = recv_of(&in, sizes[i], other);

		REQUIRE_RET(xfer_post(&node, &recv), 0);
		node_sync(&node);
		xfer_send(&node, &send);
		xfer_finish_recv(&node, &recv, &recv, sizes[i]);
		pattern_check(in.bytes, sizes[i], other);
		node_sync(&node);
		pattern_free(out.pages);
		pattern_free(in.pages);
	}
	node_close(&node);
}

/* Receives of less than the first piece, and of a part of the last one. */
static void run_cut(struct env *env)
{
	static const size_t rooms[] = { 1000, 300000, LONGEST - 1 };
	struct node node;

	node_start(&node, env, NULL);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		struct buffer buffer = buffer_open(rooms[i]);
		struct xfer recv = recv_of(&buffer, rooms[i], i);
		struct comp comp;

		if (!env->server) {
			node_sync(&node);
			send_one(&node, LONGEST, i);
		} else {
			REQUIRE_RET(xfer_post(&node, &recv), 0);
			node_sync(&node);
			comp_expect_error(&node, node.rxcq, &buffer, FI_ETRUNC, &comp);
			CHECK_EQ(comp.len, rooms[i]);
			CHECK_EQ(comp.olen, LONGEST - rooms[i]);
			pattern_check(buffer.bytes, rooms[i], i);
		}
		pattern_free(buffer.pages);
		exchange_hello(&node);
	}
	node_close(&node);
}

/* The client moves each size to and from the server's region. */
static void run_rma(struct env *env)
{
	static const struct node_attr attr = { .caps = FI_MSG | FI_RMA };
	struct rma_ends ends;

	rma_ends_open(&ends, env, &attr, LONGEST, FI_REMOTE_READ | FI_REMOTE_WRITE);
	for (int i = 0; i < SIZES && !env->server; i++) {
		struct buffer out = buffer_open(sizes[i]), in = buffer_open(sizes[i]);
		struct rma rma = { .op = RMA_WRITE, .buf = out.bytes, .len = sizes[i],
				   .addr = ends.node.peer, .remote_addr = ends.remote.addr,
				   .key = ends.remote.key, .context = &out };

		pattern_fill(out.bytes, sizes[i], 40 + i);
		rma_run(&ends.node, &rma);
		rma.op = RMA_READ;
		rma.buf = in.bytes;
		rma_run(&ends.node, &rma);
		pattern_check(in.bytes, sizes[i], 40 + i);
		pattern_free(out.pages);
		pattern_free(in.pages);
	}
	exchange_hello(&ends.node);
	if (env->server)
		pattern_check(ends.target.buf, LONGEST, 40 + SIZES - 1);
	rma_ends_close(&ends);
}

static const struct suite_case cases[] = {
	{ "expected", FI_TAGGED, run_expected },
	{ "unexpected", FI_TAGGED, run_unexpected },
	{ "both_ways", FI_TAGGED, run_both_ways },
	{ "cut", FI_TAGGED, run_cut },
	{ "rma", FI_RMA, run_rma },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_new_buffers", "Long transfers of new buffers.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
