/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* /sys: small texts and links under class/infiniband and class/net. */
#include "net/sysfs.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASS_IB "/sys/class/infiniband"
#define CLASS_NET "/sys/class/net"

enum { ARPHRD_INFINIBAND = 32 }; /* linux/if_arp.h, which cannot stand beside libc's headers */

/*
 * Reads the first line of a file, without its newline. False, and text empty: no file, or it is
 * empty.
 */
__attribute__((format(printf, 2, 3)))
static bool read_text(char *text, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;

	text[0] = '\0';
	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(text, VERVE_NET_NAME_MAX, file))
		text[0] = '\0';
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	return text[0];
}

/* Reads the last component of a symbolic link's target. False, and text empty: no link. */
__attribute__((format(printf, 2, 3)))
static bool read_link(char *text, const char *format, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *last;
	va_list args;
	ssize_t len;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	text[0] = '\0';
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	last = strrchr(target, '/');
	snprintf(text, VERVE_NET_NAME_MAX, "%.*s", VERVE_NET_NAME_MAX - 1,
		 last ? last + 1 : target);
	return true;
}

void verve_sysfs_driver(const char *device, char *driver)
{
	if (!read_link(driver, CLASS_IB "/%s/device/driver", device))
		read_text(driver, CLASS_IB "/%s/node_desc", device);
}

void verve_sysfs_pci(const char *device, struct verve_net_port *port)
{
	char address[VERVE_NET_NAME_MAX];
	unsigned domain, bus, dev, function;

	if (!read_link(address, CLASS_IB "/%s/device", device) ||
	    sscanf(address, "%x:%x:%x.%x", &domain, &bus, &dev, &function) != 4)
		return;
	port->on_pci = true;
	port->pci_domain = domain;
	port->pci_bus = bus;
	port->pci_device = dev;
	port->pci_function = function;
}

/* Calls visit for each entry of the directory until visit returns true. */
static void visit_dir(const char *path, bool (*visit)(const char *name, void *arg), void *arg)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && visit(entry->d_name, arg))
			break;
	closedir(dir);
}

struct search {
	uint8_t port_num;
	char *netdev;
};

static bool netdev_is_of_port(const char *name, void *arg)
{
	const struct search *search = arg;
	char text[VERVE_NET_NAME_MAX];

	/* dev_port counts from 0, port numbers from 1. */
	if (!read_text(text, CLASS_NET "/%s/dev_port", name) ||
	    strtoul(text, NULL, 0) != search->port_num - 1u)
		return false;
	snprintf(search->netdev, VERVE_NET_NAME_MAX, "%.*s", VERVE_NET_NAME_MAX - 1, name);
	return true;
}

void verve_sysfs_netdev(const char *device, uint8_t port_num, char *netdev)
{
	struct search search = {.port_num = port_num, .netdev = netdev};
	char path[PATH_MAX];

	/*
	 * In this order: the interface of the port's default GID; the interface under a software
	 * device; an interface on the same PCI function.
	 */
	if (read_text(netdev, CLASS_IB "/%s/ports/%u/gid_attrs/ndevs/0", device, port_num) ||
	    read_text(netdev, CLASS_IB "/%s/parent", device))
		return;
	snprintf(path, sizeof(path), CLASS_IB "/%s/device/net", device);
	visit_dir(path, netdev_is_of_port, &search);
}

/* The link address of an IPoIB interface ends with the GID of its port (RFC 4391, 9.1.1). */
bool verve_sysfs_is_ipoib(const char *netdev, const struct verve_net_gid *gid)
{
	char text[VERVE_NET_NAME_MAX], wanted[VERVE_NET_NAME_MAX];
	char *end = wanted;
	size_t len;

	if (!read_text(text, CLASS_NET "/%s/type", netdev) || atoi(text) != ARPHRD_INFINIBAND ||
	    !read_text(text, CLASS_NET "/%s/address", netdev))
		return false;
	for (size_t i = 0; i < sizeof(gid->raw); i++)
		end += sprintf(end, "%s%02x", i ? ":" : "", gid->raw[i]);
	len = strlen(text);
	return len >= strlen(wanted) && !strcmp(text + len - strlen(wanted), wanted);
}

struct ipoib_search {
	const struct verve_net_gid *gid;
	char *netdev; /* the best so far */
};

