/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slabs: registered buffers of one size, for receives and for what is copied on its way out.
 * Grows by registered chunks up to a limit, never shrinks. The engine's lock protects it.
 *
 * No peer may reach a slab: messages from and to all peers lie there, side by side and one after
 * another.
 */
#ifndef VERVE_XPORT_SLAB_H
#define VERVE_XPORT_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verve_net_device;
struct verve_slab_chunk;

/* Where a receive buffer is (xport/lost.h). */
enum verve_lost_state {
	VERVE_LOST_HERE,   /* free, or being looked at */
	VERVE_LOST_POSTED, /* the device has it */
	VERVE_LOST_ASKED,  /* the same, and it is in question */
};

struct verve_slab {
	struct verve_slab *next;
	void *data;
	uint32_t lkey;
	uint8_t lent; /* of a receive buffer: enum verve_lost_state */
};

struct verve_slab_pool {
	struct verve_net_device *dev;
	struct verve_slab *free;
	struct verve_slab_chunk *chunks;
	size_t size;  /* bytes a slab */
	size_t batch; /* slabs a chunk */
	size_t count, limit, used; /* slabs */
	size_t posted;	/* requests that have one */
	size_t failures; /* to grow, so far */
};

void verve_slab_pool_init(struct verve_slab_pool *pool, struct verve_net_device *dev, size_t size,
			  size_t batch, size_t limit);
/* No work request may refer to a slab any more. */
void verve_slab_pool_fini(struct verve_slab_pool *pool);

/* There are so many more, up to the limit, from here on. Negative: what registration said. */
int verve_slab_reserve(struct verve_slab_pool *pool, size_t count);
/* False: at the limit, or no memory to register (logged once a pool; tried again now and then). */
bool verve_slab_grow(struct verve_slab_pool *pool);

/* NULL: all are in use, and there cannot be more now. */
static inline struct verve_slab *verve_slab_alloc(struct verve_slab_pool *pool)
{
	struct verve_slab *slab = pool->free;

	if (__builtin_expect(!slab, 0)) {
		if (!verve_slab_grow(pool))
			return NULL;
		slab = pool->free;
	}
	pool->free = slab->next;
	pool->used++;
	return slab;
}

/*
 * For one who has so many already: gives a slab only if more than that are left. So n of them who give none back
 * leave one part in n + 1 to the next.
 */
static inline struct verve_slab *verve_slab_alloc_share(struct verve_slab_pool *pool, size_t has)
{
	if (has >= pool->limit - pool->used)
		return NULL;
	/* Of the pool as it is, if it cannot grow. */
	if (has >= pool->count - pool->used && !verve_slab_grow(pool))
		return NULL;
	return verve_slab_alloc(pool);
}

/*
 * For what is kept until the peer's application acts: all of it has one share, so that packets, whose slabs come
 * back by themselves, always find one.
 */
static inline struct verve_slab *verve_slab_alloc_kept(struct verve_slab_pool *pool)
{
	return verve_slab_alloc_share(pool, pool->used > pool->posted ? pool->used - pool->posted : 0);
}

static inline void verve_slab_free(struct verve_slab_pool *pool, struct verve_slab *slab)
{
	slab->next = pool->free;
	pool->free = slab;
	pool->used--;
}

#endif
