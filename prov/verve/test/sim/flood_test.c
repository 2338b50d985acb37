/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * More messages than a receiver takes: floods without receives, many senders at one receiver, a
 * receiver that does not look for a minute, and queues and buffers as small as can be. VERVE_FLOOD
 * is the number of messages of the flood.
 */
#include <criterion/criterion.h>
#include <rdma/fi_tagged.h>

#include "api/ep.h"
#include "base/config.h"
#include "crowd.h"
#include "engine/engine.h"
#include "xport/wire.h"
#include "xport/xport.h"

enum { WINDOW = 8, EAGER = 1024, TX_SIZE = 128, FLOOD = 200000, DESCRIPTION = 1024 };

static void configure(void)
{
	verve_config.eager_size = EAGER;
	verve_config.inline_size = 128;
	verve_config.rx_buffers = 32;
	verve_config.window = WINDOW;
	verve_config.tx_size = TX_SIZE;
	verve_config.max_conns = 0;
}

/* Member 1 floods member 0, then member 2 has one message for it. */
static bool flood(const struct crowd *crowd, uint32_t from, uint64_t n, uint32_t *to)
{
	*to = 0;
	if (from == 2)
		return !n && crowd->members[2].receives;
	return from == 1 && n < crowd->options->rounds;
}

/* Until the flood is all there, or its sender can send no more. */
static void be_flooded(struct crowd *crowd)
{
	const struct crowd_member *sender = &crowd->members[1];
	uint64_t started = 0, since = fake_net_time();

	while (fake_net_time() - since < 100000000) {
		crowd_turn(crowd);
		if (sender->completed == started)
			continue;
		started = sender->completed;
		since = fake_net_time();
	}
}

/* Member 0 wants this one message alone, and gets it within microseconds. */
static void expect_at_once(struct crowd *crowd)
{
	struct crowd_member *receiver = &crowd->members[0], *sender = &crowd->members[2];
	uint64_t since;

	crowd_turn(crowd);
	sender->receives = 1;
	sender->planned = false;
	/* Connects first: the time to connect does not count. */
	while (!sender->completed)
		crowd_turn(crowd);
	since = fake_net_time();
	crowd_recv_from(crowd, 0, 2, 0);
	while (!receiver->received)
		crowd_turn(crowd);
	cr_expect_lt(fake_net_time() - since, 1000000, "it took %lu us",
		     (fake_net_time() - since) / 1000);
}

static void flood_with(const char *name, uint32_t count, size_t len, size_t bound)
{
	struct crowd_options options = {
		.name = name,
		.members = 3,
		.hosts = 3,
		.plan = flood,
		.rounds = count,
		.max_len = len,
		.tick = 5000,
		.eager = 2,
	};
	struct crowd crowd;
	size_t heap;

	configure();
	crowd_open(&crowd, &options, 1);
	heap = crowd_heap();
	be_flooded(&crowd);
	heap = crowd_heap() - heap;
	cr_expect_gt(crowd.due, 0);
	cr_expect_lt(heap, bound, "%zu bytes, %zu expected at most", heap, bound);
	cr_log_info("%lu messages of up to %zu bytes wait, %lu are sent: %zu bytes of heap",
		    crowd.due, len, crowd.members[1].completed, heap);
	expect_at_once(&crowd);
	crowd.members[0].receives = 16;
	crowd_run(&crowd);
	cr_expect_eq(crowd.received, count + 1);
	crowd_close(&crowd);
}

/*
 * A group of small messages costs a credit: the receiver keeps a window of groups, as it keeps
 * descriptions. Beyond the window, messages stay at the sender.
 */
Test(flood, of_small_messages, .timeout = 3600)
{
	uint32_t count = crowd_number("VERVE_FLOOD", FLOOD);

	flood_with("flood/of_small_messages", count, 64,
		   (WINDOW * VERVE_WIRE_WEIGHT + TX_SIZE) * DESCRIPTION + (4 << 20));
}

/* The receiver keeps a window of payload; beyond the window, messages stay at the sender. */
Test(flood, of_payload, .timeout = 3600)
{
	flood_with("flood/of_payload", FLOOD / 10, 3000,
		   WINDOW * EAGER + TX_SIZE * (DESCRIPTION + 3000) + (1 << 20));
}

enum { SENDERS = 39, BURST = 8, BURSTS = 12, TRICKLE = 3000 };

static uint64_t burst_end[2]; /* messages that member 1, and each other sender, may have begun */

static bool in_bursts(const struct crowd *crowd, uint32_t from, uint64_t n, uint32_t *to)
{
	(void)crowd;
	*to = 0;
	return from && n < burst_end[from > 1];
}

static void go_on(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->options->members; i++)
		crowd->members[i].planned = false;
}

