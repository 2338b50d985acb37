/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_auth: authorization keys: peers with one key talk, whatever the key's source; other peers
 * exchange nothing, and their operations report it. If FI_VERVE_AUTH_KEY_FILE names a file, the
 * program writes a key into it, for endpoints without a key of their own. Refusals take
 * FI_VERVE_CONNECT_TIMEOUT.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define LEN 5000
#define FILL 0x5a

static const char one[] = "the first of two secrets", two[] = "the second of two secrets";

/* Both directions: the server first hears, then speaks. */
static void talk(struct node *node)
{
	struct xfer send = { .op = XFER_SEND, .len = LEN, .addr = node->peer };
	struct xfer recv = { .op = XFER_RECV, .len = LEN, .addr = FI_ADDR_UNSPEC };

	send.buf = pattern_alloc(LEN);
	send.context = &send;
	pattern_fill(send.buf, LEN, 1);
	recv.buf = pattern_alloc(LEN);
	recv.context = &recv;
	REQUIRE_RET(xfer_post(node, &recv), 0);
	node_sync(node);
	if (!node->env->server)
		xfer_send(node, &send);
	xfer_finish_recv(node, &recv, &send, LEN);
	if (node->env->server)
		xfer_send(node, &send);
	pattern_check(recv.buf, LEN, 1);
	node_sync(node);
	pattern_free(send.buf);
	pattern_free(recv.buf);
}

/* One half tries to send, then to write; the other half must not notice. */
static void try_in_vain(struct node *node, bool active, const struct remote *remote)
{
	struct xfer send = { .op = XFER_SEND, .len = LEN, .addr = node->peer };
	struct rma write = { .op = RMA_WRITE, .len = LEN, .addr = node->peer,
			     .remote_addr = remote->addr, .key = remote->key };
	struct comp comp;

	if (active) {
		send.buf = write.buf = pattern_alloc(LEN);
		send.context = &send;
		write.context = &write;
		REQUIRE_RET(xfer_post(node, &send), 0);
		comp_expect_error(node, node->txcq, &send, FI_EKEYREJECTED, &comp);
		REQUIRE_RET(rma_post(node, &write), 0);
		comp_expect_error(node, node->txcq, &write, FI_EKEYREJECTED, &comp);
		pattern_free(send.buf);
	}
	node_sync(node);
}

static void stay_apart(struct node *node)
{
	struct xfer recv = { .op = XFER_RECV, .len = LEN, .addr = FI_ADDR_UNSPEC };
	struct region region;
	struct remote remote;

	recv.buf = pattern_alloc(LEN);
	recv.context = &recv;
	region_open(node, &region, LEN, FI_REMOTE_WRITE | FI_REMOTE_READ);
	memset(region.buf, FILL, LEN);
	remote = region_exchange(node, &region);
	REQUIRE_RET(xfer_post(node, &recv), 0);
	node_sync(node);
	try_in_vain(node, !node->env->server, &remote);
	try_in_vain(node, node->env->server, &remote);
	comp_expect_none(node, node->rxcq);
	pattern_check_byte(recv.buf, LEN, PATTERN_EMPTY);
	pattern_check_byte(region.buf, LEN, FILL);
	region_close(&region);
	node_close_ep(node);
	pattern_free(recv.buf);
}

/* Each half with its own endpoint's and domain's key. */
static void run(struct env *env, const struct node_attr *server, const struct node_attr *client,
		void (*what)(struct node *node))
{
	struct node_attr attr = env->server ? *server : *client;
	struct node node;

	attr.caps = FI_MSG | FI_RMA;
	node_start(&node, env, &attr);
	what(&node);
	node_close(&node);
}

static void run_same(struct env *env)
{
	const struct node_attr attr = { .auth_key = one };

	run(env, &attr, &attr, talk);
}

/* A peer that is named by a wildcard has an address of its own, which is authenticated. */
static void run_wildcard(struct env *env)
{
	const struct node_attr attr = { .auth_key = one, .caps = FI_MSG | FI_RMA };
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} any = { 0 };
	struct node node;

	node_open(&node, env, &attr);
	any.sa.sa_family = node.info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	REQUIRE_RET(fi_setname(&node.ep->fid, &any, sizeof(any)), 0);
	node_enable(&node);
	node_connect(&node);
	talk(&node);
	node_close(&node);
}

static void run_domain(struct env *env)
{
	const struct node_attr domain = { .domain_auth_key = one };
	const struct node_attr ep = { .domain_auth_key = two, .auth_key = one };

	run(env, &domain, &ep, talk);
	run(env, &ep, &domain, talk);
}

static void run_none(struct env *env)
{
	const struct node_attr attr = { 0 };

	run(env, &attr, &attr, talk);
}

static void run_different(struct env *env)
{
	const struct node_attr server = { .auth_key = one }, client = { .auth_key = two };

	run(env, &server, &client, stay_apart);
}

static void run_one_sided(struct env *env)
{
	const struct node_attr none = { 0 }, attr = { .domain_auth_key = two };

	run(env, &attr, &none, stay_apart);
	run(env, &none, &attr, stay_apart);
}

static void write_key(const char *path)
{
	char own[4096];
	int fd;

	/* The other half does the same, perhaps in the same place. */
	snprintf(own, sizeof(own), "%s.%d", path, (int)getpid());
	fd = open(own, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, "a secret in a file", 18) != 18 || close(fd) || rename(own, path))
		check_fatal("cannot write %s", path);
}

static const struct suite_case cases[] = {
	{ "none", FI_RMA, run_none },
	{ "same", FI_RMA, run_same },
	{ "wildcard", FI_RMA, run_wildcard },
	{ "domain", FI_RMA, run_domain },
	{ "different", FI_RMA, run_different },
	{ "one_sided", FI_RMA, run_one_sided },
};

static const struct suite suite = {
	.usage = { "rdm_auth", "Authorization keys: who may talk to whom.", true },
	.cases = cases,
	.count = sizeof(cases) / sizeof(cases[0]),
};

int main(int argc, char **argv)
{
	const char *path = getenv("FI_VERVE_AUTH_KEY_FILE");

	if (path)
		write_key(path);
	return suite_main(&suite, argc, argv);
}
