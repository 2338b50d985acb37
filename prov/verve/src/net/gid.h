/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GIDs: which IP addresses lead into a port, and by which entry of its GID table; never just
 * index 0. For the sources of net alone.
 */
#ifndef VERVE_NET_GID_H
#define VERVE_NET_GID_H

#include <infiniband/verbs.h>

#include "net/port_info.h"

/*
 * port->addrs: each IP address of the port's network devices that a GID carries, best first: RoCE
 * v2 with an IPv4-mapped GID, with a global IPv6 one, with a link-local one; on InfiniBand the
 * default GID for each address of the IPoIB device, or of FI_VERVE_IFACE where there is none.
 * port->refused: the other entries of the port, and why.
 * port->netdev: of the best one, if there is one. None found is not an error, and port->reason says
 * why. -FI_ENOMEM.
 */
int verve_gid_find_addrs(struct ibv_context *ctx, struct verve_net_port *port);

/* Appends to port->refused. -FI_ENOMEM. */
int verve_gid_refuse(struct verve_net_port *port, const struct verve_net_gid *gid,
		     uint32_t gid_index, const char *reason);

/* Creates an address handle from the address to itself. 0, or what libibverbs said. */
int verve_gid_prove(struct ibv_pd *pd, const struct verve_net_port *port,
		    const struct verve_net_portaddr *addr, uint16_t lid);

#endif
