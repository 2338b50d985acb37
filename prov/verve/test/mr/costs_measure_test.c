/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Measuring costs: the costs that follow from times; and the default costs, where a call fails. */
#include "mr/costs_measure.h"

#include <rdma/fi_errno.h>

#include "cache_fixture.h"
#include "mr/costs.h"
#include "net/device.h"

/* Nanoseconds: a look at the clock, which is what registering and copying take; a request. */
enum { LOOK = 1000, REQUEST = 20000 };

static const struct verve_mr_costs *defaults = &verve_mr_costs_default;

static void open_timed(void)
{
	fake_world.config.limits.mw = 100;
	fake_world.config.look_time = LOOK;
	fake_world.config.binder_time = REQUEST;
	cache_open();
}

TestSuite(costs_measure, .init = open_timed, .fini = cache_close);

static struct verve_mr_costs measure(void)
{
	struct verve_mr_costs costs = {0};

	verve_mr_costs_measure(dev, &costs);
	return costs;
}

static void expect_default_requests(const struct verve_mr_costs *costs)
{
	cr_expect_eq(costs->round, defaults->round);
	cr_expect_not(costs->round_known);
	cr_expect_eq(costs->window, defaults->window);
	cr_expect_not(costs->window_known);
}

static void expect_default(void)
{
	struct verve_mr_costs costs = measure();

	cr_expect_eq(costs.reg, defaults->reg);
	cr_expect_eq(costs.reg_page, defaults->reg_page);
	cr_expect_eq(costs.hit, defaults->hit);
	cr_expect_eq(costs.copy_page, defaults->copy_page);
	cr_expect_not(costs.reg_known);
	expect_default_requests(&costs);
}

/* A read has a microsecond for the wire; a window is bound and unbound. */
Test(costs_measure, requests_are_timed_on_the_device)
{
	struct verve_mr_costs costs = measure();

	cr_expect(costs.reg_known && costs.round_known && costs.window_known);
	cr_expect_eq(costs.reg, LOOK);
	cr_expect_eq(costs.reg_page, 0);
	cr_expect_eq(costs.round, REQUEST + LOOK + 1000);
	cr_expect_eq(costs.window, 2 * REQUEST + LOOK);
}

Test(costs_measure, endpoints_choose_by_what_was_measured)
{
	size_t before = cache.crossover.offer_kept;

	verve_mr_cache_measure(&cache);
	cr_expect_gt(cache.crossover.offer_kept, before);
}

Test(costs_measure, device_is_measured_once)
{
	struct verve_mr_costs first = measure(), second;

	fake_world.config.binder_time = 2 * REQUEST;
	second = measure();
	cr_expect_eq(second.round, first.round);
	cr_expect_eq(second.window, first.window);
}

static struct verve_mr_costs measure_failing(uint32_t kinds, uint64_t nth)
{
	struct verve_mr_costs costs;

	fake_net_fail(kinds, nth, -FI_EIO);
	costs = measure();
	cr_expect(fake_net_has_failed());
	cr_expect(costs.reg_known);
	return costs;
}

Test(costs_measure, without_a_queue_pair_requests_have_the_default)
{
	struct verve_mr_costs costs = measure_failing(FAKE_NET_BINDER_OPEN, 1);

	expect_default_requests(&costs);
}

Test(costs_measure, failed_read_ends_the_measurement_of_requests)
{
	struct verve_mr_costs costs = measure_failing(FAKE_NET_MW_BIND, 2);

	expect_default_requests(&costs);
}

Test(costs_measure, without_a_window_reads_are_timed)
{
	struct verve_mr_costs costs = measure_failing(FAKE_NET_MW_ALLOC, 1);

	cr_expect(costs.round_known);
	cr_expect_not(costs.window_known);
}

/* The tenth request, behind eight reads and a bind, is the unbind. */
Test(costs_measure, window_that_cannot_be_unbound_nor_freed_was_not_timed)
{
	struct verve_mr_costs costs;

	fake_world.config.mw_stays = true;
	costs = measure_failing(FAKE_NET_MW_BIND, 10);
	cr_expect(costs.round_known);
	cr_expect_not(costs.window_known);
}

Test(costs_measure, device_without_windows_gets_no_queue_pair)
{
	struct verve_mr_costs costs;

	((struct verve_net_port *)verve_net_device_port(dev))->limits.mw = 0;
	fake_net_fail(FAKE_NET_BINDER_OPEN, 1, -FI_EIO);
	costs = measure();
	cr_expect_not(fake_net_has_failed());
	cr_expect(costs.reg_known);
	expect_default_requests(&costs);
}

/* It may be up when the next domain is opened. */
Test(costs_measure, port_that_is_down_is_measured_later)
{
	struct verve_net_port *port = (struct verve_net_port *)verve_net_device_port(dev);
	struct verve_mr_costs costs;

	port->usable = false;
	costs = measure();
	cr_expect(costs.reg_known);
	expect_default_requests(&costs);
	port->usable = true;
	costs = measure();
	cr_expect(costs.round_known && costs.window_known);
}

Test(costs_measure, each_port_is_measured)
{
	struct verve_net_port *port = (struct verve_net_port *)verve_net_device_port(dev);
	struct verve_mr_costs first = measure(), second;

	fake_world.config.binder_time = 2 * REQUEST;
	port->port_num++;
	second = measure();
	port->port_num--;
	cr_expect_eq(second.round, first.round + REQUEST);
}

/* The clock of simulations stands still while a function runs. */
Test(costs_measure, simulation_has_constant_costs)
{
	struct verve_mr_crossover before = cache.crossover;

	fake_world.config.look_time = fake_world.config.binder_time = 0;
	expect_default();
	verve_mr_cache_measure(&cache);
	cr_expect_eq(cache.crossover.rendezvous, before.rendezvous);
	cr_expect_eq(cache.crossover.kept, before.kept);
}

Test(costs_measure, device_that_registers_nothing_has_the_default)
{
	fake_net_memlock(0);
	expect_default();
	fake_net_memlock(UINT64_MAX);
}
