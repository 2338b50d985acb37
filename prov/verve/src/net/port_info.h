/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A port as data: its addresses, its device's limits, and the reason if it cannot be used. Plain
 * values; no lock.
 */
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
	char netdev[VERVE_NET_NAME_MAX]; /* the interface with the address: "eth0", "eth0.100" */
	char label[VERVE_NET_NAME_MAX]; /* of an IPv4 address: "eth0:1"; mostly that interface */
	uint8_t gid_index;
	bool passing; /* a temporary or deprecated IPv6 address: it goes by itself */
	struct verve_net_gid gid;
};

/* An entry of a port's GID table that leads to no usable address, and the reason. */
struct verve_net_gid_refusal {
	struct verve_net_gid gid;
	uint32_t gid_index;
	char reason[VERVE_NET_NAME_MAX];
};

/* Segments of a work request that every usable device takes. */
enum { VERVE_NET_SGE_MIN = 4 };

/* The limits of a device, each lowered to the largest value that verve uses. */
struct verve_net_limits {
	uint32_t cqe;		/* entries of a CQ */
	uint32_t srq_wr;	/* buffers of a shared receive queue */
	uint32_t qp_wr;		/* work requests of a QP's send queue */
	uint32_t sge;		/* segments of a work request, send and SRQ */
	uint32_t read_sge;	/* segments of a read: 1 at least, perhaps fewer than sge */
	uint32_t qp;		/* QPs of the device */
	uint32_t rd_atomic;	/* reads and atomics in flight on a QP, as initiator */
	uint32_t rd_atomic_target; /* reads and atomics in flight on a QP, as target */
	uint32_t msg_size;	/* bytes of a work request */
	uint32_t read_size;	/* bytes of a read that the device does well; see msg_size, too */
	uint64_t mr_size;	/* bytes of a region */
	uint32_t mr;		/* regions of the device */
	uint32_t mw;		/* memory windows of the device; 0: it has none of type 1 */
	bool mw_peer;		/* windows for one peer (type 2B), too */
	bool mw_bounds;		/* a window opens its own bytes only, not all of its region */
	bool odp_rc;		/* on-demand paging for RC sends, receives, writes and reads */
	bool odp_atomic;	/* on-demand paging for RC atomics, too */
	bool odp_implicit;	/* one region may cover all memory of the process */
	bool repeats_forever;	/* no error tells of a peer that does not acknowledge requests */
	bool doubtful_reads;	/* a read may complete well with bytes missing, when its QP fails */
	bool atomics;		/* 64-bit fetch-and-add and compare-and-swap; atomic at least among
				 * requests to this device */
};

/* One port: usable, with at least one address; or not usable, with a reason. */
struct verve_net_port {
	char device[VERVE_NET_NAME_MAX]; /* "rxe0" */
	char netdev[VERVE_NET_NAME_MAX]; /* "eth0"; empty on InfiniBand without IPoIB */
	uint8_t port_num;
	bool ethernet;
	bool usable;
	char reason[VERVE_NET_REASON_MAX]; /* why not usable: "CAUSE: REMEDY", or CAUSE alone */
	bool reason_may_end; /* reason may no longer hold though the stamp (stamp.h) is the same */
	uint32_t mtu;			   /* active path MTU, bytes */
	uint64_t speed;			   /* bits per second */
	char rate[VERVE_NET_NAME_MAX];	   /* width and speed by name: "4X NDR" */
	struct verve_net_limits limits;
	char firmware[VERVE_NET_NAME_MAX];
	char driver[VERVE_NET_NAME_MAX];    /* "mlx5_core"; of a software device "rxe" */
	char link_addr[VERVE_NET_NAME_MAX]; /* MAC address on Ethernet, else GID; may be empty */
	uint32_t vendor_id, vendor_part_id, hw_version;
	bool on_pci;
	uint16_t pci_domain;
	uint8_t pci_bus, pci_device, pci_function;
	/* best first: IPv4; global IPv6, temporary and deprecated ones last; link-local IPv6 */
	struct verve_net_portaddr *addrs;
	size_t addr_count;
	struct verve_net_gid_refusal *refused; /* in the table's order */
	size_t refused_count;
};

/* Frees addrs and refused, not the port itself. Harmless on a port that was freed before. */
void verve_net_port_fini(struct verve_net_port *port);

/* The REMEDY in port->reason: the text behind the first ": "; NULL: the reason has none. */
const char *verve_net_port_remedy(const struct verve_net_port *port);

#endif
