/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pointers: an array of pointers that grows to the index it is given. Zeroed is empty. The owner's lock protects it. */
#ifndef VERVE_BASE_POINTERS_H
#define VERVE_BASE_POINTERS_H

#include <stddef.h>

struct verve_pointers {
	void **at;
	size_t count; /* entries of at */
};

/* NULL beyond the end, and where nothing was set. */
static inline void *verve_pointers_get(const struct verve_pointers *pointers, size_t index)
{
	return index < pointers->count ? pointers->at[index] : NULL;
}

/* -FI_ENOMEM: nothing changed. Setting NULL, or an index that was set before, never fails. */
int verve_pointers_set(struct verve_pointers *pointers, size_t index, void *pointer);
/* Frees the array, not what it points to; it is empty then. */
void verve_pointers_fini(struct verve_pointers *pointers);

#endif
