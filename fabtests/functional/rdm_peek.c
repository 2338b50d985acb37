/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_peek: FI_PEEK sees the message that a receive would get and leaves it there, FI_CLAIM keeps
 * it for one receive, FI_DISCARD throws it away; messages of all sizes, tagged and not.
 */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

#define MESSAGES 8
#define LONGEST 300000
#define DATA(n) (0xabcd000000000000 | (n))

static const size_t sizes[MESSAGES] = { 0, 1, 64, 4096, 20000, 70000, LONGEST, 8 };

/* The n-th of the client's messages, or a receive for it. */
static struct xfer message(const struct node *node, bool tagged, unsigned n)
{
	return (struct xfer){
		.op = XFER_SENDDATA, .tagged = tagged, .tag = tagged ? 0x100 + n : 0,
		.len = sizes[n], .data = DATA(n), .addr = node->peer,
	};
}

static struct xfer receive(bool tagged, unsigned n, void *context)
{
	return (struct xfer){
		.op = XFER_RECVMSG, .tagged = tagged, .tag = tagged ? 0x100 + n : 0,
		.len = LONGEST, .addr = FI_ADDR_UNSPEC, .context = context,
	};
}

/* All of them, in order, while the server has posted nothing. */
static void send_all(struct node *node, bool tagged)
{
	struct xfer sends[MESSAGES];

	for (unsigned n = 0; n < MESSAGES; n++) {
		sends[n] = message(node, tagged, n);
		sends[n].context = &sends[n];
		sends[n].buf = pattern_alloc(sizes[n]);
		pattern_fill(sends[n].buf, sizes[n], n);
		REQUIRE_RET(xfer_post(node, &sends[n]), 0);
	}
	node_sync(node);
	for (unsigned n = 0; n < MESSAGES; n++) {
		struct comp comp;

		comp_wait(node, node->txcq, &comp);
		CHECK_EQ(comp.err, 0);
	}
	for (unsigned n = 0; n < MESSAGES; n++)
		pattern_free(sends[n].buf);
}

/* One peek, without a buffer. True: it has found a message. */
static bool look(struct node *node, const struct xfer *like, uint64_t flags, struct comp *comp)
{
	struct xfer peek = *like;

	peek.op = XFER_RECVMSG;
	peek.buf = NULL;
	peek.len = 0;
	peek.flags = FI_PEEK | flags;
	REQUIRE_RET(xfer_post(node, &peek), 0);
	comp_wait(node, node->rxcq, comp);
	CHECK(comp->context == peek.context);
	if (!comp->err)
		return true;
	CHECK_EQ(comp->err, FI_ENOMSG);
	return false;
}

/* Until it has arrived. */
static void await(struct node *node, const struct xfer *like, uint64_t flags, unsigned n)
{
	uint64_t deadline = env_deadline(node->env);
	struct comp comp;

	while (!look(node, like, flags, &comp))
		if (clock_now() > deadline)
			check_fatal("message %u did not arrive", n);
	CHECK_EQ(comp.len, sizes[n]);
	CHECK_EQ(comp.data, DATA(n));
	CHECK_EQ(comp.flags & (FI_RECV | FI_REMOTE_CQ_DATA), FI_RECV | FI_REMOTE_CQ_DATA);
	CHECK_EQ(comp.flags & (like->tagged ? FI_TAGGED : FI_MSG),
		 like->tagged ? FI_TAGGED : FI_MSG);
	if (like->tagged)
		CHECK_EQ(comp.tag, 0x100u + n);
}

/* Receives the message, and checks every byte. */
static void take(struct node *node, bool tagged, unsigned n, void *context, uint64_t flags)
{
	struct xfer recv = receive(tagged, n, context), sent = message(node, tagged, n);

	recv.buf = pattern_alloc(LONGEST);
	recv.flags = flags;
	REQUIRE_RET(xfer_post(node, &recv), 0);
	xfer_finish_recv(node, &recv, &sent, sizes[n]);
	pattern_check(recv.buf, sizes[n], n);
	pattern_free(recv.buf);
}

