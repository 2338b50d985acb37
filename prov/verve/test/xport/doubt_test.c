/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Doubt: a device that reports a read as done although packets of the response never came. */
#include "xport/replay.h"

#include <string.h>

#include "../proto/fixture.h"
#include "../support/fake_world.h"
#include "mr/region.h"

enum { LEN = 1000 };

static struct node a, b;
static char local[LEN], remote[LEN];
static struct verve_mr_region *region;
static struct fake_net_config config;

static void open_net(uint32_t mtu)
{
	fake_net_config_default(&config);
	config.mtu = mtu;
	config.limits.doubtful_reads = true;
	config.lies = 1000;
	fake_net_start(&config);
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	pattern_fill(remote, LEN, 1);
	cr_assert_eq(verve_mr_region_open(b.dev, remote, LEN, VERVE_NET_REMOTE_READ, &region), 0);
}

static void close_net(void)
{
	node_close(&a);
	verve_mr_region_close(region);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

static void read_all(void)
{
	struct iovec iov = {local, LEN};
	struct verve_wire_segment from = {(uintptr_t)remote, LEN, region->rkey};
	struct verve_request request = {.iov = &iov, .iov_count = 1, .addr = node_addr(&a, &b),
					.flags = VERVE_OP_NOTIFY, .remote = &from,
					.remote_count = 1};

	cr_assert_eq(verve_rma(a.xport, VERVE_RMA_READ, &request), 0);
	nodes_settle();
}

/* The shortest packets that a network has: the read takes four of them. */
Test(doubt, read_of_several_short_packets_is_not_believed)
{
	open_net(256);
	read_all();
	cr_expect_eq(AO_load(&a.read.value), 0);
	cr_assert(node_link(&a, &b)->replay);
	fake_world.config.lies = 0;
	node_resume(&a, &b);
	cr_expect_eq(AO_load(&a.read.value), 1);
	cr_expect(pattern_holds(local, LEN, 1));
	close_net();
}

Test(doubt, read_of_one_packet_tells_the_truth)
{
	open_net(4096);
	read_all();
	cr_expect_eq(AO_load(&a.read.value), 1);
	cr_expect(pattern_holds(local, LEN, 1));
	close_net();
}
