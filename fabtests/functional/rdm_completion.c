/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_completion: which operations complete, when and with what: selective completion, completion
 * levels, FI_INJECT, remote CQ data of every width, contexts that are not pointers.
 */
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

#define MESSAGES 8
#define SIZE 200

static void post_recvs(struct node *node, struct xfer *recvs, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		recvs[i] = (struct xfer){
			.op = XFER_RECV, .buf = pattern_alloc(SIZE), .len = SIZE,
			.addr = FI_ADDR_UNSPEC, .context = &recvs[i],
		};
		REQUIRE_RET(xfer_post(node, &recvs[i]), 0);
	}
}

static void finish_recvs(struct node *node, struct xfer *recvs, unsigned count)
{
	struct xfer sent = { .op = XFER_SEND };

	for (unsigned n = 0; n < count; n++) {
		size_t i = xfer_finish_any(node, recvs, count, &sent, SIZE);

		pattern_check(recvs[i].buf, SIZE, i);
		pattern_free(recvs[i].buf);
	}
}

/* Without FI_COMPLETION nothing; the last, with it, says that all before it are done, too. */
static void run_selective_send(struct env *env)
{
	struct node_attr attr = { .tx_flags = FI_SELECTIVE_COMPLETION, .msg_order = FI_ORDER_SAS };
	struct xfer recvs[MESSAGES], send = { .len = SIZE, .context = &send };
	struct node node;
	struct comp comp;

	node_start(&node, env, &attr);
	if (env->server) {
		post_recvs(&node, recvs, MESSAGES);
		finish_recvs(&node, recvs, MESSAGES);
	} else {
		char bufs[MESSAGES][SIZE];

		send.addr = node.peer;
		for (unsigned i = 0; i < MESSAGES; i++) {
			pattern_fill(bufs[i], SIZE, i);
			send.op = i == MESSAGES - 1 ? XFER_SENDMSG : XFER_SEND;
			send.flags = FI_COMPLETION;
			send.buf = bufs[i];
			REQUIRE_RET(xfer_post(&node, &send), 0);
		}
		comp_expect(&node, node.txcq, &send, &comp);
		node_sync(&node);
		comp_expect_none(&node, node.txcq);
	}
	if (env->server)
		node_sync(&node);
	node_sync(&node);
	node_close(&node);
}

static void run_selective_recv(struct env *env)
{
	struct node_attr attr = { .rx_flags = FI_SELECTIVE_COMPLETION, .msg_order = FI_ORDER_SAS };
	struct xfer quiet = { .op = XFER_RECV, .len = SIZE, .addr = FI_ADDR_UNSPEC };
	struct xfer loud = { .op = XFER_RECVMSG, .len = SIZE, .addr = FI_ADDR_UNSPEC,
			     .flags = FI_COMPLETION, .context = &loud };
	struct xfer send = { .op = XFER_SEND, .len = SIZE, .context = &send };
	struct node node;

	node_start(&node, env, &attr);
	quiet.buf = pattern_alloc(SIZE);
	loud.buf = pattern_alloc(SIZE);
	if (env->server) {
		REQUIRE_RET(xfer_post(&node, &quiet), 0);
		REQUIRE_RET(xfer_post(&node, &loud), 0);
		xfer_finish_recv(&node, &loud, &send, SIZE);
		comp_expect_none(&node, node.rxcq);
		pattern_check(quiet.buf, SIZE, 1);
		pattern_check(loud.buf, SIZE, 2);
	} else {
		send.addr = node.peer;
		send.buf = quiet.buf;
		pattern_fill(send.buf, SIZE, 1);
		xfer_send(&node, &send);
		pattern_fill(send.buf, SIZE, 2);
		xfer_send(&node, &send);
	}
	node_sync(&node);
	pattern_free(quiet.buf);
	pattern_free(loud.buf);
	node_close(&node);
}

/* An error completes even where success would not. */
static void run_selective_error(struct env *env)
{
	struct node_attr attr = { .rx_flags = FI_SELECTIVE_COMPLETION };
	struct xfer recv = { .op = XFER_RECV, .len = 16, .addr = FI_ADDR_UNSPEC,
			     .context = &recv };
	struct xfer send = { .op = XFER_SEND, .len = SIZE, .context = &send };
	struct node node;
	struct comp comp;

	node_start(&node, env, &attr);
	recv.buf = send.buf = pattern_alloc(SIZE);
	send.addr = node.peer;
	if (env->server) {
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		comp_expect_error(&node, node.rxcq, &recv, FI_ETRUNC, &comp);
	} else {
		xfer_send(&node, &send);
	}
	node_sync(&node);
	pattern_free(send.buf);
	node_close(&node);
}

