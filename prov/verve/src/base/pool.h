/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pool: objects of one size, allocated and freed in a few instructions.
 *
 * The pool grows by chunks of objects up to a limit, and never shrinks before fini. The owner's
 * lock protects it.
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
	size_t size;  /* bytes of an object, a multiple of 64 */
	size_t count; /* objects in all chunks */
	size_t used;  /* objects that are allocated */
	size_t limit; /* the largest count */
};

/* size: bytes of an object; limit: objects. Allocates no memory yet. */
void verve_pool_init(struct verve_pool *pool, size_t size, size_t limit);
/* Frees all objects, also those that are allocated: nothing may use them any more. */
void verve_pool_fini(struct verve_pool *pool);

/* For verve_pool_alloc alone: adds a chunk, and allocates from it. NULL as there. */
void *verve_pool_grow(struct verve_pool *pool);

/*
 * Allocates an object. Its bytes are undefined, its address is a multiple of 64. NULL: the pool is
 * at its limit, or there is no memory.
 */
static inline void *verve_pool_alloc(struct verve_pool *pool)
{
	struct verve_pool_item *item = pool->free;

	if (__builtin_expect(!item, 0))
		return verve_pool_grow(pool);
	pool->free = item->next;
	pool->used++;
	return item;
}

/* Frees an object of this pool. */
static inline void verve_pool_free(struct verve_pool *pool, void *object)
{
	struct verve_pool_item *item = object;

	item->next = pool->free;
	pool->free = item;
	pool->used--;
}

#endif
