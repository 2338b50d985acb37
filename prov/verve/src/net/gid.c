/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GIDs: the device's table against the addresses that the host's interfaces have. */
#include "net/gid.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/iface.h"
#include "net/inet6.h"
#include "net/sysfs.h"
#include "net/verbs.h"

enum {
	HOP_LIMIT = 64,
	/* GIDs of all ports of a device that one query returns: the kernel copies below 64 KiB. */
	TABLE_MAX = 2040,
};

/* The input of one search for a port's addresses, and the port that gets the result. */
struct finder {
	struct ibv_gid_entry *table;
	size_t table_count;
	struct ifaddrs *ifaddrs;
	struct verve_inet6_list inet6;
	/* RoCE: of the interface of each of ifaddrs, in their order; 0: a label hides it */
	uint32_t *ifindex;
	struct verve_net_port *port;
};

/*
 * IPv4 addresses come first, then global IPv6 addresses, then link-local ones. Of the global ones,
 * those that pass come last: an endpoint may need its name for months.
 */
static int portaddr_rank(const struct verve_net_portaddr *addr)
{
	if (addr->addr.sa.sa_family == AF_INET)
		return 0;
	if (IN6_IS_ADDR_LINKLOCAL(&addr->addr.in6.sin6_addr))
		return 3;
	return addr->passing ? 2 : 1;
}

/* Inserts the address behind all addresses of the same or a better rank. */
static int port_add_addr(struct verve_net_port *port, const struct verve_net_portaddr *addr)
{
	size_t at = port->addr_count;
	struct verve_net_portaddr *addrs;

	addrs = realloc(port->addrs, (port->addr_count + 1) * sizeof(*addrs));
	if (!addrs)
		return -FI_ENOMEM;
	port->addrs = addrs;
	while (at && portaddr_rank(&addrs[at - 1]) > portaddr_rank(addr))
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

/* Notes a GID that leads to no usable address of the port, and the reason. */
static int gid_refuse(const struct finder *finder, const struct ibv_gid_entry *entry,
		      const char *reason)
{
	struct verve_net_gid gid;

	memcpy(&gid, &entry->gid, sizeof(gid));
	return verve_gid_refuse(finder->port, &gid, entry->gid_index, reason);
}

static bool ifaddr_is_ip(const struct ifaddrs *ifa)
{
	return ifa->ifa_addr && ifa->ifa_flags & IFF_UP &&
	       (ifa->ifa_addr->sa_family == AF_INET || ifa->ifa_addr->sa_family == AF_INET6);
}

static void ifaddr_get(const struct ifaddrs *ifa, struct verve_addr *addr)
{
	/* getifaddrs(3) allocates exactly one sockaddr of the family: do not read beyond it. */
	verve_addr_set(addr, ifa->ifa_addr, ifa->ifa_addr->sa_family == AF_INET ?
		       sizeof(addr->in) : sizeof(addr->in6));
}

/*
 * Bytes of the interface's name. An IPv4 address may have a label instead, which /sys does not
 * know. Most labels are such as "eth0:1", and no interface has a colon in its name; but any text
 * can be one (Label= of systemd.network(5)): then only a RoCE GID tells the interface.
 */
static size_t netdev_len(const char *name)
{
	return strcspn(name, ":");
}

/* A RoCE v2 GID is an IP address; IPv4 addresses are IPv4-mapped. */
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

static uint32_t ifaddr_index(const struct ifaddrs *ifa)
{
	const struct sockaddr_ll *link;

	if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != AF_PACKET)
		return if_nametoindex(ifa->ifa_name);
	link = (const void *)ifa->ifa_addr;
	return link->sll_ifindex;
}

/* One look for each address of the host, for all GIDs together: it takes three system calls. */
static int read_indexes(struct finder *finder)
{
	const struct ifaddrs *ifa;
	size_t count = 0;

	for (ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next)
		count++;
	finder->ifindex = calloc(count + 1, sizeof(*finder->ifindex));
	if (!finder->ifindex)
		return -FI_ENOMEM;
	count = 0;
	for (ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next)
		finder->ifindex[count++] = ifaddr_index(ifa);
	return 0;
}

