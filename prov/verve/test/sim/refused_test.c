/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random traffic, some of it with wrong keys, in which nothing else fails: all other operations
 * complete with success and once, in order.
 */
#include <criterion/criterion.h>

#include "sim.h"

Test(refused, two_endpoints)
{
	struct sim_options options = {
		.name = "refused/two_endpoints",
		.nodes = 2,
		.ops = 80,
		.max_len = 20000,
		.slice = 10000,
		.refused = 150,
	};

	sim_run_seeds(&options, 80);
}

Test(refused, several_endpoints)
{
	struct sim_options options = {
		.name = "refused/several_endpoints",
		.nodes = 5,
		.ops = 60,
		.max_len = 3000,
		.slice = 3000,
		.refused = 300,
		.events = true,
	};

	sim_run_seeds(&options, 50);
}

Test(refused, lost_datagrams)
{
	struct sim_options options = {
		.name = "refused/lost_datagrams",
		.nodes = 4,
		.ops = 40,
		.max_len = 3000,
		.slice = 500,
		.dgram_loss = 200,
		.refused = 200,
	};

	sim_run_seeds(&options, 50);
}

Test(refused, few_connections_and_sleepers)
{
	struct sim_options options = {
		.name = "refused/few_connections_and_sleepers",
		.nodes = 5,
		.ops = 40,
		.max_len = 3000,
		.slice = 500,
		.wait = true,
		.conns = 2,
		.refused = 200,
	};

	sim_run_seeds(&options, 50);
}

Test(refused, tiny_queues_and_endpoints_that_close_after_their_work)
{
	struct sim_options options = {
		.name = "refused/tiny_queues_and_endpoints_that_close_after_their_work",
		.nodes = 4,
		.ops = 60,
		.max_len = 3000,
		.slice = 3000,
		.retire = true,
		.tiny = true,
		.refused = 200,
	};

	sim_run_seeds(&options, 50);
}

Test(refused, exported_keys)
{
	struct sim_options options = {
		.name = "refused/exported_keys",
		.nodes = 3,
		.ops = 60,
		.max_len = 5000,
		.slice = 5000,
		.segments = SIM_SEGMENTS,
		.refused = 200,
	};

	sim_run_seeds(&options, 50);
}

Test(refused, atomics_by_the_device)
{
	struct sim_options options = {
		.name = "refused/atomics_by_the_device",
		.nodes = 3,
		.ops = 80,
		.max_len = 2000,
		.slice = 500,
		.device = true,
		.refused = 200,
	};

	sim_run_seeds(&options, 50);
}

Test(refused, progress_threads)
{
	struct sim_options options = {
		.name = "refused/progress_threads",
		.nodes = 3,
		.ops = 60,
		.max_len = 5000,
		.slice = 500,
		.wait = true,
		.threads = true,
		.refused = 200,
	};

	sim_run_seeds(&options, 30);
}

Test(refused, host_killed)
{
	struct sim_options options = {
		.name = "refused/host_killed",
		.nodes = 5,
		.ops = 50,
		.max_len = 8000,
		.slice = 3000,
		.kill = true,
		.dgram_loss = 100,
		.refused = 300,
	};

	sim_run_seeds(&options, 50);
}

Test(refused, endpoints_close_at_any_moment)
{
	struct sim_options options = {
		.name = "refused/endpoints_close_at_any_moment",
		.nodes = 5,
		.ops = 40,
		.max_len = 8000,
		.slice = 3000,
		.abandon = true,
		.refused = 300,
	};

	sim_run_seeds(&options, 50);
}

/* With all else that holds operations back, or takes them away. */
Test(refused, with_cancelling_little_memory_and_shared_receives)
{
	struct sim_options options = {
		.name = "refused/with_cancelling_little_memory_and_shared_receives",
		.nodes = 3,
		.ops = 80,
		.max_len = 20000,
		.slice = 6000,
		.refused = 150,
		.members = SIM_MEMBERS,
		.fickle = true,
		.poor = true,
	};

	sim_run_seeds(&options, 40);
}

/* Queue pairs end in the middle of messages. */
Test(refused, messages_in_progress)
{
	struct sim_options options = {
		.name = "refused/messages_in_progress",
		.nodes = 3,
		.ops = 120,
		.max_len = 2000,
		.slice = 500,
		.refused = 400,
		.partial = 500,
	};

	sim_run_seeds(&options, 80);
}

/* A read that completes with success has read, in spite of everything else. */
Test(refused, reads_that_are_said_to_be_done)
{
	struct sim_options options = {
		.name = "refused/reads_that_are_said_to_be_done",
		.nodes = 3,
		.ops = 60,
		.max_len = 20000,
		.slice = 10000,
		.refused = 50,
		.lies = 100,
	};

	sim_run_seeds(&options, 80);
}
