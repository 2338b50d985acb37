/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The value of FI_VERVE_IFACE: names between commas, such as "eth0,mlx5_1@eth2". Each item names a
 * network interface (or the label of an address, "eth0:1"), an RDMA device ("mlx5_1", for another
 * port than the first "mlx5_1:2"), or a device and an interface, with @ between them; blanks around
 * it do not count. Any thread.
 */
#ifndef VERVE_BASE_IFACE_H
#define VERVE_BASE_IFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A port of an RDMA device. */
struct verve_iface_port {
	const char *device;
	uint8_t port_num;
};

/* One item of a list. The texts are parts of the list, and do not end with 0. */
struct verve_iface {
	const char *device; /* what stands before @; NULL: there is no @ */
	size_t device_len;
	const char *name; /* what stands behind @, or the whole item */
	size_t name_len;
};

/* Takes the next item off *list, which becomes NULL after the last. False: there was none. */
bool verve_iface_next(const char **list, struct verve_iface *iface);

/* True if the item has no @, and names the port. */
bool verve_iface_is_port(const struct verve_iface *iface, const struct verve_iface_port *port);
/* True if the item has an @, and names the port before it. */
bool verve_iface_is_of_port(const struct verve_iface *iface, const struct verve_iface_port *port);

/* True if the item names the port, the interface netdev, or netdev of this port. */
bool verve_iface_is(const struct verve_iface *iface, const struct verve_iface_port *port,
		    const char *netdev);

/* True if list is NULL, or an item of it is this port's netdev, as verve_iface_is says. */
bool verve_iface_list_has(const char *list, const struct verve_iface_port *port,
			  const char *netdev);

#endif
