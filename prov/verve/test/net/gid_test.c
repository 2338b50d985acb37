/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GIDs: which entries of the GID table become addresses, in which order; the reason if none does.
 */
#include "net/gid.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "fake_verbs.h"

static const enum ibv_gid_type V1 = IBV_GID_TYPE_ROCE_V1, V2 = IBV_GID_TYPE_ROCE_V2,
			       IB = IBV_GID_TYPE_IB;

static struct verve_net_port port;

static void port_init(void)
{
	memset(&port, 0, sizeof(port));
	strcpy(port.device, "none0");
	port.port_num = 1;
	port.ethernet = true;
}

static void setup(void)
{
	fake_verbs_reset();
	port_init();
}

static void teardown(void)
{
	verve_net_port_fini(&port);
	cr_expect_eq(fake_verbs.open_ifaddrs, 0);
	cr_expect_eq(fake_verbs.open_ahs, 0);
	fake_verbs_reset();
}

TestSuite(gid, .init = setup, .fini = teardown);

static void find(size_t expected)
{
	cr_assert_eq(verve_gid_find_addrs(fake_verbs_context(), &port), 0);
	cr_assert_eq(port.addr_count, expected, "%zu addresses: %s", port.addr_count, port.reason);
}

static void expect_addr(size_t i, const char *text, const char *netdev, uint8_t index)
{
	char name[VERVE_ADDR_STRLEN];

	cr_expect_str_eq(verve_addr_str(&port.addrs[i].addr, name), text);
	cr_expect_str_eq(port.addrs[i].netdev, netdev);
	cr_expect_eq(port.addrs[i].gid_index, index);
}

static void expect_refused(size_t i, uint32_t index, const char *why)
{
	cr_expect_eq(port.refused[i].gid_index, index);
	cr_expect_not_null(strstr(port.refused[i].reason, why), "\"%s\" does not say \"%s\"",
			   port.refused[i].reason, why);
}

