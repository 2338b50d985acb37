/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fake net beside its queue pairs: calls that fail on purpose, datagrams, threads. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "base/addr.h"
#include "fake_net.h"
#include "net/dgram.h"
#include "net/port.h"
#include "net/sys.h"

static const uint64_t second = 1000000000;

TestSuite(fake_net_world);

Test(fake_net_world, nth_call_fails_once)
{
	struct verve_net_port *list;
	size_t count;

	fake_net_fail_nth(2, -FI_EIO);
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	verve_net_port_list_free(list, count);
	cr_expect_not(fake_net_has_failed());
	cr_expect_eq(verve_net_port_list(&list, &count), -FI_EIO);
	cr_expect(fake_net_has_failed());
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_expect_eq(count, 2);
	cr_expect_str_eq(list[1].device, "fake1");
	cr_expect_eq(fake_net_leaks(NULL, 0), 1);
	verve_net_port_list_free(list, count);
}

static struct verve_net_dgram *open_dgram(uint32_t host, struct verve_addr *addr)
{
	struct verve_net_dgram *dgram;

	fake_net_host_addr(host, addr);
	cr_assert_eq(verve_net_dgram_open(addr, &dgram), 0);
	cr_assert_neq(verve_addr_port(addr), 0);
	return dgram;
}

Test(fake_net_world, datagrams_arrive_cut_or_are_refused)
{
	struct verve_addr addr[2], from;
	struct verve_net_dgram *x = open_dgram(0, &addr[0]), *y = open_dgram(1, &addr[1]);
	char buf[4];

	cr_assert_eq(verve_net_dgram_send(x, "abcdef", 6, &addr[1]), 0);
	cr_expect_eq(verve_net_dgram_recv(y, buf, sizeof(buf), &from), -FI_EAGAIN);
	fake_net_advance(second);
	cr_expect_eq(verve_net_dgram_recv(y, buf, sizeof(buf), &from), 4);
	cr_expect_arr_eq(buf, "abcd", 4);
	cr_expect(verve_addr_equal(&from, &addr[0]));
	verve_net_dgram_close(y);
	cr_assert_eq(verve_net_dgram_send(x, "a", 1, &addr[1]), 0);
	fake_net_advance(second);
	cr_expect_eq(verve_net_dgram_recv(x, buf, sizeof(buf), &from), -FI_ECONNREFUSED);
	cr_expect(verve_addr_equal(&from, &addr[1]));
	verve_net_dgram_close(x);
}

/* How many of 1,000 datagrams arrive, and in how many cases one overtook another. */
static int storm(uint64_t seed, uint32_t loss, uint32_t dup, int *overtaken, uint64_t *hash)
{
	struct fake_net_config stormy;
	struct verve_addr addr[2], from;
	struct verve_net_dgram *x, *y;
	int arrived = 0, last = -1, i;

	fake_net_config_default(&stormy);
	stormy.seed = seed;
	stormy.dgram_loss = loss;
	stormy.dgram_dup = dup;
	fake_net_start(&stormy);
	x = open_dgram(0, &addr[0]);
	y = open_dgram(1, &addr[1]);
	for (i = 0; i < 1000; i++) {
		cr_assert_eq(verve_net_dgram_send(x, &i, sizeof(i), &addr[1]), 0);
		fake_net_advance(1000);
	}
	fake_net_advance(second);
	*overtaken = 0;
	*hash = 0;
	while (verve_net_dgram_recv(y, &i, sizeof(i), &from) == sizeof(i)) {
		*overtaken += i < last;
		*hash = (*hash + (uint64_t)i) * 0x9e3779b97f4a7c15;
		last = i;
		arrived++;
	}
	verve_net_dgram_close(x);
	verve_net_dgram_close(y);
	return arrived;
}

Test(fake_net_world, datagrams_are_lost_doubled_and_overtaken_the_same_way_for_a_seed)
{
	uint64_t hash, again, other;
	int overtaken, count;

	count = storm(1, 200, 0, &overtaken, &hash);
	cr_expect(count > 700 && count < 900, "%d of 1000 with 20 %% loss", count);
	cr_expect_gt(overtaken, 0);
	cr_expect_eq(storm(1, 200, 0, &overtaken, &again), count);
	cr_expect_eq(again, hash);
	storm(2, 200, 0, &overtaken, &other);
	cr_expect_neq(other, hash);
	count = storm(3, 0, 100, &overtaken, &hash);
	cr_expect(count > 1020 && count < 1024 + 200, "%d of 1000 with 10 %% doubled", count);
}

static uint64_t count_step(void *arg)
{
	int *steps = arg;

	++*steps;
	return second;
}

Test(fake_net_world, threads_are_steps_on_the_simulated_clock)
{
	struct verve_net_thread *thread;
	uint64_t start = verve_net_now();
	int steps = 0;

	cr_assert_eq(verve_net_thread_start("t", count_step, &steps, &thread), 0);
	cr_expect_eq(steps, 0);
	fake_net_advance(second / 2);
	cr_expect_eq(steps, 1);
	fake_net_advance(second);
	cr_expect_eq(steps, 2);
	verve_net_thread_wake(thread);
	fake_net_advance(second / 10);
	cr_expect_eq(steps, 3);
	fake_net_step_threads();
	cr_expect_eq(steps, 4);
	cr_expect_eq(verve_net_now() - start, second / 2 + second + second / 10);
	verve_net_thread_stop(thread);
	fake_net_advance(10 * second);
	cr_expect_eq(steps, 4);
}
