/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_close: an endpoint that closes right after posting has still sent all that was accepted;
 * and a peer that comes late, never or a second time.
 */
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

#define COUNT 100

static void post_all(struct node *node, struct xfer *recvs, size_t size, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		recvs[i] = (struct xfer){ .op = XFER_RECV, .len = size, .addr = FI_ADDR_UNSPEC,
					  .buf = pattern_alloc(size), .context = &recvs[i] };
		REQUIRE_RET(xfer_post(node, &recvs[i]), 0);
	}
}

static void check_all(struct node *node, struct xfer *recvs, size_t size, unsigned count)
{
	struct xfer sent = { .op = XFER_SEND };

	for (unsigned n = 0; n < count; n++) {
		size_t i = xfer_finish_any(node, recvs, count, &sent, size);

		pattern_check(recvs[i].buf, size, i);
		pattern_free(recvs[i].buf);
	}
}

/* The client posts and closes without reading one completion. */
static void post_and_close(struct node *node, enum xfer_op op, size_t size, unsigned count)
{
	void *bufs[COUNT];

	for (unsigned i = 0; i < count; i++) {
		struct xfer send = { .op = op, .len = size, .addr = node->peer };

		bufs[i] = send.buf = pattern_alloc(size);
		pattern_fill(send.buf, size, i);
		REQUIRE_RET(xfer_post(node, &send), 0);
	}
	node_close_ep(node);
	for (unsigned i = 0; i < count; i++)
		pattern_free(bufs[i]);
}

static void run_drain(struct env *env, enum xfer_op op, size_t size, unsigned count)
{
	struct node_attr attr = { .msg_order = FI_ORDER_SAS };
	struct xfer recvs[COUNT];
	struct node node;

	node_start(&node, env, &attr);
	REQUIRE(!xfer_is_inject(op) || size <= node.info->tx_attr->inject_size);
	if (env->server)
		post_all(&node, recvs, size, count);
	node_sync(&node);
	if (env->server)
		check_all(&node, recvs, size, count);
	else
		post_and_close(&node, op, size, count);
	node_sync(&node);
	node_close(&node);
}

static void run_drain_small(struct env *env)
{
	run_drain(env, XFER_SEND, 200, COUNT);
}

static void run_drain_inject(struct env *env)
{
	run_drain(env, XFER_INJECT, 16, COUNT);
}

static void run_drain_large(struct env *env)
{
	run_drain(env, XFER_SEND, 1 << 20, 8);
}

/* The same before any connection exists and with the receives posted only afterwards. */
static void run_drain_unexpected(struct env *env)
{
	struct node_attr attr = { .msg_order = FI_ORDER_SAS };
	struct xfer recvs[COUNT];
	struct node node;

	node_start(&node, env, &attr);
	node_sync(&node);
	if (!env->server)
		post_and_close(&node, XFER_INJECT, 16, COUNT);
	node_sync(&node);
	if (env->server) {
		post_all(&node, recvs, 16, COUNT);
		check_all(&node, recvs, 16, COUNT);
	}
	node_sync(&node);
	node_close(&node);
}

/* Sends once; returns its error, 0 for success. A refusal when posting counts as one. */
static int send_once(struct node *node, void *buf, size_t len)
{
	struct xfer send = { .op = XFER_SEND, .buf = buf, .len = len, .addr = node->peer,
			     .context = &send };
	ssize_t ret = xfer_post(node, &send);
	struct comp comp;

	if (ret)
		return (int)-ret;
	comp_wait(node, node->txcq, &comp);
	CHECK(comp.context == &send);
	return comp.err;
}

/* The server's endpoint has an address, but is gone: the client's node only. */
static void open_gone(struct node *node, struct env *env, char *port)
{
	char mine[NODE_ADDR_MAX], theirs[NODE_ADDR_MAX];
	struct node_attr attr = { .caps = FI_MSG };
	size_t len;

	node_open(node, env, &attr);
	node_enable(node);
	len = node_name(node, mine);
	REQUIRE(node->info->addr_format == FI_SOCKADDR_IN ||
		node->info->addr_format == FI_SOCKADDR_IN6);
	/* The port is at the same place in both families. */
	snprintf(port, 8, "%u", ntohs(((struct sockaddr_in *)mine)->sin_port));
	oob_exchange(&env->oob, mine, len, theirs, sizeof(theirs));
	if (env->server)
		node_close(node);
	else
		node->peer = node_insert(node, theirs);
	env_sync(env, "gone");
}

