/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Segments: the memory that one key opens: pieces of memory, one behind the other, each with its
 * own rkey. A position is a place in them: the number of bytes from the begin of the first segment.
 * Plain values; no lock.
 */
#ifndef VERVE_MR_SEGMENTS_H
#define VERVE_MR_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { VERVE_MR_SEGMENTS_MAX = 64 }; /* segments of one key: mr_iov_limit */

struct verve_mr_segment {
	uint64_t addr; /* virtual address in the owner's process; goes with rkey */
	uint64_t len;  /* bytes; the sum of a key's segments does not wrap around */
	uint32_t rkey;
};

struct verve_mr_segments {
	const struct verve_mr_segment *at;
	uint32_t count; /* from 1 to VERVE_MR_SEGMENTS_MAX */
	/*
	 * True: peers use virtual addresses (FI_MR_VIRT_ADDR): the first segment that contains the
	 * address counts, and the range goes on in the next segment. False: peers use positions.
	 */
	bool virt;
};

/* Finds the position of the range of len bytes from addr. False: it is not all in the segments. */
bool verve_mr_segments_find(const struct verve_mr_segments *segments, uint64_t addr, uint64_t len,
			    uint64_t *position);
/*
 * Cuts a segment: *rest is its part from position on. False: position is the end of all segments.
 */
bool verve_mr_segments_rest(const struct verve_mr_segments *segments, uint64_t position,
			    struct verve_mr_segment *rest);

#endif
