/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * member: one process of the soak: an endpoint that sends messages, tagged and not, writes, reads
 * and adds, all at once, to all other members, and checks every result and every message that
 * comes.
 */
#ifndef FABTESTS_SOAK_MEMBER_H
#define FABTESTS_SOAK_MEMBER_H

#include "common/env.h"
#include "soak/board.h"

/* Lives as long as the board's phase says, or, a mayfly, until it kills itself. Its exit status. */
int soak_member_run(const struct opts *opts, struct soak_board *board, unsigned half,
		    unsigned index, unsigned members);

#endif