/* All send while member 0 does not look. Returns how often the device had no buffer. */
static uint64_t burst(struct crowd *crowd)
{
	struct fake_net_stats before, after;

	fake_net_stats(&before);
	burst_end[0] += BURST;
	burst_end[1] += BURST;
	go_on(crowd);
	crowd->members[0].away = crowd->received;
	for (int i = 0; i < 100; i++)
		crowd_turn(crowd);
	crowd->members[0].away = false;
	crowd_run(crowd);
	fake_net_stats(&after);
	return after.rnr - before.rnr;
}

/* Receive buffers that member 0 has. */
static uint32_t buffers(const struct crowd *crowd)
{
	struct verve_engine *engine = verve_ep_from_fid(crowd->members[0].ep)->engine;
	uint32_t count = verve_engine_lock(engine)->rx_count;

	verve_engine_unlock(engine);
	return count;
}

static void open_for_bursts(struct crowd *crowd, uint64_t seed, size_t buffers, uint32_t limit)
{
	static const struct crowd_options options = {
		.name = "flood/bursts_of_many_find_buffers",
		.members = 1 + SENDERS,
		.hosts = 5,
		.plan = in_bursts,
		.rounds = BURSTS * BURST + TRICKLE,
		.max_len = 1000,
		.receives = 400,
		.tick = 5000,
	};

	configure();
	verve_config.rx_buffers = buffers;
	verve_config.rx_limit = limit;
	verve_config.window = 64;
	burst_end[0] = burst_end[1] = 0;
	crowd_open(crowd, &options, seed);
}

/*
 * Many send at once, again and again: there are buffers enough for them soon, so that nobody
 * repeats anything. When only one sends, now and then, the buffers go again. number: of buffers
 * that are set, or auto; first: so many are there at the beginning, and at the end.
 */
static void burst_often(uint64_t seed, size_t number, uint32_t first)
{
	struct crowd crowd;

	open_for_bursts(&crowd, seed, number, 2048);
	cr_expect_eq(buffers(&crowd), first);
	for (int i = 0; i < BURSTS / 2; i++)
		burst(&crowd);
	for (int i = BURSTS / 2; i < BURSTS; i++)
		cr_expect_eq(burst(&crowd), 0, "seed %lu: burst %d overflows", seed, i);
	cr_log_info("%u buffers", buffers(&crowd));
	cr_expect_geq(buffers(&crowd), SENDERS * BURST);
	cr_expect_leq(buffers(&crowd), 4 * SENDERS * BURST);
	for (int i = 0; i < TRICKLE && buffers(&crowd) > first; i++) {
		burst_end[0]++;
		go_on(&crowd);
		crowd_run(&crowd);
		fake_net_advance(50000000);
	}
	cr_expect_eq(buffers(&crowd), first);
	crowd_close(&crowd);
}

static void burst_on_a_number(uint64_t seed)
{
	uint64_t overflows = 0;
	struct crowd crowd;

	open_for_bursts(&crowd, seed, 32, 0);
	for (int i = 0; i < BURSTS; i++)
		overflows += burst(&crowd);
	cr_expect_gt(overflows, BURSTS * SENDERS, "without growth they overflow");
	crowd_close(&crowd);
	burst_often(seed, 32, 32);
}

static void burst_without_a_number(uint64_t seed)
{
	burst_often(seed, SIZE_MAX, 64 + 32);
}

Test(flood, bursts_of_many_find_buffers, .timeout = 3600)
{
	crowd_seeds(3, burst_on_a_number);
}

Test(flood, bursts_of_many_find_buffers_without_a_number, .timeout = 3600)
{
	crowd_seeds(3, burst_without_a_number);
}

static void incast(uint64_t seed)
{
	struct crowd_options options = {
		.name = "flood/sixty_four_to_one",
		.members = 65,
		.hosts = 5,
		.plan = crowd_to_one,
		.rounds = 30,
		.max_len = 3000,
		.receives = 4,
		.acknowledged = true,
		.tick = 5000,
	};
	struct crowd crowd;

	configure();
	crowd_open(&crowd, &options, seed);
	crowd_run(&crowd);
	cr_expect_eq(crowd.received, 64 * options.rounds);
	crowd_close(&crowd);
}

Test(flood, sixty_four_to_one, .timeout = 3600)
{
	crowd_seeds(4, incast);
}

