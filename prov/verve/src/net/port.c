/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Port: its attributes in our terms, and the reason if it cannot be used. */
#include "net/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/gid.h"
#include "net/sysfs.h"
#include "net/verbs.h"

enum {
	SGE_MAX = 30,
	READS_MAX = 16, /* more reads in flight gain nothing; the target keeps state for each */
	SOFT_ROCE = 0xffffff, /* the vendor id of rdma_rxe */
};

/*
 * soft-RoCE claims on-demand paging from Linux 6.15 on, but must not be believed. Seen on Linux
 * 7.2: regions that do not begin at a page boundary transfer wrong bytes, and an access read beyond
 * the driver's tables, which crashed the kernel.
 */
static bool pages_on_demand(const struct ibv_device_attr_ex *attr)
{
	const uint32_t needed = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;

	return attr->orig_attr.vendor_id != SOFT_ROCE &&
	       attr->odp_caps.general_caps & IBV_ODP_SUPPORT &&
	       (attr->odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

__attribute__((format(printf, 2, 3)))
static void reject(struct verve_net_port *port, const char *format, ...)
{
	va_list args;

	port->usable = false;
	va_start(args, format);
	vsnprintf(port->reason, sizeof(port->reason), format, args);
	va_end(args);
}

static uint32_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Seen with soft-RoCE of Linux 6.1: after it repeated a part of a read of several packets, it
 * reported the read as done although the rest was missing, and put the queue pair into the error
 * state. The kernel's log has a warning then (rxe_comp.c).
 */
static bool doubtful_reads(const struct ibv_device_attr *device)
{
	return device->vendor_id == SOFT_ROCE;
}

/*
 * soft-RoCE answers a read at once, and of much more than 128 KiB the receiver's socket loses
 * packets. Other devices pace their answers: a request for each mebibyte costs nothing any more,
 * and a longer one would only keep other reads of the queue pair waiting.
 */
static uint32_t read_size(const struct ibv_device_attr *device)
{
	return device->vendor_id == SOFT_ROCE ? 128 << 10 : 1 << 20;
}

/*
 * A driver that says 0 does not fill it in. hns of some kernels says 1 of devices that can do more:
 * there, a read into several pieces takes more requests than it needs.
 */
static uint32_t read_sge(const struct ibv_device_attr *device)
{
	return least(least(device->max_sge, SGE_MAX),
		     device->max_sge_rd > 0 ? device->max_sge_rd : SGE_MAX);
}

/*
 * soft-RoCE compares an address with the bounds of the window's region, not of the window (Linux,
 * drivers/infiniband/sw/rxe/rxe_resp.c: check_rkey). It does check the window's access and key.
 */
static bool mw_bounds(const struct ibv_device_attr *device)
{
	return device->vendor_id != SOFT_ROCE;
}

/*
 * soft-RoCE lets any peer end any window of type 2 by SEND_WITH_INV, and its kernel crashes when
 * one is ended twice (Linux, rxe_mw.c: rxe_check_invalidate_mw, rxe_do_invalidate_mw).
 */
static bool mw_peer(const struct ibv_device_attr *device)
{
	return device->vendor_id != SOFT_ROCE &&
	       device->device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B;
}

static void set_limits(struct verve_net_limits *limits, const struct verve_port_attr *attr)
{
	const struct ibv_device_attr *device = &attr->device.orig_attr;
	const struct ibv_odp_caps *odp = &attr->device.odp_caps;
	const bool odp_rc = pages_on_demand(&attr->device);

	*limits = (struct verve_net_limits) {
		.cqe = device->max_cqe,
		.srq_wr = device->max_srq_wr,
		.qp_wr = device->max_qp_wr,
		.sge = least(device->max_sge, SGE_MAX),
		.read_sge = read_sge(device),
		.qp = device->max_qp,
		.rd_atomic = least(device->max_qp_init_rd_atom, READS_MAX),
		.rd_atomic_target = least(device->max_qp_rd_atom, READS_MAX),
		.msg_size = attr->port.max_msg_sz,
		.read_size = read_size(device),
		.mr_size = device->max_mr_size,
		.mr = device->max_mr,
		.mw = device->device_cap_flags & IBV_DEVICE_MEM_WINDOW && device->max_mw > 0 ?
		      (uint32_t)device->max_mw : 0,
		.mw_peer = mw_peer(device),
		.mw_bounds = mw_bounds(device),
		.odp_rc = odp_rc,
		.odp_atomic = odp_rc &&
			      odp->per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC,
		.odp_implicit = odp_rc && odp->general_caps & IBV_ODP_SUPPORT_IMPLICIT,
		.repeats_forever = device->vendor_id == SOFT_ROCE,
		.doubtful_reads = doubtful_reads(device),
		.atomics = device->atomic_cap != IBV_ATOMIC_NONE && device->max_qp_rd_atom &&
			   device->max_qp_init_rd_atom,
	};
}

/* Lanes of an active width (InfiniBand spec. vol. 1, 14.2.5.6: LinkWidthActive). */
static uint32_t port_lanes(uint8_t width)
{
	switch (width) {
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 1;
	}
}

/*
 * The rates of a lane, by their bit in active_speed (LinkSpeedActive), which has 8 bits: no XDR.
 * The kernel's own text has it.
 */
static const struct lane {
	uint64_t mbps;
	const char *name;
} lanes[] = {{2500, "SDR"}, {5000, "DDR"}, {10000, "QDR"}, {10000, "FDR10"}, {14000, "FDR"},
	     {25000, "EDR"}, {50000, "HDR"}, {100000, "NDR"}};

/* Sets speed and rate. Where /sys says nothing, they are those of ibv_query_port(3). */
static void set_rate(struct verve_net_port *port, const struct ibv_port_attr *attr)
{
	uint32_t width = port_lanes(attr->active_width), speed = attr->active_speed, bit = 0;

	if (verve_sysfs_rate(port->device, port->port_num, &port->speed, port->rate))
		return;
	while (speed >> (bit + 1) && bit + 1 < sizeof(lanes) / sizeof(lanes[0]))
		bit++;
	port->speed = width * lanes[bit].mbps * 1000000;
	snprintf(port->rate, sizeof(port->rate), "%uX %s", width, lanes[bit].name);
}

static void set_identity(struct verve_net_port *port, const struct verve_port_attr *attr)
{
	const struct ibv_device_attr *device = &attr->device.orig_attr;

	snprintf(port->firmware, sizeof(port->firmware), "%.*s", (int)sizeof(port->firmware) - 1,
		 device->fw_ver);
	port->vendor_id = device->vendor_id;
	port->vendor_part_id = device->vendor_part_id;
	port->hw_version = device->hw_ver;
	verve_sysfs_driver(port->device, port->driver);
	verve_sysfs_pci(port->device, port);
}

/* Rejects a port for what its attributes say: transport, link layer, queues, state. */
static void port_check(struct ibv_context *ctx, struct verve_net_port *port,
		       const struct verve_port_attr *attr)
{
	const char *netdev = port->netdev[0] ? port->netdev : "INTERFACE";

	port->usable = true;
	if (ctx->device->transport_type != IBV_TRANSPORT_IB)
		reject(port, "neither InfiniBand nor RoCE, whose transports alone are spoken");
	else if (attr->port.link_layer != IBV_LINK_LAYER_ETHERNET &&
		 attr->port.link_layer != IBV_LINK_LAYER_INFINIBAND &&
		 attr->port.link_layer != IBV_LINK_LAYER_UNSPECIFIED)
		reject(port, "unknown link layer %u", attr->port.link_layer);
	else if (!attr->device.orig_attr.max_srq)
		reject(port, "the device has no shared receive queues, which verve needs");
	else if (!port->limits.rd_atomic || !port->limits.rd_atomic_target)
		reject(port, "the device does no RDMA reads, which verve needs "
		       "(max_qp_init_rd_atom %u, max_qp_rd_atom %u)",
		       port->limits.rd_atomic, port->limits.rd_atomic_target);
	else if (attr->device.orig_attr.max_sge < VERVE_NET_SGE_MIN)
		reject(port, "the device takes %d segments for a request, verve needs %d",
		       attr->device.orig_attr.max_sge, VERVE_NET_SGE_MIN);
	else if (attr->port.state == IBV_PORT_ACTIVE)
		return;
	else if (port->ethernet)
		reject(port, "port is %s: ip link set %.16s up; is the cable in?",
		       ibv_port_state_str(attr->port.state), netdev);
	else if (attr->port.state == IBV_PORT_INIT)
		reject(port, "port is %s, no subnet manager runs on this network: "
		       "systemctl start opensm", ibv_port_state_str(attr->port.state));
	else
		reject(port, "port is %s: is the cable in?", ibv_port_state_str(attr->port.state));
}

/* Keeps the addresses that verve_gid_prove lets pass; moves the others to port->refused. */
static int prove_addrs(struct ibv_pd *pd, struct verve_net_port *port,
		       const struct ibv_port_attr *attr)
{
	bool grh = port->ethernet || attr->flags & IBV_QPF_GRH_REQUIRED;
	char gid[INET6_ADDRSTRLEN] = "?";
	char reason[VERVE_NET_NAME_MAX];
	size_t good = 0;

	for (size_t i = 0; i < port->addr_count; i++) {
		int ret = verve_gid_prove(pd, port, &port->addrs[i], attr->lid, grh);

		if (!ret) {
			port->addrs[good++] = port->addrs[i];
			continue;
		}
		inet_ntop(AF_INET6, &port->addrs[i].gid, gid, sizeof(gid));
		snprintf(port->reason, sizeof(port->reason),
			 "GID %u (%.46s) makes no address handle (%.40s)", port->addrs[i].gid_index,
			 gid, strerror(-ret));
		snprintf(reason, sizeof(reason), "makes no address handle (%.36s)", strerror(-ret));
		ret = verve_gid_refuse(port, &port->addrs[i].gid, port->addrs[i].gid_index, reason);
		if (ret)
			return ret;
	}
	port->addr_count = good;
	return 0;
}

static int look_at_addrs(struct ibv_context *ctx, struct ibv_pd *pd, struct verve_net_port *port,
			 const struct ibv_port_attr *attr)
{
	int ret = verve_gid_find_addrs(ctx, port);

	if (ret)
		return ret;
	ret = prove_addrs(pd, port, attr);
	if (ret)
		return ret;
	port->usable = port->addr_count;
	if (port->usable)
		port->reason[0] = '\0';
	return 0;
}

static void set_link_addr(struct ibv_context *ctx, struct verve_net_port *port)
{
	union ibv_gid gid;

	if (port->ethernet)
		verve_sysfs_link_addr(port->netdev, port->link_addr);
	else if (!ibv_query_gid(ctx, port->port_num, 0, &gid))
		inet_ntop(AF_INET6, &gid, port->link_addr, sizeof(port->link_addr));
}

int verve_port_look(struct ibv_context *ctx, struct ibv_pd *pd, uint8_t port_num,
		    struct verve_net_port *port, struct verve_port_attr *attr)
{
	int ret;

	memset(port, 0, sizeof(*port));
	snprintf(port->device, sizeof(port->device), "%s", ibv_get_device_name(ctx->device));
	port->port_num = port_num;
	ret = ibv_query_device_ex(ctx, NULL, &attr->device);
	if (!ret)
		ret = ibv_query_port(ctx, port_num, &attr->port);
	if (ret) {
		reject(port, "cannot be queried (%s)", strerror(ret));
		port->reason_may_end = true;
		return 0;
	}
	port->ethernet = attr->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	port->mtu = 128u << attr->port.active_mtu; /* enum ibv_mtu: 1 is 256 bytes */
	set_rate(port, &attr->port);
	set_limits(&port->limits, attr);
	set_identity(port, attr);
	if (port->ethernet)
		verve_sysfs_netdev(port->device, port_num, port->netdev);
	port_check(ctx, port, attr);
	ret = port->usable ? look_at_addrs(ctx, pd, port, &attr->port) : 0;
	set_link_addr(ctx, port);
	return ret;
}

/* Why the device's file cannot be opened; 0: it can. */
static int try_file(const char *path)
{
	int file = open(path, O_RDWR | O_CLOEXEC);

	if (file < 0)
		return errno;
	close(file);
	return 0;
}

void verve_port_set_unopened(struct verve_net_port *port, struct ibv_device *device, int error)
{
	char path[VERVE_NET_NAME_MAX];
	int refusal;

	memset(port, 0, sizeof(*port));
	snprintf(port->device, sizeof(port->device), "%s", ibv_get_device_name(device));
	port->port_num = 1;
	/* libibverbs tries several paths, and its errno is of the last: ask for this one again. */
	snprintf(path, sizeof(path), "/dev/infiniband/%.32s", device->dev_name);
	refusal = access(path, R_OK | W_OK) ? errno : 0;
	if (!refusal) {
		port->reason_may_end = true;
		refusal = try_file(path);
	}
	if (refusal)
		error = refusal;
	switch (error) {
	case EPERM:
		/* The device controller of cgroups, whatever the file's mode says. */
		reject(port, "%s may not be opened here: in a container --device=%s, not a volume",
		       path, path);
		break;
	case EACCES:
		reject(port, "no permission to open %s: chmod a+rw %s", path, path);
		break;
	case ENOENT:
	case ENXIO:
	case ENODEV:
		reject(port,
		       "there is no %s: modprobe ib_uverbs, or in a container --device=%s", path,
		       path);
		break;
	case ENOMEM:
		reject(port, "no memory to open it: ulimit -l unlimited");
		break;
	case EAGAIN:
		reject(port, "the cgroup lets no more processes open it: raise its rdma.max");
		break;
	default:
		reject(port, "%s cannot be opened (%.60s)", path,
		       strerror(-verve_net_error(error)));
	}
}

void verve_net_port_fini(struct verve_net_port *port)
{
	free(port->addrs);
	free(port->refused);
	port->addrs = NULL;
	port->refused = NULL;
	port->addr_count = port->refused_count = 0;
}
