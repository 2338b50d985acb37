/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pool: the chunks; each has a header of 64 bytes, and objects behind it. */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

enum {
	ALIGNMENT = 64,
	CHUNK_BYTES = 64 * 1024, /* about so many bytes of objects in a chunk */
	CHUNK_MIN = 8,		 /* but at least so many objects */
};

struct verve_pool_chunk {
	struct verve_pool_chunk *next;
};

_Static_assert(sizeof(struct verve_pool_chunk) <= ALIGNMENT, "a chunk's header is one unit");

void verve_pool_init(struct verve_pool *pool, size_t size, size_t limit)
{
	memset(pool, 0, sizeof(*pool));
	pool->size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (!pool->size)
		pool->size = ALIGNMENT;
	pool->limit = limit;
}

void verve_pool_fini(struct verve_pool *pool)
{
	struct verve_pool_chunk *chunk, *next;

	for (chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	verve_pool_init(pool, pool->size, pool->limit);
}

void *verve_pool_grow(struct verve_pool *pool)
{
	size_t batch = CHUNK_BYTES / pool->size > CHUNK_MIN ? CHUNK_BYTES / pool->size : CHUNK_MIN;
	struct verve_pool_chunk *chunk;
	struct verve_pool_item *item;

	if (batch > pool->limit - pool->count)
		batch = pool->limit - pool->count;
	if (!batch)
		return NULL;
	chunk = aligned_alloc(ALIGNMENT, ALIGNMENT + batch * pool->size);
	if (!chunk)
		return NULL;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	for (size_t i = batch; i-- > 0;) {
		item = (struct verve_pool_item *)((char *)chunk + ALIGNMENT + i * pool->size);
		item->next = pool->free;
		pool->free = item;
	}
	pool->count += batch;
	return verve_pool_alloc(pool);
}
