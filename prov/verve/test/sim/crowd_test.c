/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many endpoints connect, all to all. VERVE_CROWD says how many; 1,000 need 9 GB and some minutes.
 */
#include <criterion/criterion.h>

#include "base/config.h"
#include "crowd.h"

enum { MEMBERS = 100, HOSTS = 10, BYTES_A_CONNECTION = 16384, LIMIT = 8 };

/* Small endpoints: it is their connections that are looked at. */
static void configure(void)
{
	verve_config.eager_size = 256;
	verve_config.rx_buffers = 256;
	verve_config.window = 8;
	verve_config.tx_size = 128;
	verve_config.max_conns = 0;
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
	crowd_open(&crowd, &options, crowd_number("VERVE_SEED", 1));
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
	cr_log_info(
		"%u endpoints, %lu connections: %.2f datagrams each, after %.3f s; "
		"%zu bytes of heap "
		"and %lu pinned for each end",
		members, ends / 2, 2.0 * after.dgrams / ends, fake_net_time() / 1e9, heap / ends,
		(after.pinned - before.pinned) / ends);
	crowd_close(&crowd);
}

/* HELLO, HELLO, READY. */
Test(crowd, one_side_asks, .timeout = 3600)
{
	connect_all("crowd/one_side_asks", crowd_upwards, 0, 3);
}

/* If both ask at the same time, one of them answers. */
Test(crowd, all_to_all, .timeout = 3600)
{
	connect_all("crowd/all_to_all", crowd_all_to_all, 0, 3);
}

Test(crowd, all_to_all_through_loss, .timeout = 3600)
{
	connect_all("crowd/all_to_all_through_loss", crowd_all_to_all, 200, 7);
}

static void few_places(uint64_t seed)
{
	struct crowd_options options = {
		.name = "crowd/more_peers_than_connections",
		.members = 64,
		.hosts = 4,
		.plan = crowd_all_to_all,
		.rounds = 2,
		.max_len = 3000,
		.receives = 8,
		.dgram_loss = seed % 2 ? 200 : 0,
		.acknowledged = true,
		.tick = 20000,
	};
	struct fake_net_stats stats;
	struct crowd crowd;

	configure();
	verve_config.eager_size = 1024;
	verve_config.max_conns = LIMIT;
	crowd_open(&crowd, &options, seed);
	crowd_run(&crowd);
	fake_net_stats(&stats);
	cr_expect_gt(stats.qps_opened, 64 * 63, "seed %lu: nothing was closed", seed);
	cr_expect_lt(stats.max_qps, 2 * 64 * LIMIT, "seed %lu: %lu queue pairs at a time", seed,
		     stats.max_qps);
	cr_log_info("seed %lu: %lu queue pairs, %lu at a time; %lu requests, %lu datagrams, %.3f s",
		    seed, stats.qps_opened, stats.max_qps, stats.requests, stats.dgrams,
		    fake_net_time() / 1e9);
	crowd_close(&crowd);
}

Test(crowd, more_peers_than_connections, .timeout = 3600)
{
	crowd_seeds(6, few_places);
}

enum { FEW_QPS = 6, PEERS = 24 };

static bool from_one(const struct crowd *crowd, uint32_t from, uint64_t n, uint32_t *to)
{
	uint32_t others = crowd->options->members - 1;

	*to = 1 + (uint32_t)(n % others);
	return !from && n < (uint64_t)others * crowd->options->rounds;
}

/* Each member has a device of its own, whose queue pairs are fewer than its peers. */
static void run_short(crowd_plan *plan, uint32_t loss, uint64_t seed)
{
	struct crowd_options options = {
		.name = "crowd/idle_connections_give_their_queue_pairs",
		.members = 1 + PEERS,
		.hosts = 1 + PEERS,
		.plan = plan,
		.rounds = 3,
		.max_len = 3000,
		.receives = 8,
		.dgram_loss = loss,
		.qp = FEW_QPS,
		.acknowledged = true,
		.tick = 20000,
	};
	struct fake_net_stats stats;
	struct crowd crowd;

	configure();
	crowd_open(&crowd, &options, seed);
	crowd_run(&crowd);
	fake_net_stats(&stats);
	/* One for each end at least, of which few fit. */
	cr_expect_geq(stats.qps_opened, 2 * PEERS);
	cr_log_info("seed %lu: %lu queue pairs, %lu at a time; %.3f s", seed, stats.qps_opened,
		    stats.max_qps, fake_net_time() / 1e9);
	crowd_close(&crowd);
}

static void peers_in_turn(uint64_t seed)
{
	run_short(from_one, seed % 2 ? 200 : 0, seed);
}

static void peers_that_ask(uint64_t seed)
{
	run_short(crowd_to_one, seed % 2 ? 200 : 0, seed);
}

static void peers_of_each_other(uint64_t seed)
{
	run_short(crowd_all_to_all, seed % 2 ? 200 : 0, seed);
}

/* The application set no limit, and the device has no queue pair for the next peer. */
Test(crowd, idle_connections_give_their_queue_pairs, .timeout = 3600)
{
	crowd_seeds(4, peers_in_turn);
}

/* The peers ask, and hear that there is none now. */
Test(crowd, idle_connections_give_their_queue_pairs_to_peers_that_ask, .timeout = 3600)
{
	crowd_seeds(4, peers_that_ask);
}

/* Every device is short of queue pairs. */
Test(crowd, queue_pairs_are_short_everywhere, .timeout = 3600)
{
	crowd_seeds(4, peers_of_each_other);
}
