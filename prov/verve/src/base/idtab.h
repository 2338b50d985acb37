/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Id table: hands out 32-bit ids for objects that a remote side or the hardware names back to us.
 *
 * An id is index + generation, so that a stale id finds nothing instead of another object.
 * Id 0 is never handed out. The owner's lock protects the table.
 */
#ifndef VERVE_BASE_IDTAB_H
#define VERVE_BASE_IDTAB_H

#include <stddef.h>
#include <stdint.h>

enum {
	VERVE_IDTAB_INDEX_BITS = 20, /* at most 1,048,575 live ids */
	VERVE_IDTAB_GENERATION_BITS = 12,
};

struct verve_idtab_slot {
	void *object;	     /* NULL: free */
	uint32_t generation; /* of the id that is, or will next be, in this slot */
	uint32_t next_free;  /* index of the next free slot; 0 ends the list */
};

struct verve_idtab {
	struct verve_idtab_slot *slots; /* slot 0 is never used */
	uint32_t count;			/* slots allocated, a power of two or 0 */
	uint32_t first_free;
	uint32_t last_free; /* freed slots go to the end: a generation lasts as long as it can */
	uint32_t used;
};

void verve_idtab_init(struct verve_idtab *tab);
/* Frees the table, not the objects. */
void verve_idtab_fini(struct verve_idtab *tab);

/* Gives object (not NULL) an id. -FI_ENOMEM: no memory, or all ids are in use. */
int verve_idtab_alloc(struct verve_idtab *tab, void *object, uint32_t *id);
/* id must be live. */
void verve_idtab_free(struct verve_idtab *tab, uint32_t id);

static inline uint32_t verve_idtab_index(uint32_t id)
{
	return id & ((1u << VERVE_IDTAB_INDEX_BITS) - 1);
}

static inline uint32_t verve_idtab_generation(uint32_t id)
{
	return id >> VERVE_IDTAB_INDEX_BITS;
}

/* The object of a live id; NULL for any other 32-bit value. */
static inline void *verve_idtab_get(const struct verve_idtab *tab, uint32_t id)
{
	uint32_t index = verve_idtab_index(id);

	if (index >= tab->count || tab->slots[index].generation != verve_idtab_generation(id))
		return NULL;
	return tab->slots[index].object;
}

#endif
