/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_msg: the nine message calls, in both directions, in every combination and size, with their
 * order and their refusals.
 */
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

static void run_op(struct env *env, enum xfer_op send, enum xfer_op recv)
{
	exchange_sizes(env, &(struct exchange){ .send = send, .recv = recv });
}

static void run_send(struct env *env)
{
	run_op(env, XFER_SEND, XFER_RECV);
}

static void run_sendv(struct env *env)
{
	run_op(env, XFER_SENDV, XFER_RECVV);
}

static void run_sendmsg(struct env *env)
{
	run_op(env, XFER_SENDMSG, XFER_RECVMSG);
}

static void run_inject(struct env *env)
{
	run_op(env, XFER_INJECT, XFER_RECV);
}

static void run_senddata(struct env *env)
{
	run_op(env, XFER_SENDDATA, XFER_RECVV);
}

static void run_injectdata(struct env *env)
{
	run_op(env, XFER_INJECTDATA, XFER_RECVMSG);
}

static void run_mix(struct env *env)
{
	exchange_mix(env, false);
}

static void run_registered(struct env *env)
{
	exchange_sizes(env, &(struct exchange){ .send = XFER_SEND, .recv = XFER_RECV,
						.registered = true });
}

static void run_order(struct env *env)
{
	exchange_order(env, &(struct exchange){ .send = XFER_SEND, .recv = XFER_RECV });
}

static void run_unexpected(struct env *env)
{
	exchange_order(env, &(struct exchange){ .send = XFER_SEND, .recv = XFER_RECV,
						.unexpected = true });
}

/* A buffer that is NULL with length zero is a valid message. */
static void run_null_buffer(struct env *env)
{
	struct xfer send = { .op = XFER_SEND, .context = &send };
	struct xfer recv = { .op = XFER_RECV, .context = &recv, .addr = FI_ADDR_UNSPEC };
	struct node node;

	node_start(&node, env, NULL);
	send.addr = node.peer;
	REQUIRE_RET(xfer_post(&node, &recv), 0);
	xfer_send(&node, &send);
	xfer_finish_recv(&node, &recv, &send, 0);
	node_sync(&node);
	node_close(&node);
}

/*
 * A bad request is refused when it is posted, and the endpoint works on. The manual leaves some
 * error codes to the provider.
 */
static void run_bad_input(struct env *env)
{
	struct node node;
	struct xfer x = { .op = XFER_SEND, .context = &x };
	size_t inject;
	void *buf;

	node_start(&node, env, NULL);
	exchange_hello(&node);
	inject = node.info->tx_attr->inject_size;
	buf = pattern_alloc(inject + 1);
	x.buf = buf;
	x.len = inject + 1;
	x.addr = node.peer;
	x.op = XFER_INJECT;
	CHECK_ERROR(xfer_post(&node, &x));
	x.op = XFER_INJECTDATA;
	CHECK_ERROR(xfer_post(&node, &x));
	if (node.info->ep_attr->max_msg_size < SIZE_MAX) {
		x.op = XFER_SEND;
		x.len = node.info->ep_attr->max_msg_size + 1;
		CHECK_ERROR(xfer_post(&node, &x));
	}
	comp_expect_none(&node, node.txcq);
	comp_expect_none(&node, node.rxcq);
	exchange_hello(&node);
	pattern_free(buf);
	node_close(&node);
}

/* An address that was never inserted: refused when posted, or an error completion. */
static void run_unknown_address(struct env *env)
{
	struct node node;
	struct xfer x = { .op = XFER_SEND, .context = &x };
	struct comp comp;
	ssize_t ret;

	node_start(&node, env, NULL);
	x.buf = pattern_alloc(8);
	x.len = 8;
	x.addr = node.peer + 1000;
	ret = xfer_post(&node, &x);
	if (ret) {
		CHECK_ERROR(ret);
	} else {
		comp_wait(&node, node.txcq, &comp);
		CHECK(comp.err > 0);
		CHECK(comp.context == &x);
	}
	x.op = XFER_INJECT;
	x.addr = FI_ADDR_UNSPEC;
	CHECK_ERROR(xfer_post(&node, &x));
	exchange_hello(&node);
	pattern_free(x.buf);
	node_close(&node);
}

static void run_iov_limit(struct env *env)
{
	struct node node;

	node_start(&node, env, NULL);
	exchange_hello(&node);
	exchange_refuses_iov(&node, false);
	comp_expect_none(&node, node.txcq);
	comp_expect_none(&node, node.rxcq);
	exchange_hello(&node);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "send", FI_MSG, run_send },
	{ "sendv", FI_MSG, run_sendv },
	{ "sendmsg", FI_MSG, run_sendmsg },
	{ "inject", FI_MSG, run_inject },
	{ "senddata", FI_MSG, run_senddata },
	{ "injectdata", FI_MSG, run_injectdata },
	{ "mix", FI_MSG, run_mix },
	{ "registered", FI_MSG, run_registered },
	{ "order", FI_MSG, run_order },
	{ "unexpected", FI_MSG, run_unexpected },
	{ "null_buffer", FI_MSG, run_null_buffer },
	{ "bad_input", FI_MSG, run_bad_input },
	{ "iov_limit", FI_MSG, run_iov_limit },
	{ "unknown_address", FI_MSG, run_unknown_address },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_msg", "Message transfer: all nine calls, sizes, order.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
