/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_atomic: every atomic call with every datatype and operation that the endpoint says it takes,
 * both halves adding to one word, order, limits, counters, and accesses that must fail.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"

#define TARGET_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CAPS (FI_ATOMIC | FI_MSG)
#define ELEMENTS 12 /* of one call, where it takes more than one */
#define GAP 64      /* bytes of the region before and behind the target */
#define SPAN (ELEMENTS * 32)

static const struct node_attr attr = { .caps = CAPS };

/*
 * True if the device executes atomics, on single elements, without the processor. Only the
 * processor knows FI_INT8.
 */
static bool is_by_device(const struct node *node)
{
	size_t count;

	return fi_atomicvalid(node->ep, FI_INT8, FI_SUM, &count) == -FI_EOPNOTSUPP;
}

/* Of each call under test. */
static size_t elements(const struct rma_ends *ends)
{
	return is_by_device(&ends->node) ? 1 : ELEMENTS;
}

static void ends_open(struct rma_ends *ends, struct env *env, size_t size)
{
	rma_ends_open(ends, env, &attr, size + 2 * GAP, TARGET_ACCESS);
}

/* An atomic on this half's view of the other's words. */
static struct atomic atomic_on(const struct rma_ends *ends, enum atomic_call call,
			       enum fi_datatype datatype, enum fi_op op, size_t count)
{
	return (struct atomic){
		.call = call, .datatype = datatype, .op = op, .count = count,
		.addr = ends->node.peer, .remote_addr = ends->remote.addr + GAP,
		.key = ends->remote.key,
	};
}

/* Small numbers in which every comparison comes out in every way. */
static long value_at(size_t i)
{
	return (long)(i * 7 % 11);
}

static long operand_at(size_t i)
{
	return (long)(i * 5 % 9);
}

static long compare_at(size_t i)
{
	return i % 3 ? (long)(i * 3 % 10) : value_at(i);
}

/* Checks the target's elements, and that no byte around them has changed. */
static void check_target(const struct rma_ends *ends, enum fi_datatype datatype, enum fi_op op)
{
	const char *base = ends->target.buf;
	size_t len = elements(ends) * atomic_size(datatype);

	for (size_t i = 0; i < elements(ends); i++)
		CHECK_EQ(atomic_get(base + GAP, datatype, i),
			 atomic_model(op, value_at(i), operand_at(i), compare_at(i)));
	pattern_check_byte(base, GAP, PATTERN_EMPTY);
	pattern_check_byte(base + GAP + len, ends->target.len - GAP - len, PATTERN_EMPTY);
}

/* An update may complete before it is executed. A read behind it shows that it has been. */
static void confirm(struct rma_ends *ends, enum fi_datatype datatype, enum fi_op op)
{
	char result[SPAN];
	struct atomic read = atomic_on(ends, ATOMIC_FETCH, datatype, FI_ATOMIC_READ,
				       elements(ends));

	read.result = result;
	read.context = &read;
	atomic_run(&ends->node, &read);
	for (size_t i = 0; i < elements(ends); i++)
		CHECK_EQ(atomic_get(result, datatype, i),
			 atomic_model(op, value_at(i), operand_at(i), compare_at(i)));
}

static void initiate(struct rma_ends *ends, enum atomic_call call, enum fi_datatype datatype,
		     enum fi_op op)
{
	char buf[SPAN], compare[SPAN], result[SPAN];
	struct atomic atomic = atomic_on(ends, call, datatype, op, elements(ends));

	for (size_t i = 0; i < elements(ends); i++) {
		atomic_put(buf, datatype, i, operand_at(i));
		atomic_put(compare, datatype, i, compare_at(i));
	}
	memset(result, PATTERN_EMPTY, sizeof(result));
	atomic.buf = op == FI_ATOMIC_READ && call == ATOMIC_FETCH ? NULL : buf;
	atomic.compare = compare;
	atomic.result = result;
	atomic.context = &atomic;
	atomic_run(&ends->node, &atomic);
	if (call == ATOMIC_INJECT)
		memset(buf, PATTERN_EMPTY, sizeof(buf));
	for (size_t i = 0; i < elements(ends) && atomic_family(call); i++)
		CHECK_EQ(atomic_get(result, datatype, i), value_at(i));
	confirm(ends, datatype, op);
}

