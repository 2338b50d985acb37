/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_rma_event: counters of memory regions: the target learns of peers' writes and reads. */
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"

#define COUNT 50
#define SIZE 20000

static const uint64_t access_bits = FI_REMOTE_READ | FI_REMOTE_WRITE;

static void await(struct node *node, struct fid_cntr *cntr, uint64_t value)
{
	REQUIRE_RET(fi_cntr_wait(cntr, value, (int)node->env->opts.timeout * 1000), 0);
	CHECK_EQ(fi_cntr_read(cntr), value);
}

/* A connection, so that the target's first wait is for RMA alone. */
static void open_target(struct node *node, struct env *env, uint64_t caps, struct region *region)
{
	struct node_attr attr = { .caps = FI_MSG | FI_RMA | caps };

	node_start(node, env, &attr);
	region_open(node, region, SIZE, access_bits);
}

static void run_rma(struct node *node, enum rma_op op, const struct remote *remote, void *buf,
		    size_t len)
{
	struct rma rma = { .op = op, .buf = buf, .len = len, .addr = node->peer,
			   .remote_addr = remote->addr, .key = remote->key, .context = &rma };

	rma_run(node, &rma);
}

/* When the count has come, the data has; the target calls nothing but fi_cntr_wait. */
static void run_writes(struct env *env)
{
	struct fid_cntr *cntr;
	struct region region;
	struct remote remote;
	struct node node;
	void *buf = pattern_alloc(SIZE);

	open_target(&node, env, env->server ? FI_RMA_EVENT : 0, &region);
	cntr = node_open_cntr(&node, FI_WAIT_UNSPEC);
	CHECK_RET(fi_mr_bind(region.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	remote = region_exchange(&node, &region);
	for (uint64_t i = 1; i <= COUNT; i++) {
		if (env->server) {
			await(&node, cntr, i);
			pattern_check(region.buf, SIZE, i);
			oob_send(&env->oob, "", 1);
		} else {
			char word;

			pattern_fill(buf, SIZE, i);
			run_rma(&node, RMA_WRITE, &remote, buf, SIZE);
			oob_recv(&env->oob, &word, 1);
			CHECK_EQ(fi_cntr_read(cntr), 0);
		}
	}
	node_sync(&node);
	CHECK_RET(fi_close(&cntr->fid), -FI_EBUSY);
	region_close(&region);
	CHECK_RET(fi_close(&cntr->fid), 0);
	node_close(&node);
	pattern_free(buf);
}

/* The count of a read means that the reader has everything: the memory may change at once. */
static void run_reads(struct env *env)
{
	struct fid_cntr *cntr;
	struct region region;
	struct remote remote;
	struct node node;
	void *buf = pattern_alloc(SIZE);

	open_target(&node, env, env->server ? FI_RMA_EVENT : 0, &region);
	cntr = node_open_cntr(&node, FI_WAIT_UNSPEC);
	CHECK_RET(fi_mr_bind(region.mr, &cntr->fid, FI_REMOTE_READ), 0);
	pattern_fill(region.buf, SIZE, 1);
	remote = region_exchange(&node, &region);
	for (uint64_t i = 1; i <= COUNT; i++) {
		if (env->server) {
			await(&node, cntr, i);
			pattern_fill(region.buf, SIZE, i + 1);
			oob_send(&env->oob, "", 1);
		} else {
			char word;

			run_rma(&node, RMA_READ, &remote, buf, SIZE);
			pattern_check(buf, SIZE, i);
			oob_recv(&env->oob, &word, 1);
		}
	}
	node_sync(&node);
	region_close(&region);
	CHECK_RET(fi_close(&cntr->fid), 0);
	node_close(&node);
	pattern_free(buf);
}

/* Every call, in a window, both ways at once, in two counters of one region. */
static void run_all(struct env *env)
{
	struct fid_cntr *reads, *writes;
	struct region region;
	struct remote remote;
	struct node node;
	void *buf = pattern_alloc(64);
	size_t each = COUNT, read_ops = 0;

	open_target(&node, env, FI_RMA_EVENT, &region);
	reads = node_open_cntr(&node, FI_WAIT_UNSPEC);
	writes = node_open_cntr(&node, FI_WAIT_UNSPEC);
	CHECK_RET(fi_mr_bind(region.mr, &reads->fid, FI_REMOTE_READ), 0);
	CHECK_RET(fi_mr_bind(region.mr, &writes->fid, FI_REMOTE_WRITE), 0);
	remote = region_exchange(&node, &region);
	for (int op = 0; op < RMA_OPS; op++) {
		read_ops += rma_is_read(op);
		for (size_t i = 0; i < each; i++) {
			struct rma rma = { .op = op, .buf = buf, .len = 64, .addr = node.peer,
					   .remote_addr = remote.addr, .key = remote.key };

			REQUIRE_RET(rma_post(&node, &rma), 0);
		}
	}
	await(&node, reads, read_ops * each);
	await(&node, writes, (RMA_OPS - read_ops) * each);
	node_sync(&node);
	region_close(&region);
	CHECK_RET(fi_close(&reads->fid), 0);
	CHECK_RET(fi_close(&writes->fid), 0);
	node_close(&node);
	pattern_free(buf);
}

static void run_bad_input(struct env *env)
{
	struct fid_cntr *cntr, *other;
	struct region region;
	struct node node;

	open_target(&node, env, FI_RMA_EVENT, &region);
	cntr = node_open_cntr(&node, FI_WAIT_UNSPEC);
	other = node_open_cntr(&node, FI_WAIT_UNSPEC);
	CHECK_ERROR(fi_mr_bind(region.mr, &cntr->fid, 0));
	CHECK_ERROR(fi_mr_bind(region.mr, &cntr->fid, FI_SEND));
	CHECK_RET(fi_mr_bind(region.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	CHECK_ERROR(fi_mr_bind(region.mr, &other->fid, FI_REMOTE_WRITE));
	node_sync(&node);
	region_close(&region);
	CHECK_RET(fi_close(&cntr->fid), 0);
	CHECK_RET(fi_close(&other->fid), 0);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "writes", FI_MSG | FI_RMA | FI_RMA_EVENT, run_writes },
	{ "reads", FI_MSG | FI_RMA | FI_RMA_EVENT, run_reads },
	{ "all", FI_MSG | FI_RMA | FI_RMA_EVENT, run_all },
	{ "bad_input", FI_MSG | FI_RMA | FI_RMA_EVENT, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_rma_event", "RMA events: counters of memory regions.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
