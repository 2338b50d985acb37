/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Segments: translates addresses to positions, and positions to segments. */
#include "mr/segments.h"

static uint64_t segments_sum(const struct verve_mr_segments *segments)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < segments->count; i++)
		sum += segments->at[i].len;
	return sum;
}

/* at_end: also accept the address right behind a segment, for a range of no bytes. */
static bool segments_position(const struct verve_mr_segments *segments, uint64_t addr, bool at_end,
			uint64_t *position)
{
	*position = 0;
	for (uint32_t i = 0; i < segments->count; i++) {
		const struct verve_mr_segment *segment = &segments->at[i];
		uint64_t offset = addr - segment->addr;

		if (offset < segment->len || (at_end && offset == segment->len)) {
			*position += offset;
			return true;
		}
		*position += segment->len;
	}
	return false;
}

bool verve_mr_segments_find(const struct verve_mr_segments *segments, uint64_t addr, uint64_t len,
			    uint64_t *position)
{
	uint64_t sum = segments_sum(segments);

	*position = addr;
	if (segments->virt && !segments_position(segments, addr, false, position) &&
	    (len || !segments_position(segments, addr, true, position)))
		return false;
	return *position <= sum && len <= sum - *position;
}

bool verve_mr_segments_rest(const struct verve_mr_segments *segments, uint64_t position,
			    struct verve_mr_segment *rest)
{
	for (uint32_t i = 0; i < segments->count; i++) {
		*rest = segments->at[i];
		if (position < rest->len) {
			rest->addr += position;
			rest->len -= position;
			return true;
		}
		position -= rest->len;
	}
	return false;
}
