/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exchange: the transfers of message and tagged programs, every payload verified. */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "common/check.h"
#include "common/exchange.h"

#define MIX_MAX (64 * 1024)
#define TOO_MANY 64

static uint64_t seed_tag(uint64_t seed)
{
	return seed * 0x100000001ull;
}

/* CQ data as wide as the provider carries. */
static uint64_t seed_data(const struct node *node, uint64_t seed)
{
	uint64_t data = ~(seed * 0x0101010101010101ull);
	size_t size = node->info->domain_attr->cq_data_size;

	return size >= 8 ? data : data & ((1ull << (8 * size)) - 1);
}

static struct fid_mr *register_buffer(struct node *node, const struct exchange *x, void *buf,
				      size_t size, uint64_t access)
{
	struct fid_mr *mr;

	if (!x->registered || !size)
		return NULL;
	REQUIRE_RET(fi_mr_reg(node->domain, buf, size, access, 0, ++node->next_key, 0, &mr, NULL),
		    0);
	return mr;
}

static void describe(struct node *node, const struct exchange *x, uint64_t seed,
		     struct xfer *send, struct xfer *recv)
{
	*send = (struct xfer){
		.op = x->send, .tagged = x->tagged, .addr = node->peer, .tag = seed_tag(seed),
		.data = seed_data(node, seed), .flags = x->send_flags,
	};
	*recv = (struct xfer){
		.op = x->recv, .tagged = x->tagged, .addr = FI_ADDR_UNSPEC, .tag = seed_tag(seed),
	};
}

void exchange_one(struct node *node, const struct exchange *x, bool sender, size_t size,
		  uint64_t seed)
{
	void *buf = pattern_alloc(size);
	uint64_t access = sender ? FI_SEND : FI_RECV;
	struct fid_mr *mr = register_buffer(node, x, buf, size, access);
	struct xfer send, recv, *mine = sender ? &send : &recv;

	describe(node, x, seed, &send, &recv);
	mine->buf = buf;
	mine->len = size;
	mine->context = &mine;
	mine->desc = mr ? fi_mr_desc(mr) : NULL;
	if (sender) {
		pattern_fill(buf, size, seed);
		xfer_send(node, &send);
		if (!xfer_is_inject(send.op))
			pattern_check(buf, size, seed);
	} else {
		REQUIRE_RET(xfer_post(node, &recv), 0);
		xfer_finish_recv(node, &recv, &send, size);
		pattern_check(buf, size, seed);
	}
	if (mr)
		CHECK_RET(fi_close(&mr->fid), 0);
	pattern_free(buf);
}

static void there_and_back(struct node *node, const struct exchange *x, size_t size,
			   uint64_t seed)
{
	bool client = !node->env->server;

	exchange_one(node, x, client, size, seed);
	exchange_one(node, x, !client, size, seed + 1);
}

static size_t size_limit(const struct node *node, const struct exchange *x)
{
	return xfer_is_inject(x->send) ? node->info->tx_attr->inject_size
				       : node->info->ep_attr->max_msg_size;
}

void exchange_sizes(struct env *env, const struct exchange *x)
{
	unsigned iterations = env->opts.iterations ? env->opts.iterations : 2;
	struct node node;

	node_start(&node, env, NULL);
	for (size_t i = 0; i < env->opts.size_count; i++) {
		size_t size = env->opts.sizes[i];

		if (size > size_limit(&node, x))
			continue;
		for (unsigned n = 0; n < iterations; n++)
			there_and_back(&node, x, size, 1 + 2 * (i * iterations + n));
	}
	/* The limit itself, with any list of sizes. */
	if (xfer_is_inject(x->send))
		there_and_back(&node, x, size_limit(&node, x), 7);
	node_sync(&node);
	node_close(&node);
}

void exchange_mix(struct env *env, bool tagged)
{
	uint64_t seed = 1;
	struct node node;

	node_start(&node, env, NULL);
	for (int pair = 0; pair < XFER_SEND_OPS * (XFER_OPS - XFER_SEND_OPS); pair++) {
		struct exchange x = {
			.send = (enum xfer_op)(pair % XFER_SEND_OPS),
			.recv = (enum xfer_op)(XFER_RECV + pair / XFER_SEND_OPS),
			.tagged = tagged,
			.send_flags = FI_REMOTE_CQ_DATA,
		};

		for (size_t i = 0; i < env->opts.size_count; i++, seed += 2)
			if (env->opts.sizes[i] <= MIX_MAX &&
			    env->opts.sizes[i] <= size_limit(&node, &x))
				there_and_back(&node, &x, env->opts.sizes[i], seed);
	}
	node_sync(&node);
	node_close(&node);
}

