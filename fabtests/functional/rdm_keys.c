/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_keys: regions of many segments, keys that the application chooses, offsets instead of virtual
 * addresses: transfers and atomics at every border, and keys that are unknown, closed, taken or
 * used again. The server is the target.
 */
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/exchange.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"

#define ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE)
#define SEGMENTS 8
#define GAP 40 /* bytes of nobody behind each segment */
#define APP_KEY 0xfedcba9876543210

static const size_t lens[SEGMENTS] = { 1000, 1, 4096, 7, 0, 9000, 64, 33 };

/* A region; its segments lie in memory from the last to the first. */
struct target {
	uint8_t *buf;
	size_t size, len; /* bytes of buf; bytes of all segments */
	struct iovec iov[SEGMENTS];
	size_t count;
	struct fid_mr *mr;
};

/* Key and addresses of the other half's region. */
struct names {
	uint64_t key;
	uint64_t addr[SEGMENTS];
};

struct ends {
	struct node node;
	struct target target;
	struct names names;
	bool virt;
};

static int target_register(struct node *node, struct target *target, uint64_t key)
{
	return fi_mr_regv(node->domain, target->iov, target->count, ACCESS, 0, key, 0, &target->mr,
			  NULL);
}

static void target_open(struct node *node, struct target *target, size_t count)
{
	uint8_t *at;

	*target = (struct target){ .count = count };
	for (size_t i = 0; i < count; i++) {
		target->len += lens[i];
		target->size += lens[i] + GAP;
	}
	target->buf = pattern_alloc(target->size);
	at = target->buf + target->size;
	for (size_t i = 0; i < count; i++) {
		at -= lens[i] + GAP;
		target->iov[i] = (struct iovec){ at, lens[i] };
	}
	REQUIRE_RET(target_register(node, target, APP_KEY), 0);
}

static void exchange_names(struct ends *ends)
{
	struct target *target = &ends->target;
	struct names mine = { .key = fi_mr_key(target->mr) };

	for (size_t i = 0; i < target->count; i++)
		mine.addr[i] = (uintptr_t)target->iov[i].iov_base;
	if (oob_exchange(&ends->node.env->oob, &mine, sizeof(mine), &ends->names,
			 sizeof(ends->names)) != sizeof(mine))
		check_fatal("out of step with the other side (keys)");
}

static void ends_open(struct ends *ends, struct env *env, const struct node_attr *attr,
		      size_t count)
{
	node_start(&ends->node, env, attr);
	ends->virt = ends->node.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	CHECK_EQ(ends->virt, !attr->by_offset);
	CHECK_EQ(!(ends->node.info->domain_attr->mr_mode & FI_MR_PROV_KEY), attr->app_keys);
	CHECK(ends->node.info->domain_attr->mr_iov_limit >= SEGMENTS);
	target_open(&ends->node, &ends->target, count);
	if (attr->app_keys)
		CHECK_EQ(fi_mr_key(ends->target.mr), APP_KEY);
	exchange_names(ends);
}

static void ends_close(struct ends *ends)
{
	node_sync(&ends->node);
	if (ends->target.mr)
		CHECK_RET(fi_close(&ends->target.mr->fid), 0);
	node_close(&ends->node);
	pattern_free(ends->target.buf);
}

/* How the byte at a position of the region is addressed. */
static uint64_t addr_of(const struct ends *ends, size_t position)
{
	size_t offset = position;

	if (!ends->virt)
		return position;
	for (size_t i = 0; i < ends->target.count; i++) {
		if (offset < lens[i])
			return ends->names.addr[i] + offset;
		offset -= lens[i];
	}
	return 0;
}

static void move(struct ends *ends, enum rma_op op, void *buf, size_t from, size_t len)
{
	struct rma rma = {
		.op = op, .buf = buf, .len = len, .addr = ends->node.peer,
		.remote_addr = addr_of(ends, from), .key = ends->names.key,
	};

	rma.context = &rma;
	rma_run(&ends->node, &rma);
}

