/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fabric.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENTRIES = 16, CQ_SIZE = 65536 };

void bench_check(ssize_t ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

uint64_t bench_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void open_queues(struct bench_fabric *bench)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .size = CQ_SIZE};

	CHECK(fi_av_open(bench->domain, &av_attr, &bench->av, NULL));
	CHECK(fi_cq_open(bench->domain, &cq_attr, &bench->cq, NULL));
}

void bench_open(struct bench_fabric *bench, bool small, enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo();

	if (small) {
		setenv("FI_VERVE_RX_BUFFERS", "32", 1);
		setenv("FI_VERVE_RX_LIMIT", "32", 1);
	}
	hints->caps = FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("verve");
	hints->domain_attr->threading = threading;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &bench->info));
	fi_freeinfo(hints);
	CHECK(fi_fabric(bench->info->fabric_attr, &bench->fabric, NULL));
	CHECK(fi_domain(bench->fabric, bench->info, &bench->domain, NULL));
	open_queues(bench);
}

void bench_open_beside(const struct bench_fabric *first, struct bench_fabric *bench)
{
	*bench = *first;
	open_queues(bench);
}

struct fid_ep *bench_endpoint(const struct bench_fabric *bench)
{
	struct fid_ep *ep;

	CHECK(fi_endpoint(bench->domain, bench->info, &ep, NULL));
	CHECK(fi_ep_bind(ep, &bench->av->fid, 0));
	CHECK(fi_ep_bind(ep, &bench->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_enable(ep));
	return ep;
}

fi_addr_t bench_insert(const struct bench_fabric *bench, const char *name)
{
	fi_addr_t addr;

	if (fi_av_insert(bench->av, name, 1, &addr, 0, NULL) != 1)
		abort();
	return addr;
}

unsigned bench_poll(const struct bench_fabric *bench)
{
	struct fi_cq_entry entry[ENTRIES];
	ssize_t ret = fi_cq_read(bench->cq, entry, ENTRIES);

	if (ret == -FI_EAGAIN)
		return 0;
	CHECK(ret);
	return (unsigned)ret;
}
