/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stamp: a cheap look at what the list of ports is made from. It opens no device.
 *
 * Source: getifaddrs(3), netdevice(7), /sys/class/infiniband (the kernel's
 * Documentation/ABI/stable/sysfs-class-infiniband), libsodium's crypto_generichash.
 */
#ifndef VERVE_NET_STAMP_H
#define VERVE_NET_STAMP_H

#include <stdbool.h>
#include <stdint.h>

enum { VERVE_NET_STAMP_SIZE = 32 };

struct verve_net_stamp {
	uint8_t bytes[VERVE_NET_STAMP_SIZE];
};

/*
 * Two equal stamps: the host has the same RDMA devices, whose ports are in the same state, and the
 * same network interfaces with the same state, addresses (and what the kernel thinks of those of
 * IPv6: net/inet6.h) and MTU; this process has the same device
 * files, and may open the same ones. The GID table is not in the stamp: the kernel changes it a
 * moment after an address or a link. False: this cannot be told.
 * Logs nothing. Any thread.
 */
bool verve_net_stamp_take(struct verve_net_stamp *stamp);

#endif
