/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_rma: the nine RMA calls in both directions and every size, with and without descriptors,
 * remote CQ data, fences, and accesses that must fail.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "common/check.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"

#define TARGET_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE)
#define UNATTENDED 1000 /* writes */
#define GAP 24 /* bytes of the region before and behind the target */

static const struct node_attr rma_attr = { .caps = FI_RMA | FI_MSG };

struct rma_test {
	enum rma_op op;
	bool registered;
	uint64_t flags;
};

static void ends_open_as(struct rma_ends *ends, struct env *env, const struct node_attr *attr,
			 size_t size)
{
	rma_ends_open(ends, env, attr, size + 2 * GAP, TARGET_ACCESS);
}

static void ends_open(struct rma_ends *ends, struct env *env, size_t size)
{
	ends_open_as(ends, env, &rma_attr, size);
}

/* Remote CQ data arrives at the target's receive queue, with the length written. */
static void expect_data(struct node *node, uint64_t data, size_t size)
{
	struct comp comp;

	comp_wait(node, node->rxcq, &comp);
	CHECK_RET(comp.err, 0);
	CHECK_EQ(comp.flags & (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_SEND),
		 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	CHECK_EQ(comp.data, data);
	if (comp.len)
		CHECK_EQ(comp.len, size);
}

static void check_target(const struct rma_ends *ends, const struct rma *rma, uint64_t seed)
{
	const uint8_t *base = ends->target.buf;

	pattern_check(base + GAP, rma->len, seed);
	pattern_check_byte(base, GAP, PATTERN_EMPTY);
	pattern_check_byte(base + GAP + rma->len, ends->target.len - GAP - rma->len,
			   PATTERN_EMPTY);
}

static void initiate(struct rma_ends *ends, const struct rma_test *test, struct rma *rma,
		     uint64_t seed)
{
	struct node *node = &ends->node;
	struct fid_mr *mr = NULL;

	rma->buf = pattern_alloc(rma->len);
	rma->addr = node->peer;
	rma->remote_addr = ends->remote.addr + GAP;
	rma->key = ends->remote.key;
	rma->context = rma;
	if (test->registered && rma->len) {
		REQUIRE_RET(fi_mr_reg(node->domain, rma->buf, rma->len, FI_READ | FI_WRITE, 0,
				      ++node->next_key, 0, &mr, NULL), 0);
		rma->desc = fi_mr_desc(mr);
	}
	if (!rma_is_read(rma->op))
		pattern_fill(rma->buf, rma->len, seed);
	rma_run(node, rma);
	if (!rma_is_inject(rma->op))
		pattern_check(rma->buf, rma->len, seed);
	if (mr)
		CHECK_RET(fi_close(&mr->fid), 0);
}

/*
 * The initiator's side of one transfer and the target's. A write without remote CQ data is only
 * known to have arrived when its initiator says so after a read of the last byte came back: a
 * completion may mean "on the wire" only.
 */
static void confirm(struct rma_ends *ends, const struct rma *done)
{
	struct rma read = {
		.op = RMA_READ, .len = 1, .addr = ends->node.peer, .key = ends->remote.key,
		.remote_addr = ends->remote.addr + GAP + (done->len ? done->len - 1 : 0),
	};

	read.buf = pattern_alloc(1);
	read.context = &read;
	rma_run(&ends->node, &read);
	pattern_free(read.buf);
}

static void transfer(struct rma_ends *ends, const struct rma_test *test, bool initiator,
		     size_t size, uint64_t seed)
{
	size_t width = ends->node.info->domain_attr->cq_data_size;
	uint64_t data = width >= 8 ? ~seed : ~seed & ((1ull << (8 * width)) - 1);
	struct rma rma = { .op = test->op, .len = size, .data = data, .flags = test->flags };
	bool has_data = rma_has_data(&rma);

	memset(ends->target.buf, PATTERN_EMPTY, ends->target.len);
	if (!initiator && rma_is_read(rma.op))
		pattern_fill((uint8_t *)ends->target.buf + GAP, size, seed);
	node_sync(&ends->node);
	if (initiator) {
		initiate(ends, test, &rma, seed);
		if (!rma_is_read(rma.op) && !has_data)
			confirm(ends, &rma);
		pattern_free(rma.buf);
	} else if (has_data) {
		expect_data(&ends->node, data, size);
	}
	node_sync(&ends->node);
	if (!initiator && rma_is_read(rma.op))
		pattern_check((uint8_t *)ends->target.buf + GAP, size, seed);
	else if (!initiator)
		check_target(ends, &rma, seed);
}

static size_t op_limit(const struct rma_ends *ends, enum rma_op op)
{
	return rma_is_inject(op) ? ends->node.info->tx_attr->inject_size
				 : ends->node.info->ep_attr->max_msg_size;
}

static void run_op(struct env *env, const struct rma_test *test)
{
	struct rma_ends ends;
	uint64_t seed = 1;

	ends_open(&ends, env, env->opts.max_size);
	for (size_t i = 0; i < env->opts.size_count; i++) {
		size_t size = env->opts.sizes[i];

		if (size > op_limit(&ends, test->op))
			continue;
		transfer(&ends, test, env->server, size, seed++);
		transfer(&ends, test, !env->server, size, seed++);
	}
	comp_expect_none(&ends.node, ends.node.txcq);
	comp_expect_none(&ends.node, ends.node.rxcq);
	rma_ends_close(&ends);
}

static void run_write(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_WRITE });
}