/* Nobody there: an error completion with the context, in bounded time. */
static void run_never(struct env *env)
{
	struct node node;
	char buf[64] = { 0 }, port[8];

	open_gone(&node, env, port);
	if (!env->server) {
		CHECK(send_once(&node, buf, sizeof(buf)) > 0);
		CHECK(send_once(&node, buf, sizeof(buf)) > 0);
		comp_expect_none(&node, node.txcq);
		node_close(&node);
	}
	env_sync(env, "never");
}

/* A client that repeats its failed messages reaches a server that starts meanwhile. */
static void run_late(struct env *env)
{
	struct node_attr attr = { .caps = FI_MSG };
	struct node node;
	char buf[64], port[8];

	open_gone(&node, env, port);
	pattern_fill(buf, sizeof(buf), 4);
	if (env->server) {
		struct xfer recv = { .op = XFER_RECV, .len = sizeof(buf), .buf = buf,
				     .addr = FI_ADDR_UNSPEC, .context = &recv };
		struct xfer sent = { .op = XFER_SEND };

		memset(buf, 0, sizeof(buf));
		env_settle(env, 300);
		attr.src_port = port;
		node_open(&node, env, &attr);
		node_enable(&node);
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		xfer_finish_recv(&node, &recv, &sent, sizeof(buf));
		pattern_check(buf, sizeof(buf), 4);
	} else {
		uint64_t end = env_deadline(env);
		int err;

		while ((err = send_once(&node, buf, sizeof(buf))) && clock_now() < end)
			env_settle(env, 20);
		CHECK_RET(err, 0);
	}
	env_sync(env, "late");
	node_close(&node);
}

/* The server closes and opens again under the same address: the client reaches the new one. */
static void run_restart(struct env *env)
{
	struct node_attr attr = { .caps = FI_MSG };
	struct xfer recv = { .op = XFER_RECV, .len = 64, .addr = FI_ADDR_UNSPEC,
			     .context = &recv };
	char name[NODE_ADDR_MAX], port[8];
	uint64_t end = env_deadline(env);
	struct node node;

	node_start(&node, env, &attr);
	exchange_hello(&node);
	recv.buf = pattern_alloc(64);
	if (env->server) {
		struct xfer sent = { .op = XFER_SEND };

		node_name(&node, name);
		snprintf(port, sizeof(port), "%u", ntohs(((struct sockaddr_in *)name)->sin_port));
		node_close(&node);
		attr.src_port = port;
		node_open(&node, env, &attr);
		node_enable(&node);
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		env_sync(env, "restarted");
		xfer_finish_recv(&node, &recv, &sent, 64);
		pattern_check(recv.buf, 64, 8);
	} else {
		int err;

		env_sync(env, "restarted");
		pattern_fill(recv.buf, 64, 8);
		while ((err = send_once(&node, recv.buf, 64)) && clock_now() < end)
			env_settle(env, 20);
		CHECK_RET(err, 0);
	}
	env_sync(env, "done");
	pattern_free(recv.buf);
	node_close(&node);
}

/* A peer that closes while we send to it: each send completes, with or without an error. */
static void run_peer_leaves(struct env *env)
{
	struct node node;
	char buf[64] = { 0 };

	node_start(&node, env, NULL);
	exchange_hello(&node);
	if (env->server) {
		node_close(&node);
		env_sync(env, "left");
	} else {
		env_sync(env, "left");
		for (int i = 0; i < 10; i++)
			CHECK(send_once(&node, buf, sizeof(buf)) >= 0);
		node_close(&node);
	}
	env_sync(env, "done");
}

static const struct suite_case cases[] = {
	{ "drain_small", FI_MSG, run_drain_small },
	{ "drain_inject", FI_MSG, run_drain_inject },
	{ "drain_large", FI_MSG, run_drain_large },
	{ "drain_unexpected", FI_MSG, run_drain_unexpected },
	{ "never", FI_MSG, run_never },
	{ "late", FI_MSG, run_late },
	{ "restart", FI_MSG, run_restart },
	{ "peer_leaves", FI_MSG, run_peer_leaves },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_close", "Closing with work in flight; peers that come and go.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