static void exchange(struct rma_ends *ends, enum atomic_call call, enum fi_datatype datatype,
		     enum fi_op op, bool initiator)
{
	memset(ends->target.buf, PATTERN_EMPTY, ends->target.len);
	for (size_t i = 0; i < elements(ends); i++)
		atomic_put((char *)ends->target.buf + GAP, datatype, i, value_at(i));
	node_sync(&ends->node);
	if (initiator)
		initiate(ends, call, datatype, op);
	node_sync(&ends->node);
	if (!initiator)
		check_target(ends, datatype, op);
}

/* All datatypes with all operations. Both halves find the same ones valid. */
static void run_call(struct env *env, enum atomic_call call)
{
	struct rma_ends ends;
	bool turn = false;

	ends_open(&ends, env, SPAN);
	for (int datatype = 0; datatype < ATOMIC_DATATYPES; datatype++)
		for (int op = 0; op < ATOMIC_OPS; op++) {
			size_t count;
			int ret = atomic_valid(&ends.node, call, datatype, op, &count);

			if (ret) {
				CHECK_RET(ret, -FI_EOPNOTSUPP);
				continue;
			}
			if (!CHECK(elements(&ends) == 1 ? count == 1 : count >= ELEMENTS))
				continue;
			turn = !turn;
			exchange(&ends, call, datatype, op, env->server == turn);
		}
	comp_expect_none(&ends.node, ends.node.txcq);
	comp_expect_none(&ends.node, ends.node.rxcq);
	rma_ends_close(&ends);
}

static void run_atomic(struct env *env)
{
	run_call(env, ATOMIC_PLAIN);
}

static void run_atomicv(struct env *env)
{
	run_call(env, ATOMIC_V);
}

static void run_atomicmsg(struct env *env)
{
	run_call(env, ATOMIC_MSG);
}

static void run_inject(struct env *env)
{
	run_call(env, ATOMIC_INJECT);
}

static void run_fetch(struct env *env)
{
	run_call(env, ATOMIC_FETCH);
}

static void run_fetchv(struct env *env)
{
	run_call(env, ATOMIC_FETCHV);
}

static void run_fetchmsg(struct env *env)
{
	run_call(env, ATOMIC_FETCHMSG);
}

static void run_compare(struct env *env)
{
	run_call(env, ATOMIC_COMPARE);
}

static void run_comparev(struct env *env)
{
	run_call(env, ATOMIC_COMPAREV);
}

static void run_comparemsg(struct env *env)
{
	run_call(env, ATOMIC_COMPAREMSG);
}

/* Endpoint and domain agree on every pair, valid or not. */
static void check_query(struct node *node, enum atomic_call call, int datatype, int op)
{
	struct fi_atomic_attr query = { 0 };
	size_t count = 0;
	int ret = atomic_valid(node, call, datatype, op, &count);

	CHECK_RET(fi_query_atomic(node->domain, datatype, op, &query, atomic_family(call)), ret);
	if (ret) {
		CHECK_RET(ret, -FI_EOPNOTSUPP);
		return;
	}
	CHECK_EQ(query.count, count);
	CHECK_EQ(query.size, atomic_size(datatype));
	CHECK(count >= 1);
}

static void run_valid(struct env *env)
{
	static const enum atomic_call calls[] = { ATOMIC_PLAIN, ATOMIC_FETCH, ATOMIC_COMPARE };
	struct fi_atomic_attr query;
	struct node node;

	node_start(&node, env, &attr);
	for (size_t i = 0; i < 3; i++)
		for (int datatype = 0; datatype < ATOMIC_DATATYPES; datatype++)
			for (int op = 0; op < ATOMIC_OPS; op++)
				check_query(&node, calls[i], datatype, op);
	CHECK_RET(fi_query_atomic(node.domain, 99, FI_SUM, &query, 0), -FI_EOPNOTSUPP);
	CHECK_RET(fi_query_atomic(node.domain, FI_INT32, 99, &query, 0), -FI_EOPNOTSUPP);
	CHECK_RET(fi_query_atomic(node.domain, FI_INT32, FI_CSWAP, &query, FI_FETCH_ATOMIC),
		  -FI_EOPNOTSUPP);
	CHECK_ERROR(fi_query_atomic(node.domain, FI_INT32, FI_SUM, &query,
				    FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC));
	node_sync(&node);
	node_close(&node);
}

