/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_domains: one process with several domains on every device that the provider has: endpoints of
 * all of them talk to each other, and go in odd orders.
 */
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/xfer.h"

#define DEVICES 4
#define DOMAINS 2 /* on each device */
#define EPS 2	  /* in each domain */
#define MAX (DEVICES * DOMAINS * EPS)
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA)

static const size_t sizes[] = { 8, 3000, 100000 };

struct estate {
	struct env *env;
	struct env homes[DEVICES]; /* options that name the device; they own no nodes */
	char names[DEVICES][NODE_DEVICE_MAX];
	unsigned devices, count;
	struct node nodes[MAX];
	bool open[MAX];
	struct region regions[MAX];
	fi_addr_t addrs[MAX][MAX];
};

/* Options that name each device, by which its nodes are opened. */
static void find_devices(struct estate *e)
{
	e->devices = node_devices(e->env, CAPS, e->names, DEVICES);
	REQUIRE(e->devices > 0);
	for (unsigned i = 0; i < e->devices; i++) {
		e->homes[i] = *e->env;
		e->homes[i].opts.src_addr = NULL;
		e->homes[i].opts.domain_name = e->names[i];
		LIST_INIT(&e->homes[i].nodes);
	}
}

/* Waiting drives what is in the list of the program's own environment. */
static void settle(struct estate *e, unsigned i, const struct node_attr *attr)
{
	struct node *node = &e->nodes[i];
	unsigned device = i / (DOMAINS * EPS);

	node_open(node, &e->homes[device], attr);
	CHECK(!strcmp(node->info->domain_attr->name, e->names[device]));
	LIST_REMOVE(node, entry);
	LIST_INSERT_HEAD(&e->env->nodes, node, entry);
	node->env = e->env;
	node_enable(node);
	region_open(node, &e->regions[i], sizes[2], FI_REMOTE_READ | FI_REMOTE_WRITE);
	e->open[i] = true;
}

static void introduce(struct estate *e, unsigned i, unsigned j)
{
	char name[NODE_ADDR_MAX];

	node_name(&e->nodes[j], name);
	e->addrs[i][j] = node_insert(&e->nodes[i], name);
}

static void estate_open(struct estate *e, struct env *env)
{
	memset(e, 0, sizeof(*e));
	e->env = env;
	find_devices(e);
	e->count = e->devices * DOMAINS * EPS;
	for (unsigned i = 0; i < e->count; i++) {
		struct node_attr attr = { .caps = CAPS,
					  .share = i % EPS ? &e->nodes[i - i % EPS] : NULL };

		settle(e, i, &attr);
	}
	for (unsigned i = 0; i < e->count; i++)
		for (unsigned j = 0; j < e->count; j++)
			introduce(e, i, j);
}

/* A message from i to j, a write there, a read back. */
static void talk(struct estate *e, unsigned i, unsigned j)
{
	size_t size = sizes[(i + j) % (sizeof(sizes) / sizeof(*sizes))];
	uint64_t seed = i * MAX + j;
	struct xfer send = { .op = XFER_SEND, .tagged = true, .tag = seed, .len = size,
			     .addr = e->addrs[i][j], .context = &send,
			     .buf = pattern_alloc(size) };
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = seed, .len = size,
			     .addr = FI_ADDR_UNSPEC, .context = &recv,
			     .buf = pattern_alloc(size) };
	struct remote remote = region_remote(&e->nodes[j], &e->regions[j]);
	struct rma rma = { .op = RMA_WRITE, .buf = send.buf, .len = size, .addr = send.addr,
			   .remote_addr = remote.addr, .key = remote.key, .context = &rma };
	struct comp comp;

	pattern_fill(send.buf, size, seed);
	REQUIRE_RET(xfer_post(&e->nodes[j], &recv), 0);
	REQUIRE_RET(xfer_post(&e->nodes[i], &send), 0);
	xfer_finish_recv(&e->nodes[j], &recv, &send, size);
	comp_expect(&e->nodes[i], e->nodes[i].txcq, &send, &comp);
	pattern_check(recv.buf, size, seed);
	rma_run(&e->nodes[i], &rma);
	pattern_check(e->regions[j].buf, size, seed);
	rma.op = RMA_READ;
	rma.buf = recv.buf;
	memset(recv.buf, PATTERN_EMPTY, size);
	rma_run(&e->nodes[i], &rma);
	pattern_check(recv.buf, size, seed);
	pattern_free(send.buf);
	pattern_free(recv.buf);
}

static void all_talk(struct estate *e)
{
	for (unsigned i = 0; i < e->count; i++)
		for (unsigned j = 0; j < e->count; j++)
			if (e->open[i] && e->open[j])
				talk(e, i, j);
}

/* The first of a domain owns it and goes last. */
static void leave(struct estate *e, unsigned i)
{
	region_close(&e->regions[i]);
	node_close(&e->nodes[i]);
	e->open[i] = false;
}

static void leave_domain(struct estate *e, unsigned domain)
{
	for (unsigned i = EPS; i--;)
		leave(e, domain * EPS + i);
}

/* From both ends to the middle, or from the middle; those that stay go on talking. */
static void run_order(struct env *env, bool inward)
{
	static struct estate e;
	unsigned domains;

	estate_open(&e, env);
	all_talk(&e);
	domains = e.count / EPS;
	for (unsigned n = 0; n < domains; n++) {
		unsigned step = inward ? n : domains - 1 - n;

		leave_domain(&e, step % 2 ? domains - 1 - step / 2 : step / 2);
		if (n % 2 == 0)
			all_talk(&e);
	}
}

static void run_inward(struct env *env)
{
	run_order(env, true);
}

static void run_outward(struct env *env)
{
	run_order(env, false);
}

/* A domain comes again while others are busy, and is as good as the one before. */
static void run_reopen(struct env *env)
{
	static struct estate e;
	unsigned last;

	estate_open(&e, env);
	last = e.count - EPS;
	for (int n = 0; n < 3; n++) {
		struct node_attr attr = { .caps = CAPS };

		all_talk(&e);
		if (!n)
			leave(&e, last + EPS - 1);
		leave(&e, last);
		settle(&e, last, &attr);
		for (unsigned i = 0; i < e.count; i++) {
			if (!e.open[i])
				continue;
			introduce(&e, i, last);
			introduce(&e, last, i);
		}
	}
	all_talk(&e);
	for (unsigned i = e.count; i--;)
		if (e.open[i])
			leave(&e, i);
}

/* What belongs to one domain is nothing to another. */
static void run_strangers(struct env *env)
{
	struct node_attr attr = { .caps = CAPS };
	struct node mine, theirs;
	struct fid_ep *ep = NULL;

	node_open(&mine, env, &attr);
	node_open(&theirs, env, &attr);
	REQUIRE_RET(fi_endpoint(mine.domain, mine.info, &ep, NULL), 0);
	CHECK_ERROR(fi_ep_bind(ep, &theirs.av->fid, 0));
	CHECK_ERROR(fi_ep_bind(ep, &theirs.txcq->fid, FI_TRANSMIT | FI_RECV));
	CHECK_RET(fi_close(&ep->fid), 0);
	/* A domain with something open stays. */
	CHECK_RET(fi_close(&mine.domain->fid), -FI_EBUSY);
	node_close(&mine);
	node_close(&theirs);
}

static const struct suite_case cases[] = {
	{ "inward", CAPS, run_inward },
	{ "outward", CAPS, run_outward },
	{ "reopen", CAPS, run_reopen },
	{ "strangers", CAPS, run_strangers },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_domains", "Several domains on several devices.", false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
