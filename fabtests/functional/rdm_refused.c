/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_refused: RMA with wrong keys, ranges and access among other work. Only the operations that
 * the target's device refuses fail. Writes, reads and messages of every protocol, in both
 * directions, complete with success, once, in order.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"

enum {
	COUNT = 64,	   /* operations of RMA of a half, a message beside each */
	SLOT = 6000,	   /* bytes of the region for each: a write's, then a read's */
	LARGE = 100000,	   /* a message that is read by rendezvous */
	RMA_SEED = 1000,
	READ_SEED = 3000,
	MESSAGE_SEED = 5000,
};

static const struct node_attr attr = { .caps = FI_RMA | FI_MSG };

struct work {
	struct node node;
	struct region target;
	struct remote remote;
	uint64_t bad[2]; /* which operations are to be refused: of the server, of the client */
	struct rma rma[COUNT];
	struct xfer send[COUNT], recv[COUNT];
	bool sent[COUNT], done[COUNT];
};

static bool is_bad(const struct work *work, unsigned n)
{
	return work->bad[!work->node.env->server] >> n & 1;
}

static size_t rma_len(unsigned n)
{
	static const size_t lens[] = { 8, 200, 1000, SLOT };

	return lens[n / 2 % 4];
}

static size_t message_len(unsigned n)
{
	static const size_t lens[] = { 16, 200, 0, 4000, LARGE, 64, 1500 };

	return lens[n % 7];
}

/* Both halves' regions and messages differ by the half only. */
static uint64_t seed(const struct work *work, bool mine, uint64_t base, unsigned n)
{
	return base + n + (work->node.env->server == mine ? 0 : 500);
}

static void work_open(struct work *work, struct env *env)
{
	node_start(&work->node, env, &attr);
	region_open(&work->node, &work->target, 2 * COUNT * SLOT,
		    FI_REMOTE_READ | FI_REMOTE_WRITE);
	work->remote = region_exchange(&work->node, &work->target);
	for (unsigned n = 0; n < COUNT; n++)
		pattern_fill((char *)work->target.buf + (COUNT + n) * SLOT, SLOT,
			     seed(work, true, READ_SEED, n));
}

static void post_receives(struct work *work)
{
	for (unsigned n = 0; n < COUNT; n++) {
		struct xfer *recv = &work->recv[n];

		*recv = (struct xfer){ .op = XFER_RECV, .len = LARGE, .context = recv,
				       .addr = FI_ADDR_UNSPEC, .buf = pattern_alloc(LARGE) };
		REQUIRE_RET(xfer_post(&work->node, recv), 0);
	}
	node_sync(&work->node);
}

/* A wrong key, or a place behind the region, by turns. */
static void post_rma(struct work *work, unsigned n)
{
	struct rma *rma = &work->rma[n];
	bool read = n % 2;

	*rma = (struct rma){
		.op = read ? RMA_READ : RMA_WRITE, .len = rma_len(n), .context = rma,
		.addr = work->node.peer, .key = work->remote.key,
		.remote_addr = work->remote.addr + (uint64_t)(read ? COUNT + n : n) * SLOT,
		.buf = pattern_alloc(rma_len(n)),
	};
	if (is_bad(work, n) && n % 4 < 2)
		rma->key ^= 0x5a5a00;
	else if (is_bad(work, n))
		rma->remote_addr = work->remote.addr + work->remote.len;
	if (!read)
		pattern_fill(rma->buf, rma->len, seed(work, true, RMA_SEED, n));
	REQUIRE_RET(rma_post(&work->node, rma), 0);
}

static void post_send(struct work *work, unsigned n)
{
	struct xfer *send = &work->send[n];

	*send = (struct xfer){ .op = XFER_SEND, .len = message_len(n), .context = send,
			       .addr = work->node.peer, .buf = pattern_alloc(message_len(n)) };
	pattern_fill(send->buf, send->len, seed(work, true, MESSAGE_SEED, n));
	REQUIRE_RET(xfer_post(&work->node, send), 0);
}