/* The name of the interface; NULL: none here has this index. */
static const char *netdev_name(const struct finder *finder, uint32_t ifindex)
{
	const struct ifaddrs *ifa;
	size_t i = 0;

	for (ifa = finder->ifaddrs; ifindex && ifa; ifa = ifa->ifa_next, i++)
		if (finder->ifindex[i] == ifindex)
			return ifa->ifa_name;
	return NULL;
}

/*
 * The name, or label, of the network interface of this namespace that has the address. ifindex:
 * only that interface, or one that a label hides; 0: any. NULL: none.
 */
static const char *find_netdev(const struct finder *finder, const struct verve_addr *addr,
			       uint32_t ifindex)
{
	const struct ifaddrs *ifa;
	struct verve_addr have;
	size_t i = 0;

	for (ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next, i++) {
		if (!ifaddr_is_ip(ifa) ||
		    (ifindex && finder->ifindex[i] && finder->ifindex[i] != ifindex))
			continue;
		ifaddr_get(ifa, &have);
		if (verve_addr_same_host(&have, addr))
			return ifa->ifa_name;
	}
	return NULL;
}

/*
 * True if the GID's interface lies in another network namespace: no interface here has its index.
 */
static bool ifindex_is_elsewhere(const struct finder *finder, uint32_t ifindex)
{
	return ifindex && !netdev_name(finder, ifindex);
}

/* netdev: the name of the interface, or the address's label. */
static void portaddr_set(struct verve_net_portaddr *addr, const struct ibv_gid_entry *entry,
		     const char *netdev)
{
	addr->gid_index = entry->gid_index;
	memcpy(&addr->gid, &entry->gid, sizeof(addr->gid));
	snprintf(addr->netdev, sizeof(addr->netdev), "%.*s", (int)netdev_len(netdev), netdev);
	snprintf(addr->label, sizeof(addr->label), "%s", netdev);
}

/* False: FI_VERVE_GID_INDEX names another entry of the table. */
static bool gid_is_named(const struct ibv_gid_entry *entry)
{
	return verve_config_is_auto(verve_config.gid_index) ||
	       entry->gid_index == verve_config.gid_index;
}

/*
 * Sets addr->passing. The reason why no socket can have the address, which is also the port's, if
 * it has no other address; NULL: sockets can.
 */
static const char *addr_reject(const struct finder *finder, uint32_t ifindex,
			       struct verve_net_portaddr *addr)
{
	enum verve_inet6_state state = verve_inet6_state(&finder->inet6, &addr->addr, ifindex);
	const char *why = NULL;

	addr->passing = state == VERVE_INET6_PASSING;
	if (state == VERVE_INET6_TENTATIVE)
		why = "tentative IPv6 address: try again in a few seconds";
	else if (state == VERVE_INET6_DUPLICATE)
		why = "another host has this IPv6 address: choose another one";
	if (why)
		snprintf(finder->port->reason, sizeof(finder->port->reason), "%s", why);
	return why;
}

/* The reason why a RoCE GID cannot be used; NULL: it can, and *addr is filled in. */
static const char *gid_reject_ethernet(const struct finder *finder,
				       const struct ibv_gid_entry *entry,
				       struct verve_net_portaddr *addr)
{
	const char *netdev, *name;

	if (!gid_is_named(entry))
		return "FI_VERVE_GID_INDEX names another";
	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return "RoCE v1; only RoCE v2 is spoken";
	if (entry->gid_index > UINT8_MAX)
		return "its index is above 255";
	gid_to_addr(entry, &addr->addr);
	if (ifindex_is_elsewhere(finder, entry->ndev_ifindex))
		return "its interface is in another network namespace";
	netdev = find_netdev(finder, &addr->addr, entry->ndev_ifindex);
	if (!netdev)
		return "its interface does not have this address, or is down";
	portaddr_set(addr, entry, netdev);
	name = netdev_name(finder, entry->ndev_ifindex);
	if (name)
		snprintf(addr->netdev, sizeof(addr->netdev), "%.*s", (int)netdev_len(name), name);
	return addr_reject(finder, entry->ndev_ifindex, addr);
}

