/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints: a table of the entries that were found last, by the page in which a range begins. A hint
 * may be wrong: the entry may be another one by now, or may not contain the range. Get takes no
 * lock; the store's lock protects set.
 */
#ifndef VERVE_MR_HINTS_H
#define VERVE_MR_HINTS_H

#include <atomic_ops.h>
#include <stddef.h>
#include <stdint.h>

struct verve_mr_entry;

enum {
	VERVE_MR_HINTS_WAYS = 4,   /* of a bucket, which is one line of the processor's cache */
	VERVE_MR_HINTS_SHIFT = 12, /* of a page; need not be the kernel's page size */
};

struct verve_mr_hint {
	volatile AO_t page;  /* address >> VERVE_MR_HINTS_SHIFT; 0: empty */
	volatile AO_t entry; /* struct verve_mr_entry * */
};

struct verve_mr_hint_bucket {
	struct verve_mr_hint hints[VERVE_MR_HINTS_WAYS];
} __attribute__((aligned(64)));

struct verve_mr_hints {
	unsigned shift; /* 64 less the binary logarithm of the number of buckets */
	struct verve_mr_hint_bucket *buckets;
};

/* Makes a table for about so many entries. -FI_ENOMEM. */
int verve_mr_hints_open(struct verve_mr_hints *hints, size_t count);
void verve_mr_hints_close(struct verve_mr_hints *hints);

/* The hints of this page's bucket. For hints.c, and verve_mr_hints_get. */
static inline struct verve_mr_hint *verve_mr_hints_of(const struct verve_mr_hints *hints,
						      uintptr_t page)
{
	return hints->buckets[page * 0x9e3779b97f4a7c15u >> hints->shift].hints;
}

/* The entry that was set last for the page of this address. NULL: none is known. */
static inline struct verve_mr_entry *verve_mr_hints_get(const struct verve_mr_hints *hints,
							uintptr_t start)
{
	uintptr_t page = start >> VERVE_MR_HINTS_SHIFT;
	const struct verve_mr_hint *hint = verve_mr_hints_of(hints, page);

	for (int i = 0; i < VERVE_MR_HINTS_WAYS; i++)
		if (AO_load(&hint[i].page) == page)
			return (struct verve_mr_entry *)AO_load_acquire(&hint[i].entry);
	return NULL;
}

/* A range that begins at this address was found in the entry. */
void verve_mr_hints_set(struct verve_mr_hints *hints, uintptr_t start,
			struct verve_mr_entry *entry);

#endif
