/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_cancel: a cancelled operation completes once, as cancelled, and has no effect; other
 * operations go on.
 */
#include <netinet/in.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define RECVS 8
#define SIZE 128
#define LONG_SIZE (1 << 20)
#define PORT_NOBODY 9

static void post(struct node *node, struct xfer *recvs, bool tagged)
{
	for (unsigned i = 0; i < RECVS; i++) {
		recvs[i] = (struct xfer){
			.op = XFER_RECV, .tagged = tagged, .tag = 7, .len = SIZE,
			.buf = pattern_alloc(SIZE), .addr = FI_ADDR_UNSPEC, .context = &recvs[i],
		};
		REQUIRE_RET(xfer_post(node, &recvs[i]), 0);
	}
}

static void cancel(struct node *node, void *context)
{
	struct comp comp;

	CHECK_RET(fi_cancel(&node->ep->fid, context), 0);
	comp_expect_error(node, node->rxcq, context, FI_ECANCELED, &comp);
	CHECK_EQ(comp.flags & FI_RECV, FI_RECV);
}

static bool is_cancelled(unsigned i)
{
	return i == 0 || i == 3 || i == RECVS - 1;
}

static void send_rest(struct node *node, bool tagged)
{
	for (unsigned i = 0; i < RECVS; i++) {
		struct xfer send = { .op = XFER_SEND, .tagged = tagged, .tag = 7, .len = SIZE,
				     .addr = node->peer, .context = &send };

		if (is_cancelled(i))
			continue;
		send.buf = pattern_alloc(SIZE);
		pattern_fill(send.buf, SIZE, i);
		xfer_send(node, &send);
		pattern_free(send.buf);
	}
}

static void receive_rest(struct node *node, struct xfer *recvs, bool tagged)
{
	struct xfer sent = { .op = XFER_SEND, .tagged = tagged, .tag = 7 };

	for (unsigned n = 0; n < RECVS; n++) {
		size_t i;

		if (is_cancelled(n))
			continue;
		i = xfer_finish_any(node, recvs, RECVS, &sent, SIZE);
		CHECK(!is_cancelled((unsigned)i));
		pattern_check(recvs[i].buf, SIZE, i);
	}
	for (unsigned i = 0; i < RECVS; i++) {
		if (is_cancelled(i))
			pattern_check_byte(recvs[i].buf, SIZE, PATTERN_EMPTY);
		pattern_free(recvs[i].buf);
	}
}

static void run(struct env *env, bool tagged)
{
	struct xfer recvs[RECVS];
	struct node node;

	node_start(&node, env, NULL);
	if (env->server) {
		post(&node, recvs, tagged);
		for (unsigned i = 0; i < RECVS; i++)
			if (is_cancelled(i))
				cancel(&node, &recvs[i]);
	}
	node_sync(&node);
	if (env->server)
		receive_rest(&node, recvs, tagged);
	else
		send_rest(&node, tagged);
	node_sync(&node);
	comp_expect_none(&node, node.rxcq);
	node_close(&node);
}

static void run_msg(struct env *env)
{
	run(env, false);
}

static void run_tagged(struct env *env)
{
	run(env, true);
}

/* Of two receives with one context, one is cancelled. */
static void run_same_context(struct env *env)
{
	struct xfer recv = { .op = XFER_RECV, .len = SIZE, .addr = FI_ADDR_UNSPEC,
			     .context = &recv };
	struct xfer send = { .op = XFER_SEND, .len = SIZE, .context = &send };
	struct node node;
	void *second;

	node_start(&node, env, NULL);
	send.buf = recv.buf = pattern_alloc(SIZE);
	second = pattern_alloc(SIZE);
	send.addr = node.peer;
	if (env->server) {
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		recv.buf = second;
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		cancel(&node, &recv);
		node_sync(&node);
		xfer_finish_recv(&node, &recv, &send, SIZE);
	} else {
		node_sync(&node);
		xfer_send(&node, &send);
	}
	node_sync(&node);
	comp_expect_none(&node, node.rxcq);
	pattern_free(send.buf);
	pattern_free(second);
	node_close(&node);
}

static void cancel_send(struct node *node, void *context)
{
	struct comp comp;

	CHECK_RET(fi_cancel(&node->ep->fid, context), 0);
	comp_expect_error(node, node->txcq, context, FI_ECANCELED, &comp);
	CHECK_RET(fi_cancel(&node->ep->fid, context), -FI_ENOENT);
}

/*
 * The message, or its description, is at the peer, which has no receive: it is taken back, and the
 * next message is the first.
 */
