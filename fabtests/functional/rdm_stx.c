/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_stx: shared transmit contexts: several endpoints that send, each in its own name. */
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/comp.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/suite.h"
#include "common/xfer.h"

#define EPS 3

static const size_t sizes[] = { 1, 3000, 100000 };

/* The client's endpoints are in its node's domain, with its address vector and queues. */
struct group {
	struct node node;
	struct fid_stx *stx;
	struct fid_ep *eps[EPS];
};

static bool offered(struct env *env)
{
	struct node_attr attr = { 0 };
	struct fi_info *hints = node_hints(env, &attr), *info = NULL;
	char mine, theirs = 0;

	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	mine = !node_getinfo(env, &attr, hints, &info) && info->domain_attr->max_ep_stx_ctx;
	fi_freeinfo(hints);
	if (info) {
		CHECK_EQ(info->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
		fi_freeinfo(info);
	}
	oob_exchange(&env->oob, &mine, 1, &theirs, 1);
	CHECK(mine && theirs);
	return mine && theirs;
}

static void open_shared(struct group *group, int i)
{
	struct node *node = &group->node;

	node->info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	REQUIRE_RET(fi_endpoint(node->domain, node->info, &group->eps[i], NULL), 0);
	REQUIRE_RET(fi_ep_bind(group->eps[i], &node->av->fid, 0), 0);
	REQUIRE_RET(fi_ep_bind(group->eps[i], &node->txcq->fid, FI_TRANSMIT), 0);
	REQUIRE_RET(fi_ep_bind(group->eps[i], &node->rxcq->fid, FI_RECV), 0);
	REQUIRE_RET(fi_ep_bind(group->eps[i], &group->stx->fid, 0), 0);
	REQUIRE_RET(fi_enable(group->eps[i]), 0);
}

static void group_open(struct group *group, struct env *env)
{
	memset(group, 0, sizeof(*group));
	node_start(&group->node, env, NULL);
	if (env->server)
		return;
	REQUIRE_RET(fi_stx_context(group->node.domain, group->node.info->tx_attr, &group->stx,
				   NULL), 0);
	for (int i = 0; i < EPS; i++)
		open_shared(group, i);
}

static void group_close(struct group *group)
{
	node_sync(&group->node);
	/* Some applications close it first. */
	if (group->stx)
		CHECK_RET(fi_close(&group->stx->fid), 0);
	for (int i = 0; i < EPS; i++)
		if (group->eps[i])
			CHECK_RET(fi_close(&group->eps[i]->fid), 0);
	node_close(&group->node);
}

/* From one endpoint of the client to the server. */
static void pass(struct group *group, struct fid_ep *from, size_t size, uint64_t seed)
{
	struct node *node = &group->node;
	bool server = node->env->server;
	struct xfer xfer = { .op = server ? XFER_RECV : XFER_SEND, .len = size,
		.buf = pattern_alloc(size), .context = &xfer,
		.addr = server ? FI_ADDR_UNSPEC : node->peer };
	struct fid_ep *own = node->ep;
	struct comp comp;

	if (!server) {
		pattern_fill(xfer.buf, size, seed);
		node->ep = from;
	}
	REQUIRE_RET(xfer_post(node, &xfer), 0);
	node->ep = own;
	comp_expect(node, server ? node->rxcq : node->txcq, &xfer, &comp);
	if (server) {
		CHECK_EQ(comp.len, size);
		pattern_check(xfer.buf, size, seed);
	}
	node_sync(node);
	pattern_free(xfer.buf);
}

static void run_msg(struct env *env)
{
	struct group group;

	if (!offered(env))
		return;
	group_open(&group, env);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (int ep = 0; ep < EPS; ep++)
			pass(&group, group.eps[ep], sizes[i], i * EPS + (size_t)ep);
	comp_expect_none(&group.node, group.node.txcq);
	group_close(&group);
}

static void run_bad_input(struct env *env)
{
	struct fi_tx_attr attr = { .caps = FI_MSG | FI_SEND, .iov_limit = 1 << 20 };
	struct group group;
	struct fid_stx *stx;
	struct fid_ep *ep;

	if (!offered(env))
		return;
	group_open(&group, env);
	CHECK_ERROR(fi_stx_context(group.node.domain, &attr, &stx, NULL));
	if (!env->server) {
		REQUIRE_RET(fi_endpoint(group.node.domain, group.node.info, &ep, NULL), 0);
		REQUIRE_RET(fi_ep_bind(ep, &group.node.av->fid, 0), 0);
		REQUIRE_RET(fi_ep_bind(ep, &group.node.txcq->fid, FI_TRANSMIT | FI_RECV), 0);
		CHECK_ERROR(fi_enable(ep));
		CHECK_ERROR(fi_ep_bind(ep, &group.stx->fid, FI_TRANSMIT));
		CHECK_RET(fi_ep_bind(ep, &group.stx->fid, 0), 0);
		CHECK_ERROR(fi_ep_bind(ep, &group.stx->fid, 0));
		CHECK_RET(fi_close(&ep->fid), 0);
	}
	group_close(&group);
}

static const struct suite_case cases[] = {
	{ "msg", FI_MSG, run_msg },
	{ "bad_input", FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_stx", "Shared transmit contexts: several endpoints that send.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