static void send_with_flags(struct env *env, uint64_t flags, size_t size)
{
	struct exchange x = { .send = XFER_SENDMSG, .recv = XFER_RECV, .send_flags = flags };
	struct node node;

	node_start(&node, env, NULL);
	exchange_one(&node, &x, !env->server, size, 5);
	exchange_one(&node, &x, env->server, size, 6);
	node_sync(&node);
	node_close(&node);
}

static void run_levels(struct env *env)
{
	static const size_t sizes[] = { 0, 100, 20000, 500000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		send_with_flags(env, FI_INJECT_COMPLETE, sizes[i]);
		send_with_flags(env, FI_TRANSMIT_COMPLETE, sizes[i]);
	}
}

/* The completion comes neither before the receive is posted, nor before its buffer is filled. */
static void send_matched(struct node *node, struct env *env, uint64_t flags, size_t size)
{
	struct xfer send = { .op = XFER_SENDMSG, .tagged = true, .tag = 9, .flags = flags,
			     .len = size, .buf = pattern_alloc(size), .addr = node->peer,
			     .context = &send };
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = 9, .len = size,
			     .buf = send.buf, .addr = FI_ADDR_UNSPEC, .context = &recv };
	struct comp comp;

	if (env->server) {
		node_sync(node);
		node_sync(node);
		REQUIRE_RET(xfer_post(node, &recv), 0);
		xfer_finish_recv(node, &recv, &send, size);
		pattern_check(recv.buf, size, 3);
	} else {
		pattern_fill(send.buf, size, 3);
		REQUIRE_RET(xfer_post(node, &send), 0);
		node_sync(node);
		comp_expect_none(node, node->txcq);
		node_sync(node);
		comp_expect(node, node->txcq, &send, &comp);
	}
	node_sync(node);
	pattern_free(send.buf);
}

static void run_matched(struct env *env)
{
	static const size_t sizes[] = { 0, 64, 20000, 500000 };
	struct node_attr attr = { .caps = FI_TAGGED };
	struct node node;

	node_start(&node, env, &attr);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		send_matched(&node, env, FI_DELIVERY_COMPLETE, sizes[i]);
		send_matched(&node, env, FI_MATCH_COMPLETE, sizes[i]);
	}
	node_close(&node);
}

/*
 * FI_INJECT on sendmsg: it completes, and the buffer is the application's as soon as the call
 * returns.
 */
static void run_inject_flag(struct env *env)
{
	struct xfer send = { .op = XFER_SENDMSG, .flags = FI_INJECT | FI_COMPLETION,
			     .context = &send };
	struct xfer recv = { .op = XFER_RECV, .addr = FI_ADDR_UNSPEC, .context = &recv };
	struct node node;
	struct comp comp;

	node_start(&node, env, NULL);
	send.len = recv.len = node.info->tx_attr->inject_size;
	send.buf = recv.buf = pattern_alloc(send.len);
	send.addr = node.peer;
	if (env->server) {
		REQUIRE_RET(xfer_post(&node, &recv), 0);
		xfer_finish_recv(&node, &recv, &send, recv.len);
		pattern_check(recv.buf, recv.len, 9);
	} else {
		pattern_fill(send.buf, send.len, 9);
		REQUIRE_RET(xfer_post(&node, &send), 0);
		memset(send.buf, 0, send.len);
		comp_expect(&node, node.txcq, &send, &comp);
	}
	node_sync(&node);
	pattern_free(send.buf);
	node_close(&node);
}

static void data_value(struct node *node, uint64_t data, bool tagged)
{
	struct xfer send = { .op = XFER_SENDDATA, .data = data, .tagged = tagged, .tag = 3,
			     .context = &send, .addr = node->peer };
	struct xfer recv = { .op = XFER_RECV, .addr = FI_ADDR_UNSPEC, .tagged = tagged, .tag = 3,
			     .context = &recv };

	if (node->env->server) {
		REQUIRE_RET(xfer_post(node, &recv), 0);
		xfer_finish_recv(node, &recv, &send, 0);
	} else {
		xfer_send(node, &send);
	}
}

static void run_data_values(struct env *env)
{
	struct node_attr attr = { .cq_format = FI_CQ_FORMAT_DATA };
	struct node node;

	node_start(&node, env, &attr);
	REQUIRE(node.info->domain_attr->cq_data_size >= 4);
	data_value(&node, 0, false);
	for (size_t bit = 0; bit < 8 * node.info->domain_attr->cq_data_size; bit++)
		data_value(&node, 1ull << bit, bit & 1);
	data_value(&node, 0xffffffff, true);
	node_sync(&node);
	node_close(&node);
}

