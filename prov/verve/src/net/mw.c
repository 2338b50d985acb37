/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows: a queue pair that only binds, and the wait for its completions. */
#include "net/mw.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "net/cq.h"
#include "net/mr.h"
#include "net/qp.h"
#include "net/srq.h"
#include "net/sys.h"
#include "net/verbs.h"

enum {
	DEPTH = 4, /* requests; one is outstanding at a time */
	/* of the connection to itself, which never sends a packet */
	CONNECT_TIMEOUT_MS = 1000,
	SPINS = 4096, /* polls until the processor is yielded between them: some 100 us */
};

struct verve_net_binder {
	struct verve_net_device *dev;
	struct verve_net_cq *cq;
	struct verve_net_srq *srq; /* stays empty */
	struct verve_net_qp *qp; /* is connected to reader or, without one, to itself */
	/*
	 * A queue pair that refuses a request of its own goes to error, and may flush the request
	 * before the refusal arrives: so reads come over another one. NULL: nobody reads.
	 */
	struct verve_net_qp *reader;
	uint64_t patience; /* nanoseconds until the device is given up */
};

/* Drivers of older libraries may lack the functions. */
static bool device_binds(const struct verve_net_device *dev)
{
	const struct ibv_context_ops *ops = &dev->ctx->ops;

	return ops->alloc_mw && ops->bind_mw && ops->dealloc_mw;
}

static int open_qp(const struct verve_net_binder *binder, struct verve_net_qp **qp)
{
	const struct verve_net_qp_attr attr = {
		.send_cq = binder->cq,
		.recv_cq = binder->cq,
		.srq = binder->srq,
		.send_wr = DEPTH,
		.send_sge = 1,
	};

	return verve_net_qp_open(binder->dev, &attr, (uint32_t)verve_net_random64(), qp);
}

static int connect_to(struct verve_net_qp *qp, const struct verve_net_qp *to)
{
	struct verve_net_qp_addr addr;

	verve_net_qp_addr(to, &addr);
	return verve_net_qp_connect(qp, &addr, CONNECT_TIMEOUT_MS);
}

static int binder_connect(struct verve_net_binder *binder, bool reads)
{
	int ret = open_qp(binder, &binder->qp);

	if (ret)
		return ret;
	ret = reads ? open_qp(binder, &binder->reader) : 0;
	if (ret)
		goto err_qp;
	ret = connect_to(binder->qp, reads ? binder->reader : binder->qp);
	if (!ret && reads)
		ret = connect_to(binder->reader, binder->qp);
	if (ret)
		goto err_reader;
	return 0;

err_reader:
	if (reads)
		verve_net_qp_close(binder->reader);
err_qp:
	verve_net_qp_close(binder->qp);
	return ret;
}

int verve_net_binder_open(struct verve_net_device *dev, uint64_t patience, bool reads,
			  struct verve_net_binder **binderp)
{
	struct verve_net_binder *binder;
	int ret;

	if (!device_binds(dev))
		return -FI_EOPNOTSUPP;
	binder = calloc(1, sizeof(*binder));
	if (!binder)
		return -FI_ENOMEM;
	binder->dev = dev;
	binder->patience = patience;
	ret = verve_net_cq_open(dev, DEPTH, NULL, 0, &binder->cq);
	if (ret)
		goto err_free;
	ret = verve_net_srq_open(dev, 1, &binder->srq);
	if (ret)
		goto err_cq;
	binder->cq->binds = binder->srq->binds = true;
	ret = binder_connect(binder, reads);
	if (ret)
		goto err_srq;
	*binderp = binder;
	return 0;

err_srq:
	verve_net_srq_close(binder->srq);
err_cq:
	verve_net_cq_close(binder->cq);
err_free:
	free(binder);
	/* A port that is down, or has no LID, may be called an invalid argument. */
	return verve_net_mw_is_answer(ret) ? -FI_ECONNABORTED : ret;
}

void verve_net_binder_close(struct verve_net_binder *binder)
{
	if (binder->reader)
		verve_net_qp_close(binder->reader);
	verve_net_qp_close(binder->qp);
	verve_net_srq_close(binder->srq);
	verve_net_cq_close(binder->cq);
	free(binder);
}

