/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_mercury: remote procedure calls as Mercury makes them: a request into the server's
 * multi-receive buffers, a bulk transfer by the server, a tagged response; every byte is checked.
 * Both sides sleep on their queue's descriptor.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/rpc.h"
#include "common/suite.h"

static unsigned rounds_of(const struct env *env, unsigned standard)
{
	return env->opts.iterations ? env->opts.iterations : standard;
}

/* What Mercury asks of the answer, and both of its ways to name an address. */
static void run_answer(struct env *env)
{
	const char *node = env->opts.src_addr, *name = env->opts.prov_name;
	struct fi_info *info, *other;

	REQUIRE_RET(na_getinfo(env, false, &info), 0);
	REQUIRE_RET(na_getinfo(env, true, &other), 0);
	if (name)
		CHECK(!strcmp(info->fabric_attr->prov_name, name));
	CHECK_EQ(info->addr_format, FI_SOCKADDR_IN);
	CHECK_EQ(info->src_addrlen, sizeof(struct sockaddr_in));
	CHECK_EQ(info->caps & NA_CAPS, NA_CAPS);
	CHECK(info->domain_attr->mr_key_size <= 8);
	CHECK(info->domain_attr->cq_data_size >= 4);
	CHECK(info->domain_attr->tx_ctx_cnt >= 1 && info->domain_attr->rx_ctx_cnt >= 1);
	CHECK(info->domain_attr->name &&
	      !strcmp(info->domain_attr->name, other->domain_attr->name));
	CHECK_EQ(other->src_addrlen, sizeof(struct sockaddr_in));
	if (node) {
		struct sockaddr_in *got = info->src_addr, *by_name = other->src_addr;

		CHECK_EQ(got->sin_addr.s_addr, inet_addr(node));
		CHECK_EQ(by_name->sin_addr.s_addr, inet_addr(node));
	}
	fi_freeinfo(info);
	fi_freeinfo(other);
}

/* The own address as a string: inserted by string, by service and as it is, it is the same. */
static void run_address(struct env *env)
{
	char uri[NA_URI], want[NA_URI], host[INET_ADDRSTRLEN], port[8];
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct sockaddr_in got[2] = { 0 };
	fi_addr_t addrs[2];
	struct na na;

	REQUIRE(epoll >= 0);
	na_open(&na, env, epoll, NULL, NULL);
	na_uri(&na, uri);
	inet_ntop(AF_INET, &na.name.sin_addr, host, sizeof(host));
	snprintf(port, sizeof(port), "%u", ntohs(na.name.sin_port));
	snprintf(want, sizeof(want), "fi_sockaddr_in://%s:%s", host, port);
	if (!CHECK(!strcmp(uri, want)))
		printf("fi_av_straddr says %s, expected %s\n", uri, want);
	CHECK(na.name.sin_port && na.name.sin_addr.s_addr);
	addrs[0] = na_lookup(&na, uri);
	addrs[1] = FI_ADDR_NOTAVAIL;
	REQUIRE_RET(fi_av_insertsvc(na.av, host, port, &addrs[1], 0, NULL), 1);
	for (int i = 0; i < 2; i++) {
		size_t len = sizeof(got[i]);

		CHECK_RET(fi_av_lookup(na.av, addrs[i], &got[i], &len), 0);
		CHECK_EQ(len, sizeof(got[i]));
		CHECK_EQ(got[i].sin_port, na.name.sin_port);
		CHECK_EQ(got[i].sin_addr.s_addr, na.name.sin_addr.s_addr);
	}
	na_remove(&na, addrs[0]);
	if (addrs[1] != addrs[0])
		na_remove(&na, addrs[1]);
	na_close(&na);
	close(epoll);
}

/* Enough small calls to go through the multi-receive buffers many times. */
static void run_rpc(struct env *env)
{
	unsigned rounds = rounds_of(env, 100);

	if (env->server) {
		struct rpc_server *s = rpc_server_open(env);

		rpc_serve(s, 1, 0);
		CHECK_EQ(s->calls, rounds * RPC_WINDOW + 1);
		if (rounds >= 100)
			CHECK(s->na.released >= 2 * NA_BUFFERS);
		rpc_server_close(s);
	} else {
		struct rpc_crowd *crowd = rpc_crowd_open(env, 1);

		for (unsigned n = 0; n < rounds; n++)
			rpc_call_all(crowd, RPC_ECHO, n * 977 % (RPC_BODY_MAX + 1));
		rpc_crowd_close(crowd);
	}
}

static void report_rate(const char *what, size_t size, unsigned calls, uint64_t begin)
{
	double seconds = (double)(clock_now() - begin) / 1e9;

	printf("%s of %zu bytes: %u calls, %.1f us each, %.0f MB/s\n", what, size, calls,
	       seconds / calls * 1e6, (double)size * calls / seconds / 1e6);
}

