/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Port: attributes in our terms; the reason for each port that cannot be used; no device at all. */
#include "net/port.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/last_log.h"
#include "fake_verbs.h"
#include "net/device.h"

static struct verve_net_port port;
static struct verve_port_attr attr;

/* A port that works. */
static void setup(void)
{
	fake_verbs_reset();
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_gid(1, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.2", 2);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.2");
}

static void teardown(void)
{
	verve_net_port_fini(&port);
	cr_expect_eq(fake_verbs.open_ahs, 0);
	cr_expect_eq(fake_verbs.open_ifaddrs, 0);
	cr_expect_eq(fake_verbs.open_lists, 0);
	fake_verbs_reset();
}

TestSuite(port, .init = setup, .fini = teardown);

static void look(void)
{
	verve_net_port_fini(&port);
	cr_assert_eq(verve_port_look(fake_verbs_context(), NULL, 1, &port, &attr), 0);
}

static void expect_rejected(const char *why)
{
	look();
	cr_expect_not(port.usable);
	cr_expect_eq(port.addr_count, 0);
	cr_expect_not_null(strstr(port.reason, why), "\"%s\" does not say \"%s\"",
		port.reason, why);
}

Test(port, one_that_works_is_usable)
{
	look();
	cr_expect(port.usable);
	cr_expect_str_eq(port.reason, "");
	cr_expect_str_eq(port.device, "none0");
	cr_expect_str_eq(port.netdev, "eth0");
	cr_expect_eq(port.port_num, 1);
	cr_expect_eq(port.addr_count, 2);
	cr_expect(port.ethernet);
	cr_expect_not(port.on_pci);
}

Test(port, limits_are_the_smaller_of_the_devices_and_ours)
{
	fake_verbs.attr = (struct ibv_device_attr){
		.max_srq = 1, .max_cqe = 11, .max_srq_wr = 12, .max_qp_wr = 13, .max_sge = 4,
		.max_sge_rd = 1, .max_qp = 15, .max_qp_init_rd_atom = 200, .max_qp_rd_atom = 8,
		.max_mr_size = 1ull << 40, .max_mr = 17};
	fake_verbs.port.max_msg_sz = 1u << 30;
	look();
	cr_expect_eq(port.limits.cqe, 11);
	cr_expect_eq(port.limits.srq_wr, 12);
	cr_expect_eq(port.limits.qp_wr, 13);
	cr_expect_eq(port.limits.sge, 4);
	cr_expect_eq(port.limits.read_sge, 1);
	cr_expect_eq(port.limits.qp, 15);
	cr_expect_eq(port.limits.rd_atomic, 16);
	cr_expect_eq(port.limits.rd_atomic_target, 8);
	cr_expect_eq(port.limits.msg_size, 1u << 30);
	cr_expect_eq(port.limits.read_size, 1u << 20);
	cr_expect_eq(port.limits.mr_size, 1ull << 40);
	cr_expect_eq(port.limits.mr, 17);
	cr_expect_not(port.limits.odp_rc);
	cr_expect_not(port.limits.atomics);
	fake_verbs.attr.max_sge = 100;
	fake_verbs.attr.max_sge_rd = 0; /* the driver does not fill it in */
	look();
	cr_expect_eq(port.limits.sge, 30);
	cr_expect_eq(port.limits.read_sge, 30);
}

Test(port, atomics_need_a_device_that_initiates_requests)
{
	fake_verbs.attr.atomic_cap = IBV_ATOMIC_HCA;
	fake_verbs.attr.max_qp_init_rd_atom = 1;
	fake_verbs.attr.max_qp_rd_atom = 0;
	look();
	cr_expect_not(port.limits.atomics);
	fake_verbs.attr.max_qp_rd_atom = 1;
	look();
	cr_expect(port.limits.atomics);
	fake_verbs.attr.atomic_cap = IBV_ATOMIC_NONE;
	look();
	cr_expect_not(port.limits.atomics);
}

