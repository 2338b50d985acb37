/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Info: which ports are offered, under which names and addresses, and in which order. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/log_lines.h"
#include "api/attr.h"
#include "api/info.h"
#include "api/name.h"
#include "api/ports.h"
#include "api/prov.h"
#include "base/config.h"
#include "base/log.h"

static const uint32_t version = FI_VERSION(1, 17);

static struct verve_net_port *ports;
static size_t port_count;
static struct fi_info *hints;
static struct fi_info *list;

static void setup(void)
{
	verve_log_provider = &verve_prov;
	ports_make(&ports, &port_count);
	hints = fi_allocinfo();
	cr_assert_not_null(hints);
}

static void teardown(void)
{
	fi_freeinfo(list);
	fi_freeinfo(hints);
	ports_free(ports, port_count);
}

TestSuite(info, .init = setup, .fini = teardown);

/* The answer as text: "mlx5_0 10.0.0.1:0, mlx5_0:2 10.1.0.1:0". */
static const char *described(void)
{
	static char text[1024];
	size_t len = 0;

	text[0] = '\0';
	for (const struct fi_info *info = list; info; info = info->next) {
		char name[VERVE_ADDR_STRLEN];
		struct verve_addr addr;

		cr_assert_eq(verve_addr_set(&addr, info->src_addr, info->src_addrlen), 0);
		cr_assert_eq(info->src_addrlen, verve_addr_len(&addr));
		cr_assert_eq(info->addr_format, addr.sa.sa_family == AF_INET ? FI_SOCKADDR_IN :
									       FI_SOCKADDR_IN6);
		len += snprintf(text + len, sizeof(text) - len, "%s%s %s", len ? ", " : "",
				info->domain_attr->name, verve_addr_str(&addr, name));
	}
	return text;
}

static int get(const char *node, const char *service, uint64_t flags, const struct fi_info *with)
{
	int ret;

	fi_freeinfo(list);
	list = NULL;
	ret = verve_info_choose(ports, port_count, version, node, service, flags, with, &list);
	cr_assert((ret == 0) == (list != NULL));
	return ret;
}

/* The destination of the answer's first entry, as text. */
static const char *destination(void)
{
	static char name[VERVE_ADDR_STRLEN];
	struct verve_addr addr;

	if (!list->dest_addr)
		return "none";
	cr_assert_eq(verve_addr_set(&addr, list->dest_addr, list->dest_addrlen), 0);
	return verve_addr_str(&addr, name);
}

static void hint_source(sa_family_t family, const char *ip, uint16_t port)
{
	struct verve_addr addr;

	ports_addr(&addr, family, ip, 0);
	verve_addr_set_port(&addr, port);
	hints->src_addrlen = verve_addr_len(&addr);
	hints->src_addr = malloc(hints->src_addrlen);
	memcpy(hints->src_addr, &addr.sa, hints->src_addrlen);
}

Test(info, every_usable_port_and_family_ipv4_first_link_local_last)
{
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.0.0.1:0, mlx5_0:2 10.1.0.1:0, ib0 10.2.0.1:0, "
			 "mlx5_0 [fd00::1]:0, local [fe80::5%5]:0");
}

Test(info, names_of_mutually_reachable_ports_agree)
{
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(list->fabric_attr->name, list->next->fabric_attr->name);
	cr_expect_str_eq(list->next->next->fabric_attr->name, "verve-ib-fe80000000000001");
	for (const struct fi_info *info = list; info; info = info->next)
		cr_expect(!strncmp(info->fabric_attr->name, VERVE_FABRIC_PREFIX,
				   strlen(VERVE_FABRIC_PREFIX)));
}

Test(info, core_fills_in_the_providers_name)
{
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_null(list->fabric_attr->prov_name);
	cr_expect_eq(list->fabric_attr->prov_version, VERVE_PROV_VERSION);
}