static void write_and_read(struct ends *ends, size_t from, size_t len, uint64_t seed)
{
	uint8_t *buf = pattern_alloc(len);

	pattern_fill(buf, len, seed);
	move(ends, seed % 2 ? RMA_WRITEV : RMA_WRITE, buf, from, len);
	memset(buf, PATTERN_EMPTY, len);
	move(ends, seed % 2 ? RMA_READV : RMA_READ, buf, from, len);
	pattern_check(buf, len, seed);
	pattern_free(buf);
}

/* Before, at and behind each border, one byte and many; then everything. */
static void cross_borders(struct ends *ends)
{
	static const size_t some[] = { 1, 2, 10, 1100, 6000 };
	size_t border = 0, all = ends->target.len;
	uint64_t seed = 1;

	for (size_t i = 0; i < ends->target.count; border += lens[i++])
		for (size_t before = 0; before <= 3; before++)
			for (size_t j = 0; j < sizeof(some) / sizeof(*some); j++)
				if (before <= border && border - before + some[j] <= all)
					write_and_read(ends, border - before, some[j], seed++);
	write_and_read(ends, 0, all, 999);
}

static void check_all(const struct target *target, uint64_t seed)
{
	uint8_t *all = pattern_alloc(target->len);
	size_t position = 0;

	for (size_t i = 0; i < target->count; i++) {
		memcpy(all + position, target->iov[i].iov_base, lens[i]);
		pattern_check_byte((uint8_t *)target->iov[i].iov_base + lens[i], GAP,
				   PATTERN_EMPTY);
		position += lens[i];
	}
	pattern_check(all, target->len, seed);
	pattern_free(all);
}

static void run_borders(struct env *env, bool app_keys, bool by_offset, size_t count)
{
	struct node_attr attr = {
		.caps = FI_RMA | FI_MSG, .app_keys = app_keys, .by_offset = by_offset };
	struct ends ends;

	ends_open(&ends, env, &attr, count);
	if (!env->server)
		cross_borders(&ends);
	node_sync(&ends.node);
	if (env->server)
		check_all(&ends.target, 999);
	exchange_hello(&ends.node);
	ends_close(&ends);
}

static void run_app_keys(struct env *env)
{
	run_borders(env, true, false, 1);
	run_borders(env, true, true, 1);
}

static void run_offset(struct env *env)
{
	run_borders(env, false, true, 1);
}

static void run_segments(struct env *env)
{
	run_borders(env, false, false, SEGMENTS);
	run_borders(env, false, true, SEGMENTS);
}

static void run_app_segments(struct env *env)
{
	run_borders(env, true, false, SEGMENTS);
	run_borders(env, true, true, SEGMENTS);
}

/* The first word of a segment, added to from the border before it. */
static void run_atomics(struct env *env)
{
	struct node_attr attr = {
		.caps = FI_RMA | FI_ATOMIC | FI_MSG, .app_keys = true, .by_offset = true };
	uint8_t ones[24], before[24], after[24];
	struct ends ends;

	memset(ones, 1, sizeof(ones));
	ends_open(&ends, env, &attr, SEGMENTS);
	memset(ends.target.buf, 3, ends.target.size);
	node_sync(&ends.node);
	for (size_t border = 1000; !env->server && border < ends.target.len - 12; border += 4100) {
		struct atomic atomic = {
			.call = ATOMIC_FETCH, .datatype = FI_UINT8, .op = FI_SUM, .count = 24,
			.buf = ones, .result = before, .addr = ends.node.peer,
			.remote_addr = border - 12, .key = ends.names.key,
		};

		atomic.context = &atomic;
		atomic_run(&ends.node, &atomic);
		pattern_check_byte(before, sizeof(before), 3);
		move(&ends, RMA_READ, after, border - 12, sizeof(after));
		pattern_check_byte(after, sizeof(after), 4);
	}
	ends_close(&ends);
}

