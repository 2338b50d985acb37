/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Costs: the lengths at which two ways cost the same, one length after the other. */
#include "mr/costs.h"

#include "base/config.h"

enum {
	PAGE = 4096,

	STEP = 1024,	   /* bytes between two lengths that are compared */
	LONGEST = 1 << 20, /* the largest eager size */
	USES = 8,	   /* of memory that is used again, until keeping it must have paid */
	OPERATION = 500,   /* nanoseconds: an operation, and its completion by the device */
	/*
	 * An eager message costs the sender one copy. It costs the receiver three: the device fills
	 * a receive buffer that no cache of the processor's holds, and the processor reads that.
	 * Over shared memory the receiver's part of 64 KiB took three times the sender's.
	 */
	COPIES = 4,
	/* Each stage costs one more registration: half of what its pages cost, at most. */
	STAGE_RATIO = 2, /* a stage's pages cost so many registrations */
	STAGE_MIN = 1 << 19, /* bytes: its request and its turn cost something, too */
};

const struct verve_mr_costs verve_mr_costs_default = {
	.reg = 15000, .reg_page = 60, .hit = 500, .copy_page = 300, .round = 2000, .window = 1500};

static uint64_t cost_of_copy(const struct verve_mr_costs *costs, size_t len)
{
	return (uint64_t)costs->copy_page * len / PAGE;
}

static uint64_t cost_of_reg(const struct verve_mr_costs *costs, size_t len)
{
	return costs->reg + (uint64_t)costs->reg_page * ((len - 1) / PAGE);
}

static size_t bytes_of_stage(const struct verve_mr_costs *costs)
{
	size_t bytes;

	if (!costs->reg_page)
		return SIZE_MAX;
	bytes = (size_t)STAGE_RATIO * costs->reg / costs->reg_page * PAGE;
	return bytes > STAGE_MIN ? bytes : STAGE_MIN;
}

/* Notes the length if it is the first one at which this costs no more than that. */
static void note(size_t *bound, size_t len, uint64_t this, uint64_t that)
{
	if (*bound == SIZE_MAX && this <= that)
		*bound = len;
}

void verve_mr_costs_compare(const struct verve_mr_costs *costs,
			    struct verve_mr_crossover *crossover)
{
	uint64_t offer = costs->round + costs->window + 2 * costs->hit;

	*crossover = (struct verve_mr_crossover){SIZE_MAX, SIZE_MAX, SIZE_MAX,
						 SIZE_MAX, SIZE_MAX, SIZE_MAX,
						 bytes_of_stage(costs)};
	for (size_t len = STEP; len <= LONGEST; len += STEP) {
		uint64_t copy = cost_of_copy(costs, len), reg = cost_of_reg(costs, len);
		uint64_t hit = OPERATION + costs->hit;

		note(&crossover->described, len, OPERATION, copy);
		note(&crossover->kept, len, hit, copy);
		note(&crossover->keep, len, reg + USES * hit, USES * copy);
		note(&crossover->fresh, len, hit + reg, copy);
		/* The peer's memory is not registered either, or it copies what it has read. */
		note(&crossover->rendezvous, len,
		     costs->round + hit + reg + (reg < copy ? reg : copy), COPIES * copy);
		/* A peer that takes such messages again and again keeps its side, too. */
		note(&crossover->offer_kept, len, reg + USES * offer, USES * COPIES * copy);
	}
	if (!verve_config_is_auto(verve_config.rendezvous_size))
		crossover->rendezvous = crossover->offer_kept = verve_config.rendezvous_size + 1;
}
