/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Open: opening and closing a device, and the start of the library. This file puts the parts
 * together, so no other file calls it: it fills in the operations of a context, and the calls of
 * the device's thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "conf.h"
#include "context.h"
#include "device.h"
#include "event.h"
#include "lock.h"
#include "log.h"
#include "mem.h"
#include "note.h"
#include "poll.h"
#include "recv.h"
#include "retry.h"
#include "send.h"
#include "td.h"
#include "window.h"

static bool turn(void)
{
	shmv_note_read(shmv_event_take);
	return shmv_retry_all();
}

/* Only segments give the thread marks: the process of this segment ended. */
static void ready(void *seg)
{
	shmv_seg_bury(seg);
}

static const struct shmv_thread_calls thread_calls = {.turn = turn, .ready = ready};

static void set_ops(struct shmv_ctx *ctx)
{
	struct ibv_context *ib = &ctx->v.context;

	ctx->v.sz = sizeof(ctx->v);
	ctx->v.query_port = shmv_query_port;
	ctx->v.query_device_ex = shmv_query_device_ex;
	ctx->v.alloc_td = shmv_alloc_td;
	ctx->v.dealloc_td = shmv_dealloc_td;
	ctx->v.alloc_parent_domain = shmv_alloc_parent_domain;
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
	int fds[2], note_fd;
	uint64_t note_id;

	if (!ctx || !ports)
		goto err;
	shmv_note_address(&thread_calls, &note_fd, &note_id);
	ctx->dev = (struct shmv_dev *)device;
	ctx->port = &ports->port[ctx->dev->index];
	if (pipe2(fds, O_CLOEXEC))
		goto err;
	ctx->seg = shmv_seg_create(ctx->dev->index, note_fd, note_id);
	if (!ctx->seg) {
		shmv_log("cannot make a file in %s: %s", shmv_conf.dir, strerror(errno));
		close(fds[0]);
		close(fds[1]);
		goto err;
	}
	/*
	 * Peers read and write this process's memory. Yama, or a setuid(2) before, would forbid
	 * it.
	 */
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
	shmv_ctx_add(ctx);
	return &ctx->v.context;
err:
	free(ctx);
	return NULL;
}

int ibv_close_device(struct ibv_context *ib)
{
	struct shmv_ctx *ctx = shmv_ctx_of(ib);

	shmv_ctx_remove(ctx);
	shmv_ctx_print_counts(ctx);
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

/* A child may open devices of its own, but not use those of its parent. */
static void forked(void)
{
	shmv_pid = getpid();
	shmv_ctx_forked();
	shmv_seg_forked();
	shmv_note_forked();
	shmv_ports_forked();
	shmv_thread_forked();
}

static __attribute__((constructor)) void start(void)
{
	shmv_pid = getpid();
	shmv_device_init(shmv_conf_read());
	/* Memory that nobody touches is to cost nothing: no huge page for the first byte of one. */
	if (!shmv_conf.populate)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	pthread_atfork(NULL, NULL, forked);
}