Test(port, on_demand_paging_is_all_of_it_or_none)
{
	static const uint32_t each[] = {IBV_ODP_SUPPORT_SEND, IBV_ODP_SUPPORT_RECV,
					IBV_ODP_SUPPORT_WRITE, IBV_ODP_SUPPORT_READ};
	const uint32_t needed = each[0] | each[1] | each[2] | each[3];

	fake_verbs.odp.general_caps = IBV_ODP_SUPPORT;
	fake_verbs.odp.per_transport_caps.rc_odp_caps = needed;
	look();
	cr_expect(port.limits.odp_rc);
	cr_expect_not(port.limits.odp_atomic);
	cr_expect_not(port.limits.odp_implicit);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		fake_verbs.odp.per_transport_caps.rc_odp_caps = needed & ~each[i];
		look();
		cr_expect_not(port.limits.odp_rc);
	}
	fake_verbs.attr.device_cap_flags |= IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	fake_verbs.odp.per_transport_caps.rc_odp_caps = needed | IBV_ODP_SUPPORT_ATOMIC;
	fake_verbs.odp.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	look();
	cr_expect(port.limits.odp_rc);
	cr_expect(port.limits.odp_atomic);
	cr_expect(port.limits.odp_implicit);
	cr_expect(port.limits.mw_peer);
	fake_verbs.attr.vendor_id = 0xffffff;
	look();
	cr_expect_not(port.limits.odp_rc, "soft-RoCE is not believed");
	cr_expect_not(port.limits.mw_peer, "any peer ends such windows of soft-RoCE");
	cr_expect_leq(port.limits.read_size, 128 << 10, "it loses packets of longer reads");
	cr_expect_not(port.limits.odp_implicit);
	fake_verbs.attr.vendor_id = 0x2c9;
	fake_verbs.odp.general_caps = IBV_ODP_SUPPORT_IMPLICIT;
	look();
	cr_expect_not(port.limits.odp_rc);
	cr_expect_not(port.limits.odp_atomic);
	cr_expect_not(port.limits.odp_implicit);
}

Test(port, mtu_is_in_bytes)
{
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		fake_verbs.port.active_mtu = mtu;
		look();
		cr_expect_eq(port.mtu, 128u << mtu);
	}
}

Test(port, speed_is_lanes_times_their_rate)
{
	static const struct {
		uint8_t width, speed;
		uint64_t gbps_tenths;
		const char *name;
	} rates[] = {
		{1, 1, 25, "1X SDR"}, {2, 2, 200, "4X DDR"}, {2, 4, 400, "4X QDR"},
		{2, 8, 400, "4X FDR10"}, {2, 16, 560, "4X FDR"}, {2, 32, 1000, "4X EDR"},
		{2, 64, 2000, "4X HDR"}, {2, 128, 4000, "4X NDR"}, {4, 32, 2000, "8X EDR"},
		{8, 4, 1200, "12X QDR"}, {16, 32, 500, "2X EDR"}, {1, 32, 250, "1X EDR"},
		{1, 0, 25, "1X SDR"}};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		fake_verbs.port.active_width = rates[i].width;
		fake_verbs.port.active_speed = rates[i].speed;
		look();
		cr_expect_eq(port.speed, rates[i].gbps_tenths * 100000000, "width %u speed %u: %lu",
			     rates[i].width, rates[i].speed, port.speed);
		cr_expect_str_eq(port.rate, rates[i].name);
	}
}

Test(port, firmware_may_fill_its_field)
{
	memset(fake_verbs.attr.fw_ver, '7', sizeof(fake_verbs.attr.fw_ver));
	look();
	cr_expect_eq(strlen(port.firmware), sizeof(port.firmware) - 1);
}

Test(port, one_that_cannot_be_asked_is_rejected)
{
	fake_verbs.query_port_error = EIO;
	expect_rejected(strerror(EIO));
	fake_verbs.query_port_error = 0;
	cr_expect(port.reason_may_end);
	fake_verbs.query_device_error = ENODEV;
	expect_rejected(strerror(ENODEV));
	cr_expect(port.reason_may_end);
	fake_verbs.query_device_error = 0;
	fake_verbs.port.state = IBV_PORT_DOWN;
	look();
	cr_expect_not(port.reason_may_end, "the stamp has it");
}

Test(port, other_transports_are_rejected)
{
	fake_verbs.device.transport_type = IBV_TRANSPORT_IWARP;
	expect_rejected("neither InfiniBand nor RoCE");
	fake_verbs.device.transport_type = IBV_TRANSPORT_IB;
	fake_verbs.port.link_layer = 77;
	expect_rejected("unknown link layer 77");
}