static void run_sizes(struct env *env, unsigned clients)
{
	unsigned rounds = rounds_of(env, 2);
	struct rpc_crowd *crowd;

	if (env->server) {
		struct rpc_server *s = rpc_server_open(env);

		rpc_serve(s, clients, 0);
		rpc_server_close(s);
		return;
	}
	crowd = rpc_crowd_open(env, clients);
	for (size_t i = 0; i < env->opts.size_count; i++) {
		size_t size = env->opts.sizes[i];

		for (enum rpc_kind kind = RPC_PULL; size && kind <= RPC_PUSH; kind++) {
			uint64_t begin = clock_now();

			for (unsigned n = 0; n < rounds; n++)
				rpc_call_all(crowd, kind, size);
			report_rate(kind == RPC_PULL ? "pull" : "push", size,
				    rounds * RPC_WINDOW * clients, begin);
		}
	}
	rpc_crowd_close(crowd);
}

/* Bulk transfers of the sizes of -S; memory is new and registered anew for each call. */
static void run_bulk(struct env *env)
{
	run_sizes(env, 1);
}

static void run_clients(struct env *env)
{
	run_sizes(env, RPC_CLIENTS);
}

/* A call that is not answered is cancelled; so is one whose answer may be on its way. */
static void cancel_call(struct rpc_crowd *crowd, struct rpc_client *c, enum rpc_kind kind)
{
	struct rpc *call = &c->calls[0];

	rpc_start(c, call, kind, 100);
	if (kind == RPC_IGNORE)
		rpc_crowd_wait(crowd, &call->sent);
	if (call->received.pending)
		CHECK_RET(na_cancel(&c->na, &call->received), 0);
	rpc_crowd_wait(crowd, &call->received);
	rpc_crowd_wait(crowd, &call->sent);
	CHECK_RET(call->sent.err, 0);
	if (kind == RPC_IGNORE || call->received.err) {
		CHECK_RET(call->received.err, FI_ECANCELED);
		CHECK(call->received.flags & FI_RECV);
	} else {
		rpc_check_answer(call);
	}
}

static void run_cancel(struct env *env)
{
	struct rpc_crowd *crowd;

	if (env->server) {
		struct rpc_server *s = rpc_server_open(env);

		rpc_serve(s, 1, 0);
		rpc_server_close(s);
		return;
	}
	crowd = rpc_crowd_open(env, 1);
	for (unsigned n = 0; n < rounds_of(env, 50); n++) {
		cancel_call(crowd, &crowd->clients[0], n % 2 ? RPC_ECHO : RPC_IGNORE);
		rpc_call(crowd, &crowd->clients[0], RPC_ECHO, n);
	}
	rpc_crowd_close(crowd);
}

/* Addresses are removed and inserted again on both sides; clients end, and others come. */
static void run_reconnect(struct env *env)
{
	unsigned rounds = rounds_of(env, 5);
	struct rpc_crowd *crowd;
	struct rpc_client *c;

	if (env->server) {
		struct rpc_server *s = rpc_server_open(env);

		rpc_serve(s, rounds + 1, 0);
		rpc_server_close(s);
		return;
	}
	crowd = rpc_crowd_open(env, 1);
	c = &crowd->clients[0];
	for (unsigned n = 0; n < rounds; n++) {
		rpc_call_all(crowd, RPC_ECHO, 300);
		rpc_call(crowd, c, RPC_FORGET, 10);
		rpc_call_all(crowd, n % 2 ? RPC_PUSH : RPC_PULL, 70000);
		na_remove(&c->na, c->server);
		c->server = na_lookup(&c->na, crowd->uri);
		rpc_call_all(crowd, RPC_ECHO, 4000);
		rpc_call(crowd, c, RPC_BYE, 0);
		rpc_client_close(c);
		rpc_client_open(crowd, 0);
	}
	rpc_crowd_close(crowd);
}

static void run_gone(struct env *env)
{
	struct rpc_crowd *crowd;

	if (env->server) {
		struct rpc_server *s = rpc_server_open(env);

		rpc_serve(s, 0, 1);
		env_sync(env, "held");
		env_sync(env, "gone");
		rpc_answer_held(s);
		env_sync(env, "answered");
		rpc_serve(s, 1, 0);
		rpc_server_close(s);
		return;
	}
	crowd = rpc_crowd_open(env, 1);
	rpc_start(&crowd->clients[0], &crowd->clients[0].calls[0], RPC_HOLD, 100);
	rpc_crowd_wait(crowd, &crowd->clients[0].calls[0].sent);
	env_sync(env, "held");
	rpc_client_close(&crowd->clients[0]);
	env_sync(env, "gone");
	env_sync(env, "answered");
	rpc_client_open(crowd, 0);
	rpc_call_all(crowd, RPC_ECHO, 100);
	rpc_crowd_close(crowd);
}

static const struct suite_case cases[] = {
	{ "answer", NA_CAPS, run_answer },
	{ "address", NA_CAPS, run_address },
	{ "rpc", NA_CAPS, run_rpc },
	{ "bulk", NA_CAPS, run_bulk },
	{ "clients", NA_CAPS, run_clients },
	{ "cancel", NA_CAPS, run_cancel },
	{ "reconnect", NA_CAPS, run_reconnect },
	{ "gone", NA_CAPS, run_gone },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_mercury", "Remote procedure calls as Mercury makes them.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