/* A context is an opaque value: odd ones and NULL come back as they are. */
static void run_any_context(struct env *env)
{
	static const uintptr_t values[] = { 0, 1, 3, 0xdeadbeefcafeull, UINTPTR_MAX };
	struct node node;
	struct comp comp;

	node_start(&node, env, NULL);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		struct xfer x = { .op = env->server ? XFER_RECV : XFER_SEND,
				  .addr = env->server ? FI_ADDR_UNSPEC : node.peer,
				  .context = (void *)values[i] };

		REQUIRE_RET(xfer_post(&node, &x), 0);
		comp_expect(&node, env->server ? node.rxcq : node.txcq, x.context, &comp);
	}
	node_sync(&node);
	node_close(&node);
}

/* A context's memory is the application's: a provider without mode bits does not write to it. */
static void run_untouched_context(struct env *env)
{
	uint8_t *context = pattern_alloc(64);
	struct node node;
	struct comp comp;

	node_start(&node, env, NULL);
	for (size_t i = 0; i < 3; i++) {
		static const size_t sizes[] = { 8, 20000, 300000 };
		struct xfer x = { .op = env->server ? XFER_RECV : XFER_SEND,
				  .addr = env->server ? FI_ADDR_UNSPEC : node.peer,
				  .buf = pattern_alloc(sizes[i]), .len = sizes[i],
				  .context = context };

		REQUIRE_RET(xfer_post(&node, &x), 0);
		pattern_check_byte(context, 64, PATTERN_EMPTY);
		comp_expect(&node, env->server ? node.rxcq : node.txcq, context, &comp);
		pattern_check_byte(context, 64, PATTERN_EMPTY);
		pattern_free(x.buf);
	}
	node_sync(&node);
	node_close(&node);
	pattern_free(context);
}

/* Levels that cannot be had, too long an injection, default flags that are none; it goes on. */
static void run_bad_input(struct env *env)
{
	static const uint64_t flags[] = { FI_COMMIT_COMPLETE, FI_TRANSMIT, FI_RECV };
	struct xfer recvs[1], send = { .op = XFER_SENDMSG, .context = &send };
	uint64_t nonsense = 1ull << 47, before = FI_TRANSMIT, after = FI_TRANSMIT;
	struct node node;

	node_start(&node, env, NULL);
	send.addr = node.peer;
	send.len = node.info->tx_attr->inject_size + 1;
	send.buf = pattern_alloc(send.len > SIZE ? send.len : SIZE);
	send.flags = FI_INJECT;
	CHECK_ERROR(xfer_try(&node, &send));
	send.op = XFER_INJECT;
	CHECK_ERROR(xfer_try(&node, &send));
	send.op = XFER_INJECTDATA;
	CHECK_ERROR(xfer_try(&node, &send));
	send.op = XFER_SENDMSG;
	send.len = SIZE;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		send.flags = flags[i];
		CHECK_ERROR(xfer_try(&node, &send));
	}
	CHECK_RET(fi_control(&node.ep->fid, FI_GETOPSFLAG, &before), 0);
	nonsense |= FI_TRANSMIT;
	CHECK_ERROR(fi_control(&node.ep->fid, FI_SETOPSFLAG, &nonsense));
	CHECK_RET(fi_control(&node.ep->fid, FI_GETOPSFLAG, &after), 0);
	CHECK_EQ(after, before);
	comp_expect_none(&node, node.txcq);
	if (env->server) {
		post_recvs(&node, recvs, 1);
		finish_recvs(&node, recvs, 1);
	} else {
		send.op = XFER_SEND;
		pattern_fill(send.buf, SIZE, 0);
		xfer_send(&node, &send);
	}
	node_sync(&node);
	comp_expect_none(&node, node.rxcq);
	pattern_free(send.buf);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "selective_send", FI_MSG, run_selective_send },
	{ "selective_recv", FI_MSG, run_selective_recv },
	{ "selective_error", FI_MSG, run_selective_error },
	{ "levels", FI_MSG, run_levels },
	{ "matched", FI_TAGGED, run_matched },
	{ "inject_flag", FI_MSG, run_inject_flag },
	{ "data_values", FI_MSG | FI_TAGGED, run_data_values },
	{ "any_context", FI_MSG, run_any_context },
	{ "untouched_context", FI_MSG, run_untouched_context },
	{ "bad_input", FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_completion", "Completions: selective, levels, CQ data, contexts.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
