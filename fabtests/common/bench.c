/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bench: the measured loops' building blocks; nothing here allocates once opened. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "common/bench.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"

#define TAG 0x5ea1
#define BATCH 16
#define CHECK_CLOCK (1u << 20) /* turns between two looks at the time-out */

static const char *op_name(enum bench_op op)
{
	static const char *const names[] = {
		[BENCH_MSG] = "msg", [BENCH_TAGGED] = "tagged", [BENCH_WRITE] = "write",
		[BENCH_WRITEDATA] = "writedata", [BENCH_READ] = "read",
	};

	return names[op];
}

void bench_open(struct bench *b, struct env *env, enum bench_op op)
{
	uint64_t rma = op >= BENCH_WRITE ? FI_RMA : 0;
	struct node_attr attr = { .caps = FI_MSG | FI_TAGGED | rma, .one_cq = true,
				  .cq_size = 4096 };
	size_t len = env->opts.max_size ? env->opts.max_size : 1;

	*b = (struct bench){ .op = op };
	node_start(&b->node, env, &attr);
	region_open(&b->node, &b->tx, len, FI_SEND | FI_READ | FI_WRITE);
	region_open(&b->node, &b->rx, len, FI_RECV | (rma ? FI_REMOTE_WRITE | FI_REMOTE_READ : 0));
	b->remote = region_exchange(&b->node, &b->rx);
}

void bench_close(struct bench *b)
{
	node_sync(&b->node);
	node_close_ep(&b->node);
	region_close(&b->tx);
	region_close(&b->rx);
	node_close(&b->node);
}

static ssize_t read_queue(struct bench *b, struct fi_cq_tagged_entry *entries)
{
	switch (b->node.env->opts.method) {
	case OPTS_SREAD:
		return fi_cq_sread(b->node.txcq, entries, BATCH, NULL, 100);
	case OPTS_YIELD:
	case OPTS_FD:
		sched_yield();
		break;
	case OPTS_SPIN:
		break;
	}
	return fi_cq_read(b->node.txcq, entries, BATCH);
}

static void drain(struct bench *b)
{
	struct fi_cq_tagged_entry entries[BATCH];
	ssize_t n = read_queue(b, entries);

	if (n == -FI_EAGAIN)
		return;
	if (n < 0) {
		struct comp comp;

		comp_wait(&b->node, b->node.txcq, &comp);
		check_fatal("an operation failed: %s", fi_strerror(comp.err));
	}
	for (ssize_t i = 0; i < n; i++) {
		if (entries[i].flags & (FI_RECV | FI_REMOTE_WRITE))
			b->rx_done++;
		else
			b->tx_done++;
	}
}

static void wait_for(struct bench *b, const uint64_t *counter, uint64_t done)
{
	/* A turn that sleeps takes up to 100 ms. */
	unsigned turns = b->node.env->opts.method == OPTS_SREAD ? 1 : CHECK_CLOCK;
	uint64_t end = 0;

	for (unsigned turn = 1; *counter < done; turn++) {
		drain(b);
		if (turn % turns)
			continue;
		if (!end)
			end = env_deadline(b->node.env);
		else if (clock_now() > end)
			check_fatal("no completion within %u s", b->node.env->opts.timeout);
	}
}

void bench_wait_tx(struct bench *b, uint64_t done)
{
	wait_for(b, &b->tx_done, done);
}

void bench_wait_rx(struct bench *b, uint64_t done)
{
	wait_for(b, &b->rx_done, done);
}

static bool injectable(const struct bench *b, size_t size)
{
	return size <= b->node.info->tx_attr->inject_size && b->op != BENCH_READ;
}

static ssize_t inject(struct bench *b, size_t size)
{
	struct node *n = &b->node;

	switch (b->op) {
	case BENCH_MSG:
		return fi_inject(n->ep, b->tx.buf, size, n->peer);
	case BENCH_TAGGED:
		return fi_tinject(n->ep, b->tx.buf, size, n->peer, TAG);
	case BENCH_WRITE:
		return fi_inject_write(n->ep, b->tx.buf, size, n->peer, b->remote.addr,
				       b->remote.key);
	case BENCH_WRITEDATA:
		return fi_inject_writedata(n->ep, b->tx.buf, size, 1, n->peer, b->remote.addr,
					   b->remote.key);
	case BENCH_READ:
		break;
	}
	return -FI_EINVAL;
}

static ssize_t post(struct bench *b, size_t size)
{
	struct node *n = &b->node;
	void *buf = b->tx.buf, *desc = b->tx.desc;

	switch (b->op) {
	case BENCH_MSG:
		return fi_send(n->ep, buf, size, desc, n->peer, b);
	case BENCH_TAGGED:
		return fi_tsend(n->ep, buf, size, desc, n->peer, TAG, b);
	case BENCH_WRITE:
		return fi_write(n->ep, buf, size, desc, n->peer, b->remote.addr, b->remote.key, b);
	case BENCH_WRITEDATA:
		return fi_writedata(n->ep, buf, size, desc, 1, n->peer, b->remote.addr,
				    b->remote.key, b);
	case BENCH_READ:
		return fi_read(n->ep, buf, size, desc, n->peer, b->remote.addr, b->remote.key, b);
	}
	return -FI_EINVAL;
}

void bench_post_tx(struct bench *b, size_t size)
{
	bool small = injectable(b, size);
	ssize_t ret;

	while ((ret = small ? inject(b, size) : post(b, size)) == -FI_EAGAIN)
		drain(b);
	if (ret)
		check_fatal("posting %s: %s", op_name(b->op), fi_strerror((int)-ret));
	b->tx_posted++;
	if (small)
		b->tx_done++;
}

void bench_post_rx(struct bench *b, size_t size)
{
	struct node *n = &b->node;
	ssize_t ret;

	b->rx_posted++;
	if (b->op >= BENCH_WRITE)
		return;
	do {
		if (b->op == BENCH_MSG)
			ret = fi_recv(n->ep, b->rx.buf, size, b->rx.desc, FI_ADDR_UNSPEC, b);
		else
			ret = fi_trecv(n->ep, b->rx.buf, size, b->rx.desc, FI_ADDR_UNSPEC, TAG,
				       0, b);
		if (ret == -FI_EAGAIN)
			drain(b);
	} while (ret == -FI_EAGAIN);
	if (ret)
		check_fatal("posting a receive: %s", fi_strerror((int)-ret));
}

unsigned bench_iterations(const struct env *env, size_t size)
{
	if (env->opts.iterations)
		return env->opts.iterations;
	if (size <= 16384)
		return 1000;
	return size <= 1 << 20 ? 100 : 20;
}

void bench_head(const struct env *env, enum bench_op op)
{
	if (env->server)
		return;
	printf("# %s\n%10s %10s %12s %12s %12s\n", op_name(op), "bytes", "iterations",
	       "median us", "90% us", "MB/s");
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void bench_row(const struct env *env, size_t size, uint64_t *values, unsigned count,
	       double bytes_per_value)
{
	double median;

	if (env->server)
		return;
	qsort(values, count, sizeof(*values), compare);
	median = (double)values[count / 2] / 1000;
	printf("%10zu %10u %12.2f %12.2f %12.2f\n", size, count, median,
	       (double)values[count * 9 / 10] / 1000, median > 0 ? bytes_per_value / median : 0);
}