/* Peeks at messages twice, claims or discards them, or both, before the others are received. */
static void receive_all(struct node *node, bool tagged)
{
	static int contexts[MESSAGES];
	struct comp comp;

	for (unsigned n = 0; n < MESSAGES; n++) {
		struct xfer like = receive(tagged, n, &contexts[n]);

		await(node, &like, 0, n);
		switch (n % 4) {
		case 0:
			await(node, &like, 0, n);
			take(node, tagged, n, &contexts[n], 0);
			break;
		case 1:
			await(node, &like, FI_CLAIM, n);
			if (tagged)
				CHECK(!look(node, &like, 0, &comp));
			break;
		case 2:
			await(node, &like, FI_DISCARD, n);
			if (tagged)
				CHECK(!look(node, &like, 0, &comp));
			break;
		default:
			await(node, &like, FI_CLAIM, n);
			like.flags = FI_CLAIM | FI_DISCARD;
			REQUIRE_RET(xfer_post(node, &like), 0);
			comp_expect(node, node->rxcq, &contexts[n], &comp);
			CHECK_EQ(comp.len, sizes[n]);
		}
	}
	for (unsigned n = MESSAGES; n--;)
		if (n % 4 == 1)
			take(node, tagged, n, &contexts[n], FI_CLAIM);
}

static void run(struct env *env, bool tagged)
{
	struct node node;

	node_start(&node, env, NULL);
	if (env->server) {
		receive_all(&node, tagged);
		node_sync(&node);
	} else {
		send_all(&node, tagged);
	}
	comp_expect_none(&node, node.rxcq);
	exchange_hello(&node);
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

/* A mask finds the oldest message that matches, past all others before it. */
static void run_ignore(struct env *env)
{
	struct node node;
	int context;

	node_start(&node, env, NULL);
	if (env->server) {
		struct xfer like = receive(true, 0, &context);
		struct comp comp;

		like.tag = 0x105;
		await(&node, &like, 0, 5);
		like.tag = 0x104;
		like.ignore = 3;
		await(&node, &like, FI_DISCARD, 4);
		await(&node, &like, 0, 5);
		like.tag = 0x200;
		like.ignore = 0xff;
		CHECK(!look(&node, &like, 0, &comp));
		for (unsigned n = 0; n < MESSAGES; n++)
			if (n != 4)
				take(&node, true, n, &context, 0);
		node_sync(&node);
	} else {
		send_all(&node, true);
	}
	comp_expect_none(&node, node.rxcq);
	node_close(&node);
}

/* Meaningless flags, a context that has claimed nothing, and a message that is claimed twice. */
static void run_misuse(struct env *env)
{
	struct node node;
	int context, other;

	node_start(&node, env, NULL);
	if (env->server) {
		struct xfer recv = receive(true, 0, &other);
		struct xfer none = recv;
		struct comp comp;

		none.tag = 0x300; /* no message has it: those of the client may have come already */
		CHECK(!look(&node, &none, FI_CLAIM, &comp));
		recv.buf = pattern_alloc(LONGEST);
		recv.flags = FI_CLAIM;
		CHECK_RET(xfer_post(&node, &recv), -FI_EINVAL);
		recv.flags = FI_DISCARD;
		CHECK_RET(xfer_post(&node, &recv), -FI_EINVAL);
		recv.context = &context;
		await(&node, &recv, FI_CLAIM, 0);
		recv.context = &other;
		recv.flags = FI_CLAIM;
		CHECK_RET(xfer_post(&node, &recv), -FI_EINVAL);
		pattern_free(recv.buf);
		take(&node, true, 0, &context, FI_CLAIM);
		for (unsigned n = 1; n < MESSAGES; n++)
			take(&node, true, n, &context, 0);
		node_sync(&node);
	} else {
		send_all(&node, true);
	}
	comp_expect_none(&node, node.rxcq);
	node_close(&node);
}

/*
 * Messages that were claimed or seen, and not received, are dropped when the endpoint closes; the
 * sender is not hurt.
 */
static void run_close(struct env *env)
{
	struct node node;
	int context;

	node_start(&node, env, NULL);
	if (env->server) {
		for (unsigned n = 0; n < 4; n++) {
			struct xfer like = receive(true, n, &context);

			await(&node, &like, n % 2 ? FI_CLAIM : 0, n);
		}
	} else {
		for (unsigned n = 0; n < 4; n++) {
			struct xfer send = message(&node, true, n);

			send.buf = pattern_alloc(sizes[n]);
			pattern_fill(send.buf, sizes[n], n);
			send.context = &send;
			xfer_send(&node, &send);
			pattern_free(send.buf);
		}
	}
	node_sync(&node);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "msg", FI_MSG, run_msg },
	{ "tagged", FI_TAGGED, run_tagged },
	{ "ignore", FI_TAGGED, run_ignore },
	{ "misuse", FI_TAGGED, run_misuse },
	{ "close", FI_TAGGED, run_close },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_peek", "FI_PEEK, FI_CLAIM and FI_DISCARD.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
