/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GIDs: the IP addresses that lead into a port, each with the entry of the port's GID table that
 * carries it. Index 0 is not always the right one. For the sources of net alone. Any thread.
 */
#ifndef VERVE_NET_GID_H
#define VERVE_NET_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "net/port_info.h"

/*
 * Fills three fields of the port.
 * addrs: on RoCE each IP address that a RoCE v2 GID carries and an interface of this namespace has,
 * best first: IPv4; global IPv6, temporary and deprecated ones last; link-local IPv6. IPv6
 * addresses that no socket can have (net/inet6.h) are none. On InfiniBand each address of
 * DEVICE@INTERFACE in FI_VERVE_IFACE, else of the port's IPoIB interfaces (with children of other
 * partitions, and bonds), else of an interface in FI_VERVE_IFACE; all of them with one GID, the
 * port's default one.
 * FI_VERVE_GID_INDEX: on RoCE only the GID of this index counts; on InfiniBand it takes the
 * default GID's place.
 * refused: the port's other GIDs, each with a reason.
 * netdev: the interface of the best address.
 * No address is not an error: port->reason says why. -FI_ENOMEM, or the error of getifaddrs(3).
 */
int verve_gid_find_addrs(struct ibv_context *ctx, struct verve_net_port *port);

/* Appends a GID to port->refused; copies reason, cut to VERVE_NET_NAME_MAX bytes. -FI_ENOMEM. */
int verve_gid_refuse(struct verve_net_port *port, const struct verve_net_gid *gid,
		     uint32_t gid_index, const char *reason);

/*
 * Proves that the port can send with the address: creates an address handle from it to itself, and
 * destroys the handle. lid: the port's own. grh: with a global route header. 0, also where the
 * device has no address handles and nothing is proven; or the negative error of libibverbs.
 */
int verve_gid_prove(struct ibv_pd *pd, const struct verve_net_port *port,
		    const struct verve_net_portaddr *addr, uint16_t lid, bool grh);

#endif
