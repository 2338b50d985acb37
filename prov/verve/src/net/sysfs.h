/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * /sys: a device's driver, its PCI address, its network interfaces; libibverbs does not tell them.
 * Each text is written into a buffer of VERVE_NET_NAME_MAX bytes; the text is empty if /sys has no
 * answer. Nothing is logged. Any thread.
 */
#ifndef VERVE_NET_SYSFS_H
#define VERVE_NET_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/port_info.h"

/* Kernel driver of an RDMA device ("mlx5_core"); of a software device, its node_desc ("rxe"). */
void verve_sysfs_driver(const char *device, char *driver);
/* Sets on_pci and pci_* of the port; on_pci is false for a software device. */
void verve_sysfs_pci(const char *device, struct verve_net_port *port);
/* Network interface of an Ethernet port, also of a port that is down. port_num counts from 1. */
void verve_sysfs_netdev(const char *device, uint8_t port_num, char *netdev);
/*
 * True if the interface is one of IPoIB over the port with this GID: a parent, a child of another
 * partition, or a bond whose active slave is one. A port may have several.
 */
bool verve_sysfs_is_ipoib(const char *netdev, const struct verve_net_gid *gid);
/* The first of these interfaces: a parent, whether or not it has an IP address. */
void verve_sysfs_ipoib(const struct verve_net_gid *gid, char *netdev);
/*
 * Rate of a port: *speed in bits per second, and width and speed by name ("4X XDR"). The kernel
 * knows rates for which ibv_query_port(3) has no number, XDR and later. False: /sys has no answer.
 */
bool verve_sysfs_rate(const char *device, uint8_t port_num, uint64_t *speed, char *rate);
/*
 * Partition key of an IPoIB interface, or of a bond's active slave; 0: it is none. netdev may be
 * empty.
 */
uint16_t verve_sysfs_pkey(const char *netdev);
/* Link address of a network interface: "52:54:00:00:00:01". netdev may be empty. */
void verve_sysfs_link_addr(const char *netdev, char *addr);
/*
 * Calls add with the name of each RDMA device, a number that another device of this name does not
 * have, and for each of its ports the state, rate and default GID. False: there are no devices, or
 * the state of a port cannot be read.
 */
bool verve_sysfs_read_ports(void (*add)(void *arg, const void *data, size_t len), void *arg);

#endif