static void run_writev(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_WRITEV });
}

static void run_writemsg(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_WRITEMSG });
}

static void run_writemsg_data(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_WRITEMSG, .flags = FI_REMOTE_CQ_DATA });
}

static void run_inject_write(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_INJECT_WRITE });
}

static void run_writedata(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_WRITEDATA });
}

static void run_inject_writedata(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_INJECT_WRITEDATA });
}

static void run_read(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_READ });
}

static void run_readv(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_READV });
}

static void run_readmsg(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_READMSG });
}

static void run_registered(struct env *env)
{
	run_op(env, &(struct rma_test){ .op = RMA_WRITE, .registered = true });
	run_op(env, &(struct rma_test){ .op = RMA_READV, .registered = true });
}

/* Past the device's largest message, so that the provider must split. */
static void run_large(struct env *env)
{
	static const size_t sizes[] = { (8 << 20) - 1, (8 << 20) + 1, (24 << 20) + 4099 };
	struct rma_ends ends;
	uint64_t seed = 100;

	ends_open(&ends, env, sizes[2]);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		transfer(&ends, &(struct rma_test){ .op = RMA_WRITE }, env->server, sizes[i],
			 seed++);
		transfer(&ends, &(struct rma_test){ .op = RMA_WRITEDATA }, !env->server,
			 sizes[i], seed++);
		transfer(&ends, &(struct rma_test){ .op = RMA_READ }, env->server, sizes[i],
			 seed++);
	}
	rma_ends_close(&ends);
}

/* -W writes in flight to slots of one region, then as many reads back. */
static void run_window(struct env *env)
{
	enum { SLOT = 5000 };
	unsigned count = env->opts.window;
	struct rma *rma = calloc(count, sizeof(*rma));
	struct rma_ends ends;

	if (!rma)
		check_fatal("out of memory");
	ends_open(&ends, env, (size_t)count * SLOT);
	for (unsigned n = 0; n < 2 * count; n++) {
		struct rma *r = &rma[n % count];
		void *buf = r->buf;
		struct comp comp;

		if (n == count) {
			for (unsigned i = 0; i < count; i++) {
				comp_wait(&ends.node, ends.node.txcq, &comp);
				CHECK_RET(comp.err, 0);
			}
		}
		*r = (struct rma){
			.op = n < count ? RMA_WRITE : RMA_READ, .len = SLOT, .context = r,
			.addr = ends.node.peer, .key = ends.remote.key,
			.remote_addr = ends.remote.addr + GAP + (uint64_t)(n % count) * SLOT,
		};
		r->buf = n < count ? pattern_alloc(SLOT) : buf;
		if (n < count)
			pattern_fill(r->buf, SLOT, 500 + n);
		else
			memset(r->buf, PATTERN_EMPTY, SLOT);
		REQUIRE_RET(rma_post(&ends.node, r), 0);
	}
	for (unsigned i = 0; i < count; i++) {
		struct comp comp;

		comp_wait(&ends.node, ends.node.txcq, &comp);
		CHECK_RET(comp.err, 0);
		pattern_check(((struct rma *)comp.context)->buf, SLOT,
			      500 + (uint64_t)((struct rma *)comp.context - rma));
	}
	rma_ends_close(&ends);
	for (unsigned i = 0; i < count; i++)
		pattern_free(rma[i].buf);
	free(rma);
}

/*
 * A write behind a fence waits for the read before it, so the read sees the old bytes. Both halves
 * do it to each other, with both operations in flight together.
 */
