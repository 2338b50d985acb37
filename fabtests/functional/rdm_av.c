/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_av: address vectors of both types: inserting in every form, looking up, removing, printing,
 * and refusals. Addresses are IPv4 or IPv6 socket addresses with a port.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/suite.h"
#include "common/xfer.h"

#define COUNT 100
#define FIRST_PORT 20000

/* The addresses of COUNT endpoints on our own host, one behind the other; returns the size. */
static size_t make_addrs(const struct node *node, uint8_t *addrs, unsigned first_port)
{
	char name[NODE_ADDR_MAX];
	size_t len = node_name(node, name);

	REQUIRE(node->info->addr_format == FI_SOCKADDR_IN ||
		node->info->addr_format == FI_SOCKADDR_IN6);
	for (unsigned i = 0; i < COUNT; i++) {
		/* The port is at the same place in both families. */
		((struct sockaddr_in *)name)->sin_port = htons((uint16_t)(first_port + i));
		memcpy(addrs + i * len, name, len);
	}
	return len;
}

static struct fid_av *open_av(struct node *node, enum fi_av_type type)
{
	struct fi_av_attr attr = { .type = type, .count = 4 };
	struct fid_av *av = NULL;

	REQUIRE_RET(fi_av_open(node->domain, &attr, &av, NULL), 0);
	return av;
}

static void check_lookup(struct fid_av *av, fi_addr_t fi_addr, const void *addr, size_t len)
{
	uint8_t got[NODE_ADDR_MAX] = { 0 };
	size_t got_len = sizeof(got);

	CHECK_RET(fi_av_lookup(av, fi_addr, got, &got_len), 0);
	CHECK_EQ(got_len, len);
	CHECK(!memcmp(got, addr, len));
	/* Too little room: cut, with the length that it would have taken. */
	memset(got, 0x33, sizeof(got));
	got_len = 4;
	CHECK_RET(fi_av_lookup(av, fi_addr, got, &got_len), 0);
	CHECK_EQ(got_len, len);
	CHECK(!memcmp(got, addr, 4));
	pattern_check_byte(got + 4, sizeof(got) - 4, 0x33);
}

static void run_type(struct env *env, enum fi_av_type type)
{
	static uint8_t addrs[COUNT * NODE_ADDR_MAX];
	fi_addr_t fi_addrs[COUNT];
	struct fid_av *av;
	struct node node;
	size_t len;

	node_open(&node, env, NULL);
	node_enable(&node);
	len = make_addrs(&node, addrs, FIRST_PORT);
	av = open_av(&node, type);
	CHECK_RET(fi_av_insert(av, addrs, 0, fi_addrs, 0, NULL), 0);
	CHECK_RET(fi_av_insert(av, addrs, 1, fi_addrs, FI_MORE, NULL), 1);
	CHECK_RET(fi_av_insert(av, addrs + len, COUNT - 1, fi_addrs + 1, 0, NULL), COUNT - 1);
	for (size_t i = 0; i < COUNT; i++) {
		if (type == FI_AV_TABLE)
			CHECK_EQ(fi_addrs[i], i);
		for (size_t j = 0; j < i; j++)
			CHECK(fi_addrs[i] != fi_addrs[j]);
		check_lookup(av, fi_addrs[i], addrs + i * len, len);
	}
	/* Removed ones are free again, also in the middle. */
	CHECK_RET(fi_av_remove(av, &fi_addrs[10], 5, 0), 0);
	CHECK_RET(fi_av_insert(av, addrs + 10 * len, 5, &fi_addrs[10], 0, NULL), 5);
	for (size_t i = 0; i < COUNT; i++) {
		if (type == FI_AV_TABLE)
			CHECK_EQ(fi_addrs[i], i);
		check_lookup(av, fi_addrs[i], addrs + i * len, len);
	}
	CHECK_RET(fi_av_remove(av, fi_addrs, COUNT, 0), 0);
	CHECK_RET(fi_close(&av->fid), 0);
	node_close(&node);
}

static void run_map(struct env *env)
{
	run_type(env, FI_AV_MAP);
}

static void run_table(struct env *env)
{
	run_type(env, FI_AV_TABLE);
}

