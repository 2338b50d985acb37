/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoint: fi_endpoint(3), FI_EP_RDM: its state, its default flags, its options. What changes it or works with
 * it stands above: ep_open.h opens, enables and closes it, bind.h binds it; alias.h, srx.h; request.h and its
 * callers transfer data.
 *
 * Bind, enable, options and close are serialized by the application; data transfer calls are not.
 */
#ifndef VERVE_API_EP_H
#define VERVE_API_EP_H

#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "api/domain.h"
#include "base/addr.h"
#include "conn/auth.h"

struct verve_av;
struct verve_cntr;
struct verve_cq;
struct verve_engine;
struct verve_srx;

enum verve_ep_cntr {
	VERVE_EP_SEND,
	VERVE_EP_RECV,
	VERVE_EP_READ,
	VERVE_EP_WRITE,
	VERVE_EP_REMOTE_READ, /* without FI_RMA_EVENT, atomics alone */
	VERVE_EP_REMOTE_WRITE,
	VERVE_EP_CNTRS,
};

struct verve_ep {
	struct fid_ep fid;
	struct verve_ep *owner; /* itself; an alias's: the endpoint that it stands for (alias.h) */
	LIST_HEAD(, verve_ep) aliases;
	LIST_ENTRY(verve_ep) alias; /* in owner->aliases */
	struct verve_domain *domain;
	struct verve_engine *engine; /* NULL until enabled */
	LIST_ENTRY(verve_ep) event;  /* in domain->events.eps, if it hears of RMA */
	struct verve_domain_engine in_domain; /* if it has an engine */
	struct verve_av *av;
	struct verve_srx *srx; /* the shared receive context it is bound to; NULL: none */
	struct verve_cq *tx_cq, *rx_cq;
	struct verve_cntr *cntr[VERVE_EP_CNTRS];
	struct fid_eq *eq;
	uint64_t caps;
	uint64_t tx_op_flags, rx_op_flags; /* FI_*: of calls that take no flags */
	uint32_t tx_flags, rx_flags;	   /* the same as VERVE_OP_* */
	bool tx_selective, rx_selective;
	bool directed, tagged_directed; /* receives name their source: all; tagged ones */
	bool shared_rx, shared_tx; /* opened to be bound to a shared context */
	bool has_stx; /* has been bound to a shared transmit context */
	size_t tx_size;	       /* operations */
	size_t min_multi_recv; /* bytes */
	struct verve_auth_key auth_key; /* its own, or the domain's */
	struct verve_addr addr; /* wanted; after enable the engine knows the real one */
};

static inline struct verve_ep *verve_ep_from_fid(struct fid_ep *fid)
{
	return (struct verve_ep *)fid; /* fid is its first member */
}

/* The endpoint itself, or the one that an alias stands for. */
static inline struct verve_ep *verve_ep_owner(struct fid *fid)
{
	return ((struct verve_ep *)fid)->owner; /* fid is its first member */
}

/*
 * FI_SETOPSFLAG and FI_GETOPSFLAG: flags name FI_TRANSMIT or FI_RECV. -FI_EINVAL: not just one;
 * -FI_EBADFLAGS: a flag that is none of its operations (fi_endpoint(3)).
 */
int verve_ep_set_op_flags(struct verve_ep *ep, uint64_t flags);
int verve_ep_get_op_flags(const struct verve_ep *ep, uint64_t *flags);
/* After tx_op_flags, rx_op_flags or what is selective changed. */
void verve_ep_update_flags(struct verve_ep *ep);

/* Whose source counts, by the capabilities that the endpoint was opened with. */
void verve_ep_set_directed(struct verve_ep *ep, uint64_t caps);

/* VERVE_OP_* (xport/op.h) for FI_* operation flags. */
uint32_t verve_ep_tx_flags(const struct verve_ep *ep, uint64_t flags);
uint32_t verve_ep_rx_flags(const struct verve_ep *ep, uint64_t flags);

/* FI_OPT_MIN_MULTI_RECV, until it is set: a buffer that cannot take so much more is given back. */
enum { VERVE_EP_MIN_MULTI_RECV = 64 };

/* Cancelling and options: an endpoint's, an alias's and a shared receive context's. */
extern struct fi_ops_ep verve_ep_ops;

#endif
