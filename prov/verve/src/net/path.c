/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Path: the port's address and partition, looked up at open and again when the port changes. */
#include "net/path.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/log.h"
#include "net/sysfs.h"

enum {
	PKEY_FULL = 0x8000, /* the bit of full membership (InfiniBand spec. vol. 1, 10.9.1) */
	PKEY_NUMBER = 0x7fff,
	PKEY_DEFAULT = 0xffff,
};

/* Of the entries of a table of partition keys, the one of the highest rank is used. */
enum pkey_rank {
	RANK_NONE,
	RANK_LIMITED,
	RANK_FULL,
	RANK_DEFAULT,
	RANK_WANTED_LIMITED,
	RANK_WANTED,
};

/* True if the last look found no path, and the log has the reason. look_lock is held. */
static bool was_said(const struct verve_net_device *dev)
{
	return dev->away;
}

/* wanted: the number of a partition; 0: none. only: no other partition will do. */
static enum pkey_rank pkey_rank(uint16_t pkey, uint16_t wanted, bool only)
{
	bool full = pkey & PKEY_FULL;
	uint16_t number = pkey & PKEY_NUMBER;

	if (!number)
		return RANK_NONE;
	if (number == wanted)
		return full ? RANK_WANTED : RANK_WANTED_LIMITED;
	if (only)
		return RANK_NONE;
	if (pkey == PKEY_DEFAULT)
		return RANK_DEFAULT;
	return full ? RANK_FULL : RANK_LIMITED;
}

static int find_pkey(const struct verve_net_device *dev, const struct ibv_port_attr *port,
		     uint16_t wanted, struct verve_path *path)
{
	bool only = !verve_config_is_auto(verve_config.pkey);
	enum pkey_rank best = RANK_NONE;

	if (only)
		wanted = verve_config.pkey;
	wanted &= PKEY_NUMBER;
	for (uint32_t i = 0; i < port->pkey_tbl_len && best < RANK_WANTED; i++) {
		enum pkey_rank rank;
		__be16 pkey;

		if (ibv_query_pkey(dev->ctx, dev->port.port_num, i, &pkey))
			continue;
		rank = pkey_rank(be16toh(pkey), wanted, only);
		if (rank <= best)
			continue;
		best = rank;
		path->pkey = be16toh(pkey);
		path->pkey_index = i;
	}
	if (best)
		return 0;
	if (was_said(dev))
		return -FI_ENODEV;
	if (only)
		VERVE_WARN(DOMAIN, "%s port %u: is not in partition 0x%x of FI_VERVE_PKEY: "
			   "/sys/class/infiniband/%s/ports/%u/pkeys has those that it is in\n",
			   dev->port.device, dev->port.port_num, wanted, dev->port.device,
			   dev->port.port_num);
	else
		VERVE_WARN(DOMAIN, "%s port %u: is in no partition: ask the subnet manager\n",
			   dev->port.device, dev->port.port_num);
	return -FI_ENODEV;
}

/* The LID of FI_VERVE_LID_PATH_BITS. A port has 2^LMC of them (InfiniBand spec. vol. 1, 4.1.3). */
static int choose_lid(const struct verve_net_device *dev, const struct ibv_port_attr *port,
		      struct verve_path *path)
{
	if (verve_config.lid_path_bits >> port->lmc) {
		if (was_said(dev))
			return -FI_ENODEV;
		VERVE_WARN(DOMAIN, "%s port %u: has no LID for FI_VERVE_LID_PATH_BITS=%zu: its LMC "
			   "is %u, so that %u is the highest\n", dev->port.device,
			   dev->port.port_num, verve_config.lid_path_bits, port->lmc,
			   (1u << port->lmc) - 1);
		return -FI_ENODEV;
	}
	path->path_bits = verve_config.lid_path_bits;
	path->lid = port->lid + path->path_bits;
	return 0;
}

/* The exponent of the MTU that FI_VERVE_PATH_MTU allows at most. */
static uint8_t mtu_log2_max(void)
{
	unsigned long bytes = strtoul(verve_config.path_mtu, NULL, 10);

	return bytes ? __builtin_ctzl(bytes) : UINT8_MAX;
}

/* The exponent of the MTU that paths of such a port have. */
static uint8_t choose_mtu(const struct ibv_port_attr *port)
{
	uint8_t log2 = 7 + port->active_mtu; /* enum ibv_mtu: 1 is 256 bytes */

	return log2 < mtu_log2_max() ? log2 : mtu_log2_max();
}

int verve_path_fill(const struct verve_net_device *dev, const struct verve_port_attr *attr,
		    const struct verve_net_portaddr *addr, struct verve_path *path)
{
	int ret;

	*path = (struct verve_path) {
		.gid = addr->gid,
		.gid_index = addr->gid_index,
		.mtu_log2 = choose_mtu(&attr->port),
		.grh = dev->port.ethernet || attr->port.flags & IBV_QPF_GRH_REQUIRED,
		.pkey = PKEY_DEFAULT,
	};
	/* RoCE has one partition, the default one (InfiniBand spec. annex A17.3). */
	if (dev->port.ethernet)
		return 0;
	ret = choose_lid(dev, &attr->port, path);
	return ret ? ret : find_pkey(dev, &attr->port, verve_sysfs_pkey(addr->netdev), path);
}

