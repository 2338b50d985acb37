/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parallel: completions go to their operations, whichever thread reads them. */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/parallel.h"

#define BATCH 8

struct start {
	void (*fn)(void *arg, unsigned i);
	void *arg;
	unsigned index;
};

struct parallel_op *parallel_op_get(struct parallel_pool *pool)
{
	struct parallel_op *op = calloc(1, sizeof(*op));

	if (!op)
		check_fatal("out of memory");
	op->next = pool->first;
	pool->first = op;
	return op;
}

size_t parallel_pool_close(struct parallel_pool *pool)
{
	struct parallel_op *op;
	size_t count = 0;

	while ((op = pool->first)) {
		CHECK(op->done == 1 || (op->dropped && !op->done));
		pool->first = op->next;
		free(op);
		count++;
	}
	return count;
}

static void finish(struct parallel_op *op, int err, const struct fi_cq_tagged_entry *e)
{
	if (op->done) {
		op->done++;
		check_fail("an operation completed again: flags 0x%llx, error %d",
			   (unsigned long long)e->flags, err);
		return;
	}
	op->err = err;
	op->len = e->len;
	op->flags = e->flags;
	op->data = e->data;
	op->tag = e->tag;
	op->done = 1;
}

/* Another thread may have been faster. */
static size_t read_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_tagged_entry comp;
	ssize_t ret = fi_cq_readerr(cq, &e, 0);

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret != 1 || e.err <= 0)
		check_fatal("fi_cq_readerr: %zd, err %d", ret, e.err);
	comp = (struct fi_cq_tagged_entry){
		.flags = e.flags, .len = e.len, .data = e.data, .tag = e.tag,
	};
	finish(e.op_context, e.err, &comp);
	return 1;
}

static size_t finish_all(struct fid_cq *cq, ssize_t ret, const struct fi_cq_tagged_entry *e)
{
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL)
		return read_error(cq);
	if (ret < 0)
		check_fatal("a completion queue says %zd (%s)", ret, fi_strerror((int)-ret));
	for (ssize_t i = 0; i < ret; i++)
		finish(e[i].op_context, 0, &e[i]);
	return (size_t)ret;
}

size_t parallel_read(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[BATCH];

	return finish_all(cq, fi_cq_read(cq, e, BATCH), e);
}

size_t parallel_sread(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[BATCH];

	return finish_all(cq, fi_cq_sread(cq, e, BATCH, NULL, -1), e);
}

static void *run(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	start.fn(start.arg, start.index);
	return NULL;
}

void parallel_start(struct parallel *parallel, unsigned count, void (*fn)(void *arg, unsigned i),
		    void *arg)
{
	REQUIRE(count <= PARALLEL_MAX);
	parallel->count = count;
	for (unsigned i = 0; i < count; i++) {
		struct start *start = malloc(sizeof(*start));

		if (!start)
			check_fatal("out of memory");
		*start = (struct start){ fn, arg, i };
		REQUIRE(!pthread_create(&parallel->threads[i], NULL, run, start));
	}
}

void parallel_join(struct parallel *parallel)
{
	for (unsigned i = 0; i < parallel->count; i++)
		pthread_join(parallel->threads[i], NULL);
}