static void take_back(struct node *node, struct env *env, size_t len, uint64_t flags)
{
	struct xfer gone = { .op = XFER_SENDMSG, .len = len, .flags = flags, .addr = node->peer,
			     .context = &gone };
	struct xfer send = { .op = XFER_SEND, .len = SIZE, .addr = node->peer, .context = &send };
	struct xfer recv = { .op = XFER_RECV, .len = len, .addr = FI_ADDR_UNSPEC,
			     .context = &recv };

	gone.buf = recv.buf = pattern_alloc(len);
	send.buf = pattern_alloc(SIZE);
	if (env->server) {
		node_sync(node);
		node_sync(node);
		REQUIRE_RET(xfer_post(node, &recv), 0);
		xfer_finish_recv(node, &recv, &send, SIZE);
		pattern_check(recv.buf, SIZE, 2);
	} else {
		pattern_fill(gone.buf, len, 1);
		pattern_fill(send.buf, SIZE, 2);
		REQUIRE_RET(xfer_post(node, &gone), 0);
		node_sync(node);
		cancel_send(node, &gone);
		node_sync(node);
		xfer_send(node, &send);
	}
	node_sync(node);
	comp_expect_none(node, node->rxcq);
	comp_expect_none(node, node->txcq);
	pattern_free(gone.buf);
	pattern_free(send.buf);
}

static void run_send(struct env *env)
{
	struct node node;

	node_start(&node, env, NULL);
	for (int i = 0; i < 3; i++) {
		take_back(&node, env, LONG_SIZE, 0);
		take_back(&node, env, SIZE, FI_DELIVERY_COMPLETE);
	}
	node_close(&node);
}

/* To an address where nobody is. */
static fi_addr_t insert_nobody(struct node *node)
{
	union {
		char name[NODE_ADDR_MAX];
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr;

	node_name(node, addr.name);
	if (addr.in.sin_family == AF_INET6)
		addr.in6.sin6_port = htons(PORT_NOBODY);
	else
		addr.in.sin_port = htons(PORT_NOBODY);
	return node_insert(node, addr.name);
}

/* A send that waits for a connection can be cancelled before the connection's time-out. */
static void run_unconnected(struct env *env)
{
	struct xfer sends[RECVS];
	struct rma write = { .op = RMA_WRITE, .len = SIZE, .context = &write };
	struct node_attr attr = { .caps = FI_MSG | FI_RMA };
	struct comp comp;
	struct node node;

	node_start(&node, env, &attr);
	write.buf = pattern_alloc(SIZE);
	write.addr = insert_nobody(&node);
	for (unsigned i = 0; i < RECVS; i++) {
		sends[i] = (struct xfer){ .op = XFER_SEND, .len = i % 2 ? LONG_SIZE : SIZE,
					  .buf = pattern_alloc(LONG_SIZE), .addr = write.addr,
					  .context = &sends[i] };
		REQUIRE_RET(xfer_post(&node, &sends[i]), 0);
	}
	REQUIRE_RET(rma_post(&node, &write), 0);
	CHECK_RET(fi_cancel(&node.ep->fid, &write), 0);
	comp_expect_error(&node, node.txcq, &write, FI_ECANCELED, &comp);
	for (unsigned i = RECVS; i-- > 0;) {
		cancel_send(&node, &sends[i]);
		pattern_free(sends[i].buf);
	}
	comp_expect_none(&node, node.txcq);
	exchange_hello(&node);
	pattern_free(write.buf);
	node_close(&node);
}

/*
 * Cancelling too late, or an unknown operation: no completion, no harm. The result of fi_cancel is
 * not promised.
 */
static void run_nothing_to_cancel(struct env *env)
{
	struct node node;
	int never;

	node_start(&node, env, NULL);
	fi_cancel(&node.ep->fid, &never);
	fi_cancel(&node.ep->fid, NULL);
	comp_expect_none(&node, node.rxcq);
	comp_expect_none(&node, node.txcq);
	exchange_hello(&node);
	fi_cancel(&node.ep->fid, &node);
	comp_expect_none(&node, node.rxcq);
	exchange_hello(&node);
	node_close(&node);
}

/* Closing with receives posted is allowed. */
static void run_close_posted(struct env *env)
{
	struct xfer recvs[RECVS];
	struct node node;

	node_start(&node, env, NULL);
	exchange_hello(&node);
	post(&node, recvs, false);
	node_close(&node);
	for (unsigned i = 0; i < RECVS; i++) {
		pattern_check_byte(recvs[i].buf, SIZE, PATTERN_EMPTY);
		pattern_free(recvs[i].buf);
	}
}

static const struct suite_case cases[] = {
	{ "msg", FI_MSG, run_msg },
	{ "tagged", FI_TAGGED, run_tagged },
	{ "same_context", FI_MSG, run_same_context },
	{ "send", FI_MSG, run_send },
	{ "unconnected", FI_MSG | FI_RMA, run_unconnected },
	{ "nothing_to_cancel", FI_MSG, run_nothing_to_cancel },
	{ "close_posted", FI_MSG, run_close_posted },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_cancel", "fi_cancel of receives, messages and writes.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