static void finish_rma(struct work *work, const struct comp *comp)
{
	struct rma *rma = comp->context;
	unsigned n = rma - work->rma;

	CHECK(!work->done[n]);
	work->done[n] = true;
	if (is_bad(work, n)) {
		CHECK_RET(comp->err, FI_EACCES);
		return;
	}
	CHECK_RET(comp->err, 0);
	if (rma_is_read(rma->op))
		pattern_check(rma->buf, rma->len, seed(work, false, READ_SEED, n));
}

static void finish_send(struct work *work, const struct comp *comp)
{
	struct xfer *send = comp->context;
	unsigned n = send - work->send;

	REQUIRE(n < COUNT);
	CHECK(!work->sent[n]);
	work->sent[n] = true;
	CHECK_RET(comp->err, 0);
}

/*
 * Long messages may complete later than short ones behind them, but each takes the receive of its
 * turn.
 */
static void finish_receive(struct work *work, const struct comp *comp)
{
	struct xfer *recv = comp->context;
	unsigned n = recv - work->recv;

	CHECK_RET(comp->err, 0);
	CHECK_EQ(comp->len, message_len(n));
	pattern_check(recv->buf, message_len(n), seed(work, false, MESSAGE_SEED, n));
}

static void finish(struct work *work)
{
	struct comp comp;

	for (unsigned i = 0; i < 2 * COUNT; i++) {
		comp_wait(&work->node, work->node.txcq, &comp);
		if ((struct rma *)comp.context >= work->rma &&
		    (struct rma *)comp.context < work->rma + COUNT)
			finish_rma(work, &comp);
		else
			finish_send(work, &comp);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		comp_wait(&work->node, work->node.rxcq, &comp);
		finish_receive(work, &comp);
	}
	comp_expect_none(&work->node, work->node.txcq);
	comp_expect_none(&work->node, work->node.rxcq);
	node_sync(&work->node);
}

/* The other half's writes are in their slots; refused writes are nowhere. */
static void check_target(const struct work *work)
{
	for (unsigned n = 0; n < COUNT; n += 2) {
		const char *slot = (const char *)work->target.buf + n * SLOT;
		bool refused = work->bad[work->node.env->server] >> n & 1;

		if (refused)
			pattern_check_byte(slot, rma_len(n), PATTERN_EMPTY);
		else
			pattern_check(slot, rma_len(n), seed(work, false, RMA_SEED, n));
	}
	for (unsigned n = 0; n < COUNT; n++)
		pattern_check((const char *)work->target.buf + (COUNT + n) * SLOT, SLOT,
			      seed(work, true, READ_SEED, n));
}

static void run(struct env *env, uint64_t server, uint64_t client)
{
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		check_fatal("out of memory");
	work->bad[0] = server;
	work->bad[1] = client;
	work_open(work, env);
	post_receives(work);
	for (unsigned n = 0; n < COUNT; n++) {
		post_rma(work, n);
		post_send(work, n);
	}
	finish(work);
	check_target(work);
	exchange_hello(&work->node);
	node_sync(&work->node);
	for (unsigned n = 0; n < COUNT; n++) {
		pattern_free(work->rma[n].buf);
		pattern_free(work->send[n].buf);
		pattern_free(work->recv[n].buf);
	}
	region_close(&work->target);
	node_close(&work->node);
	free(work);
}

static void run_one(struct env *env)
{
	run(env, 0, 1ull << 32);
	run(env, 1ull << 31, 0);
	run(env, 0, 1);
	run(env, 0, 1ull << 63);
}

static void run_several(struct env *env)
{
	run(env, 0, 0x0101010101010101);
	run(env, 0x000ff00000300c01, 0);
}

static void run_both(struct env *env)
{
	run(env, 1ull << 20, 1ull << 20);
	run(env, 0x8040201008040201, 0x0102040810204080);
}

static void run_most(struct env *env)
{
	run(env, 0, 0xfffffffffffffffe);
	run(env, UINT64_MAX, UINT64_MAX);
}

static const struct suite_case cases[] = {
	{ "one", FI_RMA | FI_MSG, run_one },
	{ "several", FI_RMA | FI_MSG, run_several },
	{ "both", FI_RMA | FI_MSG, run_both },
	{ "most", FI_RMA | FI_MSG, run_most },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_refused",
			   "RMA that the target refuses: it fails alone, whatever is beside it.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
