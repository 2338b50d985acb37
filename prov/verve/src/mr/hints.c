/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hints: the table, and which hint of a bucket gives way. */
#include "mr/hints.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 64, MOST = 1 << 18 }; /* hints of a table */

int verve_mr_hints_open(struct verve_mr_hints *hints, size_t count)
{
	size_t buckets = LEAST / VERVE_MR_HINTS_WAYS, bytes;

	while (buckets < MOST / VERVE_MR_HINTS_WAYS && buckets < count)
		buckets *= 2;
	bytes = buckets * sizeof(struct verve_mr_hint_bucket);
	hints->buckets = aligned_alloc(_Alignof(struct verve_mr_hint_bucket), bytes);
	if (!hints->buckets)
		return -FI_ENOMEM;
	memset(hints->buckets, 0, bytes);
	hints->shift = 64 - __builtin_ctzl(buckets);
	return 0;
}

void verve_mr_hints_close(struct verve_mr_hints *hints)
{
	free(hints->buckets);
}

/* Overwrites the page's own hint, or an empty one, or else any in the bucket. */
void verve_mr_hints_set(struct verve_mr_hints *hints, uintptr_t start,
			struct verve_mr_entry *entry)
{
	uintptr_t page = start >> VERVE_MR_HINTS_SHIFT;
	struct verve_mr_hint *bucket = verve_mr_hints_of(hints, page);
	struct verve_mr_hint *hint = &bucket[page % VERVE_MR_HINTS_WAYS];

	for (int i = 0; i < VERVE_MR_HINTS_WAYS; i++) {
		AO_t other = AO_load(&bucket[i].page);

		if (other == page || !other)
			hint = &bucket[i];
		if (other == page)
			break;
	}
	AO_store(&hint->page, page);
	AO_store_release(&hint->entry, (AO_t)entry);
}
