/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reuse: which ranges were used again lately, and whether keeping their registrations paid. Keeping
 * a registration costs more than registering: its memory must be watched, and the event of its end
 * handled. So a range that comes for the first time is not kept. A range that was kept but went
 * before it was found again is tried less and less often.
 *
 * The answer is a guess from a table of fixed size: ranges that share a place in it overwrite each
 * other. Any thread; no lock.
 */
#ifndef VERVE_MR_REUSE_H
#define VERVE_MR_REUSE_H

#include <atomic_ops.h>
#include <stdbool.h>

#include "mr/store.h"

enum {
	VERVE_MR_REUSE_PLACES = 4096,
	VERVE_MR_REUSE_PAYS = 2,  /* hits that make a registration worth keeping */
	VERVE_MR_REUSE_MAX = 128, /* misses of a range that never pays until it is tried again */
};

/* All zeros: no range was seen yet. */
struct verve_mr_reuse {
	volatile AO_t places[VERVE_MR_REUSE_PLACES];
};

/* Notes a miss of a range. True: keep the range's registration this time. */
bool verve_mr_reuse_missed(struct verve_mr_reuse *reuse, const struct verve_mr_want *want);
/* Keeping the range has paid: after its next misses it is kept again without delay. */
void verve_mr_reuse_paid(struct verve_mr_reuse *reuse, const struct verve_mr_want *want);

#endif