enum look {
	LOOK_FAILED, /* nothing is known: there is no memory, or no descriptor, to look with */
	LOOK_AWAY,   /* the port is down, or does not have the device's address */
	LOOK_FOUND,
};

static enum look path_look_up(struct verve_net_device *dev, struct verve_path *path)
{
	struct verve_net_port port;
	struct verve_port_attr attr;
	int ret = verve_port_look(dev->ctx, dev->pd, dev->port.port_num, &port, &attr);
	bool found = false;

	if (!ret && port.usable)
		for (size_t i = 0; !found && i < port.addr_count; i++)
			found = verve_addr_same_host(&port.addrs[i].addr, &dev->addr.addr) &&
				!verve_path_fill(dev, &attr, &port.addrs[i], path);
	verve_net_port_fini(&port);
	if (ret)
		return LOOK_FAILED;
	return found ? LOOK_FOUND : LOOK_AWAY;
}

static void log_change(const struct verve_net_device *dev, const struct verve_path *path,
		       bool found)
{
	char name[VERVE_ADDR_STRLEN];

	verve_addr_str(&dev->addr.addr, name);
	if (found)
		VERVE_INFO(DOMAIN, "%s port %u: address %s has GID index %u, LID %u, MTU %u, "
			   "partition key 0x%x now\n", dev->port.device, dev->port.port_num, name,
			   path->gid_index, path->lid, 1u << path->mtu_log2, path->pkey);
	else
		VERVE_WARN(DOMAIN, "%s port %u: %s is no address of the port now, or the port is "
			   "down: new connections fail until it is back\n", dev->port.device,
			   dev->port.port_num, name);
}

static void path_refresh(struct verve_net_device *dev, const struct verve_path *old)
{
	struct verve_path path;
	enum look look;
	bool found, changed;

	/* One look at a time: the result of an older look must not replace a newer one's. */
	verve_lock_acquire(&dev->look_lock);
	/*
	 * In this order, so that an event during the look makes another look. AO_store_full would
	 * do, but GCC refuses its fence under ThreadSanitizer.
	 */
	AO_and_full(&dev->stale, 0);
	look = path_look_up(dev, &path);
	found = look == LOOK_FOUND;
	if (!found)
		AO_store(&dev->stale, 1);
	verve_lock_acquire(&dev->path_lock);
	changed = found ? dev->away || memcmp(&path, old, sizeof(path)) :
			  look == LOOK_AWAY && !dev->away;
	dev->away = !found && (look == LOOK_AWAY || dev->away);
	if (found)
		dev->path = path;
	verve_lock_release(&dev->path_lock);
	verve_lock_release(&dev->look_lock);
	if (changed)
		log_change(dev, &path, found);
}

/*
 * False: the port is no longer as the path says. Events tell of that, but later than a connection
 * may be made; and of another MTU none does on RoCE, where it follows the interface's: Linux,
 * rxe_net.c (rxe_notify), mlx5's main.c (mlx5_netdev_event).
 */
static bool path_is_current(const struct verve_net_device *dev, const struct verve_path *path)
{
	uint8_t num = dev->port.port_num;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	if (ibv_query_gid(dev->ctx, num, path->gid_index, &gid) ||
	    memcmp(&gid, &path->gid, sizeof(gid)) || ibv_query_port(dev->ctx, num, &port) ||
	    choose_mtu(&port) != path->mtu_log2)
		return false;
	if (dev->port.ethernet)
		return true;
	return port.lid + path->path_bits == path->lid &&
	       !ibv_query_pkey(dev->ctx, num, path->pkey_index, &pkey) &&
	       be16toh(pkey) == path->pkey;
}

static void copy_path(struct verve_net_device *dev, struct verve_path *path)
{
	verve_lock_acquire(&dev->path_lock);
	*path = dev->path;
	verve_lock_release(&dev->path_lock);
}

void verve_path_get(struct verve_net_device *dev, struct verve_path *path)
{
	copy_path(dev, path);
	if (!AO_load(&dev->stale) && path_is_current(dev, path))
		return;
	path_refresh(dev, path);
	copy_path(dev, path);
}

void verve_path_expire(struct verve_net_device *dev)
{
	AO_or_full(&dev->stale, 1);
}

const char *verve_path_refuse(const struct verve_net_device *dev, const struct verve_path *path,
			      const struct verve_net_gid *gid, uint16_t pkey, char *buf)
{
	if (dev->port.ethernet)
		return NULL;
	/*
	 * The upper 8 bytes of a GID are its subnet's prefix. Packets to another subnet go to the
	 * LID of a router, which only a query of the subnet manager tells.
	 */
	if (memcmp(gid, &path->gid, 8))
		snprintf(buf, VERVE_NET_REASON_MAX, "it is in another subnet, and verve does not "
			 "know the router's LID");
	else if ((pkey ^ path->pkey) & PKEY_NUMBER)
		snprintf(buf, VERVE_NET_REASON_MAX, "it is in partition 0x%x, this side in 0x%x: "
			 "FI_VERVE_PKEY names one that both are in", pkey, path->pkey);
	else if (!((pkey | path->pkey) & PKEY_FULL))
		snprintf(buf, VERVE_NET_REASON_MAX, "both are limited members of partition 0x%x: "
			 "one must be a full member, or FI_VERVE_PKEY name another partition",
			 pkey & PKEY_NUMBER);
	else
		return NULL;
	return buf;
}
