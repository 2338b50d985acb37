/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_multi_recv: one buffer takes many messages, packed, until less than the minimum is left;
 * the last event of a buffer, and only that, carries FI_MULTI_RECV.
 */
#include <stdlib.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

#define BUF_SIZE 16384
#define BUFS 3
#define MIN_ROOM 1024

static const struct node_attr attr = { .caps = FI_MSG | FI_MULTI_RECV,
				       .msg_order = FI_ORDER_SAS };

static size_t message_size(unsigned i)
{
	static const size_t sizes[] = { 1000, 1, 333, 0, 1024, 64, 900 };

	return sizes[i % (sizeof(sizes) / sizeof(*sizes))];
}

static void set_min(struct node *node, size_t min)
{
	size_t got = 0, len = sizeof(got);

	CHECK_RET(fi_setopt(&node->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			    sizeof(min)), 0);
	CHECK_RET(fi_getopt(&node->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len),
		  0);
	CHECK_EQ(got, min);
}

/* The place of a message, by the order in which buffers were posted. */
struct place {
	bool here;
	size_t offset;
};

struct pool {
	struct xfer recvs[BUFS];
	size_t start[BUFS]; /* number of the buffer, counted from the first that was posted */
	size_t used[BUFS];
	bool released[BUFS];
	size_t posted;
	struct place *places;
	unsigned messages, arrived;
};

static void pool_post(struct node *node, struct pool *pool, size_t i)
{
	pool->recvs[i] = (struct xfer){
		.op = XFER_RECVMSG, .flags = FI_MULTI_RECV | FI_COMPLETION, .len = BUF_SIZE,
		.buf = pattern_alloc(BUF_SIZE), .addr = FI_ADDR_UNSPEC,
		.context = &pool->recvs[i],
	};
	pool->start[i] = pool->posted++ * BUF_SIZE;
	pool->used[i] = 0;
	pool->released[i] = false;
	REQUIRE_RET(xfer_post(node, &pool->recvs[i]), 0);
}

/* Messages match in order, but may complete in another: the payload says which it is. */
static struct place *find(struct pool *pool, const struct comp *comp)
{
	for (unsigned n = 0; n < pool->messages; n++)
		if (!pool->places[n].here && message_size(n) == comp->len &&
		    pattern_holds(comp->buf, comp->len, n))
			return &pool->places[n];
	return NULL;
}

static void pool_take(struct pool *pool, const struct comp *comp)
{
	size_t i = (size_t)((struct xfer *)comp->context - pool->recvs);
	struct place *place;
	uint8_t *base;

	REQUIRE_RET(comp->err, 0);
	REQUIRE(i < BUFS);
	base = pool->recvs[i].buf;
	CHECK(!pool->released[i]);
	CHECK_EQ(comp->flags & (FI_RECV | FI_MSG), FI_RECV | FI_MSG);
	/* An empty message may say any place. */
	if (comp->len) {
		REQUIRE((uint8_t *)comp->buf >= base);
		REQUIRE((uint8_t *)comp->buf + comp->len <= base + BUF_SIZE);
	}
	place = find(pool, comp);
	REQUIRE(place != NULL);
	place->here = true;
	if (comp->len)
		place->offset = pool->start[i] + (size_t)((uint8_t *)comp->buf - base);
	pool->used[i] += comp->len;
	pool->arrived++;
	if (comp->flags & FI_MULTI_RECV) {
		pool->released[i] = true;
		CHECK(BUF_SIZE - pool->used[i] < MIN_ROOM);
	}
}

/* Messages lie one behind the other, in the order in which they were sent. */
static void check_places(const struct pool *pool)
{
	size_t end = 0;

	for (unsigned n = 0; n < pool->messages; n++) {
		if (!message_size(n))
			continue;
		CHECK(pool->places[n].here && pool->places[n].offset >= end);
		end = pool->places[n].offset + message_size(n);
	}
}

static void receive(struct node *node, unsigned messages)
{
	struct pool pool = { .messages = messages,
			     .places = calloc(messages, sizeof(struct place)) };

	REQUIRE(pool.places != NULL);
	for (size_t i = 0; i < BUFS; i++)
		pool_post(node, &pool, i);
	node_sync(node);
	while (pool.arrived < messages) {
		struct comp comp;
		size_t i;

		comp_wait(node, node->rxcq, &comp);
		i = (size_t)((struct xfer *)comp.context - pool.recvs);
		/* A provider may tell of the release in an event of its own. */
		if ((comp.flags & (FI_MULTI_RECV | FI_RECV)) == FI_MULTI_RECV)
			pool.released[i] = true;
		else
			pool_take(&pool, &comp);
		if (pool.released[i]) {
			pattern_free(pool.recvs[i].buf);
			pool_post(node, &pool, i);
		}
	}
	check_places(&pool);
	node_sync(node);
	comp_expect_none(node, node->rxcq);
	node_close_ep(node);
	for (size_t i = 0; i < BUFS; i++)
		pattern_free(pool.recvs[i].buf);
	free(pool.places);
}

