/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pool: objects of one size, taken and returned in a few instructions.
 *
 * Grows by chunks up to a limit and never shrinks before fini. The owner's lock protects it.
 */
#ifndef VERVE_BASE_POOL_H
#define VERVE_BASE_POOL_H

#include <stddef.h>

struct verve_pool_item {
	struct verve_pool_item *next;
};

struct verve_pool_chunk;

struct verve_pool {
	struct verve_pool_item *free;
	struct verve_pool_chunk *chunks;
	size_t size;  /* bytes an object, a multiple of 64 */
	size_t count; /* objects that exist */
	size_t used;  /* objects that are out */
	size_t limit; /* objects that may exist */
};

/* size in bytes; limit in objects. Allocates nothing yet. */
void verve_pool_init(struct verve_pool *pool, size_t size, size_t limit);
/* Every object must have come back, or be abandoned by its user. */
void verve_pool_fini(struct verve_pool *pool);

/* Cold half of verve_pool_alloc. NULL: at the limit, or no memory. */
void *verve_pool_grow(struct verve_pool *pool);

/* Contents are undefined, the address is 64-byte aligned. NULL: at the limit, or no memory. */
static inline void *verve_pool_alloc(struct verve_pool *pool)
{
	struct verve_pool_item *item = pool->free;

	if (__builtin_expect(!item, 0))
		return verve_pool_grow(pool);
	pool->free = item->next;
	pool->used++;
	return item;
}

static inline void verve_pool_free(struct verve_pool *pool, void *object)
{
	struct verve_pool_item *item = object;

	item->next = pool->free;
	pool->free = item;
	pool->used--;
}

#endif