/* The most elements that fi_atomicvalid grants, and one more. */
static void run_limits(struct env *env)
{
	struct rma_ends ends;
	size_t count = 0;
	struct atomic swap;
	char *buf;

	node_start(&ends.node, env, &attr);
	REQUIRE_RET(fi_compare_atomicvalid(ends.node.ep, FI_UINT64, FI_CSWAP, &count), 0);
	region_open(&ends.node, &ends.target, (count + 1) * 8 + 2 * GAP, TARGET_ACCESS);
	ends.remote = region_exchange(&ends.node, &ends.target);
	memset(ends.target.buf, 0, ends.target.len);
	buf = calloc(3 * (count + 1), 8);
	REQUIRE(buf != NULL);
	node_sync(&ends.node);
	if (!env->server) {
		swap = atomic_on(&ends, ATOMIC_COMPARE, FI_UINT64, FI_CSWAP, count);
		swap.buf = buf;
		swap.compare = buf + (count + 1) * 8;
		swap.result = buf + 2 * (count + 1) * 8;
		swap.context = &swap;
		pattern_fill(buf, count * 8, 1);
		atomic_run(&ends.node, &swap);
		swap.count = count + 1;
		CHECK_RET(atomic_try(&ends.node, &swap), -FI_EMSGSIZE);
		swap.call = ATOMIC_COMPAREMSG;
		CHECK_RET(atomic_try(&ends.node, &swap), -FI_EMSGSIZE);
		pattern_check_byte(swap.result, (count + 1) * 8, 0);
	}
	node_sync(&ends.node);
	if (env->server) {
		pattern_check((char *)ends.target.buf + GAP, count * 8, 1);
		pattern_check_byte((char *)ends.target.buf + GAP + count * 8, 8, 0);
	}
	free(buf);
	rma_ends_close(&ends);
}

/*
 * Each half has -W fetch-adds in flight on one word of the server. The server's processor adds,
 * too, unless devices execute atomics.
 */
static void run_contention(struct env *env)
{
	enum { TOTAL = 2000 };
	unsigned window = env->opts.window, posted = 0, done = 0, own = 0;
	uint64_t one = 1, *results = calloc(TOTAL, sizeof(*results));
	struct rma_ends ends;
	volatile uint64_t *word;
	struct atomic add;
	struct comp comp;

	REQUIRE(results != NULL);
	ends_open(&ends, env, sizeof(*word));
	word = (uint64_t *)((char *)ends.target.buf + GAP);
	*word = 0;
	add = atomic_on(&ends, ATOMIC_FETCH, FI_UINT64, FI_SUM, 1);
	add.buf = &one;
	node_sync(&ends.node);
	if (env->server) {
		char name[NODE_ADDR_MAX];

		node_name(&ends.node, name);
		add.addr = node_insert(&ends.node, name);
		add.remote_addr = (uintptr_t)word;
		if (!(ends.node.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR))
			add.remote_addr = GAP;
		add.key = fi_mr_key(ends.target.mr);
	}
	while (done < TOTAL) {
		while (posted < TOTAL && posted - done < window) {
			add.result = &results[posted];
			add.context = add.result;
			REQUIRE_RET(atomic_post(&ends.node, &add), 0);
			posted++;
		}
		comp_wait(&ends.node, ends.node.txcq, &comp);
		REQUIRE_RET(comp.err, 0);
		done++;
		if (env->server && !is_by_device(&ends.node) && ++own)
			__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	}
	/* The values that one half fetches grow. */
	for (unsigned i = 1; i < TOTAL; i++)
		CHECK(results[i] > results[i - 1]);
	node_sync(&ends.node);
	if (env->server)
		CHECK_EQ(*word, 2 * TOTAL + own);
	free(results);
	rma_ends_close(&ends);
}

/* Each compare-and-swap succeeds only after the one before it. */
static void run_order(struct env *env)
{
	enum { CHAIN = 200 };
	static uint64_t links[CHAIN + 1], results[CHAIN];
	struct rma_ends ends;
	struct comp comp;

	ends_open(&ends, env, 8);
	memset(ends.target.buf, 0, ends.target.len);
	node_sync(&ends.node);
	for (unsigned i = 0; i < CHAIN && !env->server; i++) {
		struct atomic swap = atomic_on(&ends, ATOMIC_COMPARE, FI_UINT64, FI_CSWAP, 1);

		links[i + 1] = i + 1;
		swap.buf = &links[i + 1];
		swap.compare = &links[i];
		swap.result = &results[i];
		swap.context = &results[i];
		REQUIRE_RET(atomic_post(&ends.node, &swap), 0);
	}
	for (unsigned i = 0; i < CHAIN && !env->server; i++) {
		comp_wait(&ends.node, ends.node.txcq, &comp);
		REQUIRE_RET(comp.err, 0);
	}
	for (unsigned i = 0; i < CHAIN && !env->server; i++)
		CHECK_EQ(results[i], i);
	node_sync(&ends.node);
	if (env->server)
		CHECK_EQ(*(uint64_t *)((char *)ends.target.buf + GAP), CHAIN);
	rma_ends_close(&ends);
}