static void send_all(struct node *node, unsigned messages)
{
	node_sync(node);
	for (unsigned i = 0; i < messages; i++) {
		struct xfer send = { .op = XFER_SEND, .len = message_size(i), .addr = node->peer,
				     .buf = pattern_alloc(message_size(i)), .context = &send };

		pattern_fill(send.buf, send.len, i);
		xfer_send(node, &send);
		pattern_free(send.buf);
	}
	node_sync(node);
}

static void run(struct env *env, bool set_before)
{
	unsigned messages = env->opts.iterations ? env->opts.iterations : 500;
	struct node node;

	node_open(&node, env, &attr);
	if (set_before)
		set_min(&node, MIN_ROOM);
	node_enable(&node);
	if (!set_before)
		set_min(&node, MIN_ROOM);
	node_connect(&node);
	if (env->server)
		receive(&node, messages);
	else
		send_all(&node, messages);
	node_close(&node);
}

static void run_min_before(struct env *env)
{
	run(env, true);
}

static void run_min_after(struct env *env)
{
	run(env, false);
}

/* A buffer that nothing fills is cancelled like any receive. */
static void run_cancel(struct env *env)
{
	struct pool pool = { .messages = 0 };
	struct node node;
	struct comp comp;

	node_start(&node, env, &attr);
	pool_post(&node, &pool, 0);
	CHECK_RET(fi_cancel(&node.ep->fid, &pool.recvs[0]), 0);
	comp_expect_error(&node, node.rxcq, &pool.recvs[0], FI_ECANCELED, &comp);
	pattern_free(pool.recvs[0].buf);
	exchange_hello(&node);
	node_close(&node);
}

static void refuse(struct node *node, const struct xfer *recv, struct iovec *iov, size_t count)
{
	struct fi_msg msg = { .msg_iov = iov, .iov_count = count, .addr = FI_ADDR_UNSPEC,
			      .context = (void *)recv };

	CHECK_ERROR(fi_recvmsg(node->ep, &msg, recv->flags));
	CHECK_RET(fi_cancel(&node->ep->fid, (void *)recv), -FI_ENOENT);
}

/*
 * Buffers in pieces, minimums that are no number, flags that do not go together; then a message
 * that is longer than the whole buffer: it is cut, and the buffer is the application's again.
 */
static void run_bad_input(struct env *env)
{
	struct xfer recv = { .op = XFER_RECVMSG, .flags = FI_MULTI_RECV, .len = 2 * MIN_ROOM,
			     .addr = FI_ADDR_UNSPEC, .context = &recv };
	struct xfer send = { .op = XFER_SEND, .len = 3 * MIN_ROOM, .context = &send };
	struct iovec iov[2];
	size_t min = 1;
	struct node node;
	struct comp comp;

	node_open(&node, env, &attr);
	set_min(&node, MIN_ROOM);
	node_enable(&node);
	node_connect(&node);
	CHECK_ERROR(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, 1));
	CHECK_ERROR(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			      2 * sizeof(min)));
	send.addr = node.peer;
	send.buf = pattern_alloc(send.len);
	recv.buf = pattern_alloc(recv.len);
	iov[0] = (struct iovec){ recv.buf, MIN_ROOM };
	iov[1] = (struct iovec){ (char *)recv.buf + MIN_ROOM, MIN_ROOM };
	refuse(&node, &recv, iov, 2);
	recv.flags = FI_MULTI_RECV | FI_CLAIM;
	refuse(&node, &recv, iov, 1);
	recv.flags = FI_MULTI_RECV;
	pattern_fill(send.buf, send.len, 1);
	if (env->server) {
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		node_sync(&node);
		comp_wait(&node, node.rxcq, &comp);
		CHECK_RET(comp.err, FI_ETRUNC);
		CHECK(comp.context == &recv);
		CHECK_EQ(comp.len, recv.len);
		CHECK_EQ(comp.olen, send.len - recv.len);
		CHECK(comp.flags & FI_MULTI_RECV);
		pattern_check(recv.buf, recv.len, 1);
	} else {
		node_sync(&node);
		xfer_send(&node, &send);
	}
	node_sync(&node);
	comp_expect_none(&node, node.rxcq);
	node_close_ep(&node);
	pattern_free(recv.buf);
	pattern_free(send.buf);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "min_before", FI_MSG | FI_MULTI_RECV, run_min_before },
	{ "min_after", FI_MSG | FI_MULTI_RECV, run_min_after },
	{ "cancel", FI_MSG | FI_MULTI_RECV, run_cancel },
	{ "bad_input", FI_MSG | FI_MULTI_RECV, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_multi_recv", "Multi-receive buffers.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
