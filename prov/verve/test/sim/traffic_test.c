/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random traffic in which nothing fails. */
#include <criterion/criterion.h>

#include "sim.h"

Test(traffic, two_endpoints)
{
	struct sim_options options = {
		.name = "traffic/two_endpoints",
		.nodes = 2,
		.ops = 60,
		.max_len = 20000,
		.slice = 10000,
	};

	sim_run_seeds(&options, 200);
}

Test(traffic, small_messages)
{
	struct sim_options options = {
		.name = "traffic/small_messages",
		.nodes = 3,
		.ops = 150,
		.max_len = 300,
		.slice = 64,
	};

	sim_run_seeds(&options, 100);
}

Test(traffic, sixty_four_endpoints)
{
	struct sim_options options = {
		.name = "traffic/sixty_four_endpoints",
		.nodes = 64,
		.ops = 12,
		.max_len = 6000,
		.slice = 500,
	};

	sim_run_seeds(&options, 5);
}

Test(traffic, sleeping_on_wait_descriptors)
{
	struct sim_options options = {
		.name = "traffic/sleeping_on_wait_descriptors",
		.nodes = 4,
		.ops = 40,
		.max_len = 5000,
		.slice = 500,
		.wait = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, progress_threads_and_sleepers)
{
	struct sim_options options = {
		.name = "traffic/progress_threads_and_sleepers",
		.nodes = 4,
		.ops = 40,
		.max_len = 5000,
		.slice = 500,
		.wait = true,
		.threads = true,
		.retire = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, rma_events)
{
	struct sim_options options = {
		.name = "traffic/rma_events",
		.nodes = 3,
		.ops = 60,
		.max_len = 5000,
		.slice = 5000,
		.events = true,
		.tiny = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, atomics_by_the_device)
{
	struct sim_options options = {
		.name = "traffic/atomics_by_the_device",
		.nodes = 4,
		.ops = 100,
		.max_len = 2000,
		.slice = 500,
		.device = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, atomics_by_the_device_with_events_in_tiny_queues)
{
	struct sim_options options = {
		.name = "traffic/atomics_by_the_device_with_events_in_tiny_queues",
		.nodes = 3,
		.ops = 100,
		.max_len = 2000,
		.slice = 500,
		.device = true,
		.events = true,
		.tiny = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, endpoints_close_after_their_work)
{
	struct sim_options options = {
		.name = "traffic/endpoints_close_after_their_work",
		.nodes = 5,
		.ops = 30,
		.max_len = 5000,
		.slice = 500,
		.retire = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, lost_datagrams)
{
	struct sim_options options = {
		.name = "traffic/lost_datagrams",
		.nodes = 6,
		.ops = 20,
		.max_len = 3000,
		.slice = 500,
		.dgram_loss = 200,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, tiny_queues)
{
	struct sim_options options = {
		.name = "traffic/tiny_queues",
		.nodes = 4,
		.ops = 60,
		.max_len = 6000,
		.slice = 3000,
		.tiny = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, exported_keys)
{
	struct sim_options options = {
		.name = "traffic/exported_keys",
		.nodes = 3,
		.ops = 60,
		.max_len = 5000,
		.slice = 5000,
		.segments = SIM_SEGMENTS,
		.events = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, exported_keys_and_tiny_queues)
{
	struct sim_options options = {
		.name = "traffic/exported_keys_and_tiny_queues",
		.nodes = 4,
		.ops = 60,
		.max_len = 6000,
		.slice = 3000,
		.segments = SIM_SEGMENTS,
		.wait = true,
		.tiny = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, few_connections)
{
	struct sim_options options = {
		.name = "traffic/few_connections",
		.nodes = 8,
		.ops = 60,
		.max_len = 5000,
		.slice = 3000,
		.segments = SIM_SEGMENTS,
		.events = true,
		.conns = 2,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, few_connections_and_sleepers_through_loss)
{
	struct sim_options options = {
		.name = "traffic/few_connections_and_sleepers_through_loss",
		.nodes = 6,
		.ops = 40,
		.max_len = 5000,
		.slice = 500,
		.wait = true,
		.dgram_loss = 200,
		.conns = 2,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, few_connections_and_tiny_queues)
{
	struct sim_options options = {
		.name = "traffic/few_connections_and_tiny_queues",
		.nodes = 5,
		.ops = 60,
		.max_len = 5000,
		.slice = 500,
		.retire = true,
		.tiny = true,
		.conns = 2,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, shared_receive_contexts)
{
	struct sim_options options = {
		.name = "traffic/shared_receive_contexts",
		.nodes = 3,
		.ops = 100,
		.max_len = 5000,
		.slice = 500,
		.members = SIM_MEMBERS,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, shared_receive_contexts_tiny_queues_and_sleepers)
{
	struct sim_options options = {
		.name = "traffic/shared_receive_contexts_tiny_queues_and_sleepers",
		.nodes = 3,
		.ops = 60,
		.max_len = 5000,
		.slice = 500,
		.members = SIM_MEMBERS,
		.wait = true,
		.retire = true,
		.tiny = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, cancelling)
{
	struct sim_options options = {
		.name = "traffic/cancelling",
		.nodes = 3,
		.ops = 150,
		.max_len = 6000,
		.slice = 6000,
		.fickle = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, cancelling_in_tiny_queues_with_exported_keys_and_few_connections)
{
	struct sim_options options = {
		.name = "traffic/cancelling_in_tiny_queues_with_exported_keys_and_few_connections",
		.nodes = 5,
		.ops = 80,
		.max_len = 6000,
		.slice = 6000,
		.segments = SIM_SEGMENTS,
		.conns = 2,
		.wait = true,
		.events = true,
		.fickle = true,
		.tiny = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, little_memory_to_register)
{
	struct sim_options options = {
		.name = "traffic/little_memory_to_register",
		.nodes = 3,
		.ops = 100,
		.max_len = 20000,
		.slice = 6000,
		.poor = true,
		.fickle = true,
	};

	sim_run_seeds(&options, 80);
}

Test(traffic, memory_paged_on_demand)
{
	struct sim_options options = {
		.name = "traffic/memory_paged_on_demand",
		.nodes = 3,
		.ops = 80,
		.max_len = 20000,
		.slice = 6000,
		.segments = SIM_SEGMENTS,
		.odp = true,
	};

	sim_run_seeds(&options, 80);
}
