/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* NIC: all attributes are set, copies are deep, text is appended. */
#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "api/nic.h"
#include "api/ports.h"

static struct verve_net_port *ports;
static size_t port_count;
static struct fid_nic *nic;

static void setup(void)
{
	ports_make(&ports, &port_count);
	cr_assert_eq(verve_nic_open(&ports[1], &nic), 0);
	/* The NIC must not need the port any more. */
	ports_free(ports, port_count);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&nic->fid), 0);
}

TestSuite(nic, .init = setup, .fini = teardown);

static void expect_second_port(const struct fid_nic *of)
{
	cr_expect_eq(of->fid.fclass, FI_CLASS_NIC);
	cr_expect_str_eq(of->device_attr->name, "mlx5_0");
	cr_expect_str_eq(of->device_attr->device_id, "0x1017");
	cr_expect_str_eq(of->device_attr->device_version, "0");
	cr_expect_str_eq(of->device_attr->vendor_id, "0x02c9");
	cr_expect_str_eq(of->device_attr->driver, "mlx5_core");
	cr_expect_str_eq(of->device_attr->firmware, "16.35.1012");
	cr_expect_eq(of->bus_attr->bus_type, FI_BUS_PCI);
	cr_expect_eq(of->bus_attr->attr.pci.domain_id, 0x1a);
	cr_expect_eq(of->bus_attr->attr.pci.bus_id, 0x3b);
	cr_expect_eq(of->bus_attr->attr.pci.device_id, 2);
	cr_expect_eq(of->bus_attr->attr.pci.function_id, 1);
	cr_expect_str_eq(of->link_attr->address, "52:54:00:00:00:01");
	cr_expect_eq(of->link_attr->mtu, 4096);
	cr_expect_eq(of->link_attr->speed, 100000000000);
	cr_expect_eq(of->link_attr->state, FI_LINK_UP);
	cr_expect_str_eq(of->link_attr->network_type, "Ethernet");
}

Test(nic, tells_all_about_its_port)
{
	expect_second_port(nic);
}

Test(nic, a_copy_outlives_the_original)
{
	struct fid_nic *copy = NULL;

	cr_assert_eq(fi_control(&nic->fid, FI_DUP, &copy), 0);
	cr_assert_not_null(copy);
	cr_expect_eq(fi_close(&nic->fid), 0);
	nic = copy;
	expect_second_port(nic);
}

Test(nic, other_controls_are_refused)
{
	cr_expect_eq(fi_control(&nic->fid, FI_ENABLE, NULL), -FI_ENOSYS);
}

Test(nic, text_is_appended)
{
	char text[4096] = "before\n";

	cr_assert_eq(nic->fid.ops->tostr(&nic->fid, text, sizeof(text)), 0);
	cr_expect(!strncmp(text, "before\nnic:\n", strlen("before\nnic:\n")));
	cr_expect_not_null(strstr(text, "name: mlx5_0\n"));
	cr_expect_not_null(strstr(text, "bus_id: 59\n"));
	cr_expect_not_null(strstr(text, "network_type: Ethernet\n"));
}

Test(nic, text_is_cut_where_there_is_no_room)
{
	char text[32];

	memset(text, 'x', sizeof(text));
	text[0] = '\0';
	cr_assert_eq(nic->fid.ops->tostr(&nic->fid, text, 16), 0);
	cr_expect_eq(strlen(text), 15);
	cr_expect_eq(text[16], 'x');
	cr_assert_eq(nic->fid.ops->tostr(&nic->fid, text, 16), 0);
	cr_expect_eq(strlen(text), 15);
	cr_expect_eq(text[16], 'x');
}
