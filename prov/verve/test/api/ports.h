/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ports for the tests of getinfo: two ports of one RoCE device, the first with a VLAN and several
 * addresses; one InfiniBand port; one port with a link-local address only; and one that is down.
 */
#ifndef VERVE_TEST_API_PORTS_H
#define VERVE_TEST_API_PORTS_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/device.h"

static inline void ports_addr(struct verve_addr *addr, sa_family_t family, const char *ip,
			      uint32_t scope)
{
	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = family;
	if (family == AF_INET) {
		cr_assert_eq(inet_pton(family, ip, &addr->in.sin_addr), 1);
	} else {
		cr_assert_eq(inet_pton(family, ip, &addr->in6.sin6_addr), 1);
		addr->in6.sin6_scope_id = scope;
	}
}

static inline struct verve_net_port ports_port(const char *device, uint8_t number,
					       const char *netdev, size_t addrs)
{
	struct verve_net_port port = {
		.port_num = number,
		.ethernet = true,
		.usable = addrs > 0,
		.mtu = 4096,
		.speed = 100000000000,
		.limits = {.mr = 1 << 20},
		.firmware = "16.35.1012",
		.driver = "mlx5_core",
		.link_addr = "52:54:00:00:00:01",
		.vendor_id = 0x2c9,
		.vendor_part_id = 4119,
		.on_pci = true,
		.pci_domain = 0x1a,
		.pci_bus = 0x3b,
		.pci_device = 2,
		.pci_function = number - 1,
		.addr_count = addrs,
	};

	snprintf(port.device, sizeof(port.device), "%s", device);
	snprintf(port.netdev, sizeof(port.netdev), "%s", netdev);
	port.addrs = calloc(addrs + 1, sizeof(*port.addrs));
	cr_assert_not_null(port.addrs);
	for (size_t i = 0; i < addrs; i++)
		memcpy(port.addrs[i].netdev, port.netdev, sizeof(port.netdev));
	return port;
}

static inline void ports_make(struct verve_net_port **ports, size_t *count)
{
	struct verve_net_port *p = calloc(5, sizeof(*p));

	cr_assert_not_null(p);
	p[0] = ports_port("mlx5_0", 1, "eth0", 5);
	ports_addr(&p[0].addrs[0].addr, AF_INET, "10.0.0.1", 0);
	ports_addr(&p[0].addrs[1].addr, AF_INET, "10.0.0.2", 0);
	ports_addr(&p[0].addrs[2].addr, AF_INET, "10.100.0.1", 0);
	strcpy(p[0].addrs[2].netdev, "eth0.100");
	ports_addr(&p[0].addrs[3].addr, AF_INET6, "fd00::1", 0);
	ports_addr(&p[0].addrs[4].addr, AF_INET6, "fe80::1", 3);
	p[1] = ports_port("mlx5_0", 2, "eth1", 2);
	ports_addr(&p[1].addrs[0].addr, AF_INET, "10.1.0.1", 0);
	ports_addr(&p[1].addrs[1].addr, AF_INET6, "fe80::2", 4);
	p[2] = ports_port("down", 1, "eth2", 0);
	strcpy(p[2].reason, "port is DOWN: ip link set eth2 up");
	p[3] = ports_port("ib0", 1, "ipoib0", 1);
	p[3].ethernet = false;
	p[3].addrs[0].gid = (struct verve_net_gid){{0xfe, 0x80, [7] = 1, [15] = 9}};
	ports_addr(&p[3].addrs[0].addr, AF_INET, "10.2.0.1", 0);
	p[4] = ports_port("local", 1, "eth3", 1);
	ports_addr(&p[4].addrs[0].addr, AF_INET6, "fe80::5", 5);
	*ports = p;
	*count = 5;
}

static inline void ports_free(struct verve_net_port *ports, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(ports[i].addrs);
	free(ports);
}

#endif
