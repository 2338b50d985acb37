/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pointers: growing the array, setting, freeing. */
#include "base/pointers.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

enum { COUNT_MIN = 64 };

static int pointers_grow(struct verve_pointers *pointers, size_t index)
{
	size_t count = pointers->count ? pointers->count : COUNT_MIN;
	void **at;

	while (count <= index)
		count *= 2;
	at = realloc(pointers->at, count * sizeof(at[0]));
	if (!at)
		return -FI_ENOMEM;
	memset(&at[pointers->count], 0, (count - pointers->count) * sizeof(at[0]));
	pointers->at = at;
	pointers->count = count;
	return 0;
}

int verve_pointers_set(struct verve_pointers *pointers, size_t index, void *pointer)
{
	int ret = 0;

	if (index >= pointers->count) {
		if (!pointer)
			return 0;
		ret = pointers_grow(pointers, index);
		if (ret)
			return ret;
	}
	pointers->at[index] = pointer;
	return ret;
}

void verve_pointers_fini(struct verve_pointers *pointers)
{
	free(pointers->at);
	pointers->at = NULL;
	pointers->count = 0;
}