static void run_fence(struct env *env)
{
	enum { ROUNDS = 30, SIZE = 300000 };
	struct rma_ends ends;
	struct rma write = { .op = RMA_WRITEMSG, .flags = FI_FENCE | FI_COMPLETION };
	struct rma read = { .op = RMA_READMSG, .flags = FI_COMPLETION };

	ends_open(&ends, env, SIZE);
	memset(ends.target.buf, PATTERN_EMPTY, ends.target.len);
	pattern_fill((uint8_t *)ends.target.buf + GAP, SIZE, 0);
	node_sync(&ends.node);
	write.len = read.len = SIZE;
	write.addr = read.addr = ends.node.peer;
	write.remote_addr = read.remote_addr = ends.remote.addr + GAP;
	write.key = read.key = ends.remote.key;
	write.buf = pattern_alloc(SIZE);
	read.buf = pattern_alloc(SIZE);
	write.context = &write;
	read.context = &read;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct comp comp;

		pattern_fill(write.buf, SIZE, round + 1);
		REQUIRE_RET(rma_post(&ends.node, &read), 0);
		REQUIRE_RET(rma_post(&ends.node, &write), 0);
		comp_wait(&ends.node, ends.node.txcq, &comp);
		CHECK_RET(comp.err, 0);
		CHECK(comp.context == &read);
		comp_wait(&ends.node, ends.node.txcq, &comp);
		CHECK_RET(comp.err, 0);
		pattern_check(read.buf, SIZE, round);
	}
	node_sync(&ends.node);
	check_target(&ends, &write, ROUNDS);
	pattern_free(write.buf);
	pattern_free(read.buf);
	rma_ends_close(&ends);
}

/*
 * An access that must fail: an error completion with the operation's context (or a refusal when
 * posted), memory untouched, and the endpoint works on.
 */
static void expect_refused(struct rma_ends *ends, enum rma_op op, uint64_t addr, uint64_t key)
{
	struct rma rma = {
		.op = op, .len = 64, .addr = ends->node.peer, .remote_addr = addr, .key = key,
	};
	struct comp comp;
	ssize_t ret;

	rma.buf = pattern_alloc(rma.len);
	rma.context = &rma;
	ret = rma_post(&ends->node, &rma);
	if (ret) {
		CHECK_ERROR(ret);
	} else {
		comp_wait(&ends->node, ends->node.txcq, &comp);
		CHECK(comp.err > 0);
		CHECK(comp.context == &rma);
	}
	pattern_check_byte(rma.buf, rma.len, PATTERN_EMPTY);
	pattern_free(rma.buf);
}

static void run_bad_key(struct env *env)
{
	struct rma_ends ends;

	ends_open(&ends, env, 256);
	memset(ends.target.buf, 0x11, ends.target.len);
	node_sync(&ends.node);
	if (!env->server) {
		expect_refused(&ends, RMA_WRITE, ends.remote.addr, ends.remote.key ^ 0x5a5a00);
		expect_refused(&ends, RMA_READ, ends.remote.addr, ends.remote.key ^ 0x5a5a00);
	}
	node_sync(&ends.node);
	pattern_check_byte(ends.target.buf, ends.target.len, 0x11);
	exchange_hello(&ends.node);
	rma_ends_close(&ends);
}

static void run_out_of_range(struct env *env)
{
	struct rma_ends ends;

	ends_open(&ends, env, 256);
	memset(ends.target.buf, 0x11, ends.target.len);
	node_sync(&ends.node);
	if (!env->server) {
		uint64_t end = ends.remote.addr + ends.remote.len;

		expect_refused(&ends, RMA_WRITE, end - 63, ends.remote.key);
		expect_refused(&ends, RMA_READ, end - 63, ends.remote.key);
	}
	node_sync(&ends.node);
	pattern_check_byte(ends.target.buf, ends.target.len, 0x11);
	exchange_hello(&ends.node);
	rma_ends_close(&ends);
}

/* A region registered for reading only refuses a write, and the other way round. */
static void run_access(struct env *env)
{
	struct rma_ends ends;
	struct region only;
	struct remote remote;

	ends_open(&ends, env, 256);
	region_open(&ends.node, &only, 256, FI_REMOTE_READ);
	remote = region_exchange(&ends.node, &only);
	if (!env->server)
		expect_refused(&ends, RMA_WRITE, remote.addr, remote.key);
	node_sync(&ends.node);
	pattern_check_byte(only.buf, only.len, PATTERN_EMPTY);
	region_close(&only);
	region_open(&ends.node, &only, 256, FI_REMOTE_WRITE);
	memset(only.buf, 0x22, only.len);
	remote = region_exchange(&ends.node, &only);
	if (!env->server)
		expect_refused(&ends, RMA_READ, remote.addr, remote.key);
	exchange_hello(&ends.node);
	region_close(&only);
	rma_ends_close(&ends);
}

/* A key is dead once its region is closed. */
static void run_closed_region(struct env *env)
{
	struct rma_ends ends;
	struct region gone;
	struct remote remote;

	ends_open(&ends, env, 256);
	region_open(&ends.node, &gone, 256, TARGET_ACCESS);
	remote = region_exchange(&ends.node, &gone);
	CHECK_RET(fi_close(&gone.mr->fid), 0);
	node_sync(&ends.node);
	if (!env->server)
		expect_refused(&ends, RMA_WRITE, remote.addr, remote.key);
	node_sync(&ends.node);
	pattern_check_byte(gone.buf, gone.len, PATTERN_EMPTY);
	pattern_free(gone.buf);
	exchange_hello(&ends.node);
	rma_ends_close(&ends);
}

