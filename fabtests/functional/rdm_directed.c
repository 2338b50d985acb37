/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_directed: senders: receives that take from one peer only, and the source address of a
 * completion. The client has two endpoints.
 */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

#define SIZE 300
#define BOTH_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV)

/* On the server node a is its endpoint and from[] the client's; on the client a and b are. */
struct trio {
	struct node a, b;
	fi_addr_t from[2];
};

static void trio_open(struct trio *t, struct env *env, uint64_t caps)
{
	struct node_attr attr = { .caps = caps };
	char mine[NODE_ADDR_MAX], theirs[NODE_ADDR_MAX];

	node_start(&t->a, env, &attr);
	t->from[0] = t->a.peer;
	node_open(&t->b, env, &attr);
	node_enable(&t->b);
	oob_exchange(&env->oob, mine, node_name(&t->b, mine), theirs, sizeof(theirs));
	if (env->server)
		t->from[1] = node_insert(&t->a, theirs);
	/* The client's second endpoint speaks to the server's first. */
	oob_exchange(&env->oob, mine, node_name(&t->a, mine), theirs, sizeof(theirs));
	if (!env->server)
		t->b.peer = node_insert(&t->b, theirs);
}

static void trio_close(struct trio *t)
{
	node_sync(&t->a);
	node_close(&t->b);
	node_close(&t->a);
}

static void send_from(struct node *node, uint64_t seed, bool tagged)
{
	struct xfer send = { .op = XFER_SEND, .tagged = tagged, .tag = 1, .len = SIZE,
			     .buf = pattern_alloc(SIZE), .addr = node->peer, .context = &send };

	pattern_fill(send.buf, SIZE, seed);
	xfer_send(node, &send);
	pattern_free(send.buf);
}

static void post_from(struct node *node, struct xfer *recv, fi_addr_t from, bool tagged)
{
	*recv = (struct xfer){ .op = XFER_RECV, .tagged = tagged, .tag = 1, .len = SIZE,
			       .buf = pattern_alloc(SIZE), .addr = from, .context = recv };
	REQUIRE_RET(xfer_post(node, recv), 0);
}

static void finish_from(struct node *node, struct xfer *recv, uint64_t seed)
{
	struct xfer sent = { .op = XFER_SEND, .tagged = recv->tagged, .tag = 1 };

	xfer_finish_recv(node, recv, &sent, SIZE);
	pattern_check(recv->buf, SIZE, seed);
	pattern_free(recv->buf);
}

/*
 * Posted: from b, from a, from anyone. Sent: a, a, b. So the receives get the third, the first and
 * the second, in whichever order receives and messages come.
 */
static void run_directed(struct env *env, bool tagged, bool unexpected)
{
	struct xfer recvs[3];
	struct trio t;

	trio_open(&t, env, BOTH_CAPS);
	if (env->server && !unexpected) {
		post_from(&t.a, &recvs[0], t.from[1], tagged);
		post_from(&t.a, &recvs[1], t.from[0], tagged);
		post_from(&t.a, &recvs[2], FI_ADDR_UNSPEC, tagged);
	}
	node_sync(&t.a);
	if (!env->server) {
		send_from(&t.a, 1, tagged);
		send_from(&t.a, 2, tagged);
		node_sync(&t.a);
		send_from(&t.b, 3, tagged);
		node_sync(&t.a);
	} else {
		if (!unexpected) {
			finish_from(&t.a, &recvs[1], 1);
			finish_from(&t.a, &recvs[2], 2);
		}
		node_sync(&t.a);
		node_sync(&t.a);
		if (unexpected) {
			post_from(&t.a, &recvs[0], t.from[1], tagged);
			finish_from(&t.a, &recvs[0], 3);
			post_from(&t.a, &recvs[1], t.from[0], tagged);
			finish_from(&t.a, &recvs[1], 1);
			post_from(&t.a, &recvs[2], FI_ADDR_UNSPEC, tagged);
			finish_from(&t.a, &recvs[2], 2);
		} else {
			finish_from(&t.a, &recvs[0], 3);
		}
	}
	trio_close(&t);
}

static void run_msg(struct env *env)
{
	run_directed(env, false, false);
}

static void run_tagged(struct env *env)
{
	run_directed(env, true, false);
}

static void run_msg_unexpected(struct env *env)
{
	run_directed(env, false, true);
}

static void run_tagged_unexpected(struct env *env)
{
	run_directed(env, true, true);
}

