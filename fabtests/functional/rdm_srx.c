/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_srx: a shared receive context: the server's endpoints take their receives from one; the
 * client sends to all of them.
 */
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/suite.h"
#include "common/xfer.h"

#define EPS 3
#define ROUNDS 8

static const size_t sizes[] = { 1, 3000, 100000, 2000000 };

/* All in the first node's domain, with its address vector and queues. */
struct group {
	struct node node;
	struct fid_ep *srx;
	struct fid_ep *eps[EPS];
	fi_addr_t peers[EPS]; /* client: the server's */
};

static bool offered(struct env *env)
{
	struct node_attr attr = { 0 };
	struct fi_info *hints = node_hints(env, &attr), *info = NULL;
	char mine, theirs = 0;

	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	mine = !node_getinfo(env, &attr, hints, &info) && info->domain_attr->max_ep_srx_ctx;
	fi_freeinfo(hints);
	if (info) {
		CHECK_EQ(info->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
		fi_freeinfo(info);
	}
	oob_exchange(&env->oob, &mine, 1, &theirs, 1);
	CHECK(mine && theirs);
	return mine && theirs;
}

static void open_shared(struct group *group, int i)
{
	struct node *node = &group->node;

	node->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	REQUIRE_RET(fi_endpoint(node->domain, node->info, &group->eps[i], NULL), 0);
	REQUIRE_RET(fi_ep_bind(group->eps[i], &node->av->fid, 0), 0);
	REQUIRE_RET(fi_ep_bind(group->eps[i], &node->txcq->fid, FI_TRANSMIT), 0);
	REQUIRE_RET(fi_ep_bind(group->eps[i], &node->rxcq->fid, FI_RECV), 0);
	CHECK_RET(fi_enable(group->eps[i]), -FI_ENORX);
	REQUIRE_RET(fi_ep_bind(group->eps[i], &group->srx->fid, 0), 0);
	REQUIRE_RET(fi_enable(group->eps[i]), 0);
}

/* The server's names go to the client. */
static void exchange_names(struct group *group)
{
	struct node *node = &group->node;

	for (int i = 0; i < EPS; i++) {
		char name[NODE_ADDR_MAX];
		size_t len = sizeof(name);

		if (node->env->server) {
			REQUIRE_RET(fi_getname(&group->eps[i]->fid, name, &len), 0);
			oob_send(&node->env->oob, name, len);
		} else {
			oob_recv(&node->env->oob, name, sizeof(name));
			group->peers[i] = node_insert(node, name);
		}
	}
}

static void group_open(struct group *group, struct env *env)
{
	memset(group, 0, sizeof(*group));
	node_start(&group->node, env, NULL);
	if (env->server) {
		REQUIRE_RET(fi_srx_context(group->node.domain, group->node.info->rx_attr,
					   &group->srx, NULL), 0);
		for (int i = 0; i < EPS; i++)
			open_shared(group, i);
	}
	exchange_names(group);
}

static void group_close(struct group *group)
{
	node_sync(&group->node);
	if (group->srx)
		CHECK_RET(fi_close(&group->srx->fid), -FI_EBUSY);
	for (int i = 0; i < EPS; i++)
		if (group->eps[i])
			CHECK_RET(fi_close(&group->eps[i]->fid), 0);
	if (group->srx)
		CHECK_RET(fi_close(&group->srx->fid), 0);
	node_close(&group->node);
}

static void post(struct group *group, struct xfer *recv)
{
	struct fid_ep *ep = group->node.ep;

	group->node.ep = group->srx;
	REQUIRE_RET(xfer_post(&group->node, recv), 0);
	group->node.ep = ep;
}

/* One message to each endpoint, in turn; the receives are taken in the order of posting. */
static void round_trip(struct group *group, size_t size, bool tagged, bool early)
{
	struct node *node = &group->node;
	struct xfer xfers[EPS];
	struct comp comp;

	for (int i = 0; i < EPS; i++) {
		xfers[i] = (struct xfer){ .op = node->env->server ? XFER_RECV : XFER_SEND,
			.tagged = tagged, .tag = 5, .len = size, .buf = pattern_alloc(size),
			.addr = node->env->server ? FI_ADDR_UNSPEC : group->peers[i],
			.context = &xfers[i] };
		if (node->env->server && early)
			post(group, &xfers[i]);
		else if (!node->env->server)
			pattern_fill(xfers[i].buf, size, size + (size_t)i);
	}
	node_sync(node);
	for (int i = 0; i < EPS; i++) {
		if (!node->env->server) {
			REQUIRE_RET(xfer_post(node, &xfers[i]), 0);
		} else {
			if (!early)
				post(group, &xfers[i]);
			comp_expect(node, node->rxcq, &xfers[i], &comp);
			CHECK_EQ(comp.len, size);
			pattern_check(xfers[i].buf, size, size + (size_t)i);
		}
		/* Between two endpoints there is no order but this one. */
		node_sync(node);
		if (!node->env->server)
			comp_expect(node, node->txcq, &xfers[i], &comp);
	}
	for (int i = 0; i < EPS; i++)
		pattern_free(xfers[i].buf);
}

static void run_messages(struct env *env, bool tagged)
{
	struct group group;

	if (!offered(env))
		return;
	group_open(&group, env);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		round_trip(&group, sizes[i], tagged, true);
		round_trip(&group, sizes[i], tagged, false);
	}
	comp_expect_none(&group.node, group.node.rxcq);
	group_close(&group);
}

