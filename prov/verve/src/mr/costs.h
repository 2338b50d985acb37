/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Costs: what it costs to register memory with a device, to copy memory and to have a peer read it
 * (mr/costs_measure.h), and the lengths from which on one is cheaper than the other. Any thread.
 */
#ifndef VERVE_MR_COSTS_H
#define VERVE_MR_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds, each at least 1. A page has 4096 bytes here. */
struct verve_mr_costs {
	uint32_t reg;	    /* to register one page, and to deregister it */
	uint32_t reg_page;  /* the same for each further page; may be 0 */
	uint32_t hit;	    /* to find a registration in the cache, and to give it back */
	uint32_t copy_page; /* to copy a page */
	uint32_t round;	    /* to offer a message and to request a read, before the bytes come */
	uint32_t window;    /* to open kept memory to peers, and to end that */
	bool reg_known, round_known, window_known; /* measured: reg to copy_page; round; window */
};

/* Bytes of a piece of memory: from there on that is cheaper, but for stage. SIZE_MAX: never. */
struct verve_mr_crossover {
	size_t described;  /* to use a region that is at hand, than to copy */
	size_t kept;	   /* to use a registration of the cache, than to copy */
	size_t keep;	   /* to register what will be used again and again, than to copy */
	size_t fresh;	   /* to register for one use, than to copy */
	size_t rendezvous; /* to offer a message to the peer, than to copy it at both ends */
	size_t offer_kept; /* the same, of one that is used again and again */
	/*
	 * Memory of n times so many bytes that is registered for one use is registered in n stages,
	 * four at most: while one is registered, the bytes of the one before move (xport/staged.h).
	 */
	size_t stage;
};

/* The costs of a network card on PCI. They hold where nothing was measured. */
extern const struct verve_mr_costs verve_mr_costs_default;

/* Finds the bounds for these costs. FI_VERVE_RENDEZVOUS_SIZE overrides rendezvous. */
void verve_mr_costs_compare(const struct verve_mr_costs *costs,
			    struct verve_mr_crossover *crossover);

#endif
