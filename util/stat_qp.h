/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's counters that stand for queue pairs: who has bound one to queue pairs (rdma
 * statistic qp, see rdma-statistic(8)) gets what a port counts for these alone. Few drivers have
 * them. Source: rdma/rdma_netlink.h, by libnl.
 */
#ifndef VERVE_UTIL_STAT_QP_H
#define VERVE_UTIL_STAT_QP_H

#include <stddef.h>
#include <stdint.h>

#include "stat_device.h"

struct nlmsghdr;

struct verve_stat_qp_value {
	char name[VERVE_STAT_NAME];
	uint64_t value;
};

struct verve_stat_qp_counter {
	char device[VERVE_STAT_NAME];
	uint32_t port, id; /* of a device no other counter has this id */
	uint32_t *qps;	   /* numbers of the queue pairs that it stands for */
	size_t qp_count;
	struct verve_stat_qp_value *values;
	size_t value_count;
};

struct verve_stat_qps {
	struct verve_stat_qp_counter *counters;
	size_t count;
};

/*
 * Asks the kernel. None, where there are no devices, or none that can. Ends the program without
 * memory. Free with verve_stat_qps_fini.
 */
void verve_stat_qps_read(struct verve_stat_qps *qps);
/* Adds the counters of one message of the kernel, an answer to RDMA_NLDEV_CMD_STAT_GET. */
void verve_stat_qps_take(struct verve_stat_qps *qps, struct nlmsghdr *message);
void verve_stat_qps_fini(struct verve_stat_qps *qps);

/* The value of that name in an earlier look at this counter; 0: it was not there. */
uint64_t verve_stat_qps_before(const struct verve_stat_qps *before,
			       const struct verve_stat_qp_counter *counter, const char *name);

#endif
