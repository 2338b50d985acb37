/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Port: queries one port of an open device. For the sources of net alone. Any thread. */
#ifndef VERVE_NET_PORT_H
#define VERVE_NET_PORT_H

#include <infiniband/verbs.h>

#include "net/port_info.h"

/* The attributes of a device and of one of its ports, as libibverbs returns them. */
struct verve_port_attr {
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
};

/*
 * Fills *port; port->usable and port->reason say whether and why not it can be used. Each address
 * in port->addrs has made an address handle, if the device has any. port_num counts from 1. *attr
 * is valid unless the query failed (port->reason "cannot be queried"). The caller frees *port with
 * verve_net_port_fini, also after an error. -FI_ENOMEM, or the error of getifaddrs(3).
 */
int verve_port_look(struct ibv_context *ctx, struct ibv_pd *pd, uint8_t port_num,
		    struct verve_net_port *port, struct verve_port_attr *attr);

/*
 * Fills *port for a device that cannot be opened: not usable, port number 1. error: the positive
 * errno of ibv_open_device(3), or 0 if it set none.
 */
void verve_port_set_unopened(struct verve_net_port *port, struct ibv_device *device, int error);

#endif