Test(info, domain_name_selects_the_port)
{
	hints->domain_attr->name = strdup("mlx5_0:2");
	cr_assert_eq(get(NULL, NULL, 0, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.1.0.1:0");
	hints->domain_attr->name[7]++;
	cr_expect_eq(get(NULL, NULL, 0, hints), -FI_ENODATA);
}

Test(info, unusable_port_is_not_offered_by_name)
{
	hints->domain_attr->name = strdup("down");
	cr_expect_eq(get(NULL, NULL, 0, hints), -FI_ENODATA);
}

Test(info, fabric_name_selects_the_network)
{
	hints->fabric_attr->name = strdup("verve-ib-fe80000000000001");
	cr_assert_eq(get(NULL, NULL, 0, hints), 0);
	cr_expect_str_eq(described(), "ib0 10.2.0.1:0");
	hints->fabric_attr->name[0] = 'x';
	cr_expect_eq(get(NULL, NULL, 0, hints), -FI_ENODATA);
}

Test(info, iface_is_an_interface_a_device_or_a_domain)
{
	verve_config.iface = "eth1";
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.1.0.1:0");
	verve_config.iface = "eth0.100";
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.100.0.1:0");
	verve_config.iface = "ib0";
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "ib0 10.2.0.1:0");
	verve_config.iface = "mlx5_0:2";
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.1.0.1:0");
	verve_config.iface = "ib0,eth1";
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.1.0.1:0, ib0 10.2.0.1:0");
	verve_config.iface = "mlx5_0@eth0.100,mlx5_0:2@eth0";
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.100.0.1:0");
	verve_config.iface = "wlan0";
	cr_expect_eq(get(NULL, NULL, 0, NULL), -FI_ENODATA);
}

/* As of an address that moves from host to host. It is one of its interface's, too. */
Test(info, iface_may_be_the_label_of_an_address)
{
	strcpy(ports[0].addrs[0].label, "eth0:1");
	verve_config.iface = "eth0:1";
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.0.0.1:0");
	verve_config.iface = "mlx5_0@eth0:1";
	cr_assert_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.0.0.1:0");
	verve_config.iface = "mlx5_0:2@eth0:1";
	cr_expect_eq(get(NULL, NULL, 0, NULL), -FI_ENODATA);
}

Test(info, iface_that_nothing_has_is_warned_about)
{
	log_start("warn", "verve");
	verve_config.iface = "wlan0";
	cr_expect_eq(get(NULL, NULL, 0, NULL), -FI_ENODATA);
	cr_expect_not_null(strstr(log_take(),
				  "FI_VERVE_IFACE is wlan0: no RDMA device or interface of one has "
				  "that name; there are mlx5_0@eth0, mlx5_0@eth1, "));
}

Test(info, each_iface_that_nothing_has_is_warned_about)
{
	log_start("warn", "verve");
	verve_config.iface = "eth1,wlan0,mlx5_9@eth1";
	cr_expect_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_not_null(strstr(log_take(), "FI_VERVE_IFACE is wlan0: no RDMA device"));
	verve_config.iface = "eth1,mlx5_9@eth1,ib0";
	cr_expect_eq(get(NULL, NULL, 0, NULL), 0);
	cr_expect_not_null(strstr(log_take(),
				  "FI_VERVE_IFACE is mlx5_9@eth1: no RDMA device"));
}

Test(info, iface_that_cannot_be_used_is_warned_about)
{
	log_start("warn", "verve");
	verve_config.iface = "eth2";
	cr_expect_eq(get(NULL, NULL, 0, NULL), -FI_ENODATA);
	cr_expect_not_null(strstr(log_take(), "FI_VERVE_IFACE is eth2: port is DOWN"));
}

/* Here the hint is wrong, and not the variable. */
Test(info, iface_without_what_is_asked_for_is_not_warned_about)
{
	log_start("warn", "verve");
	verve_config.iface = "eth1";
	hints->domain_attr->name = strdup("ib0");
	cr_expect_eq(get(NULL, NULL, 0, hints), -FI_ENODATA);
	cr_expect_str_empty(log_take());
}

Test(info, address_format_selects_the_family)
{
	hints->addr_format = FI_SOCKADDR_IN6;
	cr_assert_eq(get(NULL, NULL, 0, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 [fd00::1]:0, mlx5_0:2 [fe80::2%4]:0, local "
			 "[fe80::5%5]:0");
	hints->addr_format = FI_SOCKADDR_IN;
	cr_assert_eq(get(NULL, NULL, 0, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.0.0.1:0, mlx5_0:2 10.1.0.1:0, ib0 10.2.0.1:0");
	hints->addr_format = FI_SOCKADDR;
	cr_assert_eq(get(NULL, NULL, 0, hints), 0);
	hints->addr_format = FI_ADDR_STR;
	cr_expect_eq(get(NULL, NULL, 0, hints), -FI_ENODATA);
}

Test(info, source_node_selects_the_port_that_has_it)
{
	cr_assert_eq(get("10.1.0.1", "5000", FI_SOURCE | FI_NUMERICHOST, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.1.0.1:5000");
	cr_expect_str_eq(destination(), "none");
	cr_assert_eq(get("fd00::1", NULL, FI_SOURCE, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 [fd00::1]:0");
	cr_assert_eq(get("fe80::1", NULL, FI_SOURCE, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 [fe80::1%3]:0");
}

/* As where the handshakes of both go over one interface. */
Test(info, ports_with_one_address_are_both_offered)
{
	ports_addr(&ports[1].addrs[0].addr, AF_INET, "10.0.0.1", 0);
	cr_assert_eq(get("10.0.0.1", NULL, FI_SOURCE, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.0.0.1:0, mlx5_0:2 10.0.0.1:0");
	verve_config.iface = "mlx5_0:2";
	cr_assert_eq(get("10.0.0.1", NULL, FI_SOURCE, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.0.0.1:0");
}

Test(info, a_second_address_can_be_the_source)
{
	cr_assert_eq(get("10.0.0.2", NULL, FI_SOURCE, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.0.0.2:0");
}

Test(info, source_that_no_port_has_finds_nothing)
{
	cr_expect_eq(get("198.51.100.1", NULL, FI_SOURCE, hints), -FI_ENODATA);
	hint_source(AF_INET, "198.51.100.1", 0);
	cr_expect_eq(get(NULL, NULL, 0, hints), -FI_ENODATA);
}

Test(info, source_service_alone_is_any_port_at_that_number)
{
	hints->addr_format = FI_SOCKADDR_IN;
	cr_assert_eq(get(NULL, "5000", FI_SOURCE, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.0.0.1:5000, mlx5_0:2 10.1.0.1:5000, "
			 "ib0 10.2.0.1:5000");
}

Test(info, source_needs_node_or_service)
{
	cr_expect_eq(get(NULL, NULL, FI_SOURCE, hints), -FI_EINVAL);
}

Test(info, hinted_source_selects_the_port)
{
	hint_source(AF_INET, "10.1.0.1", 7);
	cr_assert_eq(get(NULL, NULL, 0, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.1.0.1:7");
}

Test(info, hinted_source_of_any_host_keeps_the_number)
{
	hint_source(AF_INET, "0.0.0.0", 7);
	cr_assert_eq(get(NULL, NULL, 0, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 10.0.0.1:7, mlx5_0:2 10.1.0.1:7, ib0 10.2.0.1:7");
}

Test(info, node_is_the_destination)
{
	cr_assert_eq(get("10.9.9.9", "5000", FI_NUMERICHOST, hints), 0);
	cr_expect_str_eq(destination(), "10.9.9.9:5000");
	for (const struct fi_info *info = list; info; info = info->next)
		cr_expect_eq(info->addr_format, FI_SOCKADDR_IN);
}

Test(info, node_and_hinted_source_go_together)
{
	hint_source(AF_INET, "10.1.0.1", 7);
	cr_assert_eq(get("10.9.9.9", "5000", FI_NUMERICHOST, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.1.0.1:7");
	cr_expect_str_eq(destination(), "10.9.9.9:5000");
}

Test(info, service_alone_is_this_host)
{
	cr_assert_eq(get(NULL, "5000", 0, hints), 0);
	cr_expect_str_eq(destination(), "10.0.0.1:5000");
}

Test(info, hinted_destination_is_kept)
{
	struct verve_addr addr;

	ports_addr(&addr, AF_INET, "10.9.9.9", 0);
	verve_addr_set_port(&addr, 80);
	hints->dest_addrlen = verve_addr_len(&addr);
	hints->dest_addr = malloc(hints->dest_addrlen);
	memcpy(hints->dest_addr, &addr.sa, hints->dest_addrlen);
	cr_assert_eq(get("10.1.0.1", NULL, FI_SOURCE, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 10.1.0.1:0");
	cr_expect_str_eq(destination(), "10.9.9.9:80");
}

/* The loopback address is the one address whose route is the same everywhere. */
Test(info, the_port_that_routes_to_the_destination_comes_first)
{
	ports_addr(&ports[1].addrs[0].addr, AF_INET, "127.0.0.1", 0);
	hints->addr_format = FI_SOCKADDR_IN;
	cr_assert_eq(get("127.0.0.1", "5000", FI_NUMERICHOST, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0:2 127.0.0.1:0, mlx5_0 10.0.0.1:0, ib0 10.2.0.1:0");
}

Test(info, the_address_that_routes_to_the_destination_is_the_ports_source)
{
	ports_addr(&ports[0].addrs[2].addr, AF_INET, "127.0.0.1", 0);
	hints->addr_format = FI_SOCKADDR_IN;
	cr_assert_eq(get("127.0.0.1", "5000", FI_NUMERICHOST, hints), 0);
	cr_expect_str_eq(described(), "mlx5_0 127.0.0.1:0, mlx5_0:2 10.1.0.1:0, ib0 10.2.0.1:0");
}

Test(info, names_that_do_not_resolve_find_nothing)
{
	cr_expect_eq(get("not a host", NULL, FI_NUMERICHOST, hints), -FI_ENODATA);
	cr_expect_eq(get("10.0.0.1", "no such service", FI_SOURCE, hints), -FI_ENODATA);
}

Test(info, hints_that_are_no_ip_address_find_nothing)
{
	hints->src_addr = strdup("fi_addr");
	hints->src_addrlen = strlen("fi_addr");
	cr_expect_eq(get(NULL, NULL, 0, hints), -FI_ENODATA);
}

Test(info, flags_of_core_are_ignored)
{
	cr_expect_eq(get(NULL, NULL, 0xfull << 58, hints), 0);
}

Test(info, no_port_is_no_data)
{
	ports_free(ports, port_count);
	ports = NULL;
	port_count = 0;
	cr_expect_eq(get(NULL, NULL, 0, NULL), -FI_ENODATA);
}

Test(info, other_endpoint_types_never_touch_a_device)
{
	/* Behind FI_EP_RDM, libfabric 1.x has FI_EP_SOCK_STREAM and FI_EP_SOCK_DGRAM. */
	static const enum fi_ep_type types[] = {FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM + 1,
						FI_EP_RDM + 2};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		hints->ep_attr->type = types[i];
		cr_expect_eq(verve_info_get(version, NULL, NULL, 0, hints, &list), -FI_ENODATA);
	}
}

Test(info, copies_are_complete)
{
	struct fi_info *copy;

	cr_assert_eq(get("10.9.9.9", "5000", 0, NULL), 0);
	copy = fi_dupinfo(list);
	cr_assert_not_null(copy);
	cr_expect_neq(copy->nic, list->nic);
	cr_expect_str_eq(copy->nic->device_attr->name, list->nic->device_attr->name);
	cr_expect_str_eq(copy->domain_attr->name, list->domain_attr->name);
	cr_expect_eq(memcmp(copy->src_addr, list->src_addr, list->src_addrlen), 0);
	fi_freeinfo(copy);
}

Test(info, domain_names_lead_back_to_their_ports)
{
	char name[VERVE_NET_NAME_MAX], device[VERVE_NET_NAME_MAX];
	uint8_t number;

	for (size_t i = 0; i < port_count; i++) {
		verve_name_format_domain(&ports[i], name);
		cr_assert_eq(verve_name_parse_domain(name, device, &number), 0);
		cr_expect_str_eq(device, ports[i].device);
		cr_expect_eq(number, ports[i].port_num);
	}
}

Test(info, other_domain_names_are_refused)
{
	static const char *const names[] = {"", ":1", "a:", "a:0", "a:256", "a:1x", "a:-1", "a:+1",
					    "a: 1", "a:01"};
	char device[VERVE_NET_NAME_MAX], longest[VERVE_NET_NAME_MAX + 1];
	uint8_t number;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_eq(verve_name_parse_domain(names[i], device, &number), -FI_EINVAL, "%s",
			     names[i]);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	cr_expect_eq(verve_name_parse_domain(longest, device, &number), -FI_EINVAL);
}
