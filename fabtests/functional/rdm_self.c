/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_self: one process: an endpoint that talks to itself, and many endpoints that talk to each
 * other over shared and over separate domains.
 */
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define NODES 8
#define SIZE 700

static void self_open(struct node *node, struct env *env, const struct node_attr *attr)
{
	char name[NODE_ADDR_MAX];

	node_open(node, env, attr);
	node_enable(node);
	node_name(node, name);
	node->peer = node_insert(node, name);
}

static void loop_message(struct node *node, size_t size, bool tagged, bool recv_first)
{
	struct xfer send = { .op = XFER_SEND, .tagged = tagged, .tag = size, .len = size,
			     .addr = node->peer, .context = &send };
	struct xfer recv = { .op = XFER_RECV, .tagged = tagged, .tag = size, .len = size,
			     .addr = FI_ADDR_UNSPEC, .context = &recv };
	struct comp comp;

	send.buf = pattern_alloc(size);
	recv.buf = pattern_alloc(size);
	pattern_fill(send.buf, size, size);
	if (recv_first)
		REQUIRE_RET(xfer_post(node, &recv), 0);
	REQUIRE_RET(xfer_post(node, &send), 0);
	if (!recv_first)
		REQUIRE_RET(xfer_post(node, &recv), 0);
	xfer_finish_recv(node, &recv, &send, size);
	comp_expect(node, node->txcq, &send, &comp);
	pattern_check(recv.buf, size, size);
	pattern_free(send.buf);
	pattern_free(recv.buf);
}

static void run_loop(struct env *env, bool tagged)
{
	struct node node;

	self_open(&node, env, NULL);
	for (size_t i = 0; i < env->opts.size_count; i++) {
		loop_message(&node, env->opts.sizes[i], tagged, true);
		loop_message(&node, env->opts.sizes[i], tagged, false);
	}
	comp_expect_none(&node, node.txcq);
	comp_expect_none(&node, node.rxcq);
	node_close(&node);
}

static void run_msg(struct env *env)
{
	run_loop(env, false);
}

static void run_tagged(struct env *env)
{
	run_loop(env, true);
}

static void run_rma(struct env *env)
{
	struct node_attr attr = { .caps = FI_RMA | FI_MSG };
	struct region region;
	struct remote remote;
	struct node node;

	self_open(&node, env, &attr);
	region_open(&node, &region, env->opts.max_size, FI_REMOTE_READ | FI_REMOTE_WRITE);
	remote = region_remote(&node, &region);
	for (size_t i = 0; i < env->opts.size_count; i++) {
		struct rma rma = { .len = env->opts.sizes[i], .addr = node.peer,
				   .remote_addr = remote.addr, .key = remote.key,
				   .context = &rma, .buf = pattern_alloc(env->opts.sizes[i]) };

		pattern_fill(rma.buf, rma.len, i);
		rma.op = RMA_WRITE;
		rma_run(&node, &rma);
		memset(rma.buf, PATTERN_EMPTY, rma.len);
		rma.op = RMA_READ;
		rma_run(&node, &rma);
		pattern_check(rma.buf, rma.len, i);
		pattern_check(region.buf, rma.len, i);
		pattern_free(rma.buf);
	}
	region_close(&region);
	node_close(&node);
}

/* addrs[i][j]: the address of node j in node i's address vector. */
struct crowd {
	struct node nodes[NODES];
	fi_addr_t addrs[NODES][NODES];
};

static void crowd_open(struct crowd *crowd, struct env *env, bool share)
{
	for (int i = 0; i < NODES; i++) {
		struct node_attr attr = { .share = share && i ? &crowd->nodes[0] : NULL };

		node_open(&crowd->nodes[i], env, &attr);
		node_enable(&crowd->nodes[i]);
	}
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++) {
			char name[NODE_ADDR_MAX];

			node_name(&crowd->nodes[j], name);
			crowd->addrs[i][j] = node_insert(&crowd->nodes[i], name);
		}
	}
}

/* Every node sends to every node, itself included; the tag names the sender. */
static void all_to_all(struct crowd *crowd)
{
	static struct xfer sends[NODES][NODES], recvs[NODES][NODES];

	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++) {
			recvs[i][j] = (struct xfer){
				.op = XFER_RECV, .tagged = true, .tag = (uint64_t)j, .len = SIZE,
				.addr = FI_ADDR_UNSPEC, .context = &recvs[i][j],
				.buf = pattern_alloc(SIZE),
			};
			REQUIRE_RET(xfer_post(&crowd->nodes[i], &recvs[i][j]), 0);
		}
	}
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++) {
			sends[i][j] = (struct xfer){
				.op = XFER_SEND, .tagged = true, .tag = (uint64_t)i, .len = SIZE,
				.addr = crowd->addrs[i][j], .context = &sends[i][j],
				.buf = pattern_alloc(SIZE),
			};
			pattern_fill(sends[i][j].buf, SIZE, (uint64_t)(i * NODES + j));
			REQUIRE_RET(xfer_post(&crowd->nodes[i], &sends[i][j]), 0);
		}
	}
	for (int i = 0; i < NODES; i++) {
		for (int n = 0; n < 2 * NODES; n++) {
			struct node *node = &crowd->nodes[i];
			struct comp comp;

			comp_wait(node, n % 2 ? node->txcq : node->rxcq, &comp);
			CHECK_RET(comp.err, 0);
		}
	}
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++) {
			pattern_check(recvs[i][j].buf, SIZE, (uint64_t)(j * NODES + i));
			pattern_free(recvs[i][j].buf);
			pattern_free(sends[i][j].buf);
		}
	}
}

static void run_crowd(struct env *env, bool share)
{
	struct crowd crowd;

	crowd_open(&crowd, env, share);
	all_to_all(&crowd);
	all_to_all(&crowd);
	/* The owner of a shared domain closes last. */
	for (int i = NODES - 1; i >= 0; i--)
		node_close(&crowd.nodes[i]);
}

static void run_shared_domain(struct env *env)
{
	run_crowd(env, true);
}

static void run_own_domains(struct env *env)
{
	run_crowd(env, false);
}

/* Opening and closing again and again leaves nothing behind. */
static void run_reopen(struct env *env)
{
	for (int i = 0; i < 20; i++) {
		struct node node;

		self_open(&node, env, NULL);
		loop_message(&node, 64, i % 2, true);
		node_close(&node);
	}
}

static const struct suite_case cases[] = {
	{ "msg", FI_MSG, run_msg },
	{ "tagged", FI_TAGGED, run_tagged },
	{ "rma", FI_RMA | FI_MSG, run_rma },
	{ "shared_domain", FI_TAGGED, run_shared_domain },
	{ "own_domains", FI_TAGGED, run_own_domains },
	{ "reopen", FI_MSG | FI_TAGGED, run_reopen },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_self", "One process: an endpoint and itself, many endpoints.",
			   false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
