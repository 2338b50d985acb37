/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Workers and engines: no thread but a worker opens, connects, stops or closes a queue pair; and a
 * child after fork(2) has workers of its own.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "../api/ep_pair.h"
#include "base/config.h"

static struct ep_pair pair;
static char out[4096], in[4096];

static void setup(void)
{
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	ep_pair_open(&pair);
}

TestSuite(workers, .init = setup);

static uint64_t slow_calls(void)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	return stats.slow;
}

static uint64_t opened(void)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	return stats.qps_opened;
}

/* The message connects the two if they are not connected. */
static void exchange(struct ep_side *from, struct ep_side *to, size_t len)
{
	cr_assert_eq(fi_recv(to->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_send(from->ep, out, len, NULL, from->peer, NULL), 0);
	ep_pair_comp(&pair, from);
	ep_pair_comp(&pair, to);
}

static void renew_b(void)
{
	ep_side_close(&pair.b);
	ep_side_open(&pair, &pair.b);
	ep_side_insert(&pair.a, &pair.b);
	ep_side_insert(&pair.b, &pair.a);
}

/* Each side breaks connections, closes endpoints, and connects anew. */
Test(workers, only_workers_execute_queue_pair_commands)
{
	exchange(&pair.a, &pair.b, 100);
	exchange(&pair.b, &pair.a, sizeof(in));
	for (int i = 0; i < 3; i++) {
		renew_b();
		ep_pair_run(&pair, 200);
		exchange(i % 2 ? &pair.a : &pair.b, i % 2 ? &pair.b : &pair.a, sizeof(in));
	}
	cr_expect_geq(opened(), 8);
	ep_pair_close(&pair);
	cr_expect_eq(slow_calls(), 0);
}

/* The device refuses a request: both sides go on with other queue pairs. */
Test(workers, only_workers_stop_a_suspended_link)
{
	uint64_t before;

	exchange(&pair.a, &pair.b, 100);
	before = opened();
	cr_assert_eq(fi_write(pair.a.ep, out, 100, NULL, pair.a.peer, 0, 4711, NULL), 0);
	ep_pair_error(&pair, &pair.a, FI_EACCES);
	exchange(&pair.b, &pair.a, sizeof(in));
	cr_expect_geq(opened(), before + 2);
	ep_pair_close(&pair);
	cr_expect_eq(slow_calls(), 0);
}

/* The child does not use its parent's endpoints, which the parent closes. */
Test(workers, child_after_fork_has_its_own)
{
	pid_t child;
	int status;

	exchange(&pair.a, &pair.b, 100);
	child = fork();
	if (!child) {
		ep_side_open(&pair, &pair.a);
		ep_side_open(&pair, &pair.b);
		ep_side_insert(&pair.a, &pair.b);
		ep_side_insert(&pair.b, &pair.a);
		exchange(&pair.a, &pair.b, 100);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status));
	exchange(&pair.b, &pair.a, 100);
	ep_pair_close(&pair);
}