/* Says why the one GID that FI_VERVE_GID_INDEX names is not used. */
static void port_explain_named(struct verve_net_port *port)
{
	for (size_t i = 0; i < port->refused_count; i++) {
		if (port->refused[i].gid_index != verve_config.gid_index)
			continue;
		snprintf(port->reason, sizeof(port->reason), "GID %zu (FI_VERVE_GID_INDEX): %s",
			 verve_config.gid_index, port->refused[i].reason);
		return;
	}
	snprintf(port->reason, sizeof(port->reason), "it has no GID %zu, which FI_VERVE_GID_INDEX "
		 "names: unset FI_VERVE_GID_INDEX", verve_config.gid_index);
}

static void port_explain_ethernet(struct verve_net_port *port, bool any, bool elsewhere)
{
	const char *netdev = port->netdev[0] ? port->netdev : "INTERFACE";

	if (!verve_config_is_auto(verve_config.gid_index))
		port_explain_named(port);
	else if (port->reason[0])
		return;
	else if (!any)
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

/*
 * RoCE: a v2 GID is usable if an interface here has its IP address. The default GID, made from the
 * link address, often belongs to no interface.
 */
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
		why = gid_reject_ethernet(finder, entry, &addr);
		if (entry->gid_type == IBV_GID_TYPE_ROCE_V2) {
			any = true;
			elsewhere |= ifindex_is_elsewhere(finder, entry->ndev_ifindex);
		}
		if (why ? gid_refuse(finder, entry, why) : port_add_addr(port, &addr))
			return -FI_ENOMEM;
	}
	if (!port->addr_count)
		port_explain_ethernet(port, any, elsewhere);
	return 0;
}

/*
 * The GID that FI_VERVE_GID_INDEX names, or else the one of the lowest index, which is the port's
 * own identity (InfiniBand spec. vol. 1, 4.1.1).
 */
static const struct ibv_gid_entry *choose_gid(const struct finder *finder)
{
	const struct ibv_gid_entry *best = NULL;

	for (size_t i = 0; i < finder->table_count; i++) {
		const struct ibv_gid_entry *entry = &finder->table[i];

		if (entry->port_num == finder->port->port_num &&
		    entry->gid_type == IBV_GID_TYPE_IB && gid_is_named(entry) &&
		    (!best || entry->gid_index < best->gid_index))
			best = entry;
	}
	return best;
}

static int gid_refuse_others(const struct finder *finder, const struct ibv_gid_entry *chosen)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < finder->table_count; i++)
		if (finder->table[i].port_num == finder->port->port_num &&
		    &finder->table[i] != chosen)
			ret = gid_refuse(finder, &finder->table[i],
				     verve_config_is_auto(verve_config.gid_index) ?
					     "queue pairs use the port's default GID" :
					     "FI_VERVE_GID_INDEX names another");
	return ret;
}

static bool netdev_exists(const struct finder *finder, const struct verve_iface *iface)
{
	for (const struct ifaddrs *ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next)
		if (strlen(ifa->ifa_name) == iface->name_len &&
		    !memcmp(ifa->ifa_name, iface->name, iface->name_len))
			return true;
	return false;
}

/* The name, or label, of an interface that could carry the handshake, for the user's first try. */
static const char *example_netdev(const struct finder *finder)
{
	const struct ifaddrs *ifa;

	for (ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next)
		if (ifaddr_is_ip(ifa) && !(ifa->ifa_flags & IFF_LOOPBACK))
			return ifa->ifa_name;
	return "eth0";
}

/*
 * InfiniBand: the handshake goes over the interface that FI_VERVE_IFACE gives to this port
 * (mlx5_0@eth0), or else over the port's IPoIB interfaces, or else over the first interface of the
 * variable. A name that nothing has counts, too, if there is no other: the user hears of it. Sets
 * port->netdev, before that the port's first IPoIB interface. False: it is still that.
 */
static bool handshake_is_named(const struct finder *finder)
{
	struct verve_net_port *port = finder->port;
	const struct verve_iface_port of = { port->device, port->port_num };
	bool has_ipoib = port->netdev[0], found = false;
	const char *list = verve_config.iface;
	struct verve_iface iface;

	while (verve_iface_next(&list, &iface)) {
		bool is_of_port = verve_iface_is_of_port(&iface, &of);

		if (!is_of_port && (has_ipoib || found || iface.device ||
				    verve_iface_is_port(&iface, &of)))
			continue;
		found = netdev_exists(finder, &iface);
		if (is_of_port || found || !port->netdev[0])
			snprintf(port->netdev, sizeof(port->netdev), "%.*s", (int)iface.name_len,
				 iface.name);
		if (is_of_port)
			return true;
	}
	return !has_ipoib;
}

