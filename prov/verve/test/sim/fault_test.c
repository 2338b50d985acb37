/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random traffic in which something fails: everything completes, and nobody else is harmed. */
#include <criterion/criterion.h>

#include "sim.h"

Test(fault, peers_that_start_late)
{
	struct sim_options options = {
		.name = "fault/peers_that_start_late",
		.nodes = 5,
		.ops = 30,
		.max_len = 5000,
		.slice = 500,
		.late = true,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, host_killed)
{
	struct sim_options options = {
		.name = "fault/host_killed",
		.nodes = 6,
		.ops = 40,
		.max_len = 8000,
		.slice = 3000,
		.kill = true,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, endpoints_close_at_any_moment)
{
	struct sim_options options = {
		.name = "fault/endpoints_close_at_any_moment",
		.nodes = 5,
		.ops = 40,
		.max_len = 8000,
		.slice = 3000,
		.abandon = true,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, host_killed_while_keys_are_asked_for)
{
	struct sim_options options = {
		.name = "fault/host_killed_while_keys_are_asked_for",
		.nodes = 6,
		.ops = 40,
		.max_len = 8000,
		.slice = 3000,
		.segments = SIM_SEGMENTS,
		.dgram_loss = 100,
		.kill = true,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, host_killed_while_devices_execute_atomics)
{
	struct sim_options options = {
		.name = "fault/host_killed_while_devices_execute_atomics",
		.nodes = 6,
		.ops = 60,
		.max_len = 2000,
		.slice = 500,
		.device = true,
		.kill = true,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, regions_close_with_their_endpoints)
{
	struct sim_options options = {
		.name = "fault/regions_close_with_their_endpoints",
		.nodes = 5,
		.ops = 40,
		.max_len = 8000,
		.slice = 3000,
		.segments = SIM_SEGMENTS,
		.abandon = true,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, endpoints_close_while_devices_execute_atomics)
{
	struct sim_options options = {
		.name = "fault/endpoints_close_while_devices_execute_atomics",
		.nodes = 5,
		.ops = 60,
		.max_len = 2000,
		.slice = 500,
		.device = true,
		.abandon = true,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, endpoints_close_and_few_connections)
{
	struct sim_options options = {
		.name = "fault/endpoints_close_and_few_connections",
		.nodes = 6,
		.ops = 40,
		.max_len = 8000,
		.slice = 3000,
		.abandon = true,
		.conns = 2,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, endpoints_close_in_the_middle_of_messages)
{
	struct sim_options options = {
		.name = "fault/endpoints_close_in_the_middle_of_messages",
		.nodes = 6,
		.ops = 40,
		.max_len = 3000,
		.slice = 500,
		.abandon = true,
		.refused = 100,
		.partial = 500,
	};

	sim_run_seeds(&options, 80);
}

Test(fault, host_killed_and_few_connections)
{
	struct sim_options options = {
		.name = "fault/host_killed_and_few_connections",
		.nodes = 6,
		.ops = 40,
		.max_len = 8000,
		.slice = 3000,
		.kill = true,
		.conns = 2,
	};

	sim_run_seeds(&options, 80);
}