/* Of a parent and its children (ib0, ib0.8001) the parent has the shorter name. */
static bool ipoib_is_found(const char *name, void *arg)
{
	const struct ipoib_search *search = arg;
	size_t len = strlen(name), best = strlen(search->netdev);

	if (best && (len > best || (len == best && strcmp(name, search->netdev) > 0)))
		return false;
	if (verve_sysfs_is_ipoib(name, search->gid))
		snprintf(search->netdev, VERVE_NET_NAME_MAX, "%.*s", VERVE_NET_NAME_MAX - 1, name);
	return false;
}

void verve_sysfs_ipoib(const struct verve_net_gid *gid, char *netdev)
{
	struct ipoib_search search = {.gid = gid, .netdev = netdev};

	netdev[0] = '\0';
	visit_dir(CLASS_NET, ipoib_is_found, &search);
}

bool verve_sysfs_rate(const char *device, uint8_t port_num, uint64_t *speed, char *rate)
{
	char text[VERVE_NET_NAME_MAX], width[8], name[16] = "";
	unsigned gbps, tenths = 0;

	rate[0] = '\0';
	/* "800 Gb/sec (4X XDR)", "2.5 Gb/sec (1X SDR)". */
	if (!read_text(text, CLASS_IB "/%s/ports/%u/rate", device, port_num))
		return false;
	if (sscanf(text, "%u Gb/sec (%7[0-9X]%15[ A-Z0-9]", &gbps, width, name) < 2 &&
	    sscanf(text, "%u.%1u Gb/sec (%7[0-9X]%15[ A-Z0-9]", &gbps, &tenths, width, name) < 3)
		return false;
	*speed = (gbps * UINT64_C(10) + tenths) * 100000000;
	snprintf(rate, VERVE_NET_NAME_MAX, "%s%s", width, name);
	return true;
}

uint16_t verve_sysfs_pkey(const char *netdev)
{
	char text[VERVE_NET_NAME_MAX], slave[VERVE_NET_NAME_MAX];

	/* Only IPoIB interfaces have the file: it has 0x8001 and the like. */
	if (!netdev[0] || (!read_text(text, CLASS_NET "/%s/pkey", netdev) &&
			   (!read_text(slave, CLASS_NET "/%s/bonding/active_slave", netdev) ||
			    !read_text(text, CLASS_NET "/%s/pkey", slave))))
		return 0;
	return strtoul(text, NULL, 0);
}

void verve_sysfs_link_addr(const char *netdev, char *addr)
{
	addr[0] = '\0';
	if (netdev[0])
		read_text(addr, CLASS_NET "/%s/address", netdev);
}

struct reader {
	void (*add)(void *arg, const void *data, size_t len);
	void *arg;
	const char *device;
	unsigned ports, all_ports; /* read of this device, and of all devices */
	bool failed;
};

static void reader_add(const struct reader *reader, const char *text)
{
	reader->add(reader->arg, text, strlen(text) + 1);
}

static bool port_read(const char *name, void *arg)
{
	struct reader *reader = arg;
	char text[VERVE_NET_NAME_MAX];

	reader_add(reader, name);
	if (!read_text(text, CLASS_IB "/%s/ports/%s/state", reader->device, name)) {
		reader->failed = true;
		return true;
	}
	reader_add(reader, text);
	read_text(text, CLASS_IB "/%s/ports/%s/rate", reader->device, name);
	reader_add(reader, text);
	read_text(text, CLASS_IB "/%s/ports/%s/gids/0", reader->device, name);
	reader_add(reader, text);
	reader->ports++;
	return false;
}

static bool device_read(const char *name, void *arg)
{
	struct reader *reader = arg;
	char path[PATH_MAX];
	struct stat node;
	DIR *dir;

	snprintf(path, sizeof(path), CLASS_IB "/%s/ports", name);
	dir = opendir(path);
	if (!dir || fstat(dirfd(dir), &node)) {
		reader->failed = true;
	} else {
		reader_add(reader, name);
		reader->add(reader->arg, &node.st_ino, sizeof(node.st_ino));
		reader->device = name;
		reader->ports = 0;
		visit_dir(path, port_read, reader);
	}
	if (dir)
		closedir(dir);
	reader->failed |= !reader->ports;
	reader->all_ports += reader->ports;
	return reader->failed;
}

bool verve_sysfs_read_ports(void (*add)(void *arg, const void *data, size_t len), void *arg)
{
	struct reader reader = {.add = add, .arg = arg};

	visit_dir(CLASS_IB, device_read, &reader);
	return !reader.failed && reader.all_ports;
}