/* Small, eager and long ones next to each other, so that none may overtake another. */
static size_t order_size(unsigned i)
{
	static const size_t sizes[] = { 8, 100000, 0, 4096, 300, 20000, 1, 65536 };

	return sizes[i % (sizeof(sizes) / sizeof(*sizes))];
}

struct window {
	unsigned count;
	void **bufs;
	struct xfer *xfers;
};

static void window_open(struct window *w, unsigned count)
{
	w->count = count;
	w->bufs = calloc(count, sizeof(*w->bufs));
	w->xfers = calloc(count, sizeof(*w->xfers));
	if (!w->bufs || !w->xfers)
		check_fatal("out of memory");
}

static void window_close(struct window *w)
{
	for (unsigned i = 0; i < w->count; i++)
		pattern_free(w->bufs[i]);
	free(w->bufs);
	free(w->xfers);
}

static void window_post(struct node *node, const struct exchange *x, struct window *w, bool sender)
{
	for (unsigned i = 0; i < w->count; i++) {
		size_t size = order_size(i);
		struct xfer send, recv;

		/* All messages have one tag: only their order tells them apart. */
		describe(node, x, 1, &send, &recv);
		w->xfers[i] = sender ? send : recv;
		w->bufs[i] = pattern_alloc(sender ? size : 100000);
		w->xfers[i].buf = w->bufs[i];
		w->xfers[i].len = sender ? size : 100000;
		w->xfers[i].context = &w->xfers[i];
		if (sender)
			pattern_fill(w->bufs[i], size, i);
		REQUIRE_RET(xfer_post(node, &w->xfers[i]), 0);
	}
}

/* Completions may come in any order; the pairing may not change. */
static void window_finish(struct node *node, struct window *w, bool sender)
{
	struct fid_cq *cq = sender ? node->txcq : node->rxcq;
	bool *seen = calloc(w->count, sizeof(*seen));

	if (!seen)
		check_fatal("out of memory");
	for (unsigned n = 0; n < w->count; n++) {
		struct comp comp;
		size_t i;

		comp_wait(node, cq, &comp);
		REQUIRE_RET(comp.err, 0);
		i = (size_t)((struct xfer *)comp.context - w->xfers);
		REQUIRE(i < w->count);
		CHECK(!seen[i]);
		seen[i] = true;
		if (sender)
			continue;
		CHECK_EQ(comp.len, order_size((unsigned)i));
		pattern_check(w->bufs[i], order_size((unsigned)i), i);
		pattern_check_byte((char *)w->bufs[i] + comp.len, 100000 - comp.len,
				   PATTERN_EMPTY);
	}
	free(seen);
}

static void order_once(struct node *node, const struct exchange *x, bool sender)
{
	struct window w;

	window_open(&w, node->env->opts.window);
	if (!sender && !x->unexpected)
		window_post(node, x, &w, false);
	node_sync(node);
	if (sender)
		window_post(node, x, &w, true);
	if (x->unexpected)
		node_sync(node);
	if (!sender && x->unexpected)
		window_post(node, x, &w, false);
	window_finish(node, &w, sender);
	node_sync(node);
	window_close(&w);
}

void exchange_order(struct env *env, const struct exchange *x)
{
	struct node_attr attr = { .msg_order = FI_ORDER_SAS };
	struct node node;

	node_start(&node, env, &attr);
	for (unsigned i = 0; i < (env->opts.iterations ? env->opts.iterations : 2); i++) {
		order_once(&node, x, env->server);
		order_once(&node, x, !env->server);
	}
	comp_expect_none(&node, node.txcq);
	comp_expect_none(&node, node.rxcq);
	node_close(&node);
}

void exchange_hello(struct node *node)
{
	static const struct exchange hello = { .send = XFER_SEND, .recv = XFER_RECV };

	there_and_back(node, &hello, 32, 11);
	node_sync(node);
}

void exchange_refuses_iov(struct node *node, bool tagged)
{
	struct iovec iov[TOO_MANY];
	char byte = 0;

	for (size_t i = 0; i < TOO_MANY; i++)
		iov[i] = (struct iovec){ &byte, 1 };
	REQUIRE(node->info->tx_attr->iov_limit < TOO_MANY);
	REQUIRE(node->info->rx_attr->iov_limit < TOO_MANY);
	if (tagged) {
		CHECK_ERROR(fi_tsendv(node->ep, iov, NULL, TOO_MANY, node->peer, 1, iov));
		CHECK_ERROR(fi_trecvv(node->ep, iov, NULL, TOO_MANY, FI_ADDR_UNSPEC, 1, 0, iov));
	} else {
		CHECK_ERROR(fi_sendv(node->ep, iov, NULL, TOO_MANY, node->peer, iov));
		CHECK_ERROR(fi_recvv(node->ep, iov, NULL, TOO_MANY, FI_ADDR_UNSPEC, iov));
	}
}
