/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Id table: gives 32-bit ids to objects. A peer or the device sends the id back later, and the
 * table finds the object.
 *
 * An id consists of an index and a generation, so that an old id finds nothing instead of a newer
 * object. Id 0 is never given. The owner's lock protects the table.
 */
#ifndef VERVE_BASE_IDTAB_H
#define VERVE_BASE_IDTAB_H

#include <stddef.h>
#include <stdint.h>

enum {
	VERVE_IDTAB_INDEX_BITS = 20,	  /* at most 1,048,575 live ids */
	VERVE_IDTAB_GENERATION_BITS = 12, /* a slot's id repeats after 4,096 objects */
};

struct verve_idtab_slot {
	void *object;	     /* NULL: the slot is free */
	uint32_t generation; /* of the slot's present id, or of its next one if it is free */
	uint32_t next_free;  /* index of the next free slot; 0 ends the list */
};

struct verve_idtab {
	struct verve_idtab_slot *slots; /* slot 0 is never used */
	uint32_t count;			/* slots allocated, a power of two or 0 */
	uint32_t first_free;		/* index of the next slot to use; 0: none */
	uint32_t last_free; /* freed slots go to the end, so that ids repeat as late as possible */
	uint32_t used;	    /* live ids */
};

void verve_idtab_init(struct verve_idtab *tab);
/* Frees the table, not the objects. The table is empty then. */
void verve_idtab_fini(struct verve_idtab *tab);

/* Gives an object (not NULL) an id, never 0. -FI_ENOMEM: no memory, or all ids are in use. */
int verve_idtab_alloc(struct verve_idtab *tab, void *object, uint32_t *id);
/* Takes an id back; it must be live. */
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
