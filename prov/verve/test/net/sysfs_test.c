/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * /sys and /proc, and the stamp that is made from them: the program is linked with --wrap for each
 * __wrap_ function, so that each path there and under /dev/infiniband is looked up in a temporary
 * folder instead, and the host has the one interface below.
 */
#include "net/sysfs.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/inet6.h"
#include "net/stamp.h"

FILE *__real_fopen(const char *path, const char *mode);
DIR *__real_opendir(const char *path);
ssize_t __real_readlink(const char *path, char *buf, size_t size);
FILE *__wrap_fopen(const char *path, const char *mode);
DIR *__wrap_opendir(const char *path);
ssize_t __wrap_readlink(const char *path, char *buf, size_t size);
int __wrap_access(const char *path, int mode);
int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);

static char root[] = "/tmp/verve-sysfs-XXXXXX";
static char text[VERVE_NET_NAME_MAX];

static bool is_forbidden; /* to open device files */

static char netdev[] = "eth0";
static struct sockaddr_in ip = {.sin_family = AF_INET};
static struct ifaddrs interface = {.ifa_name = netdev, .ifa_addr = (struct sockaddr *)&ip};

int __wrap_getifaddrs(struct ifaddrs **list)
{
	*list = &interface;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
	cr_expect_eq(list, &interface);
}

static const char *mapped(const char *path, char *buf)
{
	bool is_mapped = !strncmp(path, "/sys/", 5) || !strncmp(path, "/dev/infiniband", 15) ||
			 !strncmp(path, "/proc/", 6);

	snprintf(buf, PATH_MAX, "%s%s", is_mapped ? root : "", path);
	return buf;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	char buf[PATH_MAX];

	return __real_fopen(mapped(path, buf), mode);
}

DIR *__wrap_opendir(const char *path)
{
	char buf[PATH_MAX];

	return __real_opendir(mapped(path, buf));
}

/* Root may do all, so that modes of files would show nothing. */
int __wrap_access(const char *path, int mode)
{
	cr_expect_str_eq(path, "/dev/infiniband/uverbs0");
	cr_expect_eq(mode, R_OK | W_OK);
	errno = EACCES;
	return is_forbidden ? -1 : 0;
}

ssize_t __wrap_readlink(const char *path, char *out, size_t size)
{
	char buf[PATH_MAX];

	return __real_readlink(mapped(path, buf), out, size);
}

