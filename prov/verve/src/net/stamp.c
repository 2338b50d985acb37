/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stamp: a hash of interfaces, addresses, devices, their files and states of ports. */
#include "net/stamp.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/inet6.h"
#include "net/sysfs.h"

#define FILES "/dev/infiniband"

static void add(void *hash, const void *data, size_t len)
{
	crypto_generichash_update(hash, data, len);
}

static size_t sockaddr_len(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_PACKET:
		return sizeof(struct sockaddr_ll);
	default:
		return sizeof(addr->sa_family);
	}
}

static void add_interface(crypto_generichash_state *hash, int fd, const struct ifaddrs *ifa)
{
	struct ifreq request;

	add(hash, ifa->ifa_name, strlen(ifa->ifa_name) + 1);
	add(hash, &ifa->ifa_flags, sizeof(ifa->ifa_flags));
	if (!ifa->ifa_addr)
		return;
	add(hash, ifa->ifa_addr, sockaddr_len(ifa->ifa_addr));
	if (ifa->ifa_addr->sa_family != AF_PACKET)
		return;
	/* The MTU of a RoCE port follows that of its interface. */
	memset(&request, 0, sizeof(request));
	strncpy(request.ifr_name, ifa->ifa_name, sizeof(request.ifr_name) - 1);
	if (!ioctl(fd, SIOCGIFMTU, &request))
		add(hash, &request.ifr_mtu, sizeof(request.ifr_mtu));
}

static bool add_interfaces(crypto_generichash_state *hash)
{
	struct ifaddrs *ifaddrs;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ret;

	if (fd < 0)
		return false;
	ret = !getifaddrs(&ifaddrs);
	if (ret) {
		for (const struct ifaddrs *ifa = ifaddrs; ifa; ifa = ifa->ifa_next)
			add_interface(hash, fd, ifa);
		freeifaddrs(ifaddrs);
	}
	close(fd);
	return ret;
}

/* An address may begin and end to be usable while the interfaces stay as they are. */
static bool add_inet6(crypto_generichash_state *hash)
{
	struct verve_inet6_list list;

	if (verve_inet6_list_init(&list))
		return false;
	add(hash, list.addrs, list.count * sizeof(*list.addrs));
	verve_inet6_list_fini(&list);
	return true;
}

/*
 * A container may have the files of some devices only; libibverbs finds the others, too, but cannot
 * open them. Without the folder there are none.
 */
static void add_files(crypto_generichash_state *hash)
{
	DIR *dir = opendir(FILES);
	char path[PATH_MAX];
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		uint8_t open;

		if (strncmp(entry->d_name, "uverbs", strlen("uverbs")))
			continue;
		snprintf(path, sizeof(path), FILES "/%s", entry->d_name);
		open = !access(path, R_OK | W_OK);
		add(hash, entry->d_name, strlen(entry->d_name) + 1);
		add(hash, &open, sizeof(open));
	}
	closedir(dir);
}

bool verve_net_stamp_take(struct verve_net_stamp *stamp)
{
	crypto_generichash_state hash;

	if (sodium_init() < 0 || crypto_generichash_init(&hash, NULL, 0, sizeof(stamp->bytes)))
		return false;
	add_files(&hash);
	return verve_sysfs_read_ports(add, &hash) && add_interfaces(&hash) &&
	       add_inet6(&hash) &&
	       !crypto_generichash_final(&hash, stamp->bytes, sizeof(stamp->bytes));
}
