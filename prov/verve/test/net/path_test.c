/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paths: with which address, partition and service a queue pair is opened and connected, as
 * ibv_modify_qp(3) hears of it.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "fake_verbs.h"
#include "net/device.h"
#include "net/qp.h"
#include "net/td.h"
#include "net/verbs.h"

enum { LID = 24, PEER_LID = 48, TIMEOUT_MS = 4000 };

static struct verve_net_device *dev;
static struct verve_net_qp *qp;
static struct verve_net_qp_addr peer;
static struct verve_net_cq cq;
static struct verve_net_srq srq;
static struct verve_net_qp_attr qp_attr = {.send_cq = &cq, .recv_cq = &cq, .srq = &srq};
static char logged[2048];
static unsigned warnings; /* messages at level warn */

/* Take the place of libfabric's log, at level info. */
int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	(void)prov;
	(void)subsys;
	return level <= FI_LOG_INFO;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *format, ...)
{
	size_t used = strlen(logged);
	va_list args;

	(void)prov;
	(void)subsys;
	(void)func;
	(void)line;
	va_start(args, format);
	vsnprintf(logged + used, sizeof(logged) - used, format, args);
	va_end(args);
	warnings += level == FI_LOG_WARN;
}

static void set_gid(struct verve_net_gid *gid, const char *text)
{
	cr_assert_eq(inet_pton(AF_INET6, text, gid), 1);
}

/* A RoCE port with two addresses, and a peer. */
static void setup(void)
{
	fake_verbs_reset();
	fake_verbs.listed = true;
	verve_lock_init(&srq.lock, false);
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_gid(1, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.2", 2);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.2");
	peer = (struct verve_net_qp_addr){
		.mtu_log2 = 12, .qp_num = 77, .pkey = 0xffff, .rd_atomic_target = 1};
	set_gid(&peer.gid, "::ffff:10.0.0.9");
}

/* The same with an InfiniBand port, whose handshake goes over eth0. */
static void setup_infiniband(void)
{
	setup();
	fake_verbs.gid_count = 0;
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_IB, "fe80::1", 0);
	fake_verbs_add_gid(1, 1, IBV_GID_TYPE_IB, "fe80::2", 0);
	fake_verbs.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_verbs.port.lid = LID;
	fake_verbs.port.pkey_tbl_len = 1;
	fake_verbs.pkeys[0] = 0xffff;
	verve_config.iface = "eth0";
	peer.lid = PEER_LID;
	set_gid(&peer.gid, "fe80::9");
}

static void teardown(void)
{
	if (qp)
		verve_net_qp_close(qp);
	if (dev)
		verve_net_device_close(dev);
	cr_expect_eq(fake_verbs.open_ahs, 0);
	cr_expect_eq(fake_verbs.open_ifaddrs, 0);
	cr_expect_eq(fake_verbs.open_lists, 0);
	fake_verbs_reset();
	verve_lock_fini(&srq.lock);
}

TestSuite(roce, .init = setup, .fini = teardown);
TestSuite(infiniband, .init = setup_infiniband, .fini = teardown);

static void open_device(void)
{
	cr_assert_eq(verve_net_device_open("none0", 1, NULL, &dev), 0, "%s", logged);
}

static void open_qp(void)
{
	if (!dev)
		open_device();
	verve_td_open(dev, &srq.td);
	cr_assert_eq(verve_net_qp_open(dev, &qp_attr, 1, &qp), 0);
}

static int try_open(void)
{
	open_device();
	return verve_net_qp_open(dev, &qp_attr, 1, &qp);
}

/* Connects a new queue pair. Returns what verve_net_qp_connect returns. */
static int try_connect(void)
{
	if (qp)
		verve_net_qp_close(qp);
	open_qp();
	return verve_net_qp_connect(qp, &peer, TIMEOUT_MS);
}

static void connect_qp(void)
{
	cr_assert_eq(try_connect(), 0, "%s", logged);
}

static void expect_logged(const char *text)
{
	cr_expect_not_null(strstr(logged, text), "\"%s\" does not say \"%s\"", logged, text);
}

