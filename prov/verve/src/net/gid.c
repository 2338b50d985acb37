/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GIDs: the device's table against the addresses that the host's interfaces have. */
#include "net/gid.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "net/sysfs.h"
#include "net/verbs.h"

enum {
	HOP_LIMIT = 64,
	TABLE_MAX = 2040, /* entries, of all ports of a device: the kernel takes less than 64 KiB */
};

/* What a search works with. */
struct finder {
	struct ibv_gid_entry *table;
	size_t table_count;
	struct ifaddrs *ifaddrs;
	struct verve_net_port *port;
};

/* Before which others an address stands. */
static int rank(const struct verve_net_portaddr *addr)
{
	if (addr->addr.sa.sa_family == AF_INET)
		return 0;
	return IN6_IS_ADDR_LINKLOCAL(&addr->addr.in6.sin6_addr) ? 2 : 1;
}

/* Behind those of its rank. */
static int add(struct verve_net_port *port, const struct verve_net_portaddr *addr)
{
	size_t at = port->addr_count;
	struct verve_net_portaddr *addrs;

	addrs = realloc(port->addrs, (port->addr_count + 1) * sizeof(*addrs));
	if (!addrs)
		return -FI_ENOMEM;
	port->addrs = addrs;
	while (at && rank(&addrs[at - 1]) > rank(addr))
		at--;
	memmove(&addrs[at + 1], &addrs[at], (port->addr_count - at) * sizeof(*addrs));
	addrs[at] = *addr;
	port->addr_count++;
	return 0;
}

int verve_gid_refuse(struct verve_net_port *port, const struct verve_net_gid *gid,
		     uint32_t gid_index, const char *reason)
{
	struct verve_net_gid_refusal *refused;

	refused = realloc(port->refused, (port->refused_count + 1) * sizeof(*refused));
	if (!refused)
		return -FI_ENOMEM;
	port->refused = refused;
	refused = &refused[port->refused_count++];
	refused->gid = *gid;
	refused->gid_index = gid_index;
	snprintf(refused->reason, sizeof(refused->reason), "%s", reason);
	return 0;
}

/* What is not a way into the port, and why. */
static int refuse(const struct finder *finder, const struct ibv_gid_entry *entry, const char *reason)
{
	struct verve_net_gid gid;

	memcpy(&gid, &entry->gid, sizeof(gid));
	return verve_gid_refuse(finder->port, &gid, entry->gid_index, reason);
}

static bool is_ip(const struct ifaddrs *ifa)
{
	return ifa->ifa_addr && ifa->ifa_flags & IFF_UP &&
	       (ifa->ifa_addr->sa_family == AF_INET || ifa->ifa_addr->sa_family == AF_INET6);
}

static void get_addr(const struct ifaddrs *ifa, struct verve_addr *addr)
{
	/* getifaddrs(3) gives whole socket addresses of the two families, and no byte more. */
	verve_addr_set(addr, ifa->ifa_addr, ifa->ifa_addr->sa_family == AF_INET ?
		       sizeof(addr->in) : sizeof(addr->in6));
}

/* The address that a RoCE v2 GID spells. */
static void gid_to_addr(const struct ibv_gid_entry *entry, struct verve_addr *addr)
{
	struct in6_addr ip;

	memset(addr, 0, sizeof(*addr));
	memcpy(&ip, entry->gid.raw, sizeof(ip));
	if (IN6_IS_ADDR_V4MAPPED(&ip)) {
		addr->in.sin_family = AF_INET;
		memcpy(&addr->in.sin_addr, &ip.s6_addr[12], sizeof(addr->in.sin_addr));
		return;
	}
	addr->in6.sin6_family = AF_INET6;
	addr->in6.sin6_addr = ip;
	if (IN6_IS_ADDR_LINKLOCAL(&ip))
		addr->in6.sin6_scope_id = entry->ndev_ifindex;
}

