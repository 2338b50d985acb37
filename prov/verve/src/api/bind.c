/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bind: one function for each kind of object, then the functions for the endpoint's engine. */
#include "api/bind.h"

#include <rdma/fi_errno.h>

#include "api/av.h"
#include "api/cntr.h"
#include "api/cq.h"
#include "api/domain.h"
#include "api/ep.h"
#include "api/eq.h"
#include "api/mr_event.h"
#include "api/srx.h"
#include "api/stx.h"
#include "base/log.h"
#include "comp/counter.h"
#include "engine/engine.h"
#include "engine/progress.h"
#include "xport/xport.h"

static int bind_cq(struct verve_ep *ep, struct verve_cq *cq, uint64_t flags)
{
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EINVAL;
	if ((flags & FI_TRANSMIT && ep->tx_cq) || (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		verve_cq_get(cq);
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	if (flags & FI_RECV) {
		verve_cq_get(cq);
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	verve_ep_update_flags(ep);
	return 0;
}

static const uint64_t cntr_events[VERVE_EP_CNTRS] = {
	[VERVE_EP_SEND] = FI_SEND,
	[VERVE_EP_RECV] = FI_RECV,
	[VERVE_EP_READ] = FI_READ,
	[VERVE_EP_WRITE] = FI_WRITE,
	[VERVE_EP_REMOTE_READ] = FI_REMOTE_READ,
	[VERVE_EP_REMOTE_WRITE] = FI_REMOTE_WRITE,
};

static int check_cntr(const struct verve_ep *ep, uint64_t flags)
{
	uint64_t known = 0;

	for (int i = 0; i < VERVE_EP_CNTRS; i++) {
		known |= cntr_events[i];
		if (flags & cntr_events[i] && ep->cntr[i])
			return -FI_EINVAL;
	}
	return flags & ~known || !flags ? -FI_EBADFLAGS : 0;
}

static void set_cntr(struct verve_ep *ep, struct verve_cntr *cntr, uint64_t flags)
{
	for (int i = 0; i < VERVE_EP_CNTRS; i++) {
		if (!(flags & cntr_events[i]))
			continue;
		verve_cntr_get(cntr);
		ep->cntr[i] = cntr;
	}
}

/*
 * Other threads look at the counters of an enabled endpoint, and bind counters to it. Threads that
 * bind counters, or bind or close regions, do so under the lock of events; threads that count do so
 * under the engine's lock. The sink is installed under the lock of events, too: a thread that bound
 * another counter meanwhile would otherwise have its sink replaced by one without that counter.
 */
static int bind_cntr_late(struct verve_ep *ep, struct verve_cntr *cntr, uint64_t flags)
{
	struct verve_mr_events *events = &ep->domain->events;
	struct verve_sink sink;
	int ret;

	pthread_mutex_lock(&events->lock);
	ret = check_cntr(ep, flags);
	if (!ret)
		ret = verve_cntr_bind_engine(cntr, ep->engine);
	if (!ret) {
		set_cntr(ep, cntr, flags);
		verve_bind_fill_sink(ep, &sink);
		verve_engine_set_sink(ep->engine, &sink);
	}
	pthread_mutex_unlock(&events->lock);
	return ret;
}

static int bind_cntr(struct verve_ep *ep, struct verve_cntr *cntr, uint64_t flags)
{
	int ret;

	if (ep->engine)
		return bind_cntr_late(ep, cntr, flags);
	ret = check_cntr(ep, flags);
	if (!ret)
		set_cntr(ep, cntr, flags);
	return ret;
}

static bool is_of_domain(struct fid *fid, const struct verve_domain *domain)
{
	switch (fid->fclass) {
	case FI_CLASS_AV:
		return verve_av_from_fid(fid)->domain == domain;
	case FI_CLASS_CQ:
		return verve_cq_from_fid(fid)->domain == domain;
	case FI_CLASS_CNTR:
		return verve_cntr_from_fid(fid)->domain == domain;
	case FI_CLASS_SRX_CTX:
		return verve_srx_from_fid(fid)->ep.domain == domain;
	case FI_CLASS_STX_CTX:
		return verve_stx_from_fid(fid)->domain == domain;
	default:
		return true;
	}
}

int verve_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct verve_ep *ep = ((struct verve_ep *)fid)->owner;

	/*
	 * fi_endpoint(3) says that all objects are bound before the endpoint is enabled. Sandia
	 * OpenSHMEM binds counters and transmit contexts to its one endpoint afterwards, with every
	 * provider. These two need nothing that enabling makes, so this is allowed.
	 */
	if (ep->engine && bfid->fclass != FI_CLASS_CNTR && bfid->fclass != FI_CLASS_STX_CTX)
		return -FI_EOPBADSTATE;
	if (!is_of_domain(bfid, ep->domain)) {
		VERVE_WARN(EP_CTRL, "an endpoint cannot be bound to an object of another domain\n");
		return -FI_EDOMAIN;
	}
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		if (flags)
			return -FI_EBADFLAGS;
		if (ep->av)
			return -FI_EINVAL;
		ep->av = verve_av_from_fid(bfid);
		verve_av_get(ep->av);
		return 0;
	case FI_CLASS_CQ:
		return bind_cq(ep, verve_cq_from_fid(bfid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, verve_cntr_from_fid(bfid), flags);
	case FI_CLASS_SRX_CTX:
		if (flags)
			return -FI_EBADFLAGS;
		if (ep->srx)
			return -FI_EINVAL;
		ep->srx = verve_srx_from_fid(bfid);
		verve_srx_get(ep->srx);
		return 0;
	case FI_CLASS_STX_CTX:
		if (flags)
			return -FI_EBADFLAGS;
		if (ep->has_stx)
			return -FI_EINVAL;
		ep->has_stx = true;
		return 0;
	case FI_CLASS_EQ:
		if (flags)
			return -FI_EBADFLAGS;
		if (ep->eq)
			return -FI_EINVAL;
		ep->eq = (struct fid_eq *)bfid;
		verve_eq_get(ep->eq);
		return 0;
	default:
		VERVE_WARN(EP_CTRL, "an endpoint cannot be bound to an object of class %zu\n",
			   bfid->fclass);
		return -FI_EINVAL;
	}
}

void verve_bind_engine_undo(struct verve_ep *ep, struct verve_engine *engine)
{
	verve_mr_events_remove(ep, engine);
	if (ep->domain->progress)
		verve_progress_remove(ep->domain->progress, engine);
	for (int i = 0; i < VERVE_EP_CNTRS; i++)
		if (ep->cntr[i])
			verve_cntr_unbind_engine(ep->cntr[i], engine);
	if (ep->tx_cq)
		verve_cq_unbind_engine(ep->tx_cq, engine);
	if (ep->rx_cq && ep->rx_cq != ep->tx_cq)
		verve_cq_unbind_engine(ep->rx_cq, engine);
	verve_av_unbind_engine(ep->av, engine);
}

static struct verve_comp_counter *counter(const struct verve_ep *ep, enum verve_ep_cntr which)
{
	return ep->cntr[which] ? &ep->cntr[which]->counter : NULL;
}

void verve_bind_fill_sink(const struct verve_ep *ep, struct verve_sink *sink)
{
	*sink = (struct verve_sink){
		.tx_queue = ep->tx_cq ? &ep->tx_cq->queue : NULL,
		.rx_queue = ep->rx_cq ? &ep->rx_cq->queue : NULL,
		.send = counter(ep, VERVE_EP_SEND),
		.recv = counter(ep, VERVE_EP_RECV),
		.read = counter(ep, VERVE_EP_READ),
		.write = counter(ep, VERVE_EP_WRITE),
		.remote_read = counter(ep, VERVE_EP_REMOTE_READ),
		.remote_write = counter(ep, VERVE_EP_REMOTE_WRITE),
	};
}

/* fi_domain(3): the domain's queue is the one of endpoints that have none. NULL: there is none. */
static struct fid_eq *eq_of(const struct verve_ep *ep)
{
	return ep->eq ? ep->eq : ep->domain->eq;
}

int verve_bind_prepare_failure(struct verve_ep *ep)
{
	struct verve_eq_event *event;

	if (ep->failure || !eq_of(ep))
		return 0;
	event = verve_eq_alloc_error();
	if (!event)
		return -FI_ENOMEM;
	AO_store_release(&ep->failure, (AO_t)event);
	return 0;
}

/* NULL: none was prepared, or another thread has it. */
static struct verve_eq_event *take_failure(struct verve_ep *ep)
{
	AO_t event = AO_load(&ep->failure);

	if (!event || !AO_compare_and_swap_full(&ep->failure, event, 0))
		return NULL;
	return (struct verve_eq_event *)event;
}

void verve_bind_drop_failure(struct verve_ep *ep)
{
	verve_eq_free_error(take_failure(ep));
}

void verve_bind_forget_failure(struct verve_ep *ep)
{
	if (eq_of(ep))
		verve_eq_forget(eq_of(ep), &ep->fid.fid);
}

void verve_bind_report_failure(void *arg, int error)
{
	struct verve_ep *ep = arg;
	struct verve_eq_event *event = take_failure(ep);
	struct fi_eq_err_entry entry = {
		.fid = &ep->fid.fid,
		.context = ep->fid.fid.context,
		.err = error,
		.prov_errno = error,
	};

	if (event)
		verve_eq_put_error(eq_of(ep), event, &entry);
}

/* If one bind fails, all are undone. To unbind an engine that was never bound does nothing. */
int verve_bind_engine(struct verve_ep *ep, struct verve_engine *engine)
{
	int ret = verve_av_bind_engine(ep->av, engine);

	if (!ret && ep->tx_cq)
		ret = verve_cq_bind_engine(ep->tx_cq, engine);
	if (!ret && ep->rx_cq && ep->rx_cq != ep->tx_cq)
		ret = verve_cq_bind_engine(ep->rx_cq, engine);
	for (int i = 0; !ret && i < VERVE_EP_CNTRS; i++) {
		bool before = false;

		for (int j = 0; j < i; j++)
			before |= ep->cntr[j] == ep->cntr[i];
		if (ep->cntr[i] && !before)
			ret = verve_cntr_bind_engine(ep->cntr[i], engine);
	}
	if (!ret && ep->caps & FI_RMA_EVENT)
		ret = verve_mr_events_add(ep, engine);
	if (!ret && ep->domain->progress)
		ret = verve_progress_add(ep->domain->progress, engine);
	if (ret)
		verve_bind_engine_undo(ep, engine);
	return ret;
}

int verve_bind_check(const struct verve_ep *ep)
{
	if (!ep->av)
		return -FI_ENOAV;
	if (ep->shared_rx && !ep->srx)
		return -FI_ENORX;
	if (ep->shared_tx && !ep->has_stx) {
		VERVE_WARN(EP_CTRL, "an endpoint that shares its transmit context has none\n");
		return -FI_EINVAL;
	}
	if ((!ep->tx_cq && !ep->cntr[VERVE_EP_SEND] && !ep->cntr[VERVE_EP_WRITE] &&
	     !ep->cntr[VERVE_EP_READ] && ep->caps & (FI_SEND | FI_READ | FI_WRITE)) ||
	    (!ep->rx_cq && !ep->cntr[VERVE_EP_RECV] && ep->caps & FI_RECV))
		return -FI_ENOCQ;
	return 0;
}

struct verve_lock *verve_bind_lend_lock(struct verve_ep *ep)
{
	if (!ep->lock) {
		ep->lender = ep->rx_cq ? ep->rx_cq : ep->tx_cq;
		ep->lock = ep->lender ? verve_cq_lend_lock(ep->lender) : NULL;
	}
	return ep->lock;
}

void verve_bind_put_all(struct verve_ep *ep)
{
	if (ep->lock)
		verve_cq_take_back(ep->lender, ep->lock);
	for (int i = 0; i < VERVE_EP_CNTRS; i++)
		if (ep->cntr[i])
			verve_cntr_put(ep->cntr[i]);
	if (ep->tx_cq)
		verve_cq_put(ep->tx_cq);
	if (ep->rx_cq)
		verve_cq_put(ep->rx_cq);
	if (ep->av)
		verve_av_put(ep->av);
	if (ep->eq)
		verve_eq_put(ep->eq);
	if (ep->srx)
		verve_srx_put(ep->srx);
}