static const struct ibv_ah_attr *path(void)
{
	return &fake_verbs.rtr.ah_attr;
}

static void happen(enum ibv_event_type event)
{
	struct verve_net_fault fault;

	fake_verbs.events[fake_verbs.event_count++] = event;
	cr_expect_eq(verve_net_device_async_next(dev, &fault), 0);
	cr_expect_eq(verve_net_device_async_next(dev, &fault), -FI_EAGAIN);
}

static int without_memory(const struct ibv_qp_init_attr *init)
{
	(void)init;
	return ENOMEM;
}

/* One opens after each that fails, as a stranger's requests may have it. */
Test(roce, queue_pairs_that_cannot_be_opened_warn_once)
{
	open_device();
	verve_td_open(dev, &srq.td);
	for (int i = 0; i < 10; i++) {
		fake_verbs.create_qp = without_memory;
		cr_expect_eq(verve_net_qp_open(dev, &qp_attr, 1, &qp), -FI_ENOMEM);
		fake_verbs.create_qp = NULL;
		cr_assert_eq(verve_net_qp_open(dev, &qp_attr, 1, &qp), 0);
		verve_net_qp_close(qp);
	}
	qp = NULL;
	cr_expect_eq(warnings, 1);
}

Test(roce, a_queue_pair_without_memory_says_what_to_do)
{
	fake_verbs.create_qp = without_memory;
	cr_expect_eq(try_open(), -FI_ENOMEM);
	expect_logged("locked memory (ulimit -l");
}

Test(roce, reads_under_way_are_as_many_as_both_sides_have)
{
	connect_qp();
	cr_expect_eq(verve_net_qp_reads(qp), 1, "the peer's");
	verve_net_qp_close(qp);
	qp = NULL;
	peer.rd_atomic_target = 255;
	connect_qp();
	cr_expect_eq(verve_net_qp_reads(qp), verve_net_device_port(dev)->limits.rd_atomic);
}

Test(infiniband, a_path_inside_the_subnet_has_no_global_route)
{
	connect_qp();
	cr_expect_not(path()->is_global);
	cr_expect_eq(path()->dlid, PEER_LID);
	cr_expect_eq(path()->src_path_bits, 0);
}

Test(infiniband, a_port_that_needs_global_routes_gets_them)
{
	struct verve_net_qp_addr self;

	fake_verbs.port.flags = IBV_QPF_GRH_REQUIRED;
	connect_qp();
	cr_expect(fake_verbs.ah.is_global, "the proof of the address has no route");
	cr_expect(path()->is_global);
	cr_expect_eq(memcmp(&path()->grh.dgid, &peer.gid, sizeof(peer.gid)), 0);
	verve_net_qp_addr(qp, &self);
	cr_expect(self.grh, "the peer does not hear of it");
}

Test(infiniband, a_peer_that_needs_global_routes_gets_them)
{
	peer.grh = true;
	connect_qp();
	cr_expect(path()->is_global);
}

/* The router's LID is needed there, which only the subnet manager knows. */
Test(infiniband, a_peer_of_another_subnet_is_refused)
{
	set_gid(&peer.gid, "fec0:1::9");
	cr_expect_eq(try_connect(), -FI_EHOSTUNREACH);
	expect_logged("another subnet");
}

Test(infiniband, a_lid_that_is_no_port_s_is_refused)
{
	for (int lid = 0xc000; lid <= 0xffff; lid += 0x3fff) {
		peer.lid = lid;
		cr_expect_eq(try_connect(), -FI_EINVAL, "%#x", lid);
	}
}

Test(infiniband, the_default_partition_is_found_behind_a_limited_membership)
{
	struct verve_net_qp_addr self;

	memcpy(fake_verbs.pkeys, (uint16_t[]){0x7fff, 0x8001, 0xffff}, 6);
	fake_verbs.port.pkey_tbl_len = 3;
	connect_qp();
	cr_expect_eq(fake_verbs.init.pkey_index, 2);
	verve_net_qp_addr(qp, &self);
	cr_expect_eq(self.pkey, 0xffff);
}