/* The operation fails alone; later ones succeed. */
static void expect_refused(struct ends *ends, enum rma_op op, uint64_t addr, uint64_t key)
{
	struct rma rma = {
		.op = op, .len = 64, .addr = ends->node.peer, .remote_addr = addr, .key = key,
	};
	struct comp comp;

	rma.buf = pattern_alloc(rma.len);
	rma.context = &rma;
	REQUIRE_RET(rma_post(&ends->node, &rma), 0);
	comp_expect_error(&ends->node, ends->node.txcq, &rma, FI_EACCES, &comp);
	pattern_check_byte(rma.buf, rma.len, PATTERN_EMPTY);
	pattern_free(rma.buf);
}

static const struct node_attr app_attr = {
	.caps = FI_RMA | FI_MSG, .app_keys = true, .by_offset = true };

static void run_unknown(struct env *env)
{
	struct ends ends;

	ends_open(&ends, env, &app_attr, SEGMENTS);
	for (uint64_t i = 1; !env->server && i <= 20; i++) {
		expect_refused(&ends, i % 2 ? RMA_READ : RMA_WRITE, 0, APP_KEY + i);
		write_and_read(&ends, 0, 64, i);
	}
	for (size_t i = 0; !env->server && i < 64; i += 7)
		expect_refused(&ends, RMA_READ, ends.target.len - i, APP_KEY);
	exchange_hello(&ends.node);
	ends_close(&ends);
}

static void run_revoked(struct env *env)
{
	struct ends ends;

	ends_open(&ends, env, &app_attr, SEGMENTS);
	if (!env->server)
		write_and_read(&ends, 0, ends.target.len, 1);
	node_sync(&ends.node);
	CHECK_RET(fi_close(&ends.target.mr->fid), 0);
	ends.target.mr = NULL;
	memset(ends.target.buf, PATTERN_EMPTY, ends.target.size);
	exchange_hello(&ends.node); /* after it, the revocation is there */
	if (!env->server) {
		expect_refused(&ends, RMA_WRITE, 0, APP_KEY);
		expect_refused(&ends, RMA_READ, 0, APP_KEY);
	}
	exchange_hello(&ends.node);
	pattern_check_byte(ends.target.buf, ends.target.size, PATTERN_EMPTY);
	ends_close(&ends);
}

/* The same key, now of other memory. */
static void run_again(struct env *env)
{
	struct ends ends;

	ends_open(&ends, env, &app_attr, SEGMENTS);
	for (uint64_t round = 0; round < 10; round++) {
		struct target old = ends.target;
		struct fid_mr *taken;

		if (!env->server)
			write_and_read(&ends, 0, ends.target.len, 7 + round);
		node_sync(&ends.node);
		if (env->server)
			check_all(&ends.target, 7 + round);
		CHECK_RET(fi_mr_reg(ends.node.domain, old.buf, 8, ACCESS, 0, APP_KEY, 0, &taken,
				    NULL), -FI_ENOKEY);
		CHECK_RET(fi_close(&old.mr->fid), 0);
		memset(old.buf, PATTERN_EMPTY, old.size);
		target_open(&ends.node, &ends.target, SEGMENTS);
		exchange_hello(&ends.node);
		pattern_check_byte(old.buf, old.size, PATTERN_EMPTY);
		pattern_free(old.buf);
	}
	ends_close(&ends);
}

static const struct suite_case cases[] = {
	{ "app_keys", FI_RMA | FI_MSG, run_app_keys },
	{ "offset", FI_RMA | FI_MSG, run_offset },
	{ "segments", FI_RMA | FI_MSG, run_segments },
	{ "app_segments", FI_RMA | FI_MSG, run_app_segments },
	{ "atomics", FI_RMA | FI_ATOMIC | FI_MSG, run_atomics },
	{ "unknown", FI_RMA | FI_MSG, run_unknown },
	{ "revoked", FI_RMA | FI_MSG, run_revoked },
	{ "again", FI_RMA | FI_MSG, run_again },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_keys", "Keys: the application's, of many segments, from zero.",
			   true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
