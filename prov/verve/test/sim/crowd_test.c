/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many endpoints connect, all to all. VERVE_CROWD says how many; 1,000 need 4 GB and two minutes.
 */
#include <criterion/criterion.h>

#include "base/config.h"
#include "crowd.h"

enum { MEMBERS = 200, HOSTS = 10, BYTES_A_CONNECTION = 16384 };

/* Small endpoints: it is their connections that are looked at. */
static void configure(void)
{
	verve_config.eager_size = 64;
	verve_config.rx_buffers = 256;
	verve_config.window = 8;
	verve_config.tx_size = 128;
}

static void connect_all(const char *name, crowd_plan *plan, uint32_t loss, uint32_t dgrams)
{
	uint32_t members = crowd_number("VERVE_CROWD", MEMBERS);
	struct crowd_options options = {
		.name = name,
		.members = members,
		.hosts = HOSTS,
		.plan = plan,
		.rounds = 1,
		.max_len = 32,
		.receives = 8,
		.dgram_loss = loss,
		.tick = 50000,
	};
	uint64_t ends = (uint64_t)members * (members - 1);
	struct fake_net_stats before, after;
	struct crowd crowd;
	size_t heap;

	configure();
	crowd_open(&crowd, &options, 1);
	heap = crowd_heap();
	fake_net_stats(&before);
	crowd_run(&crowd);
	fake_net_stats(&after);
	heap = crowd_heap() - heap;

	/* Each pair has one connection, and never had another. */
	cr_expect_eq(after.qps_opened, ends);
	cr_expect_eq(after.qps, ends);
	cr_expect_leq(after.dgrams, dgrams * ends / 2, "%lu datagrams for %lu connections",
		      after.dgrams, ends / 2);
	cr_expect_lt(heap / ends, BYTES_A_CONNECTION);
	cr_log_info("%u endpoints, %lu connections: %.2f datagrams each, after %.3f s; %zu bytes of heap "
		    "and %lu pinned for each end",
		    members, ends / 2, 2.0 * after.dgrams / ends, fake_net_time() / 1e9, heap / ends,
		    (after.pinned - before.pinned) / ends);
	crowd_close(&crowd);
}

/* HELLO, HELLO, READY. */
Test(crowd, one_side_asks, .timeout = 600)
{
	connect_all("crowd/one_side_asks", crowd_upwards, 0, 3);
}

/* Where both ask at the same time, both answer. */
Test(crowd, all_to_all, .timeout = 600)
{
	connect_all("crowd/all_to_all", crowd_all_to_all, 0, 4);
}

Test(crowd, all_to_all_through_loss, .timeout = 600)
{
	connect_all("crowd/all_to_all_through_loss", crowd_all_to_all, 200, 7);
}