static void run_msg(struct env *env)
{
	run_messages(env, false);
}

static void run_tagged(struct env *env)
{
	run_messages(env, true);
}

/* A flood to all endpoints at once takes one receive for each message, in any order. */
static void run_flood(struct env *env)
{
	struct xfer xfers[EPS * ROUNDS];
	bool seen[EPS * ROUNDS] = { false };
	struct group group;
	struct comp comp;

	if (!offered(env))
		return;
	group_open(&group, env);
	for (int i = 0; i < EPS * ROUNDS; i++) {
		xfers[i] = (struct xfer){ .op = env->server ? XFER_RECV : XFER_SEND, .len = 5000,
			.buf = pattern_alloc(5000), .context = &xfers[i],
			.addr = env->server ? FI_ADDR_UNSPEC : group.peers[i % EPS] };
		pattern_fill(xfers[i].buf, 5000, env->server ? 0 : 9);
		if (env->server)
			post(&group, &xfers[i]);
		else
			REQUIRE_RET(xfer_post(&group.node, &xfers[i]), 0);
	}
	for (int i = 0; i < EPS * ROUNDS; i++) {
		struct xfer *done;

		comp_wait(&group.node, env->server ? group.node.rxcq : group.node.txcq, &comp);
		CHECK_EQ(comp.err, 0);
		done = comp.context;
		REQUIRE(done >= xfers && done < xfers + EPS * ROUNDS);
		CHECK(!seen[done - xfers]);
		seen[done - xfers] = true;
		if (env->server)
			pattern_check(done->buf, 5000, 9);
	}
	group_close(&group);
	for (int i = 0; i < EPS * ROUNDS; i++)
		pattern_free(xfers[i].buf);
}

/* One endpoint closes: the receives stay for the others. */
static void run_close(struct env *env)
{
	struct group group;
	struct xfer xfer = { .op = env->server ? XFER_RECV : XFER_SEND, .len = 8,
			     .context = &xfer };
	struct comp comp;

	if (!offered(env))
		return;
	group_open(&group, env);
	xfer.buf = pattern_alloc(8);
	if (env->server) {
		xfer.addr = FI_ADDR_UNSPEC;
		post(&group, &xfer);
		CHECK_RET(fi_close(&group.eps[0]->fid), 0);
		group.eps[0] = NULL;
		node_sync(&group.node);
		comp_expect(&group.node, group.node.rxcq, &xfer, &comp);
		post(&group, &xfer);
		CHECK_RET(fi_cancel(&group.srx->fid, &xfer), 0);
		comp_expect_error(&group.node, group.node.rxcq, &xfer, FI_ECANCELED, &comp);
	} else {
		xfer.addr = group.peers[1];
		node_sync(&group.node);
		xfer_send(&group.node, &xfer);
	}
	group_close(&group);
	pattern_free(xfer.buf);
}

static void run_bad_input(struct env *env)
{
	struct fi_rx_attr attr = { .caps = FI_MSG | FI_RECV };
	struct group group;
	struct fid_ep *srx;

	if (!offered(env))
		return;
	group_open(&group, env);
	attr.iov_limit = 1 << 20;
	CHECK_ERROR(fi_srx_context(group.node.domain, &attr, &srx, NULL));
	if (env->server) {
		CHECK_ERROR(fi_send(group.srx, "x", 1, NULL, 0, NULL));
		CHECK_ERROR(fi_tsend(group.srx, "x", 1, NULL, 0, 0, NULL));
		CHECK_ERROR(fi_ep_bind(group.srx, &group.node.rxcq->fid, FI_RECV));
		CHECK_RET(fi_cancel(&group.srx->fid, &attr), -FI_ENOENT);
	}
	group_close(&group);
}

static const struct suite_case cases[] = {
	{ "msg", FI_MSG, run_msg },
	{ "tagged", FI_MSG | FI_TAGGED, run_tagged },
	{ "flood", FI_MSG, run_flood },
	{ "close", FI_MSG, run_close },
	{ "bad_input", FI_MSG | FI_TAGGED, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_srx",
			   "Shared receive contexts: several endpoints, one queue of receives.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