Test(gid, addresses_are_sorted_by_kind_and_then_as_in_the_table)
{
	fake_verbs_add_gid(1, 0, V1, "fe80::1", 2);
	fake_verbs_add_gid(1, 1, V2, "fe80::1", 2);
	fake_verbs_add_gid(1, 2, V2, "fd00::1", 2);
	fake_verbs_add_gid(1, 3, V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_gid(1, 4, V2, "fd00::2", 2);
	fake_verbs_add_gid(1, 5, V2, "::ffff:10.0.0.2", 3);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("eth0", 2, true, "fd00::1");
	fake_verbs_add_addr("eth0", 2, true, "fd00::2");
	fake_verbs_add_addr("eth0", 2, true, "fe80::1");
	fake_verbs_add_addr("eth0.5", 3, true, "10.0.0.2");
	find(5);
	expect_addr(0, "10.0.0.1:0", "eth0", 3);
	expect_addr(1, "10.0.0.2:0", "eth0.5", 5);
	expect_addr(2, "[fd00::1]:0", "eth0", 2);
	expect_addr(3, "[fd00::2]:0", "eth0", 4);
	expect_addr(4, "[fe80::1%2]:0", "eth0", 1);
	cr_expect_str_eq(port.netdev, "eth0");
	cr_expect_eq(memcmp(&port.addrs[0].gid, &fake_verbs.gids[3].gid, 16), 0);
	cr_expect_eq(port.reason[0], '\0');
}

Test(gid, only_v2_of_this_port_on_an_interface_that_is_up)
{
	fake_verbs_add_gid(1, 0, V1, "::ffff:10.0.0.1", 2);
	fake_verbs_add_gid(2, 1, V2, "::ffff:10.0.0.2", 2);
	fake_verbs_add_gid(1, 2, V2, "::ffff:10.0.0.3", 3);
	fake_verbs_add_gid(1, 3, V2, "::ffff:10.0.0.4", 4); /* an address of another interface */
	fake_verbs_add_gid(1, 4, V2, "::ffff:10.0.0.5", 2); /* an address of no interface */
	fake_verbs_add_gid(1, 256, V2, "::ffff:10.0.0.6", 2); /* sgid_index has 8 bits */
	fake_verbs_add_gid(1, 255, V2, "::ffff:10.0.0.7", 2);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.2");
	fake_verbs_add_addr("eth1", 3, false, "10.0.0.3");
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.4");
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.6");
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.7");
	find(1);
	expect_addr(0, "10.0.0.7:0", "eth0", 255);
	cr_assert_eq(port.refused_count, 5, "not those of other ports");
	expect_refused(0, 0, "RoCE v1");
	expect_refused(1, 2, "or is down");
	expect_refused(2, 3, "another network namespace");
	expect_refused(3, 4, "does not have this address");
	expect_refused(4, 256, "above 255");
	cr_expect_eq(memcmp(&port.refused[1].gid, &fake_verbs.gids[2].gid, 16), 0);
}

Test(gid, interface_of_another_namespace_has_a_reason)
{
	strcpy(port.netdev, "eth0");
	fake_verbs_add_gid(1, 0, V2, "::ffff:10.0.0.1", 7);
	fake_verbs_add_addr("eth9", 2, true, "10.0.0.9");
	find(0);
	cr_expect_not_null(
		strstr(port.reason, "another network namespace: ip link set eth0 netns"));
}

Test(gid, entry_without_an_interface_number_is_found_by_its_address)
{
	fake_verbs_add_gid(1, 7, V2, "::ffff:10.0.0.1", 0);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	find(1);
	expect_addr(0, "10.0.0.1:0", "eth0", 7);
}

Test(gid, same_link_local_address_on_two_interfaces_is_told_apart)
{
	fake_verbs_add_gid(1, 0, V2, "fe80::1", 3);
	fake_verbs_add_addr("eth0", 2, true, "fe80::1");
	fake_verbs_add_addr("eth1", 3, true, "fe80::1");
	find(1);
	expect_addr(0, "[fe80::1%3]:0", "eth1", 0);
}

/* getifaddrs(3) has the label of an IPv4 address in the place of its interface. */
Test(gid, label_of_an_address_is_not_its_interface)
{
	fake_verbs_add_gid(1, 0, V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_addr("eth0:1", 2, true, "10.0.0.1");
	find(1);
	expect_addr(0, "10.0.0.1:0", "eth0", 0);
	cr_expect_str_eq(port.netdev, "eth0");
	cr_expect_str_eq(port.addrs[0].label, "eth0:1", "FI_VERVE_IFACE may name it");
}

/* Any text can be a label: no interface has that name, nor an index. */
Test(gid, label_that_does_not_begin_as_its_interface)
{
	fake_verbs_add_gid(1, 0, V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_addr("storage", 0, true, "10.0.0.1");
	fake_verbs_add_addr("eth0", 2, true, "fd00::1");
	find(1);
	expect_addr(0, "10.0.0.1:0", "eth0", 0);
	cr_expect_str_eq(port.addrs[0].label, "storage");
	fake_verbs.gids[0].ndev_ifindex = 7;
	verve_net_port_fini(&port);
	port_init();
	find(0);
	expect_refused(0, 0, "another network namespace");
}

/* IPv6 addresses that go by themselves: an endpoint of a daemon would lose its name. */
Test(gid, addresses_that_pass_come_after_those_that_last)
{
	fake_verbs_add_gid(1, 0, V2, "fe80::1", 2);
	fake_verbs_add_gid(1, 1, V2, "fd00::1", 2);
	fake_verbs_add_gid(1, 2, V2, "fd00::2", 2);
	fake_verbs_add_gid(1, 3, V2, "fd00::3", 2);
	fake_verbs_add_addr("eth0", 2, true, "fe80::1");
	fake_verbs_add_addr("eth0", 2, true, "fd00::1");
	fake_verbs_add_addr("eth0", 2, true, "fd00::2");
	fake_verbs_add_addr("eth0", 2, true, "fd00::3");
	fake_verbs_add_flags(3, "fd00::3", IFA_F_TEMPORARY); /* of another interface */
	fake_verbs_add_flags(2, "fd00::1", IFA_F_TEMPORARY);
	fake_verbs_add_flags(2, "fd00::2", IFA_F_DEPRECATED);
	fake_verbs_add_flags(2, "fd00::3", 0);
	find(4);
	expect_addr(0, "[fd00::3]:0", "eth0", 3);
	expect_addr(1, "[fd00::1]:0", "eth0", 1);
	expect_addr(2, "[fd00::2]:0", "eth0", 2);
	expect_addr(3, "[fe80::1%2]:0", "eth0", 0);
}

/* bind(2) refuses such an address with EADDRNOTAVAIL. */
Test(gid, addresses_that_no_socket_can_have_are_refused)
{
	fake_verbs_add_gid(1, 0, V2, "fd00::1", 2);
	fake_verbs_add_gid(1, 1, V2, "fd00::2", 2);
	fake_verbs_add_addr("eth0", 2, true, "fd00::1");
	fake_verbs_add_addr("eth0", 2, true, "fd00::2");
	fake_verbs_add_flags(2, "fd00::1", IFA_F_TENTATIVE);
	fake_verbs_add_flags(2, "fd00::2", IFA_F_TENTATIVE | IFA_F_DADFAILED);
	find(0);
	cr_assert_eq(port.refused_count, 2);
	expect_refused(0, 0, "tentative");
	expect_refused(1, 1, "another host has this");
	cr_expect_not_null(strstr(port.reason, "another host has this IPv6 address: choose"));
	fake_verbs.inet6[0].flags |= IFA_F_OPTIMISTIC; /* sockets may have it: RFC 4429 */
	verve_net_port_fini(&port);
	port_init();
	find(1);
	expect_addr(0, "[fd00::1]:0", "eth0", 0);
}

Test(gid, infiniband_looks_at_what_the_kernel_thinks_of_addresses_too)
{
	fake_verbs_add_gid(1, 0, IB, "fe80::1", 0);
	fake_verbs_add_addr("eth0", 2, true, "fe80::1");
	fake_verbs_add_addr("eth0", 2, true, "fd00::1");
	fake_verbs_add_flags(3, "fe80::1", 0);
	fake_verbs_add_flags(2, "fe80::1", IFA_F_TENTATIVE);
	fake_verbs_add_flags(2, "fd00::1", IFA_F_TENTATIVE);
	port.ethernet = false;
	verve_config.iface = "eth0";
	find(0);
	cr_expect_not_null(strstr(port.reason, "tentative IPv6 address: try again"));
}

Test(gid, no_address_has_a_reason)
{
	strcpy(port.netdev, "eth0");
	fake_verbs_add_gid(1, 0, V1, "::ffff:10.0.0.1", 2);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	find(0);
	cr_expect_not_null(strstr(port.reason, "no RoCE v2 GID"));
	port.reason[0] = '\0';
	fake_verbs_add_gid(1, 1, V2, "::ffff:10.0.0.2", 2);
	find(0);
	cr_expect_not_null(strstr(port.reason, "ip address add ADDRESS/LENGTH dev eth0"));
	cr_expect_str_eq(port.netdev, "eth0");
}

Test(gid, unreadable_table_has_a_reason)
{
	fake_verbs.gid_count = -EPERM;
	find(0);
	cr_expect_not_null(strstr(port.reason, strerror(EPERM)));
}

Test(gid, host_without_a_list_of_interfaces_is_an_error)
{
	fake_verbs.getifaddrs_error = ENOBUFS;
	cr_expect_eq(verve_gid_find_addrs(fake_verbs_context(), &port), -ENOBUFS);
}

/* InfiniBand without IPoIB: FI_VERVE_IFACE names the interface. */

Test(gid, infiniband_has_the_default_gid_for_each_address)
{
	port.ethernet = false;
	verve_config.iface = "ipoib0";
	fake_verbs_add_gid(1, 5, IB, "fe80::5", 0);
	fake_verbs_add_gid(2, 0, IB, "fe80::2", 0);
	fake_verbs_add_gid(1, 1, IB, "fe80::1", 0);
	fake_verbs_add_addr("ipoib0", 2, true, "fd00::1");
	fake_verbs_add_addr("other", 3, true, "10.0.0.9");
	fake_verbs_add_addr("ipoib0", 2, true, "10.0.0.1");
	find(2);
	expect_addr(0, "10.0.0.1:0", "ipoib0", 1);
	expect_addr(1, "[fd00::1]:0", "ipoib0", 1);
	cr_expect_eq(memcmp(&port.addrs[1].gid, &fake_verbs.gids[2].gid, 16), 0);
	cr_assert_eq(port.refused_count, 1);
	expect_refused(0, 5, "default GID");
}

/* As an InfiniBand port that no call of find has seen. */
static void find_anew(const char *iface, size_t expected)
{
	verve_net_port_fini(&port);
	port_init();
	port.ethernet = false;
	verve_config.iface = iface;
	find(expected);
}

/* Each device of a host can have its own interface, and a list may name others' devices, too. */
Test(gid, infiniband_takes_the_interface_that_is_named_for_the_device)
{
	fake_verbs_add_gid(1, 0, IB, "fe80::1", 0);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("eth1", 3, true, "10.0.0.2");
	find_anew("other0@eth0,none0@eth1", 1);
	expect_addr(0, "10.0.0.2:0", "eth1", 0);
	find_anew("eth0,none0:1@eth1", 1);
	expect_addr(0, "10.0.0.2:0", "eth1", 0);
	find_anew("other0,none0,eth0,eth1", 1);
	expect_addr(0, "10.0.0.1:0", "eth0", 0);
	find_anew("other0@eth0", 0);
	cr_expect_not_null(strstr(port.reason, "FI_VERVE_IFACE=none0@eth0, or"), "%s", port.reason);
	find_anew("none0@eth2", 0);
	cr_expect_not_null(strstr(port.reason, "eth2 has no IP address"), "%s", port.reason);
}

Test(gid, infiniband_without_an_address_has_a_reason)
{
	port.ethernet = false;
	find(0);
	cr_expect_not_null(strstr(port.reason, "no GID"));
	port.reason[0] = '\0';
	fake_verbs_add_gid(1, 0, IB, "fe80::1", 0);
	find(0);
	cr_expect_not_null(strstr(port.reason, ": export FI_VERVE_IFACE=none0@eth0, or"));
	port.reason[0] = '\0';
	verve_config.iface = "none0"; /* a device, not an interface */
	fake_verbs_add_addr("eno2", 3, true, "10.0.0.9");
	find(0);
	cr_expect_not_null(strstr(port.reason, ": export FI_VERVE_IFACE=none0@eno2, or"));
	port.reason[0] = '\0';
	fake_verbs.ifaddrs[0].ifa_name = (char[]){"eno2:1"}; /* a label, not an interface */
	find(0);
	cr_expect_not_null(strstr(port.reason, ": export FI_VERVE_IFACE=none0@eno2, or"));
	port.reason[0] = '\0';
	fake_verbs.ifaddrs[0].ifa_name = (char[]){"eno2"};
	verve_config.iface = NULL;
	strcpy(port.device, "ibP16p202s31f1v126"); /* as rdma-core names such a function */
	find(0);
	cr_expect_not_null(strstr(port.reason, "=ibP16p202s31f1v126@eno2, or"), "%s", port.reason);
	strcpy(port.device, "none0");
	port.reason[0] = '\0';
	verve_config.iface = "ipoib0";
	fake_verbs_add_addr("ipoib0", 2, false, "10.0.0.1");
	find(0);
	cr_expect_not_null(strstr(port.reason, "ipoib0 has no IP address, or is down"));
}

/* IPoIB interfaces of the port: a parent, children of partitions, a bond over them. */

Test(gid, each_address_of_each_ipoib_interface_of_the_port_is_found)
{
	fake_verbs.ipoib = "ib0 ib0.8001";
	fake_verbs_add_gid(1, 0, IB, "fe80::1", 0);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("ib0", 3, true, "10.1.0.1");
	fake_verbs_add_addr("ib0.8001", 4, true, "10.2.0.1");
	fake_verbs_add_addr("ib1", 5, true, "10.3.0.1");
	fake_verbs_add_addr("ib0", 3, true, "fd00::1");
	find_anew(NULL, 3);
	expect_addr(0, "10.1.0.1:0", "ib0", 0);
	expect_addr(1, "10.2.0.1:0", "ib0.8001", 0);
	expect_addr(2, "[fd00::1]:0", "ib0", 0);
	/* A name chooses among them (api/info.c), but no other interface. */
	find_anew("eth0,ib0.8001", 3);
	find_anew("none0@ib0.8001", 1);
	expect_addr(0, "10.2.0.1:0", "ib0.8001", 0);
	find_anew("none0@eth0", 1);
	expect_addr(0, "10.0.0.1:0", "eth0", 0);
	/* An address may have a label, such as a service's that moves from host to host. */
	fake_verbs_add_addr("ib0:1", 3, true, "10.1.0.9");
	fake_verbs_add_addr("eth0:1", 2, true, "10.0.0.9");
	find_anew(NULL, 4);
	expect_addr(2, "10.1.0.9:0", "ib0", 0);
	find_anew("none0@eth0", 2);
	expect_addr(1, "10.0.0.9:0", "eth0", 0);
	find_anew("none0@eth0:1", 1);
	expect_addr(0, "10.0.0.9:0", "eth0", 0);
}

/* A parent without an address, or a bond's slave, which has its bond's link address. */
Test(gid, an_ipoib_interface_without_an_address_hides_no_other)
{
	fake_verbs.ipoib = "ib0 bond0";
	fake_verbs_add_gid(1, 0, IB, "fe80::1", 0);
	fake_verbs_add_addr("ib0", 3, false, "10.1.0.1");
	fake_verbs_add_addr("bond0", 4, true, "10.2.0.1");
	find_anew(NULL, 1);
	expect_addr(0, "10.2.0.1:0", "bond0", 0);
}

Test(gid, ipoib_interfaces_without_any_address_have_a_reason)
{
	fake_verbs.ipoib = "ib0 ib0.8001";
	fake_verbs_add_gid(1, 0, IB, "fe80::1", 0);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("ib0", 3, false, "10.1.0.1");
	find_anew("eth0", 0);
	cr_expect_str_eq(port.reason, "ib0 has no IP address, or is down: "
			 "ip address add ADDRESS/LENGTH dev ib0");
}

/* On RoCE the device lists the addresses of all interfaces over the port. */
Test(gid, bonds_vlans_and_other_interfaces_of_one_port_have_an_address_each)
{
	strcpy(port.netdev, "eth0");
	fake_verbs_add_gid(1, 0, V2, "fe80::1", 2);
	fake_verbs_add_gid(1, 1, V2, "::ffff:10.0.0.1", 4);
	fake_verbs_add_gid(1, 2, V2, "::ffff:10.5.0.1", 5);
	fake_verbs_add_gid(1, 3, V2, "::ffff:10.6.0.1", 6);
	fake_verbs_add_addr("bond0", 4, true, "10.0.0.1"); /* its slave eth0 has none */
	fake_verbs_add_addr("bond0.5", 5, true, "10.5.0.1");
	fake_verbs_add_addr("macvlan0", 6, true, "10.6.0.1");
	find(3);
	expect_addr(0, "10.0.0.1:0", "bond0", 1);
	expect_addr(1, "10.5.0.1:0", "bond0.5", 2);
	expect_addr(2, "10.6.0.1:0", "macvlan0", 3);
	expect_refused(0, 0, "another network namespace"); /* none here has number 2 */
	cr_expect_str_eq(port.netdev, "bond0");
}

/* The index that FI_VERVE_GID_INDEX names. */

Test(gid, only_the_named_index_is_used)
{
	verve_config.gid_index = 3;
	fake_verbs_add_gid(1, 2, V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_gid(1, 3, V2, "::ffff:10.0.0.2", 2);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.2");
	find(1);
	expect_addr(0, "10.0.0.2:0", "eth0", 3);
	expect_refused(0, 2, "FI_VERVE_GID_INDEX names another");
}

Test(gid, a_named_index_that_cannot_be_used_is_explained)
{
	fake_verbs_add_gid(1, 1, V1, "::ffff:10.0.0.1", 2);
	fake_verbs_add_gid(1, 2, V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	verve_config.gid_index = 1;
	find(0);
	cr_expect_str_eq(port.reason,
			 "GID 1 (FI_VERVE_GID_INDEX): RoCE v1; only RoCE v2 is spoken");
	verve_net_port_fini(&port);
	port.reason[0] = '\0';
	verve_config.gid_index = 9;
	find(0);
	cr_expect_str_eq(port.reason, "it has no GID 9, which FI_VERVE_GID_INDEX names: "
			 "unset FI_VERVE_GID_INDEX");
	verve_net_port_fini(&port);
	port.ethernet = false;
	port.reason[0] = '\0';
	find(0);
	cr_expect_str_eq(port.reason, "it has no GID 9, which FI_VERVE_GID_INDEX names: "
			 "unset FI_VERVE_GID_INDEX");
}

/* Not once for each GID: a node of Kubernetes has hundreds of interfaces. */
Test(gid, each_address_is_looked_up_once)
{
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("eth0", 2, true, "fd00::1");
	fake_verbs_add_addr("veth0", 3, true, "fe80::3");
	fake_verbs_add_addr("veth1", 4, true, "fe80::4");
	fake_verbs_add_gid(1, 0, V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_gid(1, 1, V2, "fd00::1", 2);
	fake_verbs_add_gid(1, 2, V2, "fd00::2", 9);
	fake_verbs_add_gid(1, 3, V2, "fe80::1", 2);
	find(2);
	expect_refused(0, 2, "another network namespace");
	cr_expect_leq(fake_verbs.index_lookups, 4, "%d", fake_verbs.index_lookups);
}

/* The proof of an address: an address handle. */

Test(gid, is_proven_by_an_address_handle_to_itself)
{
	struct verve_net_portaddr addr = {.gid_index = 3, .gid = {{1, 2, [15] = 16}}};

	port.port_num = 2;
	cr_expect_eq(verve_gid_prove(NULL, &port, &addr, 77, true), 0);
	cr_expect_eq(fake_verbs.ah.grh.sgid_index, 3);
	cr_expect_eq(fake_verbs.ah.port_num, 2);
	cr_expect_eq(fake_verbs.ah.is_global, 1);
	cr_expect_eq(fake_verbs.ah.dlid, 77);
	cr_expect_eq(memcmp(&fake_verbs.ah.grh.dgid, &addr.gid, 16), 0);
	verve_config.sl = 5;
	cr_expect_eq(verve_gid_prove(NULL, &port, &addr, 77, false), 0);
	cr_expect_eq(fake_verbs.ah.sl, 5);
	cr_expect_eq(fake_verbs.ah.is_global, 0);
	fake_verbs.bad_gids = 1 << 3;
	cr_expect_eq(verve_gid_prove(NULL, &port, &addr, 77, true), -ETIMEDOUT);
}
