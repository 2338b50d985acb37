/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "atomic.h"
#include "conf.h"
#include "cq.h"
#include "device.h"
#include "event.h"
#include "lock.h"
#include "log.h"
#include "note.h"
#include "rq.h"
#include "poll.h"
#include "send.h"
#include "window.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct shmv_ctx *contexts;

void shmv_ctx_each(void (*call)(struct shmv_ctx *ctx, void *arg), void *arg)
{
	pthread_mutex_lock(&mutex);
	for (struct shmv_ctx *ctx = contexts; ctx; ctx = ctx->next)
		call(ctx, arg);
	pthread_mutex_unlock(&mutex);
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

static void print_counts(struct shmv_ctx *ctx)
{
	const struct shmv_counts *n = &ctx->count;

	if (!shmv_conf.stats || !n->posts)
		return;
	shmv_log("%s: %lu posts: %lu sends, %lu with immediate, %lu writes, %lu with immediate, %lu reads, "
		 "%lu atomics", ctx->dev->ib.name, n->posts, n->ops[IBV_WR_SEND],
		 n->ops[IBV_WR_SEND_WITH_IMM], n->ops[IBV_WR_RDMA_WRITE],
		 n->ops[IBV_WR_RDMA_WRITE_WITH_IMM], n->ops[IBV_WR_RDMA_READ],
		 n->ops[IBV_WR_ATOMIC_FETCH_AND_ADD] + n->ops[IBV_WR_ATOMIC_CMP_AND_SWP]);
	shmv_log("%s: %lu bytes; %lu inline, %lu signaled, %lu had to wait; %lu receives posted; %lu polls, "
		 "%lu empty", ctx->dev->ib.name, n->bytes, n->inlined, n->signaled, n->waited,
		 n->posted, n->polls, n->empty);
	shmv_log("%s: %lu sent, %lu received; %lu times armed, %lu events; %lu registrations, %lu ended",
		 ctx->dev->ib.name, n->sent, n->received, n->armed, n->events, n->reg, n->dereg);
}

static void set_ops(struct shmv_ctx *ctx)
{
	struct ibv_context *ib = &ctx->v.context;

	ctx->v.sz = sizeof(ctx->v);
	ctx->v.query_port = shmv_query_port;
	ctx->v.query_device_ex = shmv_query_device_ex;
	ib->abi_compat = __VERBS_ABI_IS_EXTENDED;
	ib->cmd_fd = -1;
	ib->num_comp_vectors = 4;
	ib->ops.poll_cq = shmv_poll_cq;
	ib->ops.req_notify_cq = shmv_req_notify_cq;
	ib->ops.post_send = shmv_post_send;
	ib->ops.post_recv = shmv_post_recv;
	ib->ops.post_srq_recv = shmv_post_srq_recv;
	ib->ops.alloc_mw = shmv_alloc_mw;
	ib->ops.dealloc_mw = shmv_dealloc_mw;
	ib->ops.bind_mw = shmv_bind_mw;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct shmv_ctx *ctx = calloc(1, sizeof(*ctx));
	struct shmv_ports *ports = shmv_ports_get();
	int fds[2];

	if (!ctx || !ports)
		goto err;
	ctx->dev = (struct shmv_dev *)device;
	ctx->port = &ports->port[ctx->dev->index];
	if (pipe2(fds, O_CLOEXEC))
		goto err;
	ctx->seg = shmv_seg_create(ctx->dev->index);
	if (!ctx->seg) {
		shmv_log("cannot make a file in %s: %s", shmv_conf.dir, strerror(errno));
		close(fds[0]);
		close(fds[1]);
		goto err;
	}
	/* Peers may read and write our memory: where Yama restricts that, and after setuid(2). */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (shmv_load32(&ctx->port->fatal))
		ctx->seg->shm->head.gone |= SHM_FATAL;
	ctx->heap_size = ctx->seg->size - sizeof(struct shm);
	pthread_mutex_init(&ctx->mutex, NULL);
	pthread_mutex_init(&ctx->v.context.mutex, NULL);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	ctx->async_wfd = fds[1];
	ctx->v.context.async_fd = fds[0];
	ctx->v.context.device = device;
	set_ops(ctx);
	pthread_mutex_lock(&mutex);
	ctx->next = contexts;
	contexts = ctx;
	pthread_mutex_unlock(&mutex);
	return &ctx->v.context;
err:
	free(ctx);
	return NULL;
}

int ibv_close_device(struct ibv_context *ib)
{
	struct shmv_ctx *ctx = shmv_ctx_of(ib), **at = &contexts;

	pthread_mutex_lock(&mutex);
	while (*at && *at != ctx)
		at = &(*at)->next;
	if (*at)
		*at = ctx->next;
	pthread_mutex_unlock(&mutex);
	print_counts(ctx);
	__atomic_or_fetch(&ctx->seg->shm->head.gone, SHM_CLOSED, __ATOMIC_SEQ_CST);
	shmv_seg_unlink(ctx->seg);
	shmv_seg_detach(ctx->seg);
	close(ib->async_fd);
	close(ctx->async_wfd);
	for (int i = 0; i < SHMV_ORDERS; i++)
		free(ctx->heap_free[i].at);
	free(ctx->mr_free);
	free(ctx);
	return 0;
}

/* A child may open devices of its own; it cannot use its parent's. */
static void forked(void)
{
	shmv_pid = getpid();
	contexts = NULL;
	pthread_mutex_init(&mutex, NULL);
	shmv_seg_forked();
	shmv_note_forked();
}

static __attribute__((constructor)) void start(void)
{
	shmv_pid = getpid();
	shmv_device_init(shmv_conf_read());
	pthread_atfork(NULL, NULL, forked);
}

/* Leaves no file behind if devices were not closed. */
static __attribute__((destructor)) void end(void)
{
	for (struct shmv_ctx *ctx = contexts; ctx; ctx = ctx->next) {
		if (ctx->seg->shm->head.pid != shmv_pid)
			continue;
		print_counts(ctx);
		shmv_seg_unlink(ctx->seg);
	}
}
