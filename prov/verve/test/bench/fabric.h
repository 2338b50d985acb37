/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What benchmarks of several processes have in common: a fabric with one queue, and the time. */
#ifndef VERVE_TEST_BENCH_FABRIC_H
#define VERVE_TEST_BENCH_FABRIC_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>

enum { BENCH_NAME_MAX = 256 };

/* Of this process; its endpoints share the completion queue. */
struct bench_fabric {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
};

/* Ends the process with a message if ret is negative. */
void bench_check(ssize_t ret, const char *what);
#define CHECK(call) bench_check(call, #call)

/* Nanoseconds. */
uint64_t bench_now(void);
/* The calling thread runs on this processor alone from here on. */
void bench_pin(int cpu);
/*
 * Opens verve's first device. small: with few receive buffers, for many endpoints. threading: what
 * the program promises; FI_THREAD_UNSPEC: nothing.
 */
void bench_open(struct bench_fabric *bench, bool small, enum fi_threading threading);
/* The same domain with an address vector and a queue of its own. */
void bench_open_beside(const struct bench_fabric *first, struct bench_fabric *bench);
struct fid_ep *bench_endpoint(const struct bench_fabric *bench);
/* The address of the endpoint of that name. */
fi_addr_t bench_insert(const struct bench_fabric *bench, const char *name);
/* Reads completions, 16 at most; returns how many. */
unsigned bench_poll(const struct bench_fabric *bench);

#endif