/* A table takes no array for the results. */
static void run_table_null(struct env *env)
{
	static uint8_t addrs[COUNT * NODE_ADDR_MAX];
	struct fid_av *av;
	struct node node;
	size_t len;

	node_open(&node, env, NULL);
	node_enable(&node);
	len = make_addrs(&node, addrs, FIRST_PORT);
	av = open_av(&node, FI_AV_TABLE);
	CHECK_RET(fi_av_insert(av, addrs, COUNT, NULL, 0, NULL), COUNT);
	for (size_t i = 0; i < COUNT; i++)
		check_lookup(av, i, addrs + i * len, len);
	CHECK_RET(fi_close(&av->fid), 0);
	node_close(&node);
}

/* The same address again: the same entry, and it stays until removed as often. */
static void run_duplicate(struct env *env)
{
	static uint8_t addrs[COUNT * NODE_ADDR_MAX];
	fi_addr_t first = FI_ADDR_NOTAVAIL, second = FI_ADDR_NOTAVAIL;
	struct fid_av *av;
	struct node node;
	size_t len;

	node_open(&node, env, NULL);
	node_enable(&node);
	len = make_addrs(&node, addrs, FIRST_PORT);
	av = open_av(&node, FI_AV_TABLE);
	CHECK_RET(fi_av_insert(av, addrs, 1, &first, 0, NULL), 1);
	CHECK_RET(fi_av_insert(av, addrs, 1, &second, 0, NULL), 1);
	CHECK_EQ(second, first);
	CHECK_RET(fi_av_remove(av, &first, 1, 0), 0);
	check_lookup(av, second, addrs, len);
	CHECK_RET(fi_av_remove(av, &second, 1, 0), 0);
	CHECK_RET(fi_close(&av->fid), 0);
	node_close(&node);
}

static const char *local_node(const struct env *env)
{
	return env->opts.src_addr ? env->opts.src_addr : "127.0.0.1";
}

static void run_insertsvc(struct env *env)
{
	fi_addr_t fi_addr = FI_ADDR_NOTAVAIL;
	struct sockaddr_in got;
	size_t len = sizeof(got);
	struct fid_av *av;
	struct node node;

	node_open(&node, env, NULL);
	av = open_av(&node, FI_AV_TABLE);
	CHECK_RET(fi_av_insertsvc(av, local_node(env), "20007", &fi_addr, 0, NULL), 1);
	CHECK_EQ(fi_addr, 0);
	CHECK_RET(fi_av_lookup(av, fi_addr, &got, &len), 0);
	CHECK_EQ(ntohs(got.sin_port), 20007);
	CHECK(fi_av_insertsvc(av, "no.such.host.invalid", "20007", &fi_addr, 0, NULL) <= 0);
	CHECK_RET(fi_close(&av->fid), 0);
	node_close(&node);
}

/* The IP address of a name as text, of INET6_ADDRSTRLEN bytes. */
static const char *host_of(const void *name, char *text)
{
	const struct sockaddr_in *in = name;
	const struct sockaddr_in6 *in6 = name;

	if (in->sin_family == AF_INET6)
		return inet_ntop(AF_INET6, &in6->sin6_addr, text, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET, &in->sin_addr, text, INET6_ADDRSTRLEN);
}

/* All services of a node before the next node. */
static void run_insertsym(struct env *env)
{
	static const char *const in[] = { "10.1.1.255", "10.1.2.0" };
	static const char *const in6[] = { "fd00::ffff", "fd00::1:0" };
	const char *const *hosts;
	fi_addr_t fi_addrs[6];
	struct fid_av *av;
	struct node node;

	node_open(&node, env, NULL);
	hosts = node.info->addr_format == FI_SOCKADDR_IN6 ? in6 : in;
	av = open_av(&node, FI_AV_TABLE);
	CHECK_RET(fi_av_insertsym(av, hosts[0], 2, "5000", 3, fi_addrs, 0, NULL), 6);
	for (size_t i = 0; i < 6; i++) {
		char got[NODE_ADDR_MAX] = { 0 }, text[INET6_ADDRSTRLEN];
		size_t len = sizeof(got);

		CHECK_EQ(fi_addrs[i], i);
		CHECK_RET(fi_av_lookup(av, fi_addrs[i], got, &len), 0);
		CHECK(!strcmp(host_of(got, text), hosts[i / 3]));
		CHECK_EQ(ntohs(((struct sockaddr_in *)got)->sin_port), 5000 + i % 3);
	}
	CHECK_RET(fi_close(&av->fid), 0);
	node_close(&node);
}

