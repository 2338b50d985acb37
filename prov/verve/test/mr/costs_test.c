/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Costs: the bounds that follow from costs. */
#include "mr/costs.h"

#include "base/config.h"
#include "cache_fixture.h"

enum { EAGER = 65536 };

TestSuite(costs, .init = cache_open, .fini = cache_close);

static struct verve_mr_crossover compare(uint32_t reg, uint32_t reg_page, uint32_t hit,
					 uint32_t copy_page)
{
	struct verve_mr_costs costs = {reg, reg_page, hit, copy_page, 2000, 1500, true, true, true};
	struct verve_mr_crossover crossover;

	verve_mr_costs_compare(&costs, &crossover);
	return crossover;
}

Test(costs, network_card_registers_nothing_for_one_use_of_a_short_message)
{
	struct verve_mr_crossover bound = compare(15000, 60, 500, 300);

	cr_expect_lt(bound.described, bound.kept);
	cr_expect_lt(bound.kept, bound.keep);
	cr_expect_leq(bound.keep, EAGER, "a buffer that is used again and again is kept");
	cr_expect_gt(bound.fresh, EAGER);
	cr_expect_gt(bound.rendezvous, EAGER);
	cr_expect_lt(bound.rendezvous, bound.fresh);
}

/* Each use costs 4500 ns with the window, or four copies of 300 ns a page. */
Test(costs, kept_messages_are_offered_where_the_peer_reads_them_for_less)
{
	struct verve_mr_crossover bound = compare(15000, 60, 500, 300);

	cr_expect_lt(bound.offer_kept, bound.rendezvous);
	cr_expect_gt(bound.offer_kept, 4 * 4096, "%zu", bound.offer_kept);
	cr_expect_leq(bound.offer_kept, 6 * 4096, "%zu", bound.offer_kept);
	cr_expect_gt(compare(15000, 60, 500, 100).offer_kept, 12 * 4096);
}

/* soft-RoCE in an emulated guest: four copies of 16 KiB take 5 us, and a read takes 200. */
Test(costs, message_is_not_offered_where_requests_cost_more_than_its_copies)
{
	struct verve_mr_costs costs = {2000, 100, 500, 300, 200000, 100000, true, true, true};
	struct verve_mr_crossover bound;

	verve_mr_costs_compare(&costs, &bound);
	cr_expect_gt(bound.offer_kept, EAGER);
	cr_expect_gt(bound.rendezvous, EAGER);
	cr_expect_leq(bound.described, 2 * 4096, "it leaves without the sender's copy");
}

Test(costs, where_registering_is_cheap_short_messages_are_read)
{
	struct verve_mr_crossover bound = compare(1000, 0, 500, 300);

	cr_expect_leq(bound.fresh, EAGER / 2);
	cr_expect_leq(bound.rendezvous, EAGER / 2);
	cr_expect_gt(bound.rendezvous, bound.kept);
}

/* A bound is the shortest length at which the copy does not cost less. */
Test(costs, bound_is_where_the_costs_cross)
{
	cr_expect_eq(compare(4096 - 500 - 1024, 0, 1024, 4096).fresh, 4096);
	cr_expect_eq(compare(4096 - 500 - 1024 + 1, 0, 1024, 4096).fresh, 5120);
}

Test(costs, copies_that_cost_nothing_are_always_made)
{
	struct verve_mr_crossover bound = compare(15000, 300, 600, 2);

	cr_expect_eq(bound.described, 250 * 4096);
	cr_expect_eq(bound.kept, SIZE_MAX);
	cr_expect_eq(bound.keep, SIZE_MAX);
	cr_expect_eq(bound.fresh, SIZE_MAX);
	cr_expect_eq(bound.rendezvous, SIZE_MAX);
}

Test(costs, stage_costs_a_registration_for_twice_as_much_of_pages)
{
	cr_expect_eq(compare(15000, 60, 500, 300).stage, 500 * 4096);
	cr_expect_eq(compare(15000, 1000, 500, 300).stage, 1 << 19, "and half a MiB at least");
	cr_expect_eq(compare(15000, 0, 500, 300).stage, SIZE_MAX);
}

Test(costs, variable_overrides_the_costs)
{
	verve_config.rendezvous_size = 3000;
	cr_expect_eq(compare(15000, 60, 500, 300).rendezvous, 3001);
	cr_expect_eq(compare(1, 0, 1, 300).rendezvous, 3001);
	cr_expect_eq(compare(1, 0, 1, 300).offer_kept, 3001);
	verve_config.rendezvous_size = SIZE_MAX;
}
