/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device: which RDMA ports this host has, why one cannot be used, and an open one.
 *
 * Source: ibv_get_device_list(3), ibv_query_device_ex(3), ibv_query_port(3), ibv_query_gid_ex(3).
 */
#ifndef VERVE_NET_DEVICE_H
#define VERVE_NET_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "net/port_info.h"

struct verve_net_device; /* an open device: context, protection domain, one port */

/*
 * Every port of every device, usable or not; *count 0 and return 0 when there is none.
 * A fresh look at each call; free with verve_net_port_list_free. -FI_ENOMEM.
 */
int verve_net_port_list(struct verve_net_port **list, size_t *count);
void verve_net_port_list_free(struct verve_net_port *list, size_t count);

/*
 * Opens the port by names, chooses the GID for addr (the endpoint's own IP; NULL: the best) and
 * proves the choice by creating an address handle. Logs why not.
 * -FI_ENODEV: no such device, port or address; -FI_ENOMEM, or what libibverbs said.
 */
int verve_net_device_open(const char *device, uint8_t port_num, const struct verve_addr *addr,
			  struct verve_net_device **dev);
/* Everything opened on it must be closed. */
void verve_net_device_close(struct verve_net_device *dev);

/* Owned by the device, constant while it is open. addrs holds the one chosen address. */
const struct verve_net_port *verve_net_device_port(const struct verve_net_device *dev);

/*
 * Asynchronous events (ibv_get_async_event(3)): a descriptor that polls readable, and a call that
 * takes one event without blocking, logs it, and says whether the device is lost.
 * -FI_EAGAIN: none. -FI_ENODEV: device removed or fatal.
 */
int verve_net_device_async_fd(const struct verve_net_device *dev);
int verve_net_device_async_next(struct verve_net_device *dev);

#endif
