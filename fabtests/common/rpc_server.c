/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_server: tasks, one for each call, and the clients by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rpc.h"

static void take_request(void *arg, const void *buf, size_t len, uint32_t tag)
{
	struct rpc_server *s = arg;
	struct rpc_request request;
	unsigned i = 0;

	REQUIRE(len >= sizeof(request) && len <= NA_MESSAGE);
	memcpy(&request, buf, sizeof(request));
	REQUIRE(len == sizeof(request) + request.size);
	pattern_check((const uint8_t *)buf + sizeof(request), request.size, request.seed);
	while (i < RPC_TASKS && s->tasks[i].stage != RPC_FREE)
		i++;
	REQUIRE(i < RPC_TASKS);
	s->tasks[i].stage = RPC_NEW;
	s->tasks[i].request = request;
	s->tasks[i].tag = tag;
	s->calls++;
}

static struct rpc_peer *find_peer(struct rpc_server *s, const struct sockaddr_in *name)
{
	struct rpc_peer *room = NULL;

	for (struct rpc_peer *p = s->peers; p < s->peers + RPC_PEERS; p++) {
		if (p->used && p->name.sin_port == name->sin_port &&
		    p->name.sin_addr.s_addr == name->sin_addr.s_addr)
			return p;
		if (!p->used)
			room = p;
	}
	REQUIRE(room != NULL);
	*room = (struct rpc_peer){ .name = *name, .addr = na_insert(&s->na, name), .used = true };
	return room;
}

static void forget_peer(struct rpc_server *s, const struct sockaddr_in *name)
{
	struct rpc_peer *peer = find_peer(s, name);

	na_remove(&s->na, peer->addr);
	peer->used = false;
}

static void answer(struct rpc_server *s, struct rpc_task *task)
{
	uint8_t *out = (uint8_t *)s->answers.buf + (size_t)(task - s->tasks) * NA_MESSAGE;

	pattern_fill(out, task->request.size, task->request.seed + 2);
	task->stage = RPC_ANSWER;
	na_tsend(&s->na, &task->op, task->client, out, task->request.size, s->answers.desc,
		 task->tag);
}

static void begin_task(struct rpc_server *s, struct rpc_task *task)
{
	const struct rpc_request *request = &task->request;

	task->client = find_peer(s, &request->from)->addr;
	switch (request->kind) {
	case RPC_PULL:
		na_bulk_open(&s->na, &task->bulk, request->len, FI_READ);
		task->stage = RPC_TRANSFER;
		na_get(&s->na, &task->op, task->client, &task->bulk, request->addr, request->key);
		break;
	case RPC_PUSH:
		na_bulk_open(&s->na, &task->bulk, request->len, FI_WRITE);
		pattern_fill(task->bulk.buf, request->len, request->seed + 1);
		task->stage = RPC_TRANSFER;
		na_put(&s->na, &task->op, task->client, &task->bulk, request->addr, request->key);
		break;
	case RPC_IGNORE:
		task->stage = RPC_FREE;
		break;
	case RPC_HOLD:
		task->stage = RPC_HELD;
		s->held++;
		break;
	default:
		answer(s, task);
	}
}

static void end_transfer(struct rpc_server *s, struct rpc_task *task)
{
	CHECK_RET(task->op.err, 0);
	CHECK(task->op.flags & FI_RMA);
	if (task->request.kind == RPC_PULL)
		pattern_check(task->bulk.buf, task->request.len, task->request.seed);
	na_mem_close(&task->bulk);
	answer(s, task);
}

/* True if the task still needs its client's address, for its answer. */
static bool needs_client(const struct rpc_task *task)
{
	return task->stage != RPC_FREE && task->stage != RPC_NEW &&
	       (task->stage != RPC_ANSWER || task->op.pending);
}

static bool has_others(const struct rpc_server *s, const struct rpc_task *task)
{
	for (const struct rpc_task *other = s->tasks; other < s->tasks + RPC_TASKS; other++)
		if (other != task && other->client == task->client && needs_client(other))
			return true;
	return false;
}

static void end_answer(struct rpc_server *s, struct rpc_task *task)
{
	bool forgets = task->request.kind == RPC_FORGET || task->request.kind == RPC_BYE;

	/* The client may have had the answer, and called again, before the answer's completion. */
	if (forgets && has_others(s, task))
		return;
	CHECK_RET(task->op.err, 0);
	CHECK(task->op.flags & FI_SEND);
	task->stage = RPC_FREE;
	if (forgets)
		forget_peer(s, &task->request.from);
	s->byes += task->request.kind == RPC_BYE;
}

static bool advance(struct rpc_server *s)
{
	bool busy = false;

	for (struct rpc_task *task = s->tasks; task < s->tasks + RPC_TASKS; task++) {
		if (task->stage == RPC_FREE || task->stage == RPC_HELD || task->op.pending)
			continue;
		busy = true;
		if (task->stage == RPC_NEW)
			begin_task(s, task);
		else if (task->stage == RPC_TRANSFER)
			end_transfer(s, task);
		else
			end_answer(s, task);
	}
	return busy;
}

void rpc_serve(struct rpc_server *s, unsigned byes, unsigned held)
{
	struct na *na = &s->na;

	while (s->byes < byes || s->held < held)
		if (!na_progress(na) && !advance(s))
			na_sleep(&na, 1, s->epoll);
}

struct rpc_server *rpc_server_open(struct env *env)
{
	struct rpc_server *s = calloc(1, sizeof(*s));
	char uri[NA_URI];

	if (!s)
		check_fatal("out of memory");
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	REQUIRE(s->epoll >= 0);
	na_open(&s->na, env, s->epoll, take_request, s);
	na_mem_open(&s->na, &s->answers, RPC_TASKS * NA_MESSAGE);
	na_uri(&s->na, uri);
	oob_send(&env->oob, uri, strlen(uri) + 1);
	return s;
}

void rpc_server_close(struct rpc_server *s)
{
	for (unsigned i = 0; i < RPC_TASKS; i++)
		CHECK_EQ(s->tasks[i].stage, RPC_FREE);
	na_mem_close(&s->answers);
	na_close(&s->na);
	close(s->epoll);
	free(s);
}

/*
 * An answer to a client that is gone. A short one completes when it is copied, if the end of the
 * connection has not been seen before (fi_verve(7), completion levels).
 */
static bool may_end_so(int err)
{
	return !err || err == FI_EHOSTUNREACH || err == FI_ECONNREFUSED || err == FI_ENOTCONN;
}

void rpc_answer_held(struct rpc_server *s)
{
	for (struct rpc_task *task = s->tasks; task < s->tasks + RPC_TASKS; task++) {
		struct na *na = &s->na;

		if (task->stage != RPC_HELD)
			continue;
		answer(s, task);
		while (task->op.pending)
			if (!na_progress(na))
				na_sleep(&na, 1, s->epoll);
		if (!CHECK(may_end_so(task->op.err)))
			printf("the answer ended with %d (%s)\n", task->op.err,
			       fi_strerror(task->op.err));
		task->stage = RPC_FREE;
		forget_peer(s, &task->request.from);
	}
}