static void expect_source(struct node *node, fi_addr_t from, uint64_t seed)
{
	struct xfer recv;
	struct comp comp;

	post_from(node, &recv, FI_ADDR_UNSPEC, false);
	comp_wait_from(node, node->rxcq, &comp);
	CHECK_RET(comp.err, 0);
	CHECK(comp.context == &recv);
	CHECK_EQ(comp.src, from);
	pattern_check(recv.buf, SIZE, seed);
	pattern_free(recv.buf);
}

static void run_source(struct env *env)
{
	struct trio t;

	trio_open(&t, env, FI_MSG | FI_SOURCE);
	for (uint64_t i = 0; i < 4; i++) {
		if (env->server)
			expect_source(&t.a, t.from[i % 2], i);
		else
			send_from(i % 2 ? &t.b : &t.a, i, false);
		node_sync(&t.a);
	}
	trio_close(&t);
}

/* A sender that the receiver never inserted: delivered, its address not available. */
static void run_unknown_source(struct env *env)
{
	struct node_attr attr = { .caps = FI_MSG | FI_SOURCE };
	char mine[NODE_ADDR_MAX], theirs[NODE_ADDR_MAX];
	struct node node;

	node_open(&node, env, &attr);
	node_enable(&node);
	oob_exchange(&env->oob, mine, node_name(&node, mine), theirs, sizeof(theirs));
	if (env->server) {
		expect_source(&node, FI_ADDR_NOTAVAIL, 1);
		node.peer = node_insert(&node, theirs);
		node_sync(&node);
		expect_source(&node, node.peer, 2);
	} else {
		node.peer = node_insert(&node, theirs);
		send_from(&node, 1, false);
		node_sync(&node);
		send_from(&node, 2, false);
	}
	exchange_hello(&node);
	node_close(&node);
}

/* Without FI_SOURCE readfrom says "not available". */
static void run_no_source(struct env *env)
{
	struct node_attr attr = { .caps = FI_MSG };
	struct node node;

	node_start(&node, env, &attr);
	if (!(node.info->caps & FI_SOURCE)) {
		if (env->server)
			expect_source(&node, FI_ADDR_NOTAVAIL, 1);
		else
			send_from(&node, 1, false);
	}
	node_sync(&node);
	node_close(&node);
}

/*
 * Receives from addresses that do not exist are refused, and leave nothing. (FI_ADDR_NOTAVAIL is
 * FI_ADDR_UNSPEC.)
 */
static void run_bad_input(struct env *env)
{
	static const fi_addr_t nobody[] = { 12345, 1ull << 32, 1ull << 63 };
	struct xfer recv = { .op = XFER_RECV, .len = SIZE, .context = &recv };
	struct trio t;

	trio_open(&t, env, BOTH_CAPS);
	recv.buf = pattern_alloc(SIZE);
	for (size_t i = 0; i < sizeof(nobody) / sizeof(*nobody); i++) {
		recv.addr = nobody[i];
		for (int tagged = 0; tagged < 2; tagged++) {
			recv.tagged = tagged;
			recv.op = XFER_RECV;
			CHECK_ERROR(xfer_try(&t.a, &recv));
			recv.op = XFER_RECVV;
			CHECK_ERROR(xfer_try(&t.a, &recv));
			recv.op = XFER_RECVMSG;
			CHECK_ERROR(xfer_try(&t.a, &recv));
			CHECK_RET(fi_cancel(&t.a.ep->fid, &recv), -FI_ENOENT);
		}
	}
	pattern_free(recv.buf);
	comp_expect_none(&t.a, t.a.rxcq);
	if (env->server) {
		post_from(&t.a, &recv, t.from[0], false);
		node_sync(&t.a);
		finish_from(&t.a, &recv, 1);
	} else {
		node_sync(&t.a);
		send_from(&t.a, 1, false);
	}
	trio_close(&t);
}

static const struct suite_case cases[] = {
	{ "msg", BOTH_CAPS, run_msg },
	{ "tagged", BOTH_CAPS, run_tagged },
	{ "msg_unexpected", BOTH_CAPS, run_msg_unexpected },
	{ "tagged_unexpected", BOTH_CAPS, run_tagged_unexpected },
	{ "source", FI_MSG | FI_SOURCE, run_source },
	{ "unknown_source", FI_MSG | FI_SOURCE, run_unknown_source },
	{ "no_source", FI_MSG, run_no_source },
	{ "bad_input", BOTH_CAPS, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_directed", "Directed receives and source addresses.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
