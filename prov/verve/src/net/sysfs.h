/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What only /sys tells about a device: its driver, its place on PCI, its network devices.
 * All texts are buffers of VERVE_NET_NAME_MAX bytes, left empty where there is nothing to tell.
 */
#ifndef VERVE_NET_SYSFS_H
#define VERVE_NET_SYSFS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/port_info.h"

/* Kernel driver of an RDMA device; of a software device, what it calls itself. */
void verve_sysfs_driver(const char *device, char *driver);
/* on_pci and pci_*. */
void verve_sysfs_pci(const char *device, struct verve_net_port *port);
/* Network device of an Ethernet port, also of one that is down. */
void verve_sysfs_netdev(const char *device, uint8_t port_num, char *netdev);
/* Network device (IPoIB) whose link address ends in the GID. */
void verve_sysfs_ipoib(const struct verve_net_gid *gid, char *netdev);
/* Link address of a network device: "52:54:00:00:00:01". */
void verve_sysfs_link_addr(const char *netdev, char *addr);

#endif