Test(infiniband, without_the_default_partition_the_first_full_membership_is_used)
{
	memcpy(fake_verbs.pkeys, (uint16_t[]){0x7fff, 0, 0x8002, 0x8001}, 8);
	fake_verbs.port.pkey_tbl_len = 4;
	peer.pkey = 0x8002;
	connect_qp();
	cr_expect_eq(fake_verbs.init.pkey_index, 2);
}

Test(infiniband, limited_members_do_not_hear_each_other)
{
	fake_verbs.pkeys[0] = 0x7fff;
	connect_qp();
	peer.pkey = 0x7fff;
	cr_expect_eq(try_connect(), -FI_EHOSTUNREACH);
	expect_logged("limited members of partition 0x7fff");
	peer.pkey = 0x8001;
	cr_expect_eq(try_connect(), -FI_EHOSTUNREACH);
	expect_logged("partition 0x8001");
}

Test(infiniband, the_partition_is_chosen_by_its_number)
{
	memcpy(fake_verbs.pkeys, (uint16_t[]){0xffff, 0x0001, 0x8001}, 6);
	fake_verbs.port.pkey_tbl_len = 3;
	verve_config.pkey = 1;
	peer.pkey = 1;
	connect_qp();
	cr_expect_eq(fake_verbs.init.pkey_index, 2, "the full membership has precedence");
	fake_verbs.port.pkey_tbl_len = 2;
	happen(IBV_EVENT_PKEY_CHANGE);
	peer.pkey = 0x8001;
	connect_qp();
	cr_expect_eq(fake_verbs.init.pkey_index, 1);
}

Test(infiniband, a_partition_that_the_port_does_not_have_is_refused)
{
	verve_config.pkey = 0x8003;
	cr_expect_eq(verve_net_device_open("none0", 1, NULL, &dev), -FI_ENODEV);
	expect_logged("FI_VERVE_PKEY");
}

Test(infiniband, the_gid_is_the_one_that_was_asked_for)
{
	verve_config.gid_index = 1;
	connect_qp();
	cr_expect_eq(path()->grh.sgid_index, 1);
}

Test(infiniband, a_new_lid_and_prefix_reach_new_queue_pairs)
{
	struct verve_net_qp_addr self;

	connect_qp();
	fake_verbs.port.lid = 99;
	fake_verbs.port.active_mtu = IBV_MTU_4096;
	happen(IBV_EVENT_LID_CHANGE);
	connect_qp();
	verve_net_qp_addr(qp, &self);
	cr_expect_eq(self.lid, 99);
	cr_expect_eq(self.mtu_log2, 12);
	fake_verbs.port.lid = 100;
	happen(IBV_EVENT_CLIENT_REREGISTER);
	connect_qp();
	verve_net_qp_addr(qp, &self);
	cr_expect_eq(self.lid, 100);
}

/* The addresses stay; only their places in the table are others. */
static void move_gids(void)
{
	fake_verbs.gids[0].gid_index = 5;
	fake_verbs.gids[1].gid_index = 6;
}

/* Packets of the peer may come from the state RTR on. */
Test(roce, a_queue_pair_may_receive_once_the_first_step_has_worked)
{
	fake_verbs.modify_refused = IBV_QPS_RTR;
	cr_expect_eq(try_connect(), -FI_EINVAL);
	cr_expect(!verve_net_qp_may_receive(qp));
	fake_verbs.modify_refused = IBV_QPS_RTS;
	cr_expect_eq(try_connect(), -FI_EINVAL);
	cr_expect(verve_net_qp_may_receive(qp));
	fake_verbs.modify_refused = 0;
	connect_qp();
	cr_expect(verve_net_qp_may_receive(qp));
}

/* Whatever comes in datagrams must not fill the log. */
Test(roce, requests_that_cannot_be_connected_warn_once)
{
	peer.rd_atomic_target = 0;
	for (int i = 0; i < 10; i++)
		cr_expect_eq(try_connect(), -FI_EOPNOTSUPP);
	expect_logged("serves no RDMA reads");
	cr_expect_eq(warnings, 1);
}