static void run_straddr(struct env *env)
{
	char name[NODE_ADDR_MAX], text[128], small[128], want[128], host[INET6_ADDRSTRLEN];
	size_t len = sizeof(text), small_len = 8;
	struct sockaddr_in *sin = (struct sockaddr_in *)name;
	struct node node;

	node_open(&node, env, NULL);
	node_enable(&node);
	node_name(&node, name);
	snprintf(want, sizeof(want),
		 sin->sin_family == AF_INET6 ? "fi_sockaddr_in6://[%s]:%u" :
					       "fi_sockaddr_in://%s:%u",
		 host_of(name, host), ntohs(sin->sin_port));
	CHECK(fi_av_straddr(node.av, name, text, &len) == text);
	if (!CHECK(!strcmp(text, want)))
		printf("got \"%s\", expected \"%s\"\n", text, want);
	CHECK_EQ(len, strlen(want) + 1);
	memset(small, 0x55, sizeof(small));
	CHECK(fi_av_straddr(node.av, name, small, &small_len) == small);
	CHECK_EQ(small_len, strlen(want) + 1);
	CHECK(memchr(small, 0, 8) != NULL);
	CHECK(!strncmp(small, want, 7));
	pattern_check_byte(small + 8, sizeof(small) - 8, 0x55);
	node_close(&node);
}

/* A bad address between good ones: its own error, the others are inserted. */
static void run_sync_err(struct env *env)
{
	static uint8_t addrs[COUNT * NODE_ADDR_MAX];
	fi_addr_t fi_addrs[3] = { 0, 0, 0 };
	int errors[3] = { -1, -1, -1 };
	struct fid_av *av;
	struct node node;
	size_t len;

	node_open(&node, env, NULL);
	node_enable(&node);
	len = make_addrs(&node, addrs, FIRST_PORT);
	((struct sockaddr_in *)(addrs + len))->sin_family = AF_UNSPEC;
	av = open_av(&node, FI_AV_MAP);
	CHECK_RET(fi_av_insert(av, addrs, 3, fi_addrs, FI_SYNC_ERR, errors), 2);
	CHECK_EQ(errors[0], 0);
	CHECK(errors[1] > 0);
	CHECK_EQ(errors[2], 0);
	CHECK(fi_addrs[0] != FI_ADDR_NOTAVAIL);
	CHECK_EQ(fi_addrs[1], FI_ADDR_NOTAVAIL);
	CHECK(fi_addrs[2] != FI_ADDR_NOTAVAIL);
	CHECK_RET(fi_close(&av->fid), 0);
	node_close(&node);
}

/* Nodes and services that are none: the error of each, none inserted, the next one unharmed. */
static void run_bad_names(struct env *env)
{
	fi_addr_t fi_addrs[4] = { 1, 2, 3, 4 };
	int errors[4] = { -1, -1, -1, -1 };
	char longest[400];
	struct fid_av *av;
	struct node node;

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	node_open(&node, env, NULL);
	av = open_av(&node, FI_AV_TABLE);
	CHECK_ERROR(fi_av_insertsvc(av, NULL, "20007", fi_addrs, 0, NULL));
	CHECK_ERROR(fi_av_insertsvc(av, "nonsense", NULL, fi_addrs, 0, NULL));
	CHECK(fi_av_insertsvc(av, longest, "20007", fi_addrs, 0, NULL) <= 0);
	CHECK_EQ(fi_addrs[0], FI_ADDR_NOTAVAIL);
	CHECK(fi_av_insertsvc(av, local_node(env), "no_such_service", fi_addrs, 0, NULL) <= 0);
	CHECK(fi_av_insertsvc(av, local_node(env), "0", fi_addrs, 0, NULL) <= 0);
	CHECK(fi_av_insertsvc(av, "no.such.host.invalid", "20007", fi_addrs, FI_SYNC_ERR,
			      errors) <= 0);
	CHECK(errors[0] > 0);
	CHECK_ERROR(fi_av_insertsym(av, NULL, 1, "5000", 1, fi_addrs, 0, NULL));
	CHECK_ERROR(fi_av_insertsym(av, "10.1.1.1", 1, NULL, 1, fi_addrs, 0, NULL));
	/* Ports end at 65535, addresses at 255.255.255.255. */
	CHECK_ERROR(fi_av_insertsym(av, "10.1.1.1", 1, "65534", 4, fi_addrs, 0, NULL));
	CHECK_RET(fi_av_insertsym(av, "10.1.1.1", 0, "5000", 4, fi_addrs, 0, NULL), 0);
	CHECK_RET(fi_av_insertsym(av, "no.such.host.invalid", 2, "5000", 2, fi_addrs, FI_SYNC_ERR,
				  errors), 0);
	for (size_t i = 0; i < 4; i++) {
		CHECK(errors[i] > 0);
		CHECK_EQ(fi_addrs[i], FI_ADDR_NOTAVAIL);
	}
	CHECK_RET(fi_av_insertsvc(av, local_node(env), "20007", fi_addrs, FI_SYNC_ERR, errors), 1);
	CHECK_EQ(errors[0], 0);
	CHECK_EQ(fi_addrs[0], 0);
	CHECK_RET(fi_close(&av->fid), 0);
	node_close(&node);
}