/* The interface of this network namespace that has the address; NULL: none. */
static const char *find_netdev(const struct finder *finder, const struct verve_addr *addr,
			       uint32_t ifindex)
{
	const struct ifaddrs *ifa;
	struct verve_addr have;

	for (ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next) {
		if (!is_ip(ifa) || (ifindex && if_nametoindex(ifa->ifa_name) != ifindex))
			continue;
		get_addr(ifa, &have);
		if (verve_addr_same_host(&have, addr))
			return ifa->ifa_name;
	}
	return NULL;
}

/* Interfaces of other network namespaces have an index, but none here has it. */
static bool is_elsewhere(const struct finder *finder, uint32_t ifindex)
{
	const struct ifaddrs *ifa;

	for (ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next)
		if (if_nametoindex(ifa->ifa_name) == ifindex)
			return false;
	return ifindex;
}

static void set_addr(struct verve_net_portaddr *addr, const struct ibv_gid_entry *entry,
		     const char *netdev)
{
	addr->gid_index = entry->gid_index;
	memcpy(&addr->gid, &entry->gid, sizeof(addr->gid));
	snprintf(addr->netdev, sizeof(addr->netdev), "%s", netdev);
}

/* Why a RoCE entry is none of verve's; NULL: *addr is filled in. */
static const char *reject_ethernet(const struct finder *finder, const struct ibv_gid_entry *entry,
				   struct verve_net_portaddr *addr)
{
	const char *netdev;

	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return "RoCE v1; only RoCE v2 is spoken";
	if (entry->gid_index > UINT8_MAX)
		return "its index is above 255";
	gid_to_addr(entry, &addr->addr);
	netdev = find_netdev(finder, &addr->addr, entry->ndev_ifindex);
	if (!netdev && is_elsewhere(finder, entry->ndev_ifindex))
		return "its interface is in another network namespace";
	if (!netdev)
		return "its interface does not have this address, or is down";
	set_addr(addr, entry, netdev);
	return NULL;
}

static void explain_ethernet(struct verve_net_port *port, bool any, bool elsewhere)
{
	const char *netdev = port->netdev[0] ? port->netdev : "INTERFACE";

	if (!any)
		snprintf(port->reason, sizeof(port->reason),
			 "no RoCE v2 GID, only v1 or none: ip address add ADDRESS/LENGTH dev %.16s",
			 netdev);
	else if (elsewhere)
		snprintf(port->reason, sizeof(port->reason),
			 "its interface is in another network namespace: "
			 "ip link set %.16s netns PID (there), or run in that namespace", netdev);
	else
		snprintf(port->reason, sizeof(port->reason),
			 "no interface here has the address of one of its GIDs: ip address add "
			 "ADDRESS/LENGTH dev %.16s", netdev);
}

/* RoCE: a v2 GID is an IP address; the default one, of the link address, may be nobody's. */
static int find_ethernet(const struct finder *finder)
{
	struct verve_net_port *port = finder->port;
	bool any = false, elsewhere = false;

	for (size_t i = 0; i < finder->table_count; i++) {
		const struct ibv_gid_entry *entry = &finder->table[i];
		struct verve_net_portaddr addr;
		const char *why;

		if (entry->port_num != port->port_num)
			continue;
		why = reject_ethernet(finder, entry, &addr);
		if (entry->gid_type == IBV_GID_TYPE_ROCE_V2) {
			any = true;
			elsewhere |= is_elsewhere(finder, entry->ndev_ifindex);
		}
		if (why ? refuse(finder, entry, why) : add(port, &addr))
			return -FI_ENOMEM;
	}
	if (!port->addr_count)
		explain_ethernet(port, any, elsewhere);
	return 0;
}

/* The first entry of the table is the port's own identity (InfiniBand spec. vol. 1, 4.1.1). */
static const struct ibv_gid_entry *default_gid(const struct finder *finder)
{
	const struct ibv_gid_entry *best = NULL;

	for (size_t i = 0; i < finder->table_count; i++) {
		const struct ibv_gid_entry *entry = &finder->table[i];

		if (entry->port_num == finder->port->port_num &&
		    entry->gid_type == IBV_GID_TYPE_IB &&
		    (!best || entry->gid_index < best->gid_index))
			best = entry;
	}
	return best;
}

