/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_ep: the life of an endpoint: binding, enabling, names, options, closing. One process. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "common/check.h"
#include "common/node.h"
#include "common/pattern.h"
#include "common/suite.h"

/* An endpoint of the node's domain with nothing bound. */
static struct fid_ep *bare_ep(struct node *node)
{
	struct fid_ep *ep = NULL;

	REQUIRE_RET(fi_endpoint(node->domain, node->info, &ep, NULL), 0);
	return ep;
}

static void run_enable_without(struct env *env)
{
	struct fid_ep *ep;
	struct node node;

	node_open(&node, env, NULL);
	ep = bare_ep(&node);
	CHECK_ERROR(fi_enable(ep));
	CHECK_RET(fi_ep_bind(ep, &node.av->fid, 0), 0);
	CHECK_RET(fi_enable(ep), -FI_ENOCQ);
	CHECK_RET(fi_ep_bind(ep, &node.txcq->fid, FI_TRANSMIT), 0);
	CHECK_RET(fi_enable(ep), -FI_ENOCQ);
	CHECK_RET(fi_ep_bind(ep, &node.rxcq->fid, FI_RECV), 0);
	CHECK_RET(fi_enable(ep), 0);
	CHECK_RET(fi_close(&ep->fid), 0);

	ep = bare_ep(&node);
	CHECK_RET(fi_ep_bind(ep, &node.txcq->fid, FI_TRANSMIT | FI_RECV), 0);
	CHECK_RET(fi_enable(ep), -FI_ENOAV);
	CHECK_RET(fi_ep_bind(ep, &node.av->fid, 0), 0);
	CHECK_RET(fi_enable(ep), 0);
	CHECK_RET(fi_close(&ep->fid), 0);
	node_close(&node);
}

static void run_bind_errors(struct env *env)
{
	struct fid_ep *ep;
	struct node node;

	node_open(&node, env, NULL);
	ep = bare_ep(&node);
	CHECK_RET(fi_ep_bind(ep, &node.txcq->fid, FI_MULTI_RECV), -FI_EBADFLAGS);
	CHECK_ERROR(fi_ep_bind(ep, &node.domain->fid, 0));
	CHECK_RET(fi_ep_bind(ep, &node.txcq->fid, FI_TRANSMIT), 0);
	CHECK_ERROR(fi_ep_bind(ep, &node.rxcq->fid, FI_TRANSMIT));
	CHECK_RET(fi_ep_bind(ep, &node.rxcq->fid, FI_RECV), 0);
	CHECK_RET(fi_ep_bind(ep, &node.av->fid, 0), 0);
	CHECK_RET(fi_enable(ep), 0);
	CHECK_RET(fi_close(&ep->fid), 0);
	node_close(&node);
}

