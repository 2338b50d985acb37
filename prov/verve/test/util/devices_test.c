/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_info's devices: cause and remedy of each refusal, from a fake device. */
#include "devices.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/prov.h"
#include "base/config.h"
#include "base/log.h"
#include "net/fake_verbs.h"
#include "net/port.h"
#include "told.h"

static struct verve_net_port port;
static struct verve_report report;

/* A port that works. */
static void setup(void)
{
	verve_log_provider = &verve_prov;
	fake_verbs_reset();
	fake_verbs.listed = true;
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1", 2);
	fake_verbs_add_gid(1, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_addr("eth3", 2, true, "10.0.0.1");
}

static void teardown(void)
{
	verve_net_port_fini(&port);
	verve_report_fini(&report);
	fake_verbs_reset();
}

TestSuite(devices, .init = setup, .fini = teardown);

static void look(void)
{
	struct verve_port_attr attr;

	cr_assert_eq(verve_port_look(fake_verbs_context(), NULL, 1, &port, &attr), 0);
	if (!port.netdev[0])
		strcpy(port.netdev, "eth3"); /* there is no /sys */
	verve_devices_report(&report, &port, 1);
}

/* The port's finding, behind so many others. */
static void expect_refused_at(size_t index, const char *cause, const char *remedy)
{
	const struct verve_finding *finding = &report.list[index];

	cr_assert_gt(report.count, index);
	cr_expect_eq(verve_report_count(&report, VERVE_REFUSED), 1);
	cr_expect_eq(verve_report_count(&report, VERVE_USED), 0);
	cr_expect_eq(finding->verdict, VERVE_REFUSED);
	cr_expect_not_null(strstr(finding->cause, cause), "\"%s\" does not say \"%s\"",
			   finding->cause, cause);
	cr_expect_not_null(strstr(finding->remedy, remedy), "\"%s\" does not say \"%s\"",
			   finding->remedy, remedy);
}

static void expect_refused(const char *cause, const char *remedy)
{
	expect_refused_at(0, cause, remedy);
}

Test(devices, port_that_works_is_used_and_so_is_its_gid)
{
	look();
	cr_assert_eq(report.count, 3);
	cr_expect_eq(report.list[0].verdict, VERVE_USED);
	cr_expect_str_eq(report.list[0].subject, "none0:1 eth3");
	cr_expect_not_null(strstr(report.list[0].cause, "domain none0, 10.0.0.1, RoCE v2"));
	cr_expect_str_eq(report.list[1].subject, "none0:1 GID 1 ::ffff:10.0.0.1");
	cr_expect_eq(report.list[1].verdict, VERVE_USED);
	cr_expect(report.list[1].detail);
	cr_expect_eq(report.list[2].verdict, VERVE_REFUSED);
	cr_expect(report.list[2].detail);
	cr_expect_not_null(strstr(report.list[2].cause, "RoCE v1"));
}

Test(devices, second_address_of_a_port_says_why_it_is_not_offered)
{
	fake_verbs_add_gid(1, 2, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.2", 2);
	fake_verbs_add_addr("eth3", 2, true, "10.0.0.2");
	look();
	cr_assert_eq(report.count, 4);
	cr_expect_eq(report.list[2].verdict, VERVE_REFUSED);
	cr_expect_not_null(strstr(report.list[2].cause, "the port has a better address"), "%s",
			   report.list[2].cause);
}

Test(devices, port_that_is_down)
{
	fake_verbs.port.state = IBV_PORT_DOWN;
	look();
	expect_refused("port is down", "ip link set");
}

Test(devices, infiniband_without_a_subnet_manager)
{
	fake_verbs.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_verbs.port.state = IBV_PORT_INIT;
	look();
	expect_refused("no subnet manager", "opensm");
}

Test(devices, device_without_rc)
{
	fake_verbs.device.transport_type = IBV_TRANSPORT_IWARP;
	look();
	expect_refused("neither InfiniBand nor RoCE", "");
}

Test(devices, device_without_shared_receive_queues)
{
	fake_verbs.attr.max_srq = 0;
	look();
	expect_refused("no shared receive queues", "");
}

Test(devices, port_without_a_roce_v2_gid)
{
	fake_verbs.gid_count = 1;
	look();
	expect_refused("no RoCE v2 GID", "ip address add");
}

Test(devices, port_whose_address_no_interface_has)
{
	fake_verbs.gid_count = 0;
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.7", 2);
	look();
	expect_refused("no interface here has the address", "ip address add");
}

Test(devices, port_of_another_network_namespace)
{
	fake_verbs.gid_count = 0;
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1", 9);
	look();
	expect_refused("another network namespace", "ip link set");
}

static void look_at_unopened(int error)
{
	fake_verbs.access_error = error;
	verve_port_set_unopened(&port, &fake_verbs.device, error);
	verve_devices_report(&report, &port, 1);
}

Test(devices, device_file_without_permission)
{
	look_at_unopened(EACCES);
	expect_refused("no permission to open /dev/infiniband/uverbs9",
		       "chmod a+rw /dev/infiniband/uverbs9");
}

Test(devices, device_file_that_is_missing)
{
	look_at_unopened(ENOENT);
	expect_refused("there is no /dev/infiniband/uverbs9", "modprobe ib_uverbs");
}

Test(devices, device_that_may_lock_no_memory)
{
	look_at_unopened(0);
	verve_report_fini(&report);
	verve_port_set_unopened(&port, &fake_verbs.device, ENOMEM);
	verve_devices_report(&report, &port, 1);
	expect_refused("no memory to open it", "ulimit -l unlimited");
}

Test(devices, port_that_the_configuration_leaves_out)
{
	verve_config.iface = "eth9";
	look();
	cr_assert_eq(report.count, 4);
	cr_expect_eq(report.list[0].verdict, VERVE_WARNING);
	cr_expect_not_null(strstr(report.list[0].cause, "FI_VERVE_IFACE is eth9: no RDMA device"),
			   "%s", report.list[0].cause);
	expect_refused_at(1, "FI_VERVE_IFACE names another interface", "unset FI_VERVE_IFACE");
}

/* What only an application would notice, when it opens a domain. */
Test(devices, port_over_which_no_domain_opens)
{
	fake_verbs.pd_error = ENOMEM;
	look();
	expect_refused("no domain opens: cannot allocate a protection domain", "");
}

Test(devices, port_outside_of_the_partition_that_is_configured)
{
	fake_verbs.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_verbs.gid_count = 0;
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_IB, "fe80::7", 0);
	fake_verbs.ipoib = "eth3";
	verve_config.pkey = 7;
	look();
	expect_refused("no domain opens: is not in partition 0x7 of FI_VERVE_PKEY", "");
}

Test(devices, port_without_the_atomics_that_are_configured)
{
	verve_config.atomics = "device";
	fake_verbs.attr.atomic_cap = IBV_ATOMIC_NONE;
	look();
	cr_expect_eq(verve_report_count(&report, VERVE_USED), 1);
	cr_assert_eq(verve_report_count(&report, VERVE_WARNING), 1);
	cr_expect_not_null(strstr(report.list[0].cause, "no domain with FI_ATOMIC opens"));
}

/* The reasons of the first ports are still there when those of hundreds of others have come. */
Test(devices, reasons_of_many_ports_are_kept)
{
	char why[VERVE_TOLD_LINE_MAX];

	verve_told_clear();
	for (int i = 0; i < 2000; i++)
		VERVE_INFO(FABRIC, "mlx5_%d: not used: it is the wrong one\n", i);
	cr_assert_not_null(verve_told_last("mlx5_0: ", why));
	cr_expect_str_eq(why, "not used: it is the wrong one");
}
