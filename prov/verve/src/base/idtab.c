/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Id table: an array of slots that doubles when it is full. The free slots form a queue. */
#include "base/idtab.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_COUNT = 16,
	COUNT_MAX = 1 << VERVE_IDTAB_INDEX_BITS,
	GENERATION_MASK = (1 << VERVE_IDTAB_GENERATION_BITS) - 1,
};

_Static_assert(VERVE_IDTAB_INDEX_BITS + VERVE_IDTAB_GENERATION_BITS == 32, "an id has 32 bits");

void verve_idtab_init(struct verve_idtab *tab)
{
	memset(tab, 0, sizeof(*tab));
}

void verve_idtab_fini(struct verve_idtab *tab)
{
	free(tab->slots);
	memset(tab, 0, sizeof(*tab));
}

static void slot_append_free(struct verve_idtab *tab, uint32_t index)
{
	tab->slots[index].next_free = 0;
	if (tab->first_free)
		tab->slots[tab->last_free].next_free = index;
	else
		tab->first_free = index;
	tab->last_free = index;
}

static int idtab_grow(struct verve_idtab *tab)
{
	uint32_t count = tab->count ? tab->count * 2 : FIRST_COUNT;
	struct verve_idtab_slot *slots;

	if (count > COUNT_MAX)
		return -FI_ENOMEM;
	slots = realloc(tab->slots, count * sizeof(*slots));
	if (!slots)
		return -FI_ENOMEM;
	memset(slots + tab->count, 0, (count - tab->count) * sizeof(*slots));
	tab->slots = slots;
	for (uint32_t index = tab->count ? tab->count : 1; index < count; index++)
		slot_append_free(tab, index);
	tab->count = count;
	return 0;
}

int verve_idtab_alloc(struct verve_idtab *tab, void *object, uint32_t *id)
{
	struct verve_idtab_slot *slot;
	uint32_t index;
	int ret;

	assert(object);
	if (!tab->first_free) {
		ret = idtab_grow(tab);
		if (ret)
			return ret;
	}
	index = tab->first_free;
	slot = &tab->slots[index];
	tab->first_free = slot->next_free;
	slot->object = object;
	tab->used++;
	*id = slot->generation << VERVE_IDTAB_INDEX_BITS | index;
	return 0;
}

void verve_idtab_free(struct verve_idtab *tab, uint32_t id)
{
	uint32_t index = verve_idtab_index(id);
	struct verve_idtab_slot *slot = &tab->slots[index];

	assert(verve_idtab_get(tab, id));
	slot->object = NULL;
	slot->generation = (slot->generation + 1) & GENERATION_MASK;
	slot_append_free(tab, index);
	tab->used--;
}