Test(port, device_without_shared_receive_queues_is_rejected)
{
	fake_verbs.attr.max_srq = 0;
	expect_rejected("no shared receive queues");
}

Test(port, device_without_reads_is_rejected)
{
	fake_verbs.attr.max_qp_rd_atom = 0;
	expect_rejected("no RDMA reads");
	fake_verbs.attr.max_qp_rd_atom = 1;
	fake_verbs.attr.max_qp_init_rd_atom = 0;
	expect_rejected("no RDMA reads");
}

Test(port, device_of_few_segments_is_rejected)
{
	fake_verbs.attr.max_sge = 3;
	expect_rejected("takes 3 segments for a request, verve needs 4");
}

Test(port, one_that_is_down_is_rejected_with_what_to_do)
{
	fake_verbs.port.state = IBV_PORT_DOWN;
	expect_rejected("ip link set INTERFACE up");
	fake_verbs.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	expect_rejected("is the cable in?");
	fake_verbs.port.link_layer = IBV_LINK_LAYER_UNSPECIFIED; /* InfiniBand, ibv_query_port(3) */
	fake_verbs.port.state = IBV_PORT_INIT;
	expect_rejected("no subnet manager");
}

Test(port, remedy_stands_behind_the_cause)
{
	look();
	cr_expect_null(verve_net_port_remedy(&port));
	strcpy(port.reason, "GID 1 (fe80::1) fails");
	cr_expect_null(verve_net_port_remedy(&port));
	fake_verbs.port.state = IBV_PORT_DOWN;
	look();
	cr_expect_str_eq(verve_net_port_remedy(&port),
			 "ip link set INTERFACE up; is the cable in?");
}

Test(port, addresses_that_do_not_work_are_left_out)
{
	fake_verbs.bad_gids = 1 << 0;
	look();
	cr_expect(port.usable);
	cr_expect_str_eq(port.reason, "");
	cr_assert_eq(port.addr_count, 1);
	cr_expect_eq(port.addrs[0].gid_index, 1);
	cr_assert_eq(port.refused_count, 1);
	cr_expect_eq(port.refused[0].gid_index, 0);
	cr_expect_not_null(strstr(port.refused[0].reason, "makes no address handle"));
	fake_verbs.bad_gids = 3;
	expect_rejected("makes no address handle");
	cr_expect_not_null(strstr(port.reason, "GID 1 (::ffff:10.0.0.2)"));
}

/* Its queue pairs need none. HIP08 of hns says nothing; qedr, EOPNOTSUPP. */
Test(port, device_without_address_handles_is_usable)
{
	static const int errors[] = {-1, EOPNOTSUPP, ENOSYS};

	fake_verbs.bad_gids = 3;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fake_verbs.ah_error = errors[i];
		errno = ETIMEDOUT; /* of an earlier call */
		look();
		cr_expect(port.usable, "%s", port.reason);
		cr_expect_eq(port.addr_count, 2);
		cr_expect_eq(port.refused_count, 0);
	}
}

Test(port, one_without_addresses_is_rejected)
{
	fake_verbs.gid_count = 0;
	expect_rejected("no RoCE v2 GID");
}

Test(port, list_of_interfaces_that_fails_is_an_error)
{
	fake_verbs.getifaddrs_error = ENOMEM;
	cr_expect_eq(verve_port_look(fake_verbs_context(), NULL, 1, &port, &attr), -ENOMEM);
}

Test(port, infiniband_has_its_gid_as_link_address)
{
	fake_verbs.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_verbs.gid_count = 0;
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_IB, "fe80::1:2", 0);
	look();
	cr_expect_str_eq(port.link_addr, "fe80::1:2");
}

static void expect_unopened(int error, const char *why)
{
	verve_port_set_unopened(&port, &fake_verbs.device, error);
	cr_expect_not(port.usable);
	cr_expect_str_eq(port.device, "none0");
	cr_expect_eq(port.port_num, 1);
	cr_expect_not_null(strstr(port.reason, why), "\"%s\" does not say \"%s\"",
		port.reason, why);
}

