/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * board: shared by the members of one half and their keeper, in memory that outlives each of them.
 * Members write their own entries; the keeper writes the phase and the other half's names.
 *
 * A member's number counts all members of both halves: half * SOAK_MEMBERS + index.
 */
#ifndef FABTESTS_SOAK_BOARD_H
#define FABTESTS_SOAK_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/node.h"

#define SOAK_MEMBERS 8 /* of a half, at most */
#define SOAK_ALL (2 * SOAK_MEMBERS)
#define SOAK_CODES 7 /* errors that a peer's end, or a port's, may cause, and all others */

enum soak_phase {
	SOAK_MEET,  /* members open and say their names */
	SOAK_RUN,   /* members send and receive */
	SOAK_PART,  /* mayflies finish their operations, and leave */
	SOAK_DRAIN, /* daemons finish their operations, and begin no more */
	SOAK_END,   /* no operation is under way: the last completions are read, endpoints closed */
};

/*
 * Messages between a member and each other member. Messages with an odd number ask for
 * FI_DELIVERY_COMPLETE. Success of the others promises nothing if the connection breaks.
 */
struct soak_tally {
	struct soak_count {
		uint64_t sent;	 /* and completed */
		uint64_t failed; /* completed with an error: they may have arrived */
		uint64_t received;
	} plain[SOAK_ALL], acked[SOAK_ALL];
};

struct soak_entry {
	atomic_int reached; /* enum soak_phase: has done all that the phase before asked for */
	atomic_uint life;   /* how many processes it has been before */
	atomic_bool enough; /* as many operations as -I says */
	atomic_ulong operations;
	atomic_ulong errors[SOAK_CODES];
	atomic_long heap; /* bytes that malloc has given out */
	struct soak_tally tally;
};

struct soak_board {
	atomic_int phase;
	char names[2][SOAK_MEMBERS][NODE_ADDR_MAX];
	struct soak_entry entries[SOAK_MEMBERS]; /* of this half */
};

/* Every second member dies from time to time. */
static inline bool soak_is_mayfly(unsigned number)
{
	return number % 2;
}

#endif