static void run_bad_input(struct env *env)
{
	struct fi_av_attr named = { .type = FI_AV_MAP, .name = "no_such_name", .flags = FI_READ };
	uint8_t addr[NODE_ADDR_MAX];
	fi_addr_t fi_addr = 5;
	size_t len = sizeof(addr);
	struct fid_av *av;
	struct node node;

	node_open(&node, env, NULL);
	node_enable(&node);
	av = open_av(&node, FI_AV_TABLE);
	CHECK_RET(fi_av_lookup(av, 0, addr, &len), -FI_EINVAL);
	CHECK_RET(fi_av_lookup(av, 1ull << 40, addr, &len), -FI_EINVAL);
	CHECK_ERROR(fi_av_remove(av, &fi_addr, 1, 0));
	memset(addr, 0xff, sizeof(addr));
	CHECK(fi_av_insert(av, addr, 1, &fi_addr, 0, NULL) <= 0);
	CHECK_EQ(fi_addr, FI_ADDR_NOTAVAIL);
	CHECK_ERROR(fi_av_insert(av, addr, 1, &fi_addr, FI_MULTI_RECV, NULL));
	CHECK_ERROR(fi_av_insert(av, addr, 1, &fi_addr, FI_SYNC_ERR, NULL));
	CHECK_ERROR(fi_av_insert(av, NULL, 1, &fi_addr, 0, NULL));
	CHECK_ERROR(fi_av_remove(av, NULL, 1, 0));
	CHECK_ERROR(fi_av_remove(av, &fi_addr, 1, FI_MORE));
	CHECK_RET(fi_close(&av->fid), 0);
	CHECK_ERROR(fi_av_open(node.domain, &named, &av, NULL));
	CHECK_RET(fi_close(&node.av->fid), -FI_EBUSY);
	node_close(&node);
}

/* Traffic over an address that was removed and inserted again. */
static void run_reinsert(struct env *env)
{
	char name[NODE_ADDR_MAX];
	size_t len = sizeof(name);
	struct node node;

	node_start(&node, env, NULL);
	exchange_hello(&node);
	CHECK_RET(fi_av_lookup(node.av, node.peer, name, &len), 0);
	for (int i = 0; i < 5; i++) {
		CHECK_RET(fi_av_remove(node.av, &node.peer, 1, 0), 0);
		node_sync(&node);
		node.peer = node_insert(&node, name);
		exchange_hello(&node);
	}
	node_close(&node);
}

#define FLIGHT 32

static size_t flight_size(unsigned i)
{
	static const size_t sizes[] = { 8, 3000, 100000, 0 };

	return sizes[i % 4];
}

/* Sends all; removes the address while they are under way; each completes once, well or not. */
static void remove_in_flight(struct node *node)
{
	struct xfer sends[FLIGHT];
	bool seen[FLIGHT] = { false };
	char name[NODE_ADDR_MAX];
	size_t len = sizeof(name);
	unsigned good = 0;

	CHECK_RET(fi_av_lookup(node->av, node->peer, name, &len), 0);
	for (unsigned i = 0; i < FLIGHT; i++) {
		sends[i] = (struct xfer){ .op = XFER_SEND, .tagged = true, .tag = i,
					  .len = flight_size(i), .addr = node->peer,
					  .buf = pattern_alloc(flight_size(i)),
					  .context = &sends[i] };
		pattern_fill(sends[i].buf, sends[i].len, i);
		REQUIRE_RET(xfer_post(node, &sends[i]), 0);
	}
	CHECK_RET(fi_av_remove(node->av, &node->peer, 1, 0), 0);
	for (unsigned n = 0; n < FLIGHT; n++) {
		struct comp comp;
		size_t i;

		comp_wait(node, node->txcq, &comp);
		i = (size_t)((struct xfer *)comp.context - sends);
		REQUIRE(i < FLIGHT);
		CHECK(!seen[i]);
		seen[i] = true;
		good += !comp.err;
	}
	comp_expect_none(node, node->txcq);
	oob_send(&node->env->oob, seen, sizeof(seen));
	for (unsigned i = 0; i < FLIGHT; i++)
		pattern_free(sends[i].buf);
	printf("removed in flight: %u of %u messages succeeded\n", good, FLIGHT);
	node->peer = node_insert(node, name);
}

