/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "context.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "conf.h"
#include "lock.h"
#include "log.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct shmv_ctx *contexts;

void shmv_ctx_each(void (*call)(struct shmv_ctx *ctx, void *arg), void *arg)
{
	pthread_mutex_lock(&mutex);
	for (struct shmv_ctx *ctx = contexts; ctx; ctx = ctx->next)
		call(ctx, arg);
	pthread_mutex_unlock(&mutex);
}

void shmv_ctx_add(struct shmv_ctx *ctx)
{
	pthread_mutex_lock(&mutex);
	ctx->next = contexts;
	contexts = ctx;
	pthread_mutex_unlock(&mutex);
}

void shmv_ctx_remove(struct shmv_ctx *ctx)
{
	struct shmv_ctx **at = &contexts;

	pthread_mutex_lock(&mutex);
	while (*at && *at != ctx)
		at = &(*at)->next;
	if (*at)
		*at = ctx->next;
	pthread_mutex_unlock(&mutex);
}

void shmv_ctx_forked(void)
{
	contexts = NULL;
	pthread_mutex_init(&mutex, NULL);
}

uint64_t shmv_heap_get(struct shmv_ctx *ctx, size_t len, int *order)
{
	uint64_t at;

	*order = 12;
	while ((size_t)1 << *order < len)
		++*order;
	if (ctx->heap_free[*order].count)
		return ctx->heap_free[*order].at[--ctx->heap_free[*order].count];
	if (ctx->heap_used + ((uint64_t)1 << *order) > ctx->heap_size)
		return 0;
	at = offsetof(struct shm, heap) + ctx->heap_used;
	ctx->heap_used += (uint64_t)1 << *order;
	return at;
}

void shmv_heap_put(struct shmv_ctx *ctx, uint64_t at, int order)
{
	uint32_t room = ctx->heap_free[order].room;

	if (!at)
		return;
	madvise(shm_at(ctx->seg->shm, at), (size_t)1 << order, MADV_REMOVE);
	if (ctx->heap_free[order].count == room) {
		uint64_t *more = realloc(ctx->heap_free[order].at, (2 * room + 8) * sizeof(*more));

		if (!more)
			return;
		ctx->heap_free[order].at = more;
		ctx->heap_free[order].room = 2 * room + 8;
	}
	ctx->heap_free[order].at[ctx->heap_free[order].count++] = at;
}

int shmv_ctx_place(void *table, uint32_t size, uint32_t *next)
{
	void **entries = table;

	for (uint32_t i = 0; i < size; i++) {
		uint32_t at = (*next)++ % size;

		if (!entries[at])
			return at;
	}
	return -1;
}

uint32_t shmv_ctx_serial(struct shmv_ctx *ctx)
{
	return ++ctx->serials;
}

void shmv_ctx_print_counts(struct shmv_ctx *ctx)
{
	const struct shmv_counts *n = &ctx->count;
	const char *name = ctx->dev->ib.name;

	if (!shmv_conf.stats || !n->posts)
		return;
	shmv_log("%s: %lu posts: %lu sends, %lu with immediate, %lu writes, %lu with immediate, "
		 "%lu reads, %lu atomics",
		 name, n->posts, n->ops[IBV_WR_SEND], n->ops[IBV_WR_SEND_WITH_IMM],
		 n->ops[IBV_WR_RDMA_WRITE], n->ops[IBV_WR_RDMA_WRITE_WITH_IMM],
		 n->ops[IBV_WR_RDMA_READ],
		 n->ops[IBV_WR_ATOMIC_FETCH_AND_ADD] + n->ops[IBV_WR_ATOMIC_CMP_AND_SWP]);
	shmv_log("%s: %lu bytes; %lu inline, %lu signaled, %lu had to wait; %lu receives posted; "
		 "%lu polls, %lu empty",
		 name, n->bytes, n->inlined, n->signaled, n->waited, n->posted, n->polls, n->empty);
	shmv_log("%s: %lu sent, %lu received; %lu times armed, %lu events; %lu registrations, "
		 "%lu ended",
		 name, n->sent, n->received, n->armed, n->events, n->reg, n->dereg);
}

/* The files of devices that the application did not close go with the process. */
static __attribute__((destructor)) void end(void)
{
	for (struct shmv_ctx *ctx = contexts; ctx; ctx = ctx->next) {
		if (ctx->seg->shm->head.pid != shmv_pid)
			continue;
		shmv_ctx_print_counts(ctx);
		shmv_seg_unlink(ctx->seg);
	}
}
