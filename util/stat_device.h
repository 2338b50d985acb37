/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's counters of each port of each RDMA device: /sys/class/infiniband/DEVICE/ports/N,
 * counters and hw_counters.
 */
#ifndef VERVE_UTIL_STAT_DEVICE_H
#define VERVE_UTIL_STAT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

enum { VERVE_STAT_NAME = 64 }; /* bytes of a name */

struct verve_stat_counter {
	char device[VERVE_STAT_NAME], port[VERVE_STAT_NAME], name[VERVE_STAT_NAME];
	uint64_t value;
};

struct verve_stat_device {
	struct verve_stat_counter *counters; /* in the order of device, port, name */
	size_t count;
};

/* Reads all counters; without devices there are none. sys: "/sys", or a folder like it. */
void verve_stat_device_read(struct verve_stat_device *device, const char *sys);
void verve_stat_device_fini(struct verve_stat_device *device);

#endif
