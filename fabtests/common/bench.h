/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bench: shared by the benchmarks: one node with one queue, counted completions, one message by the
 * cheapest call for its size, and the table.
 */
#ifndef FABTESTS_BENCH_H
#define FABTESTS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/env.h"
#include "common/node.h"
#include "common/rma.h"

enum bench_op {
	BENCH_MSG,
	BENCH_TAGGED,
	BENCH_WRITE,     /* without an event at the target */
	BENCH_WRITEDATA, /* with remote CQ data */
	BENCH_READ,
};

struct bench {
	struct node node;
	enum bench_op op;
	struct region tx, rx; /* rx is the region that the other half writes or reads */
	struct remote remote;
	uint64_t tx_done, rx_done; /* completions since bench_open */
	uint64_t tx_posted, rx_posted;
};

void bench_open(struct bench *bench, struct env *env, enum bench_op op);
void bench_close(struct bench *bench);

/* Posts an operation of size bytes. An injected one counts as done at once. */
void bench_post_tx(struct bench *bench, size_t size);
/* Posts a receive; nothing for RMA. */
void bench_post_rx(struct bench *bench, size_t size);
/* Wait until so many completions have been seen since bench_open. */
void bench_wait_tx(struct bench *bench, uint64_t done);
void bench_wait_rx(struct bench *bench, uint64_t done);

/* -I, else a count that suits the size. */
unsigned bench_iterations(const struct env *env, size_t size);
/* The table: on the client only. values are in nanoseconds and get sorted. */
void bench_head(const struct env *env, enum bench_op op);
void bench_row(const struct env *env, size_t size, uint64_t *values, unsigned count,
	       double bytes_per_value);

#endif
