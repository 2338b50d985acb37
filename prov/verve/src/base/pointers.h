/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pointers: an array of pointers that grows to any index that is set. All zeros is an empty array.
 * The owner's lock protects it.
 */
#ifndef VERVE_BASE_POINTERS_H
#define VERVE_BASE_POINTERS_H

#include <stddef.h>

struct verve_pointers {
	void **at;
	size_t count; /* entries of at */
};

/* The pointer at index; NULL beyond the end, and where no pointer was set. */
static inline void *verve_pointers_get(const struct verve_pointers *pointers, size_t index)
{
	return index < pointers->count ? pointers->at[index] : NULL;
}

/*
 * Sets the pointer at index. -FI_ENOMEM: the array is unchanged. Setting NULL, or an index that was
 * set before, never fails.
 */
int verve_pointers_set(struct verve_pointers *pointers, size_t index, void *pointer);
/* Frees the array, not the objects. The array is empty then. */
void verve_pointers_fini(struct verve_pointers *pointers);

#endif