Test(roce, an_address_that_moved_is_found_at_its_new_index)
{
	connect_qp();
	cr_expect_eq(path()->grh.sgid_index, 0);
	move_gids();
	happen(IBV_EVENT_GID_CHANGE);
	connect_qp();
	cr_expect_eq(path()->grh.sgid_index, 5);
}

/* The event may be read after the next queue pair is opened, or after it is connected. */
Test(roce, an_address_that_moved_is_found_before_its_event)
{
	open_qp();
	move_gids();
	cr_assert_eq(verve_net_qp_connect(qp, &peer, TIMEOUT_MS), 0);
	cr_expect_eq(path()->grh.sgid_index, 5);
	connect_qp();
	cr_expect_eq(path()->grh.sgid_index, 5);
}

Test(roce, an_address_that_is_away_is_found_when_it_is_back)
{
	connect_qp();
	fake_verbs.gid_count = 0;
	happen(IBV_EVENT_GID_CHANGE);
	cr_expect_neq(try_connect(), 0);
	expect_logged("10.0.0.1:0 is no address of the port");
	fake_verbs.gid_count = 2;
	move_gids();
	connect_qp();
	cr_expect_eq(path()->grh.sgid_index, 5);
}

/* As in a process that has no descriptor left: the next look may find the path. */
Test(roce, a_host_that_cannot_be_looked_at_has_not_lost_its_address)
{
	unsigned before;

	connect_qp();
	before = warnings;
	fake_verbs.getifaddrs_error = EMFILE;
	happen(IBV_EVENT_GID_CHANGE);
	connect_qp();
	cr_expect_eq(warnings, before, "%s", logged);
	move_gids();
	fake_verbs.getifaddrs_error = 0;
	connect_qp();
	cr_expect_eq(path()->grh.sgid_index, 5);
}

Test(roce, the_default_traffic_class_is_that_of_ucx)
{
	connect_qp();
	cr_expect_eq(path()->grh.traffic_class, 106);
	cr_expect_eq(path()->grh.flow_label, 0);
	cr_expect_eq(path()->grh.hop_limit, 64);
	cr_expect_eq(path()->sl, 0);
}

Test(infiniband, the_default_traffic_class_is_0)
{
	connect_qp();
	cr_expect_eq(path()->grh.traffic_class, 0);
}

Test(roce, a_code_point_is_sent_as_capable_of_congestion_marks)
{
	qp_attr.dscp = VERVE_NET_DSCP | 46;
	connect_qp();
	cr_expect_eq(path()->grh.traffic_class, 46 << 2 | 2);
	qp_attr.dscp = VERVE_NET_DSCP;
	connect_qp();
	cr_expect_eq(path()->grh.traffic_class, 2);
	verve_config.traffic_class = 0; /* the administrator's word is the last */
	connect_qp();
	cr_expect_eq(path()->grh.traffic_class, 0);
}

Test(roce, each_knob_reaches_the_queue_pair)
{
	verve_config.traffic_class = 200;
	verve_config.sl = 3;
	verve_config.flow_label = 0xabcde;
	verve_config.path_mtu = "512";
	verve_config.retry_count = 5;
	verve_config.rnr_retry_count = 6;
	verve_config.rnr_timeout = 1000;
	verve_config.gid_index = 1;
	verve_config.hop_limit = 255;
	connect_qp();
	cr_expect_eq(path()->grh.hop_limit, 255);
	cr_expect_eq(path()->grh.traffic_class, 200);
	cr_expect_eq(path()->sl, 3);
	cr_expect_eq(path()->grh.flow_label, 0xabcde);
	cr_expect_eq(path()->grh.sgid_index, 1);
	cr_expect_eq(fake_verbs.rtr.path_mtu, IBV_MTU_512);
	cr_expect_eq(fake_verbs.rtr.min_rnr_timer, 14, "1.28 ms");
	cr_expect_eq(fake_verbs.rts.retry_cnt, 5);
	cr_expect_eq(fake_verbs.rts.rnr_retry, 6);
	/* 4 s over 6 tries: 4.096 us * 2^18 is 1.07 s. */
	cr_expect_eq(fake_verbs.rts.timeout, 18);
}