static void run_bad_input(struct env *env)
{
	struct rma_ends ends;
	size_t inject;
	struct rma rma;

	ends_open(&ends, env, 4096);
	exchange_hello(&ends.node);
	inject = ends.node.info->tx_attr->inject_size;
	rma = (struct rma){
		.op = RMA_INJECT_WRITE, .buf = pattern_alloc(inject + 1), .len = inject + 1,
		.addr = ends.node.peer, .remote_addr = ends.remote.addr, .key = ends.remote.key,
	};
	CHECK_ERROR(rma_post(&ends.node, &rma));
	rma.op = RMA_INJECT_WRITEDATA;
	CHECK_ERROR(rma_post(&ends.node, &rma));
	comp_expect_none(&ends.node, ends.node.txcq);
	exchange_hello(&ends.node);
	pattern_free(rma.buf);
	rma_ends_close(&ends);
}

/* The capabilities that the provider offers without hints. */
static uint64_t offered_caps(const struct env *env)
{
	const char *name = env->opts.prov_name;
	struct fi_info *list = NULL, *info;
	uint64_t caps = 0;

	REQUIRE_RET(fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), NULL, NULL, 0, NULL,
			       &list), 0);
	for (info = list; info; info = info->next)
		if (info->ep_attr->type == FI_EP_RDM &&
		    (!name || !strcmp(info->fabric_attr->prov_name, name)))
			break;
	if (info)
		caps = info->caps;
	fi_freeinfo(list);
	REQUIRE(caps & FI_RMA);
	return caps;
}

/* As MPI does: takes all that is offered, then puts to ranks that compute, and waits. */
static void run_unattended(struct env *env)
{
	struct node_attr attr = { .caps = offered_caps(env) };
	struct rma rma = { .op = RMA_WRITE, .context = &rma };
	struct rma_ends ends;
	struct comp comp;
	uint64_t word = 0;
	char end;

	ends_open_as(&ends, env, &attr, sizeof(word));
	rma.buf = &word;
	rma.len = sizeof(word);
	rma.addr = ends.node.peer;
	rma.remote_addr = ends.remote.addr;
	rma.key = ends.remote.key;
	/* Connected, and with keys exchanged. */
	if (!env->server)
		rma_run(&ends.node, &rma);
	node_sync(&ends.node);
	if (env->server) {
		oob_recv_silently(&env->oob, &end, 1);
		memcpy(&word, ends.target.buf, sizeof(word));
		CHECK_EQ(word, UNATTENDED);
	} else {
		word = UNATTENDED;
		for (unsigned i = 0; i < UNATTENDED; i++)
			REQUIRE_RET(rma_post(&ends.node, &rma), 0);
		for (unsigned i = 0; i < UNATTENDED; i++)
			comp_expect(&ends.node, ends.node.txcq, &rma, &comp);
		oob_send(&env->oob, "", 1);
	}
	rma_ends_close(&ends);
}

static const struct suite_case cases[] = {
	{ "write", FI_RMA | FI_MSG, run_write },
	{ "writev", FI_RMA | FI_MSG, run_writev },
	{ "writemsg", FI_RMA | FI_MSG, run_writemsg },
	{ "writemsg_data", FI_RMA | FI_MSG, run_writemsg_data },
	{ "inject_write", FI_RMA | FI_MSG, run_inject_write },
	{ "writedata", FI_RMA | FI_MSG, run_writedata },
	{ "inject_writedata", FI_RMA | FI_MSG, run_inject_writedata },
	{ "read", FI_RMA | FI_MSG, run_read },
	{ "readv", FI_RMA | FI_MSG, run_readv },
	{ "readmsg", FI_RMA | FI_MSG, run_readmsg },
	{ "registered", FI_RMA | FI_MSG, run_registered },
	{ "large", FI_RMA | FI_MSG, run_large },
	{ "window", FI_RMA | FI_MSG, run_window },
	{ "unattended", FI_RMA | FI_MSG, run_unattended },
	{ "fence", FI_RMA | FI_MSG | FI_FENCE, run_fence },
	{ "bad_key", FI_RMA | FI_MSG, run_bad_key },
	{ "out_of_range", FI_RMA | FI_MSG, run_out_of_range },
	{ "access", FI_RMA | FI_MSG, run_access },
	{ "closed_region", FI_RMA | FI_MSG, run_closed_region },
	{ "bad_input", FI_RMA | FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_rma", "Remote memory access: all nine calls, sizes, errors.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
