/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Port: a look at one port of an open device. For the sources of net alone. */
#ifndef VERVE_NET_PORT_H
#define VERVE_NET_PORT_H

#include <infiniband/verbs.h>

#include "net/port_info.h"

/* What libibverbs says of a device and one of its ports. */
struct verve_port_attr {
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
};

/*
 * Fills *port, usable or not; and *attr as far as the device could be asked. Its addrs are all proven
 * to work. Free it with verve_net_port_fini, also after an error. -FI_ENOMEM.
 */
int verve_port_look(struct ibv_context *ctx, struct ibv_pd *pd, uint8_t port_num,
		    struct verve_net_port *port, struct verve_port_attr *attr);

/* *port of a device that cannot even be opened: error is a positive errno. */
void verve_port_set_unopened(struct verve_net_port *port, struct ibv_device *device, int error);

#endif
