/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Segments: what one key opens, as its owner and its users see it: pieces of memory, one behind the
 * other, each with an rkey of its own. A place among them is a position: bytes from the first one.
 * Plain values; no lock.
 */
#ifndef VERVE_MR_SEGMENTS_H
#define VERVE_MR_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { VERVE_MR_SEGMENTS_MAX = 64 }; /* of one key: mr_iov_limit */

struct verve_mr_segment {
	uint64_t addr; /* virtual, of the owner; goes with rkey if peers ask for it */
	uint64_t len;  /* bytes; the sum of a key's does not wrap around */
	uint32_t rkey;
};

struct verve_mr_segments {
	const struct verve_mr_segment *at;
	uint32_t count; /* from 1 to VERVE_MR_SEGMENTS_MAX */
	/*
	 * What peers say: false: positions; true: virtual addresses (FI_MR_VIRT_ADDR). Then the first
	 * segment that contains the address counts, and what is longer goes on in the next one.
	 */
	bool virt;
};

/* Where len bytes from addr begin. False: they are not all there. */
bool verve_mr_segments_find(const struct verve_mr_segments *segments, uint64_t addr, uint64_t len,
			    uint64_t *position);
/* The rest, from position on, of the segment that it lies in. False: it is at the end of all. */
bool verve_mr_segments_rest(const struct verve_mr_segments *segments, uint64_t position,
			    struct verve_mr_segment *rest);

#endif
