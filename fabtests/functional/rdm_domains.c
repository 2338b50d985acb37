/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_domains: one process with several domains on every device that the provider has, and on the
 * addresses of both families: endpoints of all of them talk to each other, and go in odd orders.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define DEVICES 4
#define FAMILIES 2
#define DOMAINS 2 /* in each home */
#define EPS 2	  /* in each domain */
#define HOMES (DEVICES * FAMILIES)
#define MAX (HOMES * DOMAINS * EPS)
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA)

static const size_t sizes[] = { 8, 3000, 100000 };

/* Source addresses: none (the device's first address), and a wildcard of each family. */
static const char *const anywhere[] = { NULL };
static const char *const wildcards[FAMILIES] = { "0.0.0.0", "::" };

struct estate {
	struct env *env;
	struct env homes[HOMES]; /* options that name a device and an address; they own no nodes */
	char names[DEVICES][NODE_DEVICE_MAX];
	unsigned home_count, per_home, count;
	struct node nodes[MAX];
	bool open[MAX];
	struct region regions[MAX];
	fi_addr_t addrs[MAX][MAX];
};

union name {
	char bytes[NODE_ADDR_MAX];
	struct sockaddr sa;
	struct sockaddr_in in; /* the port is at the same place in both families */
	struct sockaddr_in6 in6;
};

/* True if the device has an address that other devices reach: a link-local one is not reached. */
static bool is_home(struct env *home)
{
	struct node_attr attr = { .caps = CAPS };
	struct fi_info *hints = node_hints(home, &attr), *info = NULL;
	int ret = node_getinfo(home, &attr, hints, &info);
	const union name *name = ret ? NULL : info->src_addr;
	bool found = name && (name->sa.sa_family != AF_INET6 ||
			      !IN6_IS_ADDR_LINKLOCAL(&name->in6.sin6_addr));

	fi_freeinfo(info);
	fi_freeinfo(hints);
	return found;
}

static void find_homes(struct estate *e, const char *const *sources, unsigned count)
{
	unsigned devices = node_devices(e->env, CAPS, e->names, DEVICES);

	REQUIRE(devices > 0);
	for (unsigned i = 0; i < devices * count; i++) {
		struct env *home = &e->homes[e->home_count];

		*home = *e->env;
		home->opts.src_addr = sources[i % count];
		home->opts.domain_name = e->names[i / count];
		LIST_INIT(&home->members);
		e->home_count += is_home(home);
	}
}

static struct env *home_of(struct estate *e, unsigned i)
{
	return &e->homes[i / e->per_home];
}

/* Moves the node to the environment of the program, which drives its members while it waits. */
static void settle(struct estate *e, unsigned i, const struct node_attr *attr)
{
	struct env *home = home_of(e, i);
	struct node *node = &e->nodes[i];

	node_open(node, home, attr);
	CHECK(!strcmp(node->info->domain_attr->name, home->opts.domain_name));
	LIST_REMOVE(&node->member, entry);
	LIST_INSERT_HEAD(&e->env->members, &node->member, entry);
	node->env = e->env;
	node_enable(node);
	region_open(node, &e->regions[i], sizes[2], FI_REMOTE_READ | FI_REMOTE_WRITE);
	e->open[i] = true;
}

static bool reaches(const struct estate *e, unsigned i, unsigned j)
{
	return e->open[i] && e->open[j] &&
	       e->nodes[i].info->addr_format == e->nodes[j].info->addr_format;
}

static void introduce(struct estate *e, unsigned i, unsigned j)
{
	char name[NODE_ADDR_MAX];

	if (!reaches(e, i, j))
		return;
	node_name(&e->nodes[j], name);
	e->addrs[i][j] = node_insert(&e->nodes[i], name);
}

static void introduce_all(struct estate *e)
{
	for (unsigned i = 0; i < e->count; i++)
		for (unsigned j = 0; j < e->count; j++)
			introduce(e, i, j);
}

/* Homes, each with room for so many nodes. */
static void estate_init(struct estate *e, struct env *env, const char *const *sources,
			unsigned source_count, unsigned per_home)
{
	memset(e, 0, sizeof(*e));
	e->env = env;
	find_homes(e, sources, source_count);
	e->per_home = per_home;
	e->count = e->home_count * per_home;
}

static void estate_open(struct estate *e, struct env *env)
{
	estate_init(e, env, anywhere, 1, DOMAINS * EPS);
	for (unsigned i = 0; i < e->count; i++) {
		struct node_attr attr = { .caps = CAPS,
					  .share = i % EPS ? &e->nodes[i - i % EPS] : NULL };

		settle(e, i, &attr);
	}
	introduce_all(e);
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
			if (reaches(e, i, j))
				talk(e, i, j);
}

/* The first of a domain owns it and goes last. */
static void leave(struct estate *e, unsigned i)
{
	region_close(&e->regions[i]);
	node_close(&e->nodes[i]);
	e->open[i] = false;
}

static void estate_close(struct estate *e)
{
	for (unsigned i = e->count; i--;)
		if (e->open[i])
			leave(e, i);
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
			introduce(&e, i, last);
			introduce(&e, last, i);
		}
	}
	all_talk(&e);
	estate_close(&e);
}

/* Objects of one domain mean nothing to another. */
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

static bool is_wildcard(const union name *name)
{
	return name->sa.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&name->in6.sin6_addr) :
						name->in.sin_addr.s_addr == htonl(INADDR_ANY);
}

static uint16_t port_of(const struct node *node)
{
	union name name;

	node_name(node, &name);
	return ntohs(name.in.sin_port);
}

/* An endpoint at a wildcard address is reached by its own name. */
static void run_wildcard(struct env *env)
{
	const struct node_attr attr = { .caps = CAPS };
	static struct estate e;

	estate_init(&e, env, wildcards, FAMILIES, 1);
	for (unsigned i = 0; i < e.count; i++) {
		union name name;

		settle(&e, i, &attr);
		node_name(&e.nodes[i], &name);
		CHECK(!is_wildcard(&name));
		CHECK(name.in.sin_port != 0);
	}
	introduce_all(&e);
	all_talk(&e);
	estate_close(&e);
}

/* A port is one endpoint's on each address, and another's on another. */
static void run_one_port(struct env *env)
{
	struct node_attr attr = { .caps = CAPS };
	static struct estate e;
	struct node second;
	char port[8];

	estate_init(&e, env, wildcards, FAMILIES, 1);
	settle(&e, 0, &attr);
	snprintf(port, sizeof(port), "%u", port_of(&e.nodes[0]));
	attr.src_port = port;
	for (unsigned i = 1; i < e.count; i++) {
		settle(&e, i, &attr);
		CHECK_EQ(port_of(&e.nodes[i]), port_of(&e.nodes[0]));
	}
	for (unsigned i = 0; i < e.count; i++) {
		node_open(&second, home_of(&e, i), &attr);
		CHECK_RET(fi_enable(second.ep), -FI_EADDRINUSE);
		node_close(&second);
	}
	introduce_all(&e);
	all_talk(&e);
	estate_close(&e);
}

static const struct suite_case cases[] = {
	{ "inward", CAPS, run_inward },
	{ "outward", CAPS, run_outward },
	{ "reopen", CAPS, run_reopen },
	{ "strangers", CAPS, run_strangers },
	{ "wildcard", CAPS, run_wildcard },
	{ "one_port", CAPS, run_one_port },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_domains", "Several domains on several devices and addresses.",
			   false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
