/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slabs: registered buffers of one size, for receives and for packets and payload that are sent.
 * A pool grows by registered chunks up to its limit. The engine's lock protects it.
 *
 * A slab's key must not be told to a peer: messages of other peers lie beside it, and before and
 * after in the same slab.
 */
#ifndef VERVE_XPORT_SLAB_H
#define VERVE_XPORT_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verve_net_device;
struct verve_slab_chunk;

enum { VERVE_SLAB_AHEAD = 3 }; /* slabs that are left to share when more are registered */

struct verve_slab {
	struct verve_slab *next; /* in a list of free slabs */
	void *data;
	uint32_t lkey;
	uint8_t lent;	  /* enum verve_rx_lost_state of a receive buffer; 0 of others */
	uint16_t place;	  /* of a receive buffer, its index in xport->lost.buffers; 0 of others */
	uint32_t *keeper; /* count of its keeper's slabs (verve_slab_alloc_kept); NULL: not kept */
};

struct verve_slab_pool {
	struct verve_net_device *dev;
	struct verve_slab *free;
	struct verve_slab_chunk *chunks;
	size_t size;  /* bytes of a slab */
	size_t batch; /* slabs of a chunk */
	size_t count; /* slabs that are registered */
	size_t limit; /* count at most */
	size_t used;  /* slabs that were allocated and not freed */
	size_t posted; /* outstanding requests that hold a slab */
	size_t failures; /* attempts to grow in a row that got no more slabs */
	/*
	 * Registers count more slabs later, without the engine's lock; false: it cannot. NULL: the
	 * pool grows in place. Set by the owner.
	 */
	bool (*later)(struct verve_slab_pool *pool, size_t count);
	void *owner;
	bool ahead; /* calls later before a share would be denied. Set by the owner */
	bool growing; /* later was called; verve_slab_pool_add has not been */
};

/*
 * An empty pool. size: bytes of a slab, rounded up to a cache line; batch: slabs of a chunk; limit:
 * slabs at most. The device outlives the pool.
 */
void verve_slab_pool_init(struct verve_slab_pool *pool, struct verve_net_device *dev, size_t size,
			  size_t batch, size_t limit);
/* Frees all chunks. No outstanding work request may use a slab. */
void verve_slab_pool_fini(struct verve_slab_pool *pool);

/* Registers count more slabs, up to the limit. -FI_ENOMEM, or the error of the registration. */
int verve_slab_reserve(struct verve_slab_pool *pool, size_t count);
/* The same, or -FI_EINPROGRESS: later. */
int verve_slab_request(struct verve_slab_pool *pool, size_t count);
/*
 * Registers one more chunk. False: the pool is at its limit, or will have more slabs later; or
 * registering failed: the first failure is logged, and after it only one call in 1024 tries again,
 * until one succeeds.
 */
bool verve_slab_grow(struct verve_slab_pool *pool);

/* Few slabs are left to share: has more registered later, so that the next call finds some. */
void verve_slab_expect(struct verve_slab_pool *pool);

/*
 * For pool->later: registers so many slabs for the pool. Needs no lock. NULL: *error is a positive
 * FI errno.
 */
struct verve_slab_chunk *verve_slab_chunk_open(const struct verve_slab_pool *pool, size_t count,
					       int *error);
/* They are the pool's, which is not growing any more. chunk NULL: there was this error. */
void verve_slab_pool_add(struct verve_slab_pool *pool, struct verve_slab_chunk *chunk, int error);

/* Slabs of the chunk that was registered last. The pool has one. */
size_t verve_slab_newest(const struct verve_slab_pool *pool);
/* Frees the chunk that was registered last, of which the caller has all slabs. */
void verve_slab_shrink(struct verve_slab_pool *pool);

/* A slab; verve_slab_free gives it back. NULL: all are in use, and the pool cannot grow now. */
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
 * For a holder that has so many slabs already: gives a slab only if more than that are free. So n
 * holders that return none leave 1/(n + 1) of the pool to the next one. NULL: no slab now.
 */
static inline struct verve_slab *verve_slab_alloc_share(struct verve_slab_pool *pool, size_t has)
{
	if (has >= pool->limit - pool->used)
		return NULL;
	/* If the pool cannot grow to its limit, the share is of the slabs that there are. */
	if (has >= pool->count - pool->used && !verve_slab_grow(pool))
		return NULL;
	/* By the next call the holder may have two more, and one less is left. */
	if (__builtin_expect(pool->ahead && has + VERVE_SLAB_AHEAD >= pool->count - pool->used, 0))
		verve_slab_expect(pool);
	return verve_slab_alloc(pool);
}

/* The part of a pool of count slabs that a holder, which has some slabs, must leave to others. */
static inline size_t verve_slab_spared(size_t count, size_t has)
{
	return has ? count / 4 : 0;
}

/*
 * As verve_slab_alloc_share, for a holder that may keep what it has, however long. By that rule
 * alone, such holders that come one after the other take all but a remainder, as each leaves no
 * more than it takes: so the last quarter of the pool is for holders that have none.
 */
static inline struct verve_slab *verve_slab_alloc_spare(struct verve_slab_pool *pool, size_t has)
{
	if (has + verve_slab_spared(pool->limit, has) >= pool->limit - pool->used)
		return NULL;
	/* A pool that could not grow spares a part of what it has. */
	if (__builtin_expect(pool->failures, 0) &&
	    has + verve_slab_spared(pool->count, has) >= pool->count - pool->used &&
	    !verve_slab_grow(pool))
		return NULL;
	return verve_slab_alloc_share(pool, has);
}

/*
 * For payload that is kept until a peer acts. keeper: the count of the slabs that are kept for this
 * peer, which this function and verve_slab_release change; it outlives the slab. All kept payload
 * together gets half of the pool, so that packets, whose slabs come back when the device has sent
 * them, always find a slab. Of what is left of that half, no peer has more than is left to others.
 */
static inline struct verve_slab *verve_slab_alloc_kept(struct verve_slab_pool *pool,
						       uint32_t *keeper)
{
	size_t kept = pool->used > pool->posted ? pool->used - pool->posted : 0;
	struct verve_slab *slab = verve_slab_alloc_share(pool, kept + *keeper);

	if (slab) {
		slab->keeper = keeper;
		++*keeper;
	}
	return slab;
}

/* The slab is not kept any more: a request has it. Harmless if it was not kept. */
static inline void verve_slab_release(struct verve_slab *slab)
{
	if (slab->keeper)
		--*slab->keeper;
	slab->keeper = NULL;
}

/* Gives a slab back to its pool. No outstanding work request may use the slab. */
static inline void verve_slab_free(struct verve_slab_pool *pool, struct verve_slab *slab)
{
	verve_slab_release(slab);
	slab->next = pool->free;
	pool->free = slab;
	pool->used--;
}

#endif