/* Every message that comes is whole. Receives without a message are cancelled. */
static void receive_in_flight(struct node *node)
{
	struct xfer recvs[FLIGHT];
	char theirs[FLIGHT];

	for (unsigned i = 0; i < FLIGHT; i++) {
		recvs[i] = (struct xfer){ .op = XFER_RECV, .tagged = true, .tag = i, .len = 100000,
					  .addr = FI_ADDR_UNSPEC, .context = &recvs[i],
					  .buf = pattern_alloc(100000) };
		REQUIRE_RET(xfer_post(node, &recvs[i]), 0);
	}
	node_sync(node);
	oob_recv(&node->env->oob, theirs, sizeof(theirs));
	for (unsigned i = 0; i < FLIGHT; i++)
		fi_cancel(&node->ep->fid, &recvs[i]);
	for (unsigned n = 0; n < FLIGHT; n++) {
		struct comp comp;
		size_t i;

		comp_wait(node, node->rxcq, &comp);
		i = (size_t)((struct xfer *)comp.context - recvs);
		REQUIRE(i < FLIGHT);
		if (comp.err)
			continue;
		CHECK_EQ(comp.len, flight_size((unsigned)i));
		pattern_check(recvs[i].buf, comp.len, i);
	}
	comp_expect_none(node, node->rxcq);
	for (unsigned i = 0; i < FLIGHT; i++)
		pattern_free(recvs[i].buf);
}

/* Removing an address that messages are on their way to, and inserting it again. */
static void run_remove_in_flight(struct env *env)
{
	struct node node;

	node_start(&node, env, NULL);
	exchange_hello(&node);
	for (int i = 0; i < 3; i++) {
		if (env->server) {
			receive_in_flight(&node);
		} else {
			node_sync(&node);
			remove_in_flight(&node);
		}
		node_sync(&node);
		exchange_hello(&node);
	}
	node_close(&node);
}

/* The receiver removes the sender: messages still come, from an address that is not available. */
static void run_remove_sender(struct env *env)
{
	struct node_attr attr = { .caps = FI_MSG | FI_SOURCE };
	char name[NODE_ADDR_MAX];
	size_t len = sizeof(name);
	struct node node;

	node_start(&node, env, &attr);
	exchange_hello(&node);
	CHECK_RET(fi_av_lookup(node.av, node.peer, name, &len), 0);
	for (int i = 0; i < 4; i++) {
		char byte = 0;
		struct xfer x = { .op = env->server ? XFER_RECV : XFER_SEND, .buf = &byte,
				  .len = 1, .context = &x,
				  .addr = env->server ? FI_ADDR_UNSPEC : node.peer };
		struct comp comp;

		if (env->server && i % 2 == 0)
			CHECK_RET(fi_av_remove(node.av, &node.peer, 1, 0), 0);
		else if (env->server)
			node.peer = node_insert(&node, name);
		node_sync(&node);
		if (env->server) {
			REQUIRE_RET(xfer_post(&node, &x), 0);
			comp_wait_from(&node, node.rxcq, &comp);
			CHECK_RET(comp.err, 0);
			CHECK_EQ(comp.src, i % 2 ? node.peer : FI_ADDR_NOTAVAIL);
		} else {
			xfer_send(&node, &x);
		}
		node_sync(&node);
	}
	exchange_hello(&node);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "map", FI_MSG, run_map },
	{ "table", FI_MSG, run_table },
	{ "table_null", FI_MSG, run_table_null },
	{ "duplicate", FI_MSG, run_duplicate },
	{ "insertsvc", FI_MSG, run_insertsvc },
	{ "insertsym", FI_MSG, run_insertsym },
	{ "straddr", FI_MSG, run_straddr },
	{ "sync_err", FI_MSG, run_sync_err },
	{ "reinsert", FI_MSG, run_reinsert },
	{ "remove_in_flight", FI_MSG | FI_TAGGED, run_remove_in_flight },
	{ "remove_sender", FI_MSG | FI_SOURCE, run_remove_sender },
	{ "bad_names", FI_MSG, run_bad_names },
	{ "bad_input", FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_av", "Address vectors.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
