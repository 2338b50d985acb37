/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_client: clients of one process, and their calls. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rpc.h"

/* Tags run over their 32 bits. */
#define FIRST_TAG (UINT32_MAX - 20)

void rpc_client_open(struct rpc_crowd *crowd, unsigned i)
{
	struct rpc_client *c = &crowd->clients[i];

	memset(c, 0, sizeof(*c));
	na_open(&c->na, crowd->env, crowd->epoll, NULL, NULL);
	na_mem_open(&c->na, &c->messages, 2 * RPC_WINDOW * NA_MESSAGE);
	for (unsigned k = 0; k < RPC_WINDOW; k++) {
		c->calls[k].out = (uint8_t *)c->messages.buf + 2 * k * NA_MESSAGE;
		c->calls[k].in = c->calls[k].out + NA_MESSAGE;
	}
	c->server = na_lookup(&c->na, crowd->uri);
	c->next_tag = FIRST_TAG;
	c->next_seed = 1000 * i;
}

void rpc_client_close(struct rpc_client *c)
{
	na_mem_close(&c->messages);
	na_close(&c->na);
}

struct rpc_crowd *rpc_crowd_open(struct env *env, unsigned count)
{
	struct rpc_crowd *crowd = calloc(1, sizeof(*crowd));

	if (!crowd)
		check_fatal("out of memory");
	crowd->env = env;
	crowd->count = count;
	crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
	REQUIRE(crowd->epoll >= 0);
	oob_recv(&env->oob, crowd->uri, sizeof(crowd->uri));
	for (unsigned i = 0; i < count; i++) {
		crowd->nas[i] = &crowd->clients[i].na;
		rpc_client_open(crowd, i);
	}
	return crowd;
}

void rpc_crowd_wait(struct rpc_crowd *crowd, const struct na_op *op)
{
	while (op->pending) {
		bool some = false;

		for (unsigned i = 0; i < crowd->count; i++)
			some |= na_progress(crowd->nas[i]);
		if (!some)
			na_sleep(crowd->nas, crowd->count, crowd->epoll);
	}
}

void rpc_start(struct rpc_client *c, struct rpc *call, enum rpc_kind kind, size_t size)
{
	bool bulk = kind == RPC_PULL || kind == RPC_PUSH;
	struct rpc_request *request = &call->request;

	*request = (struct rpc_request){ .from = c->na.name, .kind = kind, .seed = c->next_seed };
	c->next_seed += 3;
	call->tag = c->next_tag++;
	if (bulk) {
		na_bulk_open(&c->na, &call->bulk, size,
			     kind == RPC_PULL ? FI_REMOTE_READ : FI_REMOTE_WRITE);
		if (kind == RPC_PULL)
			pattern_fill(call->bulk.buf, size, request->seed);
		request->addr = na_bulk_addr(&c->na, &call->bulk);
		request->key = fi_mr_key(call->bulk.mr);
		request->len = size;
	}
	request->size = (uint32_t)(bulk ? size % 100 : size);
	memcpy(call->out, request, sizeof(*request));
	pattern_fill(call->out + sizeof(*request), request->size, request->seed);
	na_trecv(&c->na, &call->received, c->server, call->in, NA_MESSAGE, c->messages.desc,
		 call->tag);
	na_send(&c->na, &call->sent, c->server, call->out, sizeof(*request) + request->size,
		c->messages.desc, call->tag);
}

void rpc_check_answer(const struct rpc *call)
{
	CHECK(call->received.flags & FI_RECV);
	CHECK(call->received.flags & FI_TAGGED);
	CHECK_EQ(call->received.tag, call->tag);
	CHECK_EQ(call->received.len, call->request.size);
	pattern_check(call->in, call->request.size, call->request.seed + 2);
}

void rpc_finish(struct rpc_crowd *crowd, struct rpc *call)
{
	rpc_crowd_wait(crowd, &call->received);
	rpc_crowd_wait(crowd, &call->sent);
	CHECK_RET(call->sent.err, 0);
	CHECK(call->sent.flags & FI_SEND);
	CHECK_RET(call->received.err, 0);
	rpc_check_answer(call);
	if (call->request.kind == RPC_PUSH)
		pattern_check(call->bulk.buf, call->request.len, call->request.seed + 1);
	if (call->bulk.buf)
		na_mem_close(&call->bulk);
}

void rpc_call_all(struct rpc_crowd *crowd, enum rpc_kind kind, size_t size)
{
	for (unsigned k = 0; k < RPC_WINDOW; k++)
		for (unsigned i = 0; i < crowd->count; i++)
			rpc_start(&crowd->clients[i], &crowd->clients[i].calls[k], kind, size);
	for (unsigned k = 0; k < RPC_WINDOW; k++)
		for (unsigned i = 0; i < crowd->count; i++)
			rpc_finish(crowd, &crowd->clients[i].calls[k]);
}

void rpc_call(struct rpc_crowd *crowd, struct rpc_client *c, enum rpc_kind kind, size_t size)
{
	rpc_start(c, &c->calls[0], kind, size);
	rpc_finish(crowd, &c->calls[0]);
}

void rpc_crowd_close(struct rpc_crowd *crowd)
{
	for (unsigned i = 0; i < crowd->count; i++)
		rpc_call(crowd, &crowd->clients[i], RPC_BYE, 0);
	for (unsigned i = 0; i < crowd->count; i++)
		rpc_client_close(&crowd->clients[i]);
	close(crowd->epoll);
	free(crowd);
}
