/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reuse: which ranges came again lately, and whether keeping their registrations paid. To keep one costs
 * more than to register: its memory has to be watched, and its end heard. So what comes for the
 * first time is not kept, and what was kept and lost before it was found again is tried less and less often.
 *
 * A guess, in a table of fixed size: ranges that share a place in it forget each other. Any thread; no lock.
 */
#ifndef VERVE_MR_REUSE_H
#define VERVE_MR_REUSE_H

#include <atomic_ops.h>
#include <stdbool.h>

#include "mr/store.h"

enum {
	VERVE_MR_REUSE_PLACES = 4096,
	VERVE_MR_REUSE_PAYS = 2,  /* a registration that was found again so often was worth keeping */
	VERVE_MR_REUSE_MAX = 128, /* what never pays is tried once in so many misses */
};

/* All zero: nothing came yet. */
struct verve_mr_reuse {
	volatile AO_t places[VERVE_MR_REUSE_PLACES];
};

/* A range has missed. True: it is to be kept this time. */
bool verve_mr_reuse_missed(struct verve_mr_reuse *reuse, const struct verve_mr_want *want);
/* It was kept, which paid: when it misses again, it is kept again. */
void verve_mr_reuse_paid(struct verve_mr_reuse *reuse, const struct verve_mr_want *want);

#endif