Test(port, device_that_cannot_be_opened_says_what_to_do)
{
	expect_unopened(EACCES, "no permission to open /dev/infiniband/uverbs9");
	expect_unopened(EPERM, "in a container --device=");
	expect_unopened(EAGAIN, "rdma.max");
	expect_unopened(ENOENT, "there is no /dev/infiniband/uverbs9");
	expect_unopened(ENODEV, "modprobe ib_uverbs");
	expect_unopened(ENXIO, "--device");
	expect_unopened(ENOMEM, "ulimit -l");
	expect_unopened(EBUSY, strerror(EBUSY));
}

/* An operator asks why the NIC is not used: the log answers, whether or not modules are loaded. */
Test(port, host_without_devices_says_what_to_do)
{
	struct verve_net_port *list = &port;
	size_t count = 7;

	last_log[0] = '\0';
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_expect_null(list);
	cr_expect_eq(count, 0);
	cr_expect_not_null(strstr(last_log, "no RDMA devices"), "\"%s\"", last_log);
	cr_expect_not_null(strstr(last_log, "rdma link add rxe0"), "\"%s\"", last_log);
	fake_verbs.get_device_list_error = ENOSYS;
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_expect_not_null(strstr(last_log, "are the modules ib_core and ib_uverbs loaded?"),
			   "\"%s\"", last_log);
	fake_verbs.get_device_list_error = ENOMEM;
	cr_expect_eq(verve_net_port_list(&list, &count), -ENOMEM);
}

Test(port, what_the_device_file_says_goes_before)
{
	fake_verbs.access_error = EACCES;
	expect_unopened(ENOENT, "no permission");
	cr_expect_not(port.reason_may_end, "the stamp has it");
	fake_verbs.access_error = ENOENT;
	expect_unopened(EIO, "there is no /dev/infiniband/uverbs9");
	cr_expect_not(port.reason_may_end);
	fake_verbs.access_error = 0;
	expect_unopened(ENOMEM, "no memory");
	cr_expect(port.reason_may_end);
}

/* In a container that has the file, but may not open it, libibverbs tells of another path. */
Test(port, device_file_that_a_container_may_not_open)
{
	fake_verbs.file_error = EPERM;
	expect_unopened(ENOENT, "in a container --device=/dev/infiniband/uverbs9");
	cr_expect(port.reason_may_end);
}

/* The one device of the host is listed, cannot be used, and the log or the reason says why. */
static void expect_io_error(void)
{
	struct verve_net_port *list;
	struct verve_net_device *dev;
	size_t count;

	fake_verbs.listed = true;
	errno = EACCES; /* of an earlier call */
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_eq(count, 1);
	cr_expect_not_null(strstr(list->reason, strerror(EIO)), "\"%s\"", list->reason);
	verve_net_port_list_free(list, count);
	errno = EACCES;
	cr_expect_eq(verve_net_device_open("none0", 1, NULL, &dev), -EIO);
	cr_expect_not_null(strstr(last_log, strerror(EIO)), "\"%s\"", last_log);
}

Test(port, driver_that_does_not_say_why)
{
	fake_verbs.open_error = -1;
	expect_io_error();
	fake_verbs.open_error = 0;
	fake_verbs.pd_error = -1;
	expect_io_error();
}

Test(port, host_whose_devices_cannot_be_listed)
{
	struct verve_net_port *list;
	size_t count;

	fake_verbs.get_device_list_error = -1;
	errno = ENOMEM; /* of an earlier call */
	cr_expect_eq(verve_net_port_list(&list, &count), 0);
	cr_expect_not_null(strstr(last_log, strerror(EIO)), "\"%s\"", last_log);
}

/* mlx5 in switchdev mode has a port for each representor, and the kernel counts up to 255. */
Test(port, each_of_the_most_that_a_device_can_have_is_listed)
{
	struct verve_net_port *list;
	size_t count;

	fake_verbs.listed = true;
	fake_verbs.attr.phys_port_cnt = UINT8_MAX;
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_eq(count, UINT8_MAX);
	cr_expect_eq(list[UINT8_MAX - 1].port_num, UINT8_MAX);
	verve_net_port_list_free(list, count);
}