static struct fid_cntr *bind_cntr(struct node *node, uint64_t flags)
{
	struct fid_cntr *cntr = node_open_cntr(node, FI_WAIT_NONE);

	REQUIRE_RET(fi_ep_bind(node->ep, &cntr->fid, flags), 0);
	return cntr;
}

/* Updates count as writes; fetches and compares count as reads. */
static void run_counters(struct env *env)
{
	enum { UPDATES = 7, FETCHES = 5 };
	struct fid_cntr *write, *read;
	uint64_t one = 1, result;
	struct atomic add;
	struct rma_ends ends;

	node_open(&ends.node, env, &attr);
	write = bind_cntr(&ends.node, FI_WRITE);
	read = bind_cntr(&ends.node, FI_READ);
	node_enable(&ends.node);
	node_connect(&ends.node);
	region_open(&ends.node, &ends.target, 8 + 2 * GAP, TARGET_ACCESS);
	ends.remote = region_exchange(&ends.node, &ends.target);
	memset(ends.target.buf, 0, ends.target.len);
	node_sync(&ends.node);
	add = atomic_on(&ends, ATOMIC_INJECT, FI_UINT64, FI_SUM, 1);
	add.buf = &one;
	add.result = &result;
	add.context = &add;
	for (int i = 0; i < UPDATES; i++)
		REQUIRE_RET(atomic_post(&ends.node, &add), 0);
	add.call = ATOMIC_FETCH;
	for (int i = 0; i < FETCHES; i++)
		atomic_run(&ends.node, &add);
	/* Updates may complete after fetches, but they do. */
	for (uint64_t end = env_deadline(env); fi_cntr_read(write) < UPDATES && clock_now() < end;)
		env_progress(env, 0);
	CHECK_EQ(fi_cntr_read(write), UPDATES);
	CHECK_EQ(fi_cntr_read(read), FETCHES);
	CHECK_EQ(fi_cntr_readerr(write), 0);
	CHECK_EQ(result, UPDATES + FETCHES - 1);
	node_sync(&ends.node);
	region_close(&ends.target);
	node_close_ep(&ends.node);
	CHECK_RET(fi_close(&write->fid), 0);
	CHECK_RET(fi_close(&read->fid), 0);
	node_close(&ends.node);
}

/*
 * An access that must fail: an error completion with the operation's context (or a refusal when
 * posted), nothing fetched, and the endpoint works on.
 */
static void expect_refused(struct rma_ends *ends, enum atomic_call call, uint64_t addr,
			   uint64_t key)
{
	uint64_t one = 1, result = 77;
	struct atomic atomic = atomic_on(ends, call, FI_UINT64, FI_SUM, 1);
	struct comp comp;
	ssize_t ret;

	atomic.buf = &one;
	atomic.result = &result;
	atomic.remote_addr = addr;
	atomic.key = key;
	atomic.context = &atomic;
	ret = atomic_post(&ends->node, &atomic);
	if (ret) {
		CHECK_ERROR(ret);
	} else {
		comp_wait(&ends->node, ends->node.txcq, &comp);
		CHECK(comp.err > 0);
		CHECK(comp.context == &atomic);
	}
	CHECK_EQ(result, 77);
}

static void run_refused(struct env *env)
{
	struct rma_ends ends;

	ends_open(&ends, env, 8);
	memset(ends.target.buf, 0x11, ends.target.len);
	node_sync(&ends.node);
	if (!env->server) {
		uint64_t addr = ends.remote.addr, end = addr + ends.remote.len;

		expect_refused(&ends, ATOMIC_PLAIN, addr, ends.remote.key ^ 0x5a5a00);
		expect_refused(&ends, ATOMIC_FETCH, addr, ends.remote.key ^ 0x5a5a00);
		expect_refused(&ends, ATOMIC_PLAIN, end, ends.remote.key);
		expect_refused(&ends, ATOMIC_FETCH, end - 7, ends.remote.key);
	}
	node_sync(&ends.node);
	pattern_check_byte(ends.target.buf, ends.target.len, 0x11);
	exchange_hello(&ends.node);
	rma_ends_close(&ends);
}