int verve_net_mw_alloc(struct verve_net_device *dev, bool for_peer, struct verve_net_mw *mw)
{
	struct ibv_mw *handle;

	errno = 0;
	handle = ibv_alloc_mw(dev->pd, for_peer ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
	if (!handle)
		return verve_net_error(errno);
	*mw = (struct verve_net_mw){handle->rkey, for_peer, handle};
	return 0;
}

uint32_t verve_net_mw_next_key(const struct verve_net_mw *mw)
{
	return ibv_inc_rkey(mw->rkey);
}

/* Drivers name the window by its present key; some do not note the new one themselves. */
void verve_net_mw_posted(struct verve_net_mw *mw)
{
	struct ibv_mw *handle = mw->handle;

	handle->rkey = mw->rkey = verve_net_mw_next_key(mw);
}

int verve_net_mw_free(struct verve_net_mw *mw)
{
	int ret = ibv_dealloc_mw(mw->handle);

	mw->handle = NULL;
	return ret ? verve_net_error(ret) : 0;
}

/* Waits for the one completion. Returns its status, or a negative error. */
static int binder_wait(struct verve_net_binder *binder)
{
	uint64_t until = 0;
	bool late = false;

	for (uint32_t polls = 1;; polls++) {
		struct verve_net_wc wc;
		int count = verve_net_cq_poll(binder->cq, 1, &wc);

		if (count)
			return count < 0 ? count : (int)wc.status;
		/* Polled once more after the deadline: it was the process that stood still. */
		if (late)
			return -FI_ETIMEDOUT;
		if (polls < SPINS)
			continue;
		if (!until)
			until = verve_net_now() + binder->patience;
		late = verve_net_now() > until;
		if (!late)
			verve_net_pause();
	}
}

/*
 * Others are about the queue pair: it was flushed, or its port is down. soft-RoCE says
 * LOC_QP_OP_ERR where it cannot end a window (Linux, rxe_req.c: rxe_do_local_ops).
 */
static bool is_about_window(const struct verve_net_mw *mw, int status)
{
	if (status == IBV_WC_LOC_QP_OP_ERR)
		return mw->for_peer;
	return status == IBV_WC_LOC_ACCESS_ERR || verve_net_wc_is_local((uint32_t)status);
}

/* Posts the bind, or, with a length of 0, the unbind, of a window of type 1. */
static int post_bind(struct verve_net_binder *binder, struct verve_net_mw *mw,
		     const struct verve_net_bind *info)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	int ret;

	verve_qp_bind_info(info, &bind.bind_info);
	ret = ibv_bind_mw(verve_qp_handle(binder->qp), mw->handle, &bind);
	return ret ? verve_net_error(ret) : 0;
}

/* The same for a window for a peer. */
static int post_for_peer(struct verve_net_binder *binder, struct verve_net_mw *mw,
			 const struct verve_net_bind *bind)
{
	struct verve_net_wr wr = {
		.op = bind->len ? VERVE_NET_BIND : VERVE_NET_INVALIDATE,
		.flags = VERVE_NET_SIGNALED,
		.rkey = bind->len ? verve_net_mw_next_key(mw) : mw->rkey,
		.bind = bind,
	};
	int ret = verve_net_qp_post(binder->qp, &wr);

	if (!ret && bind->len)
		verve_net_mw_posted(mw);
	return ret;
}

static int binder_perform(struct verve_net_binder *binder, struct verve_net_mw *mw,
			  const struct verve_net_bind *bind)
{
	const struct ibv_mw *handle = mw->handle;
	int ret = mw->for_peer ? post_for_peer(binder, mw, bind) : post_bind(binder, mw, bind);

	if (!ret)
		ret = binder_wait(binder);
	mw->rkey = handle->rkey;
	if (!ret)
		return 0;
	VERVE_INFO(MR, "%s: cannot %s the memory window of key %#x: %s\n",
		   binder->dev->port.device, bind->len ? "bind" : "unbind", mw->rkey,
		   ret > 0 ? verve_net_wc_str((uint32_t)ret) : fi_strerror(-ret));
	if (ret > 0)
		return is_about_window(mw, ret) ? -FI_EIO : -FI_ECONNABORTED;
	return ret;
}

static bool is_refusal(int status)
{
	return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
	       status == IBV_WC_REM_OP_ERR;
}

int verve_net_binder_read(struct verve_net_binder *binder, void *to, uint32_t lkey,
			  const void *from, uint32_t rkey, uint32_t len)
{
	const struct verve_net_sge sge = {(uintptr_t)to, len, lkey};
	struct verve_net_wr wr = {
		.op = VERVE_NET_READ,
		.flags = VERVE_NET_SIGNALED,
		.rkey = rkey,
		.remote_addr = (uintptr_t)from,
		.sge = &sge,
		.sge_count = 1,
	};
	int ret = verve_net_qp_post(binder->reader, &wr);

	if (!ret)
		ret = binder_wait(binder);
	if (is_refusal(ret))
		return -FI_EACCES;
	return ret > 0 ? -FI_ECONNABORTED : ret;
}

int verve_net_mw_bind(struct verve_net_binder *binder, struct verve_net_mw *mw,
		      const struct verve_net_mr *mr, void *addr, size_t len, unsigned access)
{
	return binder_perform(binder, mw, &(struct verve_net_bind){mw, mr, addr, len, access});
}

/*
 * The region could be left out, but soft-RoCE's part of libibverbs reads the region's key in any
 * case. The address lies in the region, because mlx5 checks that in any case.
 */
int verve_net_mw_unbind(struct verve_net_binder *binder, struct verve_net_mw *mw,
			const struct verve_net_mr *mr, void *addr)
{
	return binder_perform(binder, mw, &(struct verve_net_bind){mw, mr, addr, 0, 0});
}
