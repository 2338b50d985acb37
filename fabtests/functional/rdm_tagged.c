/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_tagged: the nine tagged calls, and the rules by which a receive gets a message: all 64 tag
 * bits, ignore masks, the order of receives and of unexpected messages, the source.
 */
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

static void run_op(struct env *env, enum xfer_op send, enum xfer_op recv)
{
	exchange_sizes(env, &(struct exchange){ .send = send, .recv = recv, .tagged = true });
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
	exchange_mix(env, true);
}

static void run_registered(struct env *env)
{
	exchange_sizes(env, &(struct exchange){ .send = XFER_SEND, .recv = XFER_RECV,
						.tagged = true, .registered = true });
}

static void run_order(struct env *env)
{
	exchange_order(env, &(struct exchange){ .send = XFER_SEND, .recv = XFER_RECV,
						.tagged = true });
}

static void run_unexpected(struct env *env)
{
	exchange_order(env, &(struct exchange){ .send = XFER_SEND, .recv = XFER_RECV,
						.tagged = true, .unexpected = true });
}

/* A receive of a matching test, and the message that it must get. */
struct want {
	uint64_t tag;
	uint64_t ignore;
	unsigned message; /* index of the message */
};

#define MATCH_MAX 16

struct match {
	const uint64_t *tags; /* of the messages, in the order sent */
	size_t messages;
	const struct want *wants; /* in the order posted */
	size_t receives;
	size_t size; /* of each message; the payload says which it is */
};

static void match_send(struct node *node, const struct match *m)
{
	for (size_t i = 0; i < m->messages; i++) {
		struct xfer send = {
			.op = XFER_SEND, .tagged = true, .buf = pattern_alloc(m->size),
			.len = m->size, .addr = node->peer, .tag = m->tags[i], .context = &send,
		};
		struct comp comp;

		pattern_fill(send.buf, m->size, i);
		REQUIRE_RET(xfer_post(node, &send), 0);
		/* A long message completes only once it is received: in no fixed order. */
		if (m->size <= 4096)
			comp_expect(node, node->txcq, &send, &comp);
		else
			comp_wait(node, node->txcq, &comp);
		pattern_free(send.buf);
	}
}

static void match_post(struct node *node, const struct match *m, struct xfer *recvs)
{
	for (size_t i = 0; i < m->receives; i++) {
		recvs[i] = (struct xfer){
			.op = XFER_RECV, .tagged = true, .buf = pattern_alloc(m->size),
			.len = m->size, .addr = FI_ADDR_UNSPEC, .tag = m->wants[i].tag,
			.ignore = m->wants[i].ignore, .context = &recvs[i],
		};
		REQUIRE_RET(xfer_post(node, &recvs[i]), 0);
	}
}

static void match_finish(struct node *node, const struct match *m, struct xfer *recvs)
{
	for (size_t n = 0; n < m->receives; n++) {
		struct comp comp;
		size_t i;

		comp_wait(node, node->rxcq, &comp);
		REQUIRE_RET(comp.err, 0);
		i = (size_t)((struct xfer *)comp.context - recvs);
		REQUIRE(i < m->receives);
		CHECK_EQ(comp.tag, m->tags[m->wants[i].message]);
		CHECK_EQ(comp.len, m->size);
		pattern_check(recvs[i].buf, m->size, m->wants[i].message);
	}
	for (size_t i = 0; i < m->receives; i++)
		pattern_free(recvs[i].buf);
}

/* Client sends to server, the receives first (posted) or the messages first (unexpected). */
static void match_once(struct node *node, const struct match *m, bool unexpected)
{
	struct xfer recvs[MATCH_MAX];

	REQUIRE(m->receives <= MATCH_MAX);
	if (node->env->server && !unexpected)
		match_post(node, m, recvs);
	node_sync(node);
	if (!node->env->server)
		match_send(node, m);
	if (unexpected)
		node_sync(node);
	if (node->env->server) {
		if (unexpected)
			match_post(node, m, recvs);
		match_finish(node, m, recvs);
	}
	node_sync(node);
	comp_expect_none(node, node->rxcq);
}

static void run_match(struct env *env, const struct match *m)
{
	struct node node;

	node_start(&node, env, NULL);
	match_once(&node, m, false);
	match_once(&node, m, true);
	node_close(&node);
}

static void run_tag_bits(struct env *env)
{
	static const uint64_t tags[] = { 0, 1, 1ull << 31, 1ull << 32, 1ull << 62, 1ull << 63,
					 ~0ull, 0x5555555555555555ull };
	static const struct want wants[] = {
		{ 1ull << 63, 0, 5 }, { 0, 0, 0 }, { ~0ull, 0, 6 }, { 1ull << 32, 0, 3 },
		{ 1, 0, 1 }, { 1ull << 62, 0, 4 }, { 0x5555555555555555ull, 0, 7 },
		{ 1ull << 31, 0, 2 },
	};

	run_match(env, &(struct match){ tags, 8, wants, 8, 100 });
}

