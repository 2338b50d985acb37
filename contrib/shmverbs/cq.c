/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "cq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "atomic.h"
#include "conf.h"
#include "lock.h"
#include "log.h"
#include "mem.h"
#include "segment.h"

enum {
	CQE_BYTES = 64,	     /* pinned for each entry, as in a device's own ring */
	POPULATE_WRITE = 23, /* MADV_POPULATE_WRITE, Linux 5.14 */
};

void shmv_cq_warm(struct shmv_seg *seg, uint32_t index)
{
	const struct shm_cq *cq = &seg->shm->cq[index];

	if (!shmv_conf.warm || seg->warm[index] || !cq->ring)
		return;
	seg->warm[index] = 1;
	madvise(shm_at(seg->shm, cq->ring), ((size_t)cq->mask + 1) * sizeof(struct shm_cqe),
		POPULATE_WRITE);
	madvise(shm_at(seg->shm, cq->besides), SHM_BESIDES * SHM_BESIDE_MAX, POPULATE_WRITE);
}

void shmv_cq_wake_own(struct shmv_ctx *ctx, uint32_t index)
{
	struct shmv_cq *cq;

	pthread_mutex_lock(&ctx->mutex);
	cq = ctx->cqs[index % SHM_CQ_MAX];
	if (cq && cq->ib.channel)
		(void)!write(((struct shmv_channel *)cq->ib.channel)->wfd, &cq->index,
			     sizeof(cq->index));
	pthread_mutex_unlock(&ctx->mutex);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ib)
{
	struct shmv_channel *channel = calloc(1, sizeof(*channel));
	int fds[2];

	if (!channel)
		return NULL;
	if (pipe2(fds, O_CLOEXEC)) {
		free(channel);
		return NULL;
	}
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	channel->ib.context = ib;
	channel->ib.fd = fds[0];
	channel->wfd = fds[1]; /* kept open, so that a reader never sees the end of the file */
	channel->id = shmv_seg_pipe_id();
	return &channel->ib;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ib)
{
	if (ib->refcnt)
		return EBUSY;
	close(ib->fd);
	close(((struct shmv_channel *)ib)->wfd);
	free(ib);
	return 0;
}

/*
 * Gives the queue its place and its rings in the file; false: there is none. Under the context's
 * mutex.
 */
static bool cq_place(struct shmv_cq *cq, const struct shmv_channel *channel)
{
	size_t size = (size_t)cq->mask + 1;
	struct shmv_ctx *ctx = cq->ctx;
	int at = shmv_ctx_place(ctx->cqs, SHM_CQ_MAX, &ctx->cq_next);
	struct shm_cq *shm = &ctx->seg->shm->cq[at < 0 ? 0 : at];

	if (at < 0)
		return false;
	memset(shm, 0, sizeof(*shm));
	ctx->seg->warm[at] = 0;
	shm->ring = shmv_heap_get(ctx, size * (sizeof(struct shm_cqe) + sizeof(uint64_t)),
				  &cq->order_ring);
	shm->times = shm->ring + size * sizeof(struct shm_cqe);
	shm->besides = shmv_heap_get(ctx, SHM_BESIDES * SHM_BESIDE_MAX, &cq->order_besides);
	if (!shm->ring || !shm->besides) {
		shmv_heap_put(ctx, shm->ring, cq->order_ring);
		return false;
	}
	shm->mask = cq->mask;
	shm->index = at;
	shm->serial = shmv_ctx_serial(ctx);
	shm->channel_fd = channel ? channel->wfd : -1;
	shm->channel_id = channel ? channel->id : 0;
	cq->shm = shm;
	cq->index = at;
	ctx->cqs[at] = cq;
	return true;
}

static void init_ib(struct shmv_cq *cq, struct ibv_context *ib, void *context,
		    struct ibv_comp_channel *channel)
{
	cq->ib = (struct ibv_cq){.context = ib, .channel = channel, .cq_context = context,
				 .handle = cq->index, .cqe = cq->mask ? cq->mask : 1};
	pthread_mutex_init(&cq->ib.mutex, NULL);
	pthread_cond_init(&cq->ib.cond, NULL);
	if (channel)
		channel->refcnt++;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ib, int cqe, void *context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct shmv_ctx *ctx = shmv_ctx_of(ib);
	struct shmv_cq *cq;
	uint32_t size = 1;
	bool placed;

