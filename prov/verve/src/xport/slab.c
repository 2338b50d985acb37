/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Slabs: a pool grows and shrinks by registered chunks. */
#include "xport/slab.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "mr/monitor.h"
#include "net/mr.h"
#include <rdma/fi_errno.h>

struct verve_slab_chunk {
	struct verve_slab_chunk *next;
	struct verve_net_mr mr;
	void *memory;
	size_t bytes;
	size_t count; /* slabs */
	struct verve_slab slab[];
};

enum {
	ALIGN = 64,	     /* bytes: a cache line */
	RETRY = 1024,	     /* after a failure, one call in so many tries to register again */
	HUGE_PAGE = 2 << 20, /* bytes, on most systems; a wrong guess means small pages */
};

void verve_slab_pool_init(struct verve_slab_pool *pool, struct verve_net_device *dev, size_t size,
			  size_t batch, size_t limit)
{
	*pool = (struct verve_slab_pool) {
		.dev = dev,
		.size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1),
		.batch = batch,
		.limit = limit,
	};
}

static void chunk_free(struct verve_slab_chunk *chunk)
{
	verve_net_mr_dereg(&chunk->mr);
	munmap(chunk->memory, chunk->bytes);
	free(chunk);
}

void verve_slab_pool_fini(struct verve_slab_pool *pool)
{
	struct verve_slab_chunk *chunk;

	while ((chunk = pool->chunks)) {
		pool->chunks = chunk->next;
		chunk_free(chunk);
	}
}

/* Registering pins whole pages, which no other memory may share. NULL: there is no memory. */
static void *memory_map(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/*
 * The same, in huge pages where the kernel has some: it pins them in a fraction of the time. NULL
 * also where the room is missing that aligning takes for a moment.
 */
static void *memory_map_huge(size_t bytes)
{
	char *map = memory_map(bytes + HUGE_PAGE);
	size_t before;

	if (!map)
		return NULL;
	before = -(uintptr_t)map % HUGE_PAGE;
	if (before)
		munmap(map, before);
	munmap(map + before + bytes, HUGE_PAGE - before);
	/* Without huge pages in the kernel, small ones do. */
	madvise(map + before, bytes, MADV_HUGEPAGE);
	return map + before;
}

/*
 * Messages need slabs; registrations that nobody uses at present only save time. So these go if
 * both are more than the process may pin.
 */
static int chunk_register(struct verve_net_device *dev, struct verve_slab_chunk *chunk)
{
	int ret = verve_net_mr_reg(dev, chunk->memory, chunk->bytes, VERVE_NET_LOCAL_WRITE,
				   &chunk->mr);

	if (ret == -FI_ENOMEM && verve_mr_monitor_spare(NULL))
		ret = verve_net_mr_reg(dev, chunk->memory, chunk->bytes, VERVE_NET_LOCAL_WRITE,
				       &chunk->mr);
	return ret;
}

static size_t bytes_of(const struct verve_slab_pool *pool, size_t count)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (count * pool->size + page - 1) / page * page;
}

static struct verve_slab_chunk *chunk_open(const struct verve_slab_pool *pool, size_t count,
					   bool huge, int *error)
{
	struct verve_slab_chunk *chunk = malloc(sizeof(*chunk) + count * sizeof(chunk->slab[0]));
	int ret;

	*error = FI_ENOMEM;
	if (!chunk)
		return NULL;
	chunk->count = count;
	chunk->bytes = bytes_of(pool, count);
	chunk->memory = huge && chunk->bytes >= HUGE_PAGE ? memory_map_huge(chunk->bytes) : NULL;
	if (!chunk->memory)
		chunk->memory = memory_map(chunk->bytes);
	if (!chunk->memory) {
		*error = errno;
		goto err_free;
	}
	/* A child has no use for them, but fork(2) would copy all that is pinned, at once. */
	madvise(chunk->memory, chunk->bytes, MADV_DONTFORK);
	ret = chunk_register(pool->dev, chunk);
	if (ret) {
		*error = -ret;
		goto err_unmap;
	}
	return chunk;

err_unmap:
	munmap(chunk->memory, chunk->bytes);
err_free:
	free(chunk);
	return NULL;
}

/* Only the first one in a row is logged: an operation without a slab tries again in every turn. */
static void pool_explain(struct verve_slab_pool *pool, size_t count, int error)
{
	if (pool->failures++)
		return;
	VERVE_WARN(EP_DATA, "cannot register %zu bytes of message buffers: %s; "
		   "is RLIMIT_MEMLOCK (ulimit -l) large enough?\n", bytes_of(pool, count),
		   fi_strerror(error));
}

static void pool_add(struct verve_slab_pool *pool, struct verve_slab_chunk *chunk)
{
	for (size_t i = 0; i < chunk->count; i++) {
		struct verve_slab *slab = &chunk->slab[i];

		slab->data = (char *)chunk->memory + i * pool->size;
		slab->lkey = chunk->mr.lkey;
		slab->lent = 0;
		slab->place = 0;
		slab->keeper = NULL;
		slab->next = pool->free;
		pool->free = slab;
	}
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->count += chunk->count;
	pool->failures = 0;
}

static size_t limited(const struct verve_slab_pool *pool, size_t count)
{
	return count < pool->limit - pool->count ? count : pool->limit - pool->count;
}

int verve_slab_reserve(struct verve_slab_pool *pool, size_t count)
{
	struct verve_slab_chunk *chunk;
	int error;

	count = limited(pool, count);
	/*
	 * The first chunk comes when the endpoint is enabled. Later ones come during traffic, which
	 * must not wait while the kernel makes a huge page of scattered small ones.
	 */
	chunk = chunk_open(pool, count, !pool->chunks, &error);
	if (!chunk) {
		pool_explain(pool, count, error);
		return -error;
	}
	pool_add(pool, chunk);
	return 0;
}

/* True: the pool will have more slabs later. */
static bool ask_later(struct verve_slab_pool *pool, size_t count)
{
	if (!pool->growing)
		pool->growing = pool->later && pool->later(pool, limited(pool, count));
	return pool->growing;
}

int verve_slab_request(struct verve_slab_pool *pool, size_t count)
{
	return ask_later(pool, count) ? -FI_EINPROGRESS : verve_slab_reserve(pool, count);
}

bool verve_slab_grow(struct verve_slab_pool *pool)
{
	if (pool->count >= pool->limit || pool->growing)
		return false;
	/* Registering is a system call: after a failure, few calls are worth it. */
	if (pool->failures && pool->failures++ % RETRY)
		return false;
	return !verve_slab_request(pool, pool->batch);
}

void verve_slab_expect(struct verve_slab_pool *pool)
{
	if (pool->count < pool->limit && !pool->failures)
		ask_later(pool, pool->batch);
}

struct verve_slab_chunk *verve_slab_chunk_open(const struct verve_slab_pool *pool, size_t count,
					       int *error)
{
	return chunk_open(pool, count, false, error);
}

void verve_slab_pool_add(struct verve_slab_pool *pool, struct verve_slab_chunk *chunk, int error)
{
	pool->growing = false;
	if (chunk)
		pool_add(pool, chunk);
	else
		pool_explain(pool, pool->batch, error);
}

size_t verve_slab_newest(const struct verve_slab_pool *pool)
{
	return pool->chunks->count;
}

void verve_slab_shrink(struct verve_slab_pool *pool)
{
	struct verve_slab_chunk *chunk = pool->chunks;

	pool->chunks = chunk->next;
	pool->count -= chunk->count;
	pool->used -= chunk->count;
	chunk_free(chunk);
}