Test(infiniband, the_hop_limit_and_path_bits_reach_the_queue_pair)
{
	struct verve_net_qp_addr self;

	connect_qp();
	cr_expect_eq(path()->src_path_bits, 0);
	verve_config.hop_limit = 3;
	verve_config.lid_path_bits = 2;
	verve_net_qp_close(qp);
	qp = NULL;
	verve_net_device_close(dev);
	dev = NULL;
	fake_verbs.port.lmc = 2;
	connect_qp();
	verve_net_qp_addr(qp, &self);
	cr_expect_eq(self.lid, LID + 2, "the LID that peers are told");
	cr_expect_eq(path()->src_path_bits, 2);
	cr_expect_eq(path()->dlid, PEER_LID, "what the peer has chosen");
	cr_expect_eq(path()->grh.hop_limit, 3);
}

/* Their events may be read after the next queue pair is opened. */
Test(infiniband, a_new_lid_and_place_of_the_partition_are_found_before_their_events)
{
	struct verve_net_qp_addr self;

	connect_qp();
	fake_verbs.port.lid = 99;
	connect_qp();
	verve_net_qp_addr(qp, &self);
	cr_expect_eq(self.lid, 99);
	fake_verbs.port.pkey_tbl_len = 2;
	fake_verbs.pkeys[0] = 0x7fff;
	fake_verbs.pkeys[1] = 0xffff;
	connect_qp();
	verve_net_qp_addr(qp, &self);
	cr_expect_eq(self.pkey, 0xffff);
	cr_expect_eq(fake_verbs.init.pkey_index, 1);
}

Test(infiniband, path_bits_that_the_port_does_not_have_are_refused)
{
	fake_verbs.port.lmc = 2;
	verve_config.lid_path_bits = 4;
	cr_expect_eq(verve_net_device_open("none0", 1, NULL, &dev), -FI_ENODEV);
	expect_logged("has no LID for FI_VERVE_LID_PATH_BITS=4: its LMC is 2, so that 3 is");
	dev = NULL;
}

/* No event says so: the interface's MTU was changed. */
Test(roce, the_mtu_of_a_new_queue_pair_is_the_present_one)
{
	struct verve_net_qp_addr self;

	connect_qp();
	cr_expect_eq(fake_verbs.rtr.path_mtu, IBV_MTU_1024);
	fake_verbs.port.active_mtu = IBV_MTU_512;
	connect_qp();
	verve_net_qp_addr(qp, &self);
	cr_expect_eq(self.mtu_log2, 9);
	cr_expect_eq(fake_verbs.rtr.path_mtu, IBV_MTU_512);
	fake_verbs.port.active_mtu = IBV_MTU_4096;
	connect_qp();
	cr_expect_eq(fake_verbs.rtr.path_mtu, IBV_MTU_4096);
}

Test(roce, a_path_has_no_more_mtu_than_the_port)
{
	verve_config.path_mtu = "4096";
	connect_qp();
	cr_expect_eq(fake_verbs.rtr.path_mtu, IBV_MTU_1024);
}

Test(roce, the_time_until_a_retry_is_the_next_that_the_device_knows)
{
	static const struct {
		size_t us;
		uint8_t code;
	} times[] = {{10, 1}, {11, 2}, {20, 2}, {30, 3}, {40, 4}, {50, 5}, {120, 7}, {640, 12},
		     {641, 13}, {491520, 31}};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		verve_config.rnr_timeout = times[i].us;
		connect_qp();
		cr_expect_eq(fake_verbs.rtr.min_rnr_timer, times[i].code, "%zu us: %u",
			     times[i].us, fake_verbs.rtr.min_rnr_timer);
	}
}