static void run_ignore(struct env *env)
{
	static const uint64_t tags[] = { 0x100, 0x201, 0x302, 0xf000000000000303ull, 0x17 };
	/* Bits set in ignore do not count, on either side. */
	static const struct want wants[] = {
		{ 0x2ff, 0xff, 1 },
		{ 0x0303, 0xf000000000000000ull, 3 },
		{ 0x017, 0, 4 },
		{ 0x0, 0xfff, 0 },
		{ 0xabcdef, ~0ull, 2 },
	};

	run_match(env, &(struct match){ tags, 5, wants, 5, 64 });
}

/* Of the receives that match, the one posted first; of the messages, the one sent first. */
static void run_first_match(struct env *env)
{
	static const uint64_t tags[] = { 5, 6, 5, 7, 5 };
	static const struct want wants[] = {
		{ 0, ~0ull, 0 }, { 5, 0, 2 }, { 0, ~0ull, 1 }, { 7, 0, 3 }, { 5, 1, 4 },
	};

	run_match(env, &(struct match){ tags, 5, wants, 5, 200 });
}

/* Receives in the reverse of the sending order: each message waits to be found. */
static void run_reverse(struct env *env)
{
	static const uint64_t tags[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const struct want wants[] = {
		{ 8, 0, 7 }, { 7, 0, 6 }, { 6, 0, 5 }, { 5, 0, 4 },
		{ 4, 0, 3 }, { 3, 0, 2 }, { 2, 0, 1 }, { 1, 0, 0 },
	};

	run_match(env, &(struct match){ tags, 8, wants, 8, 512 });
}

/* A tagged message never meets an untagged receive, nor the other way round. */
static void run_no_crosstalk(struct env *env)
{
	struct node node;
	bool sender = !env->server;
	struct xfer msg = { .op = sender ? XFER_SEND : XFER_RECV, .len = 64 };
	struct xfer tag = { .op = msg.op, .len = 64, .tagged = true, .ignore = ~0ull };
	struct comp comp;

	node_start(&node, env, NULL);
	msg.buf = pattern_alloc(64);
	tag.buf = pattern_alloc(64);
	msg.addr = tag.addr = sender ? node.peer : FI_ADDR_UNSPEC;
	msg.context = &msg;
	tag.context = &tag;
	if (sender) {
		pattern_fill(msg.buf, 64, 1);
		pattern_fill(tag.buf, 64, 2);
		node_sync(&node);
		xfer_send(&node, &tag);
		node_sync(&node);
		xfer_send(&node, &msg);
	} else {
		REQUIRE_RET(xfer_post(&node, &msg), 0);
		node_sync(&node);
		node_sync(&node);
		/* Only the untagged one can complete: no tagged receive is posted yet. */
		comp_expect(&node, node.rxcq, &msg, &comp);
		REQUIRE_RET(xfer_post(&node, &tag), 0);
		comp_expect(&node, node.rxcq, &tag, &comp);
		pattern_check(msg.buf, 64, 1);
		pattern_check(tag.buf, 64, 2);
	}
	node_sync(&node);
	pattern_free(msg.buf);
	pattern_free(tag.buf);
	node_close(&node);
}

static void run_bad_input(struct env *env)
{
	struct node node;
	struct xfer x = { .op = XFER_INJECT, .tagged = true };

	node_start(&node, env, NULL);
	exchange_hello(&node);
	x.len = node.info->tx_attr->inject_size + 1;
	x.buf = pattern_alloc(x.len);
	x.addr = node.peer;
	CHECK_ERROR(xfer_post(&node, &x));
	x.op = XFER_INJECTDATA;
	CHECK_ERROR(xfer_post(&node, &x));
	comp_expect_none(&node, node.txcq);
	comp_expect_none(&node, node.rxcq);
	exchange_hello(&node);
	pattern_free(x.buf);
	node_close(&node);
}

static void run_iov_limit(struct env *env)
{
	struct node node;

	node_start(&node, env, NULL);
	exchange_hello(&node);
	exchange_refuses_iov(&node, true);
	comp_expect_none(&node, node.txcq);
	comp_expect_none(&node, node.rxcq);
	exchange_hello(&node);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "send", FI_TAGGED, run_send },
	{ "sendv", FI_TAGGED, run_sendv },
	{ "sendmsg", FI_TAGGED, run_sendmsg },
	{ "inject", FI_TAGGED, run_inject },
	{ "senddata", FI_TAGGED, run_senddata },
	{ "injectdata", FI_TAGGED, run_injectdata },
	{ "mix", FI_TAGGED, run_mix },
	{ "registered", FI_TAGGED, run_registered },
	{ "order", FI_TAGGED, run_order },
	{ "unexpected", FI_TAGGED, run_unexpected },
	{ "tag_bits", FI_TAGGED, run_tag_bits },
	{ "ignore", FI_TAGGED, run_ignore },
	{ "first_match", FI_TAGGED, run_first_match },
	{ "reverse", FI_TAGGED, run_reverse },
	{ "no_crosstalk", FI_TAGGED | FI_MSG, run_no_crosstalk },
	{ "bad_input", FI_TAGGED, run_bad_input },
	{ "iov_limit", FI_TAGGED, run_iov_limit },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_tagged", "Tagged messages: all nine calls, matching, order.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