Test(flood, receiver_that_does_not_look_for_a_minute, .timeout = 3600)
{
	struct crowd_options options = {
		.name = "flood/receiver_that_does_not_look_for_a_minute",
		.members = 5,
		.hosts = 5,
		.plan = crowd_to_one,
		.rounds = 100,
		.max_len = 3000,
		.receives = 4,
		.acknowledged = true,
		.tick = 50000,
	};
	struct crowd crowd;

	configure();
	crowd_open(&crowd, &options, 1);
	/* The receiver is known, and has begun. */
	while (crowd.received < 20)
		crowd_turn(&crowd);
	crowd.members[0].away = true;
	while (fake_net_time() < 60000000000)
		crowd_turn(&crowd);
	cr_expect_lt(crowd.received, 4 * options.rounds);
	crowd.members[0].away = false;
	crowd_run(&crowd);
	cr_expect_eq(crowd.received, 4 * options.rounds);
	crowd_close(&crowd);
}

enum { DEAF = 12, TO_DEAF = 100 };

static bool one_by_one; /* the deaf become deaf one after the other, not all together */

/* Member 0 sends to many that do not look, then to the last one, which answers as often. */
static bool to_the_deaf(const struct crowd *crowd, uint32_t from, uint64_t n, uint32_t *to)
{
	uint32_t last = crowd->options->members - 1, deaf = (last - 1) * TO_DEAF;

	if (!from && n < deaf) {
		*to = 1 + (one_by_one ? n / TO_DEAF : n % (last - 1));
		return true;
	}
	*to = from ? 0 : last;
	return (!from || from == last) && n - (from ? 0 : deaf) < crowd->options->rounds;
}

/*
 * Their queues take nothing any more: what is sent to them keeps its buffers, and its places in the
 * completion queue.
 */
static void be_deaf(const char *name, uint32_t deaf, uint32_t cqe, bool in_turn)
{
	struct crowd_options options = {
		.name = name,
		.members = deaf + 2,
		.hosts = deaf + 2,
		.plan = to_the_deaf,
		.rounds = 200,
		.max_len = 1000,
		.equal = in_turn,
		.receives = 4,
		.cqe = cqe,
		.tick = 5000,
	};
	const struct crowd_member *healthy;
	struct crowd crowd;

	configure();
	verve_config.inline_size = 0;
	verve_config.window = 64;
	verve_config.tx_size = 4096;
	one_by_one = in_turn;
	crowd_open(&crowd, &options, 1);
	for (uint32_t i = 1; i <= deaf; i++)
		crowd.members[i].away = true;
	healthy = &crowd.members[deaf + 1];
	while (healthy->received < options.rounds || crowd.members[0].received < options.rounds) {
		crowd_turn(&crowd);
		cr_assert_lt(fake_net_time(), 10000000000,
			     "%lu messages arrived, and %lu came back",
			     healthy->received, crowd.members[0].received);
	}
	for (uint32_t i = 1; i <= deaf; i++)
		crowd.members[i].away = false;
	crowd_run(&crowd);
	crowd_close(&crowd);
}

Test(flood, peers_that_take_nothing_leave_buffers_to_others, .timeout = 3600)
{
	be_deaf("flood/peers_that_take_nothing_leave_buffers_to_others", DEAF, 0,
		false);
}

Test(flood, peers_that_take_nothing_leave_completions_to_others, .timeout = 3600)
{
	be_deaf("flood/peers_that_take_nothing_leave_completions_to_others", DEAF, 300,
		false);
}

/* The first ones take as much as they may, and all together must not take everything. */
Test(flood, peers_that_become_deaf_one_by_one_leave_buffers_to_others, .timeout = 3600)
{
	be_deaf("flood/peers_that_become_deaf_one_by_one_leave_buffers_to_others", 40, 0, true);
}

Test(flood, peers_that_become_deaf_one_by_one_leave_completions_to_others, .timeout = 3600)
{
	be_deaf("flood/peers_that_become_deaf_one_by_one_leave_completions_to_others", 40, 300,
		true);
}

/* Queues of the device, credits, buffers and the application's queue: as few as can be. */
static void starve(uint64_t seed)
{
	static const size_t inlines[] = {0, 16, 128};
	struct crowd_options options = {
		.name = "flood/everybody_out_of_everything",
		.members = 6,
		.hosts = 3,
		.plan = crowd_all_to_all,
		.rounds = 100,
		.max_len = 5000,
		.receives = 1,
		.acknowledged = true,
		.cqe = 64,
		.cq_size = 1,
		.tick = 3000,
	};
	struct crowd crowd;

	configure();
	verve_config.inline_size = inlines[seed % 3];
	verve_config.rx_buffers = 16;
	verve_config.window = 2;
	verve_config.tx_size = 16;
	verve_config.max_conns = seed % 2 ? 2 : 0;
	crowd_open(&crowd, &options, seed);
	crowd_run(&crowd);
	crowd_close(&crowd);
}

Test(flood, everybody_out_of_everything, .timeout = 3600)
{
	crowd_seeds(60, starve);
}
