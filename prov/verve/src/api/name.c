/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of domains and fabrics: made from a port, and parsed. */
#include "api/name.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void verve_name_format_domain(const struct verve_net_port *port, char *name)
{
	if (port->port_num == 1)
		snprintf(name, VERVE_NET_NAME_MAX, "%s", port->device);
	else
		snprintf(name, VERVE_NET_NAME_MAX, "%.*s:%u", VERVE_NET_NAME_MAX - 5, port->device,
			 port->port_num);
}

int verve_name_parse_domain(const char *name, char *device, uint8_t *port_num)
{
	size_t len = strcspn(name, ":");
	unsigned long number = 1;
	char *end;

	if (!len || len >= VERVE_NET_NAME_MAX)
		return -FI_EINVAL;
	if (name[len]) {
		if (name[len + 1] < '1' || name[len + 1] > '9')
			return -FI_EINVAL;
		number = strtoul(name + len + 1, &end, 10);
		if (*end || number > UINT8_MAX)
			return -FI_EINVAL;
	}
	memcpy(device, name, len);
	device[len] = '\0';
	*port_num = number;
	return 0;
}

/*
 * Ports that can reach each other must have the same name. RoCE v2 is routed like any IP traffic,
 * so only routing tables know which ports reach each other, and the rails of one host are often
 * networks of their own. So all RoCE ports have one name. On InfiniBand, the subnet is the name.
 */
void verve_name_format_fabric(const struct verve_net_port *port, char *name)
{
	const uint8_t *gid = port->addrs[0].gid.raw;

	if (port->ethernet)
		snprintf(name, VERVE_FABRIC_NAME_MAX, VERVE_FABRIC_PREFIX "roce");
	else
		snprintf(name, VERVE_FABRIC_NAME_MAX,
			 VERVE_FABRIC_PREFIX "ib-%02x%02x%02x%02x%02x%02x%02x%02x", gid[0], gid[1],
			 gid[2], gid[3], gid[4], gid[5], gid[6], gid[7]);
}