static void port_explain_infiniband(const struct finder *finder)
{
	struct verve_net_port *port = finder->port;
	const char *example = example_netdev(finder);

	if (port->netdev[0])
		snprintf(port->reason, sizeof(port->reason), "%.16s has no IP address, or is down: "
			 "ip address add ADDRESS/LENGTH dev %.16s", port->netdev, port->netdev);
	else
		snprintf(port->reason, sizeof(port->reason),
			 "no IP address for the handshake: export FI_VERVE_IFACE=%.32s@%.*s, or "
			 "another one that reaches peers; or set up IPoIB",
			 port->device, (int)netdev_len(example), example);
}

/* The address belongs to this interface, or has this label, which may be named as well. */
static bool addr_is_of(const struct verve_net_portaddr *addr, const char *name)
{
	return !strcmp(addr->netdev, name) || !strcmp(addr->label, name);
}

/* InfiniBand: queue pairs use the port's default GID, or FI_VERVE_GID_INDEX's. */
static int find_infiniband(const struct finder *finder)
{
	struct verve_net_port *port = finder->port;
	const struct ibv_gid_entry *entry = choose_gid(finder);
	struct verve_net_portaddr addr;
	bool named;

	if (gid_refuse_others(finder, entry))
		return -FI_ENOMEM;
	if (!entry && !verve_config_is_auto(verve_config.gid_index)) {
		port_explain_named(port);
		return 0;
	}
	if (!entry || entry->gid_index > UINT8_MAX) {
		snprintf(port->reason, sizeof(port->reason), "the port has no GID");
		return 0;
	}
	portaddr_set(&addr, entry, "");
	verve_sysfs_ipoib(&addr.gid, port->netdev);
	named = handshake_is_named(finder);
	for (const struct ifaddrs *ifa = finder->ifaddrs; ifa; ifa = ifa->ifa_next) {
		portaddr_set(&addr, entry, ifa->ifa_name);
		if (!ifaddr_is_ip(ifa) || !(named ? addr_is_of(&addr, port->netdev) :
					     verve_sysfs_is_ipoib(addr.netdev, &addr.gid)))
			continue;
		ifaddr_get(ifa, &addr.addr);
		if (!addr_reject(finder, 0, &addr) && port_add_addr(port, &addr))
			return -FI_ENOMEM;
	}
	if (!port->addr_count && !port->reason[0])
		port_explain_infiniband(finder);
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
	ret = verve_inet6_list_init(&finder.inet6);
	if (!ret && port->ethernet)
		ret = read_indexes(&finder);
	if (!ret && !finder.port->reason[0])
		ret = port->ethernet ? find_ethernet(&finder) : find_infiniband(&finder);
	if (port->addr_count)
		memcpy(port->netdev, port->addrs[0].netdev, sizeof(port->netdev));
	verve_inet6_list_fini(&finder.inet6);
	free(finder.ifindex);
	freeifaddrs(finder.ifaddrs);

out_table:
	free(finder.table);
	return ret;
}

/*
 * True if this errno of ibv_create_ah(3) says nothing about the address: qedr has no address
 * handles (EOPNOTSUPP), nor has hns on HIP08, whose library sets no errno. Queue pairs of RC need
 * none.
 */
static bool device_has_no_ahs(int error)
{
	return !error || error == EOPNOTSUPP || error == ENOSYS;
}

int verve_gid_prove(struct ibv_pd *pd, const struct verve_net_port *port,
		    const struct verve_net_portaddr *addr, uint16_t lid, bool grh)
{
	struct ibv_ah_attr attr = {
		.dlid = lid,
		.sl = verve_config.sl,
		.is_global = grh,
		.port_num = port->port_num,
		.grh = {
			.sgid_index = addr->gid_index,
			.hop_limit = HOP_LIMIT,
		},
	};
	struct ibv_ah *ah;

	memcpy(&attr.grh.dgid, &addr->gid, sizeof(addr->gid));
	errno = 0;
	ah = ibv_create_ah(pd, &attr);
	if (!ah)
		return device_has_no_ahs(errno) ? 0 : verve_net_error(errno);
	ibv_destroy_ah(ah);
	return 0;
}
