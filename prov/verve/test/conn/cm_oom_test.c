/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager without memory: each allocation of a handshake fails in its turn, first alone,
 * then with all later ones. Each request still ends in UP or FAILED, and later requests succeed.
 * Linked with support/oom.c and the options named in support/oom.h.
 */
#include <criterion/criterion.h>

#include "../support/oom.h"
#include "cm_node.h"
#include "cm_world.h"

static const uint64_t ms = 1000000;

/* Both nodes ask; one drops its connection and asks again. */
static void ask_twice(void)
{
	node_connect(0, 1);
	node_connect(1, 0);
	nodes_run(cm_world_time + 2000 * ms);
	if (nodes[0].links[1].qp)
		node_drop(0, 1);
	node_connect(0, 1);
	nodes_run(cm_world_time + 2000 * ms);
}

/* Returns the number of allocations that failed. */
static long run_short(long nth, bool forever)
{
	long failed;

	nodes_start((uint64_t)nth, 2);
	nodes_may_break = true;
	oom_fail(nth, forever);
	ask_twice();
	failed = oom_stop();
	for (unsigned n = 0; n < 2; n++) {
		if (nodes[n].links[1 - n].qp)
			node_drop(n, 1 - n);
		nodes[n].links[1 - n].wanted = true;
		node_connect(n, 1 - n);
	}
	nodes_run(cm_world_time + 70000 * ms);
	nodes_expect_connected(0, 1);
	if (nodes[0].links[1].asked || nodes[1].links[0].asked)
		nodes_fail("asked, and never told", 0, 1);
	if (cm_world_qps() != 2)
		nodes_fail("queue pairs leak", 0, 1);
	nodes_stop();
	return failed;
}

Test(cm_oom, every_allocation_fails_once)
{
	long nth = 0;

	while (run_short(nth, false))
		nth++;
	cr_assert_gt(nth, 20);
}

Test(cm_oom, all_allocations_fail_from_one_on)
{
	long nth = 0;

	while (run_short(nth, true))
		nth++;
	cr_assert_gt(nth, 20);
}
