/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Devices: each port and GID of this host, used or refused, in the provider's own words. */
#ifndef VERVE_UTIL_DEVICES_H
#define VERVE_UTIL_DEVICES_H

#include <stddef.h>

#include "net/device.h"
#include "report.h"

/*
 * Adds a finding for each port, and one for each GID as a detail. The configuration is loaded.
 * verve_info_choose decides which address of a usable port is offered to applications; its device
 * is opened for a moment, as a domain does.
 */
void verve_devices_report(struct verve_report *report, const struct verve_net_port *ports,
			  size_t count);

/* "mlx5_1:1 eth3" into buf of VERVE_FINDING_TEXT_MAX bytes. */
const char *verve_devices_subject(const struct verve_net_port *port, char *buf);

#endif
