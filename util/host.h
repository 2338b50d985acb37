/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Host: reasons why no device is seen at all, and the limits of the process. */
#ifndef VERVE_UTIL_HOST_H
#define VERVE_UTIL_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "net/device.h"
#include "report.h"

/*
 * Devices and network cards that the kernel has below root/sys ("": the host's), and that are not
 * among ports: a kernel module or libibverbs' driver is missing.
 */
void verve_host_report_missing(struct verve_report *report, const char *root,
			       const struct verve_net_port *ports, size_t count);

/*
 * The file of FI_VERVE_AUTH_KEY_FILE. False: it gives no key, so that domains of applications that
 * have none of their own do not open. The configuration is loaded.
 */
bool verve_host_report_key(struct verve_report *report);

/* RLIMIT_MEMLOCK, where it made the configuration smaller; the configuration is loaded. */
void verve_host_report_memlock(struct verve_report *report);

/* The kernel tells when memory goes, if the configuration relies on it. */
void verve_host_report_watch(struct verve_report *report);

#endif