	if (shmv_ctx_is_fatal(ctx))
		return shmv_fail(EIO);
	if (cqe < 1 || (uint32_t)cqe > shmv_conf.max_cqe || vector < 0 ||
	    vector >= ib->num_comp_vectors)
		return shmv_fail(EINVAL);
	while (size < (uint32_t)cqe)
		size *= 2;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->ctx = ctx;
	cq->mask = size - 1;
	cq->pinned = (size_t)size * CQE_BYTES;
	cq->sent = calloc(size, sizeof(*cq->sent));
	if (!cq->sent || shmv_pin_ring(cq->pinned))
		goto err_cq;
	pthread_mutex_lock(&ctx->mutex);
	placed = cq_place(cq, (struct shmv_channel *)channel);
	if (placed)
		init_ib(cq, ib, context, channel);
	pthread_mutex_unlock(&ctx->mutex);
	if (placed)
		return &cq->ib;
	shmv_unpin_ring(cq->pinned);
err_cq:
	free(cq->sent);
	free(cq);
	return shmv_fail(ENOMEM);
}

int ibv_destroy_cq(struct ibv_cq *ib)
{
	struct shmv_cq *cq = (struct shmv_cq *)ib;
	struct shmv_ctx *ctx = cq->ctx;

	if (shmv_load32(&cq->refs))
		return EBUSY;
	pthread_mutex_lock(&ctx->mutex);
	ctx->cqs[cq->index] = NULL; /* from here on no event of the queue is delivered */
	if (ib->channel)
		ib->channel->refcnt--;
	shmv_heap_put(ctx, cq->shm->ring, cq->order_ring);
	shmv_heap_put(ctx, cq->shm->besides, cq->order_besides);
	pthread_mutex_unlock(&ctx->mutex);
	pthread_mutex_lock(&ib->mutex);
	while (ib->comp_events_completed != cq->events ||
	       ib->async_events_completed != cq->async_events)
		pthread_cond_wait(&ib->cond, &ib->mutex);
	pthread_mutex_unlock(&ib->mutex);
	shmv_unpin_ring(cq->pinned);
	free(cq->sent);
	free(cq);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ib, void **context)
{
	struct shmv_ctx *ctx = shmv_ctx_of(channel->context);
	struct shmv_cq *cq;
	uint32_t at;

	do { /* the event of a queue that was destroyed is dropped */
		if (read(channel->fd, &at, sizeof(at)) != sizeof(at))
			return -1;
		pthread_mutex_lock(&ctx->mutex);
		cq = ctx->cqs[at % SHM_CQ_MAX];
		if (cq && cq->ib.channel == channel) {
			*ib = &cq->ib;
			*context = cq->ib.cq_context;
			cq->events++;
			ctx->count.events++;
		} else {
			cq = NULL;
		}
		pthread_mutex_unlock(&ctx->mutex);
	} while (!cq);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *ib, unsigned int count)
{
	pthread_mutex_lock(&ib->mutex);
	ib->comp_events_completed += count;
	pthread_cond_broadcast(&ib->cond);
	pthread_mutex_unlock(&ib->mutex);
}

int ibv_resize_cq(struct ibv_cq *ib, int cqe)
{
	(void)ib, (void)cqe;
	return EOPNOTSUPP;
}

void shmv_cq_clean(struct shmv_cq *cq, const struct shmv_qp *qp, uint32_t qpn)
{
	struct shm_cqe *ring = shm_at(cq->ctx->seg->shm, cq->shm->ring);

	shmv_lock(&cq->lock);
	for (uint32_t i = cq->sent_head; i != cq->sent_tail; i++)
		if (cq->sent[i & cq->mask].qp == qp)
			cq->sent[i & cq->mask].qp = NULL;
	shmv_lock_shared(&cq->shm->lock);
	for (uint32_t i = cq->head; i != cq->shm->tail; i++)
		if (ring[i & cq->mask].qpn == qpn)
			ring[i & cq->mask].kind |= SHM_CQE_DROPPED;
	shmv_unlock_shared(&cq->shm->lock);
	shmv_unlock(&cq->lock);
}
