/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of domains and fabrics, which fi_getinfo(3) reports for each port. No state; any thread. */
#ifndef VERVE_API_NAME_H
#define VERVE_API_NAME_H

#include <stdint.h>

#include "net/device.h"

/* The names of all fabrics begin with this text. */
#define VERVE_FABRIC_PREFIX "verve-"

enum { VERVE_FABRIC_NAME_MAX = 32 };

/*
 * A domain has the name of its device, such as "mlx5_0". For another port than the first, the
 * port's number follows: "mlx5_0:2". name and device have room for VERVE_NET_NAME_MAX bytes.
 * -FI_EINVAL: name is not the name of a domain.
 */
void verve_name_format_domain(const struct verve_net_port *port, char *name);
int verve_name_parse_domain(const char *name, char *device, uint8_t *port_num);

/*
 * Writes the name of a usable port's fabric to name, which has room for VERVE_FABRIC_NAME_MAX
 * bytes.
 */
void verve_name_format_fabric(const struct verve_net_port *port, char *name);

#endif
