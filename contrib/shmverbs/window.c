/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "window.h"

#include <errno.h>
#include <stdlib.h>

#include "atomic.h"
#include "conf.h"
#include "context.h"
#include "log.h"
#include "mem.h"
#include "qp.h"

/* ibv_mw.handle is the key that is bound, or 0; ibv_mw.rkey is the key of the last bind request. */

struct ibv_mw *shmv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct shmv_ctx *ctx = shmv_ctx_of(pd->context);
	struct ibv_mw *mw;
	uint32_t key;

	if (shmv_ctx_is_fatal(ctx))
		return shmv_fail(EIO);
	if (!shmv_conf.mw)
		return shmv_fail(EOPNOTSUPP);
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return shmv_fail(EINVAL);
	mw = calloc(1, sizeof(*mw));
	key = mw ? shmv_mr_key_get(ctx) : 0;
	if (!key) {
		free(mw);
		return shmv_fail(ENOMEM);
	}
	*mw = (struct ibv_mw){.context = pd->context, .pd = pd, .rkey = key, .type = type};
	shmv_pd_ref(pd, 1);
	return mw;
}

/* Ends the window with a key, so that its region may go; false: it was ended already. */
static bool unbind(struct shm *shm, uint32_t key)
{
	struct shm_mr *window = shmv_mr_at(shm, key);

	if (!shmv_mr_end(window, key))
		return false;
	shmv_add32(&shmv_mr_at(shm, window->region)->windows, -1);
	return true;
}

int shmv_dealloc_mw(struct ibv_mw *mw)
{
	struct shmv_ctx *ctx = shmv_ctx_of(mw->context);

	unbind(ctx->seg->shm, mw->handle);
	shmv_mr_key_put(ctx, mw->rkey);
	shmv_pd_ref(mw->pd, -1);
	free(mw);
	return 0;
}

int shmv_window_check(const struct ibv_send_wr *wr)
{
	const struct ibv_mw *mw = wr->bind_mw.mw;

	if (!mw || mw->type != IBV_MW_TYPE_2 || (wr->bind_mw.rkey ^ mw->rkey) & ~255u)
		return EINVAL;
	return 0;
}

/*
 * True if clauses o10-36 to o10-37.2.40 and C10-72 to C10-75 of the specification allow the bind.
 */
static bool may_bind(const struct shmv_qp *qp, const struct ibv_mw *mw,
		     const struct ibv_mw_bind_info *info, const struct shm_mr *region)
{
	uint32_t access = info->mw_access_flags;
	const uint32_t remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC;

	if (access & ~(remote | IBV_ACCESS_ZERO_BASED) || mw->pd->handle != qp->ib.pd->handle)
		return false;
	if (mw->type == IBV_MW_TYPE_1 && access & IBV_ACCESS_ZERO_BASED)
		return false;
	if (shmv_load32(&region->key) != info->mr->handle || region->pd != mw->pd->handle)
		return false;
	if (!(region->access & IBV_ACCESS_MW_BIND) || region->access & IBV_ACCESS_ZERO_BASED)
		return false;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(region->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	return info->length <= region->len &&
	       info->addr - region->iova <= region->len - info->length;
}

static void bind(struct shmv_qp *qp, const struct ibv_mw *mw, uint32_t key, struct shm_mr *region,
		 const struct ibv_mw_bind_info *info)
{
	struct shm_mr *window = shmv_mr_at(qp->ctx->seg->shm, key);

	window->addr = region->addr + (info->addr - region->iova);
	window->len = info->length;
	window->iova = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
	window->access = info->mw_access_flags | SHM_ACCESS_WINDOW |
			 (mw->type == IBV_MW_TYPE_2 ? SHM_ACCESS_QP : 0);
	window->pd = mw->pd->handle;
	window->qpn = qp->ib.qp_num;
	window->region = info->mr->handle;
	shmv_add32(&region->windows, 1);
	shmv_store32(&window->key, key);
}

int shmv_window_bind(struct shmv_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct shm *shm = qp->ctx->seg->shm;
	struct ibv_mw *mw = wr->bind_mw.mw;
	struct shm_mr *region;
	int ret = IBV_WC_MW_BIND_ERR;

	pthread_mutex_lock(&qp->ctx->mutex); /* against the end of the region */
	if (!info->length && mw->type == IBV_MW_TYPE_1) {
		unbind(shm, mw->handle);
		mw->handle = 0;
		ret = IBV_WC_SUCCESS;
		goto out;
	}
	if (!info->length || !info->mr || info->mr->context != mw->context)
		goto out;
	if (mw->type == IBV_MW_TYPE_2 && mw->handle &&
	    shmv_load32(&shmv_mr_at(shm, mw->handle)->key) == mw->handle)
		goto out; /* a bound window has to be invalidated first */
	region = shmv_mr_at(shm, info->mr->handle);
	if (!may_bind(qp, mw, info, region))
		goto out;
	unbind(shm, mw->handle);
	bind(qp, mw, wr->bind_mw.rkey, region, info);
	mw->handle = wr->bind_mw.rkey;
	if (mw->type == IBV_MW_TYPE_2)
		mw->rkey = wr->bind_mw.rkey;
	ret = IBV_WC_SUCCESS;
out:
	pthread_mutex_unlock(&qp->ctx->mutex);
	return ret;
}

bool shmv_window_invalidate(struct shm *shm, uint32_t key, uint32_t pd, uint32_t qpn)
{
	struct shm_mr *window = shmv_mr_at(shm, key);

	if (!key || shmv_load32(&window->key) != key || !(window->access & SHM_ACCESS_QP) ||
	    window->pd != pd || window->qpn != qpn)
		return false;
	return unbind(shm, key);
}
