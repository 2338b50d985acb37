/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions that are closed while peers write and read them, and opened again: RMA to them completes
 * with the right bytes or fails with FI_EACCES, and changes no other region's memory; everything
 * else completes with success.
 */
#include <criterion/criterion.h>

#include "sim.h"

static const struct sim_options base = {
	.nodes = 3,
	.ops = 80,
	.max_len = 5000,
	.slice = 20000,
	.closing = 30,
};

static void run(const char *name, uint32_t segments, uint32_t dgram_loss)
{
	struct sim_options options = base;

	options.name = name;
	options.segments = segments;
	options.dgram_loss = dgram_loss;
	sim_run_seeds(&options, 50);
}

/* By the device's keys, each of which is another. */
Test(closing, rkeys)
{
	run("closing/rkeys", 0, 0);
}

Test(closing, rkeys_through_loss)
{
	run("closing/rkeys_through_loss", 0, 200);
}

/* Of one segment; most of them under keys that the application chose. */
Test(closing, application_keys)
{
	run("closing/application_keys", 1, 0);
}

Test(closing, application_keys_through_loss)
{
	run("closing/application_keys_through_loss", 1, 200);
}

Test(closing, segments)
{
	run("closing/segments", SIM_SEGMENTS, 0);
}

Test(closing, segments_through_loss)
{
	run("closing/segments_through_loss", SIM_SEGMENTS, 200);
}