/*
 * A region for reading takes no update, a region for writing gives nothing back (a device cannot
 * tell), a closed region does neither.
 */
static void run_access(struct env *env)
{
	static const uint64_t access[] = { FI_REMOTE_READ, FI_REMOTE_WRITE, TARGET_ACCESS };
	static const enum atomic_call calls[] = { ATOMIC_PLAIN, ATOMIC_FETCH, ATOMIC_PLAIN };
	struct rma_ends ends;

	ends_open(&ends, env, 8);
	for (size_t i = 0; i < 3; i++) {
		struct region only;
		struct remote remote;

		region_open(&ends.node, &only, 64, access[i]);
		remote = region_exchange(&ends.node, &only);
		if (access[i] == FI_REMOTE_WRITE && is_by_device(&ends.node)) {
			node_sync(&ends.node);
			region_close(&only);
			continue;
		}
		if (access[i] == TARGET_ACCESS)
			CHECK_RET(fi_close(&only.mr->fid), 0);
		node_sync(&ends.node);
		if (!env->server)
			expect_refused(&ends, calls[i], remote.addr, remote.key);
		node_sync(&ends.node);
		pattern_check_byte(only.buf, only.len, PATTERN_EMPTY);
		if (access[i] == TARGET_ACCESS)
			pattern_free(only.buf);
		else
			region_close(&only);
	}
	exchange_hello(&ends.node);
	rma_ends_close(&ends);
}

static void run_bad_input(struct env *env)
{
	size_t inject, count;
	struct atomic bad;
	struct rma_ends ends;
	char *buf;

	ends_open(&ends, env, 8);
	exchange_hello(&ends.node);
	inject = ends.node.info->tx_attr->inject_size;
	buf = calloc(1, inject + 1);
	REQUIRE(buf != NULL);
	bad = atomic_on(&ends, ATOMIC_INJECT, FI_UINT8, FI_SUM, inject + 1);
	bad.buf = bad.compare = bad.result = buf;
	CHECK_ERROR(atomic_try(&ends.node, &bad));
	bad.count = 1;
	bad.op = FI_CSWAP;
	CHECK_RET(atomic_try(&ends.node, &bad), -FI_EOPNOTSUPP);
	bad.op = FI_ATOMIC_READ;
	CHECK_RET(atomic_try(&ends.node, &bad), -FI_EOPNOTSUPP);
	bad.call = ATOMIC_COMPARE;
	CHECK_RET(atomic_try(&ends.node, &bad), -FI_EOPNOTSUPP);
	bad.call = ATOMIC_FETCH;
	bad.op = (enum fi_op)99;
	CHECK_RET(atomic_try(&ends.node, &bad), -FI_EOPNOTSUPP);
	bad.op = FI_SUM;
	bad.datatype = (enum fi_datatype)99;
	CHECK_RET(atomic_try(&ends.node, &bad), -FI_EOPNOTSUPP);
	CHECK_RET(fi_atomicvalid(ends.node.ep, FI_FLOAT, FI_BOR, &count), -FI_EOPNOTSUPP);
	bad.datatype = FI_UINT8;
	bad.call = ATOMIC_FETCHMSG;
	bad.count = 3;
	bad.flags = FI_PEEK;
	CHECK_RET(atomic_try(&ends.node, &bad), -FI_EBADFLAGS);
	comp_expect_none(&ends.node, ends.node.txcq);
	exchange_hello(&ends.node);
	free(buf);
	rma_ends_close(&ends);
}

static const struct suite_case cases[] = {
	{ "atomic", CAPS, run_atomic },
	{ "atomicv", CAPS, run_atomicv },
	{ "atomicmsg", CAPS, run_atomicmsg },
	{ "inject", CAPS, run_inject },
	{ "fetch", CAPS, run_fetch },
	{ "fetchv", CAPS, run_fetchv },
	{ "fetchmsg", CAPS, run_fetchmsg },
	{ "compare", CAPS, run_compare },
	{ "comparev", CAPS, run_comparev },
	{ "comparemsg", CAPS, run_comparemsg },
	{ "valid", CAPS, run_valid },
	{ "limits", CAPS, run_limits },
	{ "contention", CAPS, run_contention },
	{ "order", CAPS, run_order },
	{ "counters", CAPS, run_counters },
	{ "refused", CAPS, run_refused },
	{ "access", CAPS, run_access },
	{ "bad_input", CAPS, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_atomic",
			   "Atomics: all ten calls, datatypes and operations, order, errors.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
