/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_alias: endpoint aliases: their own flags, the endpoint's everything else. */
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/suite.h"
#include "common/xfer.h"

#define SIZE 2000

static struct fid_ep *open_alias(struct fid_ep *ep, uint64_t flags)
{
	struct fid_ep *alias = NULL;

	REQUIRE_RET(fi_ep_alias(ep, &alias, flags), 0);
	return alias;
}

/* One message to the server, sent and received through these; who completes is told. */
static void pass(struct node *node, struct fid_ep *via, bool completes)
{
	struct xfer send = { .op = XFER_SEND, .len = SIZE, .addr = node->peer, .context = &send };
	struct xfer recv = { .op = XFER_RECV, .len = SIZE, .addr = FI_ADDR_UNSPEC,
			     .context = &recv };
	struct fid_ep *ep = node->ep;
	struct comp comp;

	send.buf = pattern_alloc(SIZE);
	recv.buf = pattern_alloc(SIZE);
	pattern_fill(send.buf, SIZE, 1);
	node->ep = via;
	REQUIRE_RET(xfer_post(node, node->env->server ? &recv : &send), 0);
	node->ep = ep;
	if (completes)
		comp_expect(node, node->env->server ? node->rxcq : node->txcq,
			    node->env->server ? &recv : &send, &comp);
	node_sync(node);
	env_settle(node->env, 100);
	comp_expect_none(node, node->txcq);
	comp_expect_none(node, node->rxcq);
	if (node->env->server)
		pattern_check(recv.buf, SIZE, 1);
	node_sync(node);
	pattern_free(send.buf);
	pattern_free(recv.buf);
}

/* Under selective completion, an alias that asks for completions gets them, and it alone. */
static void run_flags(struct env *env)
{
	struct node_attr attr = { .tx_flags = FI_SELECTIVE_COMPLETION,
				  .rx_flags = FI_SELECTIVE_COMPLETION };
	struct fid_ep *loud, *silent;
	struct node node;

	node_open(&node, env, &attr);
	loud = open_alias(node.ep, (env->server ? FI_RECV : FI_TRANSMIT) | FI_COMPLETION);
	node_enable(&node);
	node_connect(&node);
	silent = open_alias(node.ep, env->server ? FI_RECV : FI_TRANSMIT);
	pass(&node, loud, true);
	pass(&node, silent, false);
	pass(&node, node.ep, false);
	CHECK_RET(fi_close(&node.ep->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&loud->fid), 0);
	CHECK_RET(fi_close(&silent->fid), 0);
	node_close(&node);
}

/* An alias is the same endpoint: its messages and the endpoint's are one sequence. */
static void run_order(struct env *env)
{
	struct fid_ep *alias, *ep;
	struct node node;
	struct comp comp;
	char text = 0;

	node_start(&node, env, NULL);
	alias = open_alias(node.ep, 0);
	ep = node.ep;
	for (int i = 0; i < 40; i++) {
		struct xfer send = { .op = XFER_SEND, .buf = &text, .len = 1, .addr = node.peer,
				     .context = &send };
		struct xfer recv = { .op = XFER_RECV, .buf = &text, .len = 1,
				     .addr = FI_ADDR_UNSPEC, .context = &recv };

		node.ep = i % 2 ? alias : ep;
		text = (char)i;
		if (env->server) {
			REQUIRE_RET(xfer_post(&node, &recv), 0);
			comp_expect(&node, node.rxcq, &recv, &comp);
			CHECK_EQ(text, i);
		} else {
			xfer_send(&node, &send);
		}
	}
	node.ep = ep;
	node_sync(&node);
	CHECK_RET(fi_close(&alias->fid), 0);
	exchange_hello(&node);
	node_close(&node);
}

static void run_control(struct env *env)
{
	char name[NODE_ADDR_MAX], alias_name[NODE_ADDR_MAX];
	size_t len = sizeof(alias_name);
	uint64_t flags = FI_TRANSMIT;
	struct fid_ep *alias, *second, *none;
	struct node node;

	node_start(&node, env, NULL);
	alias = open_alias(node.ep, FI_TRANSMIT | FI_DELIVERY_COMPLETE);
	second = open_alias(alias, 0);
	CHECK_RET(fi_getname(&alias->fid, alias_name, &len), 0);
	CHECK_EQ(node_name(&node, name), len);
	CHECK(!memcmp(name, alias_name, len));
	CHECK_RET(fi_control(&second->fid, FI_GETOPSFLAG, &flags), 0);
	CHECK_EQ(flags, FI_DELIVERY_COMPLETE);
	CHECK_RET(fi_ep_alias(node.ep, &none, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	CHECK_ERROR(fi_ep_bind(alias, &node.txcq->fid, FI_TRANSMIT));
	CHECK_RET(fi_close(&alias->fid), 0);
	CHECK_RET(fi_close(&node.ep->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&second->fid), 0);
	node_sync(&node);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "flags", FI_MSG, run_flags },
	{ "order", FI_MSG, run_order },
	{ "control", FI_MSG, run_control },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_alias", "Endpoint aliases: flags, order, closing.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