/* Makes all folders on the way to path. */
static void make_folders(char *path)
{
	for (char *at = path + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
}

static void add_file(const char *path, const char *content)
{
	char buf[PATH_MAX];
	FILE *file;

	mapped(path, buf);
	make_folders(buf);
	file = __real_fopen(buf, "w");
	cr_assert_not_null(file);
	fputs(content, file);
	fclose(file);
}

static void add_link(const char *path, const char *target)
{
	char buf[PATH_MAX];

	mapped(path, buf);
	make_folders(buf);
	cr_assert_eq(symlink(target, buf), 0);
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void setup(void)
{
	cr_assert_not_null(mkdtemp(root));
	memset(text, '?', sizeof(text));
	text[sizeof(text) - 1] = '\0';
}

static void teardown(void)
{
	cr_expect_eq(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

TestSuite(sysfs, .init = setup, .fini = teardown);

#define IB "/sys/class/infiniband/"
#define NET "/sys/class/net/"

Test(sysfs, nothing_there_leaves_texts_empty)
{
	struct verve_net_port port = {0};
	struct verve_net_gid gid = {{1}};

	verve_sysfs_driver("mlx5_0", text);
	cr_expect_str_eq(text, "");
	text[0] = '?';
	verve_sysfs_netdev("mlx5_0", 1, text);
	cr_expect_str_eq(text, "");
	text[0] = '?';
	verve_sysfs_ipoib(&gid, text);
	cr_expect_str_eq(text, "");
	text[0] = '?';
	verve_sysfs_link_addr("eth0", text);
	cr_expect_str_eq(text, "");
	text[0] = '?';
	verve_sysfs_link_addr("", text);
	cr_expect_str_eq(text, "");
	verve_sysfs_pci("mlx5_0", &port);
	cr_expect_not(port.on_pci);
}

Test(sysfs, driver_is_the_kernels_or_what_the_device_calls_itself)
{
	add_file(IB "rxe0/node_desc", "rxe_name\nsecond line\n");
	verve_sysfs_driver("rxe0", text);
	cr_expect_str_eq(text, "rxe_name");
	add_link(IB "mlx5_0/device/driver", "../../../bus/pci/drivers/mlx5_core");
	add_file(IB "mlx5_0/node_desc", "host mlx5_0\n");
	verve_sysfs_driver("mlx5_0", text);
	cr_expect_str_eq(text, "mlx5_core");
	add_link(IB "odd/device/driver", "alone");
	verve_sysfs_driver("odd", text);
	cr_expect_str_eq(text, "alone");
}

Test(sysfs, long_texts_are_cut)
{
	char text_of_200[201];

	memset(text_of_200, 'x', 200);
	text_of_200[200] = '\0';
	add_file(IB "rxe0/node_desc", text_of_200);
	verve_sysfs_driver("rxe0", text);
	cr_expect_eq(strlen(text), VERVE_NET_NAME_MAX - 1);
	add_link(IB "mlx5_0/device/driver", text_of_200);
	verve_sysfs_driver("mlx5_0", text);
	cr_expect_eq(strlen(text), VERVE_NET_NAME_MAX - 1);
}

Test(sysfs, empty_file_is_nothing)
{
	add_file(IB "rxe0/node_desc", "");
	verve_sysfs_driver("rxe0", text);
	cr_expect_str_eq(text, "");
	add_file(IB "rxe1/node_desc", "\n");
	verve_sysfs_driver("rxe1", text);
	cr_expect_str_eq(text, "");
}

Test(sysfs, place_on_pci)
{
	struct verve_net_port port = {0};

	add_link(IB "mlx5_0/device", "../../../devices/pci001a:3b/001a:3b:02.1");
	verve_sysfs_pci("mlx5_0", &port);
	cr_expect(port.on_pci);
	cr_expect_eq(port.pci_domain, 0x1a);
	cr_expect_eq(port.pci_bus, 0x3b);
	cr_expect_eq(port.pci_device, 2);
	cr_expect_eq(port.pci_function, 1);
	port.on_pci = false;
	add_link(IB "other/device", "../../../devices/platform/HNS3:00");
	verve_sysfs_pci("other", &port);
	cr_expect_not(port.on_pci);
}

Test(sysfs, netdev_of_the_default_gid_comes_first)
{
	add_file(IB "mlx5_0/ports/1/gid_attrs/ndevs/0", "eth7\n");
	add_file(IB "mlx5_0/parent", "eth8\n");
	add_file(IB "mlx5_0/device/net/eth9/x", "");
	verve_sysfs_netdev("mlx5_0", 1, text);
	cr_expect_str_eq(text, "eth7");
	verve_sysfs_netdev("mlx5_0", 2, text);
	cr_expect_str_eq(text, "eth8");
}

Test(sysfs, netdev_of_the_same_function_by_its_port)
{
	add_file(IB "mlx4_0/device/net/eth0/x", "");
	add_file(IB "mlx4_0/device/net/eth1/x", "");
	add_file(NET "eth0/dev_port", "0\n");
	add_file(NET "eth1/dev_port", "1\n");
	verve_sysfs_netdev("mlx4_0", 1, text);
	cr_expect_str_eq(text, "eth0");
	verve_sysfs_netdev("mlx4_0", 2, text);
	cr_expect_str_eq(text, "eth1");
	verve_sysfs_netdev("mlx4_0", 3, text);
	cr_expect_str_eq(text, "");
}

Test(sysfs, ipoib_is_the_interface_whose_address_ends_in_the_gid)
{
	static const char hw[] =
		"80:00:02:08:fe:80:00:00:00:00:00:00:00:11:22:33:44:55:66:77\n";
	struct verve_net_gid gid = {
		{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77}};

	add_file(NET "eth0/type", "1\n");
	add_file(NET "eth0/address", hw); /* type 1: an Ethernet interface */
	add_file(NET "ib0/type", "32\n");
	add_file(NET "ib0/address",
		"80:00:02:08:fe:80:00:00:00:00:00:00:00:11:22:33:44:55:66:78\n");
	add_file(NET "ib1/type", "32\n");
	add_file(NET "ib1/address", "66:77\n"); /* shorter than a GID */
	verve_sysfs_ipoib(&gid, text);
	cr_expect_str_eq(text, "");
	add_file(NET "ib2/type", "32\n");
	add_file(NET "ib2/address", hw);
	verve_sysfs_ipoib(&gid, text);
	cr_expect_str_eq(text, "ib2");
	cr_expect(verve_sysfs_is_ipoib("ib2", &gid));
	cr_expect_not(verve_sysfs_is_ipoib("ib0", &gid));
	cr_expect_not(verve_sysfs_is_ipoib("eth0", &gid));
	cr_expect_not(verve_sysfs_is_ipoib("ib3", &gid));
}

/* Children of a parent have its GID, and come in any order. */
Test(sysfs, ipoib_is_the_parent_rather_than_a_child)
{
	static const char *const names[] = {"ib0.8002", "ib0.8001", "ib0", "ib0.8003"};
	static const char hw[] =
		"80:00:02:08:fe:80:00:00:00:00:00:00:00:11:22:33:44:55:66:77\n";
	struct verve_net_gid gid = {
		{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77}};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), NET "%s/type", names[i]);
		add_file(path, "32\n");
		snprintf(path, sizeof(path), NET "%s/address", names[i]);
		add_file(path, hw);
	}
	verve_sysfs_ipoib(&gid, text);
	cr_expect_str_eq(text, "ib0");
}

Test(sysfs, link_address)
{
	add_file(NET "eth0/address", "52:54:00:00:00:01\n");
	verve_sysfs_link_addr("eth0", text);
	cr_expect_str_eq(text, "52:54:00:00:00:01");
}

/* IPv6 addresses. */

#define INET6 "/proc/thread-self/net/if_inet6"

static const char two_addrs[] =
	"fd090000000000000001000200030004 03 40 00 82       a0\n"
	"fe800000000000004cbf51fffe0b7f40 1a3 40 20 c0 a-name-of-15-le\n";

Test(sysfs, inet6_has_what_the_kernel_thinks_of_each_address)
{
	struct verve_inet6_list list;
	struct verve_addr addr = {.in6 = {.sin6_family = AF_INET6}};

	cr_assert_eq(verve_inet6_list_init(&list), 0);
	cr_expect_eq(list.count, 0, "a kernel without IPv6 has no such file");
	add_file(INET6, two_addrs);
	cr_assert_eq(verve_inet6_list_init(&list), 0);
	cr_assert_eq(list.count, 2);
	cr_expect_eq(list.addrs[0].ifindex, 3);
	cr_expect_eq(list.addrs[0].flags, 0x82);
	cr_expect_eq(list.addrs[1].ifindex, 0x1a3);
	cr_expect_eq(list.addrs[1].flags, 0xc0);
	cr_assert_eq(inet_pton(AF_INET6, "fe80::4cbf:51ff:fe0b:7f40", &addr.in6.sin6_addr), 1);
	cr_expect(IN6_ARE_ADDR_EQUAL(&addr.in6.sin6_addr, &list.addrs[1].ip));
	cr_expect_eq(verve_inet6_state(&list, &addr, 0), VERVE_INET6_TENTATIVE);
	cr_expect_eq(verve_inet6_state(&list, &addr, 3), VERVE_INET6_LASTING, "not in the list");
	addr.in6.sin6_scope_id = 3;
	cr_expect_eq(verve_inet6_state(&list, &addr, 0), VERVE_INET6_LASTING, "not in the list");
	addr.sa.sa_family = AF_INET;
	cr_expect_eq(verve_inet6_state(&list, &addr, 0), VERVE_INET6_LASTING);
	verve_inet6_list_fini(&list);
}

Test(sysfs, inet6_that_is_written_otherwise_is_not_read)
{
	struct verve_inet6_list list;

	add_file(INET6, "fd09 03 40 00 82 a0\n");
	cr_assert_eq(verve_inet6_list_init(&list), 0);
	cr_expect_eq(list.count, 0);
}

/* The stamp. */

static struct verve_net_stamp before;

/* True if the stamp is another one than at the last call. */
static bool is_changed(void)
{
	struct verve_net_stamp now;
	bool changed;

	cr_assert(verve_net_stamp_take(&now));
	changed = memcmp(&now, &before, sizeof(now));
	before = now;
	return changed;
}

static void add_port(void)
{
	add_file(IB "mlx5_0/ports/1/state", "4: ACTIVE\n");
	is_changed();
	cr_assert_not(is_changed());
}

Test(sysfs, stamp_is_the_same_while_nothing_changes)
{
	add_port();
	add_file(IB "mlx5_0/ports/1/counters/port_rcv_data", "77\n");
	cr_expect_not(is_changed());
}

Test(sysfs, stamp_tells_each_change_of_a_port)
{
	add_port();
	add_file(IB "mlx5_0/ports/1/state", "1: DOWN\n");
	cr_expect(is_changed());
	add_file(IB "mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
	cr_expect(is_changed());
	add_file(IB "mlx5_0/ports/1/gids/0", "fe80::1\n");
	cr_expect(is_changed());
	add_file(IB "mlx5_0/ports/2/state", "1: DOWN\n");
	cr_expect(is_changed());
	add_file(IB "mlx5_1/ports/1/state", "4: ACTIVE\n");
	cr_expect(is_changed());
}

Test(sysfs, stamp_tells_each_change_of_an_interface)
{
	add_port();
	ip.sin_addr.s_addr = htonl(0x0a000001);
	cr_expect(is_changed(), "ip address add");
	interface.ifa_flags = 1;
	cr_expect(is_changed(), "ip link set up");
	netdev[3] = '1';
	cr_expect(is_changed(), "ip link set name");
}

/* A container gets a device's file later than its first process, or another mode for it. */
Test(sysfs, stamp_tells_which_device_files_can_be_opened)
{
	add_port();
	add_file("/dev/infiniband/rdma_cm", "");
	cr_expect_not(is_changed(), "it is no device's");
	add_file("/dev/infiniband/uverbs0", "");
	cr_expect(is_changed());
	is_forbidden = true;
	cr_expect(is_changed());
	cr_expect_not(is_changed());
	is_forbidden = false;
	cr_expect(is_changed());
}

Test(sysfs, without_the_state_of_each_port_there_is_no_stamp)
{
	struct verve_net_stamp stamp;

	cr_expect_not(verve_net_stamp_take(&stamp), "no device");
	add_port();
	add_file(IB "mlx5_0/ports/2/rate", "100 Gb/sec (4X EDR)\n");
	cr_expect_not(verve_net_stamp_take(&stamp));
}

static void expect_rate(const char *file, uint64_t mbps, const char *name)
{
	uint64_t speed = 0;

	add_file(IB "mlx5_0/ports/1/rate", file);
	cr_expect(verve_sysfs_rate("mlx5_0", 1, &speed, text), "%s", file);
	cr_expect_eq(speed, mbps * 1000000, "%lu", speed);
	cr_expect_str_eq(text, name);
}

Test(sysfs, a_rate_has_a_number_and_a_name)
{
	uint64_t speed;

	expect_rate("800 Gb/sec (4X XDR)\n", 800000, "4X XDR");
	expect_rate("1600 Gb/sec (8X XDR)\n", 1600000, "8X XDR");
	expect_rate("2.5 Gb/sec (1X)\n", 2500, "1X");
	expect_rate("2.5 Gb/sec (1X SDR)\n", 2500, "1X SDR");
	expect_rate("56 Gb/sec (4X FDR)\n", 56000, "4X FDR");
	add_file(IB "mlx5_0/ports/1/rate", "much\n");
	cr_expect_not(verve_sysfs_rate("mlx5_0", 1, &speed, text));
	cr_expect_not(verve_sysfs_rate("mlx5_0", 2, &speed, text));
	cr_expect_str_eq(text, "");
}

Test(sysfs, an_ipoib_interface_has_a_partition)
{
	add_file(NET "ib0.8001/pkey", "0x8001\n");
	add_file(NET "eth0/address", "02:00:00:00:00:01\n");
	cr_expect_eq(verve_sysfs_pkey("ib0.8001"), 0x8001);
	cr_expect_eq(verve_sysfs_pkey("eth0"), 0);
	cr_expect_eq(verve_sysfs_pkey(""), 0);
}

Test(sysfs, a_bond_has_the_partition_of_its_active_slave)
{
	add_file(NET "ib0.8001/pkey", "0x8001\n");
	add_file(NET "ib1.8002/pkey", "0x8002\n");
	add_file(NET "bond0/bonding/active_slave", "ib1.8002\n");
	add_file(NET "bond1/bonding/active_slave", "\n"); /* none is up */
	cr_expect_eq(verve_sysfs_pkey("bond0"), 0x8002);
	cr_expect_eq(verve_sysfs_pkey("bond1"), 0);
}

/* The kernel found no other host with the address: sockets can have it from now on. */
Test(sysfs, stamp_shows_that_an_ipv6_address_becomes_usable)
{
	add_port();
	add_file(INET6, "fd090000000000000001000200030004 03 40 00 c0 a0\n");
	cr_expect(is_changed());
	cr_expect_not(is_changed());
	add_file(INET6, "fd090000000000000001000200030004 03 40 00 80 a0\n");
	cr_expect(is_changed());
	cr_expect_not(is_changed());
}