static void run_before_enable(struct env *env)
{
	struct node_attr attr = { .caps = FI_MSG | FI_TAGGED | FI_RMA };
	struct node node;
	char buf[8] = { 0 };

	node_open(&node, env, &attr);
	CHECK_RET(fi_send(node.ep, buf, 8, NULL, 0, NULL), -FI_EOPBADSTATE);
	CHECK_RET(fi_inject(node.ep, buf, 8, 0), -FI_EOPBADSTATE);
	CHECK_RET(fi_recv(node.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	CHECK_RET(fi_tsend(node.ep, buf, 8, NULL, 0, 1, NULL), -FI_EOPBADSTATE);
	CHECK_RET(fi_trecv(node.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
		  -FI_EOPBADSTATE);
	CHECK_RET(fi_write(node.ep, buf, 8, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	CHECK_RET(fi_read(node.ep, buf, 8, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	node_enable(&node);
	CHECK_RET(fi_recv(node.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	node_close(&node);
}

static void run_names(struct env *env)
{
	uint8_t full[NODE_ADDR_MAX], part[NODE_ADDR_MAX];
	size_t len, part_len = 4;
	struct node node, other;

	node_open(&node, env, NULL);
	node_enable(&node);
	len = node_name(&node, full);
	CHECK(((struct sockaddr_in *)full)->sin_port != 0);
	memset(part, 0x44, sizeof(part));
	CHECK_RET(fi_getname(&node.ep->fid, part, &part_len), -FI_ETOOSMALL);
	CHECK_EQ(part_len, len);
	pattern_check_byte(part + 4, sizeof(part) - 4, 0x44);
	part_len = 0;
	CHECK_RET(fi_getname(&node.ep->fid, NULL, &part_len), -FI_ETOOSMALL);
	CHECK_EQ(part_len, len);
	/* Two endpoints never have one name. */
	node_open(&other, env, NULL);
	node_enable(&other);
	CHECK_EQ(node_name(&other, part), len);
	CHECK(memcmp(part, full, len) != 0);
	node_close(&other);
	node_close(&node);
}

/* A name given before enabling is the one that the endpoint gets. */
static void run_setname(struct env *env)
{
	uint8_t name[NODE_ADDR_MAX], got[NODE_ADDR_MAX];
	struct node first, node;
	size_t len;

	/* Finds a port that is free. */
	node_open(&first, env, NULL);
	node_enable(&first);
	len = node_name(&first, name);
	node_close(&first);

	node_open(&node, env, NULL);
	CHECK_ERROR(fi_setname(&node.ep->fid, name, 3));
	CHECK_RET(fi_setname(&node.ep->fid, name, len), 0);
	node_enable(&node);
	CHECK_EQ(node_name(&node, got), len);
	CHECK(!memcmp(name, got, len));
	CHECK_ERROR(fi_setname(&node.ep->fid, name, len));
	node_close(&node);
}

/* The port of fi_getinfo's service is the endpoint's, and only one endpoint can have it. */
static void run_service(struct env *env)
{
	struct node_attr attr = { 0 };
	uint8_t name[NODE_ADDR_MAX], got[NODE_ADDR_MAX];
	struct node first, node;
	struct fid_ep *ep = NULL;
	char port[8];
	size_t len;
	int ret;

	node_open(&first, env, NULL);
	node_enable(&first);
	len = node_name(&first, name);
	node_close(&first);
	snprintf(port, sizeof(port), "%u", ntohs(((struct sockaddr_in *)name)->sin_port));
	attr.src_port = port;
	node_open(&node, env, &attr);
	node_enable(&node);
	CHECK_EQ(node_name(&node, got), len);
	CHECK_EQ(((struct sockaddr_in *)got)->sin_port, ((struct sockaddr_in *)name)->sin_port);
	/* Refused when opened or when enabled. */
	ret = fi_endpoint(node.domain, node.info, &ep, NULL);
	if (!ret) {
		CHECK_RET(fi_ep_bind(ep, &node.av->fid, 0), 0);
		CHECK_RET(fi_ep_bind(ep, &node.txcq->fid, FI_TRANSMIT | FI_RECV), 0);
		ret = fi_enable(ep);
		CHECK_RET(fi_close(&ep->fid), 0);
	}
	CHECK_RET(ret, -FI_EADDRINUSE);
	node_close(&node);
}

static void run_options(struct env *env)
{
	size_t value = 0, len = sizeof(value);
	struct node node;

	node_open(&node, env, NULL);
	node_enable(&node);
	CHECK_RET(fi_getopt(&node.ep->fid, FI_OPT_ENDPOINT, 987654, &value, &len),
		  -FI_ENOPROTOOPT);
	CHECK_RET(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, 987654, &value, sizeof(value)),
		  -FI_ENOPROTOOPT);
	CHECK_RET(fi_getopt(&node.ep->fid, 987654, 0, &value, &len), -FI_ENOPROTOOPT);
	node_close(&node);
}

static void run_min_multi_recv(struct env *env)
{
	struct node_attr attr = { .caps = FI_MSG | FI_MULTI_RECV };
	size_t value = 4321, len = sizeof(value);
	struct node node;
	char byte;

	node_open(&node, env, &attr);
	CHECK_RET(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value,
			    sizeof(value)), 0);
	value = 0;
	CHECK_RET(fi_getopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len),
		  0);
	CHECK_EQ(value, 4321);
	CHECK_EQ(len, sizeof(value));
	len = 1;
	CHECK_RET(fi_getopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &byte, &len),
		  -FI_ETOOSMALL);
	CHECK_ERROR(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1));
	node_close(&node);
}

static void run_op_flags(struct env *env)
{
	uint64_t flags = FI_TRANSMIT;
	struct node node;

	node_open(&node, env, NULL);
	node_enable(&node);
	CHECK_RET(fi_control(&node.ep->fid, FI_GETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT | FI_COMPLETION;
	CHECK_RET(fi_control(&node.ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT;
	CHECK_RET(fi_control(&node.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CHECK_EQ(flags & FI_COMPLETION, FI_COMPLETION);
	/* Neither direction, or both. */
	flags = FI_COMPLETION;
	CHECK_ERROR(fi_control(&node.ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT | FI_RECV | FI_COMPLETION;
	CHECK_ERROR(fi_control(&node.ep->fid, FI_SETOPSFLAG, &flags));
	node_close(&node);
}

/* An object in use cannot be closed, and the attempt does no harm. */
static void run_close_order(struct env *env)
{
	struct fid_mr *mr;
	struct node node;
	char buf[64];

	node_open(&node, env, &(struct node_attr){ .caps = FI_MSG | FI_RMA });
	node_enable(&node);
	CHECK_RET(fi_close(&node.fabric->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&node.domain->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&node.av->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&node.txcq->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&node.rxcq->fid), -FI_EBUSY);
	REQUIRE_RET(fi_mr_reg(node.domain, buf, sizeof(buf), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL),
		    0);
	node_close_ep(&node);
	CHECK_RET(fi_close(&node.domain->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&mr->fid), 0);
	node_close(&node);
}

/* Connections are not for this type of endpoint. */
static void run_not_for_rdm(struct env *env)
{
	uint8_t name[NODE_ADDR_MAX];
	struct fid_ep *ep = NULL;
	struct node node;

	node_open(&node, env, NULL);
	node_enable(&node);
	node_name(&node, name);
	CHECK_ERROR(fi_connect(node.ep, name, NULL, 0));
	CHECK_ERROR(fi_accept(node.ep, NULL, 0));
	CHECK_ERROR(fi_tx_context(node.ep, 0, NULL, &ep, NULL));
	CHECK_ERROR(fi_rx_context(node.ep, 0, NULL, &ep, NULL));
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "enable_without", FI_MSG, run_enable_without },
	{ "bind_errors", FI_MSG, run_bind_errors },
	{ "before_enable", FI_MSG | FI_TAGGED | FI_RMA, run_before_enable },
	{ "names", FI_MSG, run_names },
	{ "setname", FI_MSG, run_setname },
	{ "service", FI_MSG, run_service },
	{ "options", FI_MSG, run_options },
	{ "min_multi_recv", FI_MSG | FI_MULTI_RECV, run_min_multi_recv },
	{ "op_flags", FI_MSG, run_op_flags },
	{ "close_order", FI_MSG | FI_RMA, run_close_order },
	{ "not_for_rdm", FI_MSG, run_not_for_rdm },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_ep", "The life of an endpoint.", false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
