/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is known of a port: its addresses, what its device can do, why it cannot be used. Data alone. */
#ifndef VERVE_NET_PORT_INFO_H
#define VERVE_NET_PORT_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

enum {
	VERVE_NET_NAME_MAX = 64,
	VERVE_NET_REASON_MAX = 160,
};

struct verve_net_gid {
	uint8_t raw[16];
};

/* One way into a port: an IP address of its netdev and the GID that carries it. */
struct verve_net_portaddr {
	struct verve_addr addr; /* port number 0 */
	char netdev[VERVE_NET_NAME_MAX]; /* the interface that has it: "eth0", "eth0.100" */
	uint8_t gid_index;
	struct verve_net_gid gid;
};

/* An entry of a port's GID table that is no way into it. */
struct verve_net_gid_refusal {
	struct verve_net_gid gid;
	uint32_t gid_index;
	char reason[VERVE_NET_NAME_MAX];
};

/* What a device can do; the smaller of the device's and of what verve uses. */
struct verve_net_limits {
	uint32_t cqe;		/* entries a CQ */
	uint32_t srq_wr;	/* receives a shared receive queue */
	uint32_t qp_wr;		/* sends a QP */
	uint32_t sge;		/* segments a work request, send and SRQ */
	uint32_t qp;		/* QPs */
	uint32_t rd_atomic;	/* reads in flight a QP, as initiator */
	uint32_t rd_atomic_target; /* and as target */
	uint32_t msg_size;	/* bytes a work request */
	uint64_t mr_size;	/* bytes a region */
	uint32_t mr;		/* regions */
	/* On-demand paging for RC: sends, receives, writes, reads; atomics, too; all memory at once. */
	bool odp_rc, odp_atomic, odp_implicit;
	bool doubtful_reads;	/* what it says of a read is true only while the queue pair works */
	bool atomics;		/* 64-bit fetch-and-add, compare-and-swap, at least among themselves */
};

/* A port with an address, usable, or rejected with a reason. */
struct verve_net_port {
	char device[VERVE_NET_NAME_MAX]; /* "rxe0" */
	char netdev[VERVE_NET_NAME_MAX]; /* "eth0"; empty on InfiniBand without IPoIB */
	uint8_t port_num;
	bool ethernet;
	bool usable;
	char reason[VERVE_NET_REASON_MAX]; /* why not usable: "CAUSE: REMEDY", or CAUSE alone */
	uint32_t mtu;			   /* active path MTU, bytes */
	uint64_t speed;			   /* bits per second */
	struct verve_net_limits limits;
	char firmware[VERVE_NET_NAME_MAX];
	char driver[VERVE_NET_NAME_MAX];    /* "mlx5_core"; what a software device calls itself */
	char link_addr[VERVE_NET_NAME_MAX]; /* MAC address on Ethernet, else GID; may be empty */
	uint32_t vendor_id, vendor_part_id, hw_version;
	bool on_pci;
	uint16_t pci_domain;
	uint8_t pci_bus, pci_device, pci_function;
	struct verve_net_portaddr *addrs; /* best first: IPv4, global IPv6, link-local IPv6 */
	size_t addr_count;
	struct verve_net_gid_refusal *refused; /* in the table's order */
	size_t refused_count;
};

/* Frees what a port owns; not the port. */
void verve_net_port_fini(struct verve_net_port *port);

/* What the reason says to do: the part behind the first ": "; NULL: it says nothing. */
const char *verve_net_port_remedy(const struct verve_net_port *port);

#endif
