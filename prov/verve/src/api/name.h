/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of domains and fabrics, which fi_getinfo(3) reports for each port. Any thread. */
#ifndef VERVE_API_NAME_H
#define VERVE_API_NAME_H

#include <stdint.h>

#include "net/device.h"

/* All names of fabrics begin with it. */
#define VERVE_FABRIC_PREFIX "verve-"

enum { VERVE_FABRIC_NAME_MAX = 32 };

/*
 * Domains are named after their device, "mlx5_0", with the number of any port but the first behind
 * it, "mlx5_0:2". Both texts have room for VERVE_NET_NAME_MAX bytes. -FI_EINVAL: not such a name.
 */
void verve_name_format_domain(const struct verve_net_port *port, char *name);
int verve_name_parse_domain(const char *name, char *device, uint8_t *port_num);

/* The name of a usable port's fabric into name, which has room for VERVE_FABRIC_NAME_MAX bytes. */
void verve_name_format_fabric(const struct verve_net_port *port, char *name);

#endif