static int refuse_others(const struct finder *finder, const struct ibv_gid_entry *chosen)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < finder->table_count; i++)
		if (finder->table[i].port_num == finder->port->port_num &&
		    &finder->table[i] != chosen)
			ret = refuse(finder, &finder->table[i],
				     "queue pairs use the port's default GID");
	return ret;
}

/* InfiniBand: the handshake needs an IP address, the queue pairs do not. */
static int find_infiniband(const struct finder *finder)
{
	struct verve_net_port *port = finder->port;
	const struct ibv_gid_entry *entry = default_gid(finder);
	struct verve_net_portaddr addr;
	const struct ifaddrs *ifa;

	if (refuse_others(finder, entry))
		return -FI_ENOMEM;
	if (!entry || entry->gid_index > UINT8_MAX) {
		snprintf(port->reason, sizeof(port->reason), "the port has no GID");
		return 0;
	}
	set_addr(&addr, entry, "");
	verve_sysfs_ipoib(&addr.gid, port->netdev);
	if (!port->netdev[0] && verve_config.iface && strcmp(verve_config.iface, port->device))
		snprintf(port->netdev, sizeof(port->netdev), "%s", verve_config.iface);
	for (ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next) {
		if (!is_ip(ifa) || strcmp(ifa->ifa_name, port->netdev))
			continue;
		get_addr(ifa, &addr.addr);
		set_addr(&addr, entry, ifa->ifa_name);
		if (add(port, &addr))
			return -FI_ENOMEM;
	}
	if (!port->addr_count && port->netdev[0])
		snprintf(port->reason, sizeof(port->reason), "%.16s has no IP address, or is down: "
			 "ip address add ADDRESS/LENGTH dev %.16s", port->netdev, port->netdev);
	else if (!port->addr_count)
		snprintf(port->reason, sizeof(port->reason),
			 "no IP address for the handshake: set up IPoIB, or name another "
			 "interface with FI_VERVE_IFACE");
	return 0;
}

static int read_table(struct finder *finder, struct ibv_context *ctx)
{
	ssize_t count;

	finder->table = calloc(TABLE_MAX, sizeof(*finder->table));
	if (!finder->table)
		return -FI_ENOMEM;
	count = ibv_query_gid_table(ctx, finder->table, TABLE_MAX, 0);
	if (count >= 0)
		finder->table_count = count;
	else
		snprintf(finder->port->reason, sizeof(finder->port->reason),
			 "its GIDs cannot be read (%s)", strerror(-count));
	return 0;
}

int verve_gid_find_addrs(struct ibv_context *ctx, struct verve_net_port *port)
{
	struct finder finder = {.port = port};
	int ret;

	ret = read_table(&finder, ctx);
	if (ret)
		return ret;
	if (getifaddrs(&finder.ifaddrs)) {
		ret = verve_net_error(errno);
		goto out_table;
	}
	if (!finder.port->reason[0])
		ret = port->ethernet ? find_ethernet(&finder) : find_infiniband(&finder);
	if (port->addr_count)
		memcpy(port->netdev, port->addrs[0].netdev, sizeof(port->netdev));
	freeifaddrs(finder.ifaddrs);

out_table:
	free(finder.table);
	return ret;
}

int verve_gid_prove(struct ibv_pd *pd, const struct verve_net_port *port,
		    const struct verve_net_portaddr *addr, uint16_t lid)
{
	struct ibv_ah_attr attr = {
		.dlid = lid,
		.is_global = port->ethernet,
		.port_num = port->port_num,
		.grh = {
			.sgid_index = addr->gid_index,
			.hop_limit = HOP_LIMIT,
		},
	};
	struct ibv_ah *ah;

	memcpy(&attr.grh.dgid, &addr->gid, sizeof(addr->gid));
	ah = ibv_create_ah(pd, &attr);
	if (!ah)
		return verve_net_error(errno);
	ibv_destroy_ah(ah);
	return 0;
}
