/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoint: fi_endpoint(3), FI_EP_RDM: its state, its default flags, its options. Other files stand
 * above this one: ep_open.h opens, enables and closes an endpoint, bind.h binds it, alias.h and
 * srx.h have its variants; request.h and its callers transfer data.
 *
 * The application serializes bind, enable, options and close, except that several threads may bind
 * counters to an enabled endpoint (bind.h). Any thread may transfer data, and open and close
 * aliases.
 */
#ifndef VERVE_API_EP_H
#define VERVE_API_EP_H

#include <atomic_ops.h>
#include <pthread.h>
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
struct verve_lock;
struct verve_srx;

enum verve_ep_cntr {
	VERVE_EP_SEND,
	VERVE_EP_RECV,
	VERVE_EP_READ,
	VERVE_EP_WRITE,
	VERVE_EP_REMOTE_READ, /* without FI_RMA_EVENT, counts atomics alone */
	VERVE_EP_REMOTE_WRITE,
	VERVE_EP_CNTRS,
};

struct verve_ep {
	struct fid_ep fid;
	/* this endpoint; of an alias: the endpoint that it stands for (alias.h) */
	struct verve_ep *owner;
	pthread_mutex_t alias_lock; /* guards aliases, and what enabling changes in them */
	LIST_HEAD(, verve_ep) aliases;
	bool aliases_enabled; /* they have the engine */
	LIST_ENTRY(verve_ep) alias; /* entry of owner->aliases */
	volatile AO_t profiles; /* that are open, those of aliases included (profile.h) */
	struct verve_domain *domain;
	struct verve_engine *engine; /* NULL: not enabled */
	/* entry of domain->events.eps, if the endpoint has FI_RMA_EVENT */
	LIST_ENTRY(verve_ep) event;
	struct verve_domain_engine in_domain; /* entry of domain->engines, if it has an engine */
	struct verve_av *av;
	/* the shared receive context that the endpoint is bound to; NULL: none */
	struct verve_srx *srx;
	struct verve_cq *tx_cq, *rx_cq;
	/* one of them lends the engine its lock; NULL both: none */
	struct verve_cq *lender;
	struct verve_lock *lock;
	struct verve_cntr *cntr[VERVE_EP_CNTRS];
	struct fid_eq *eq;
	/* struct verve_eq_event *: for the endpoint's failure (bind.h); 0: none */
	volatile AO_t failure;
	uint64_t caps;
	uint64_t tx_op_flags, rx_op_flags; /* FI_*: default flags, for calls that take no flags */
	uint32_t tx_flags, rx_flags;	   /* the same flags as VERVE_OP_* */
	/* FI_SELECTIVE_COMPLETION was bound: only FI_COMPLETION writes a completion */
	bool tx_selective, rx_selective;
	/* the source address counts: for all receives; for tagged receives */
	bool directed, tagged_directed;
	bool shared_rx, shared_tx; /* FI_SHARED_CONTEXT was asked for */
	bool has_stx; /* a shared transmit context was bound */
	size_t tx_size;	       /* operations that may be accepted and not finished */
	uint16_t dscp;	    /* of all packets: see struct verve_net_qp_attr */
	size_t min_multi_recv; /* bytes; FI_OPT_MIN_MULTI_RECV */
	struct verve_auth_key auth_key; /* the endpoint's own key, or the domain's */
	/* the wanted name; after enable, verve_engine_addr has the real name */
	struct verve_addr addr;
};

static inline struct verve_ep *verve_ep_from_fid(struct fid_ep *fid)
{
	return (struct verve_ep *)fid; /* fid is its first member */
}

/* The endpoint itself, or the endpoint that an alias stands for. */
static inline struct verve_ep *verve_ep_owner(struct fid *fid)
{
	return ((struct verve_ep *)fid)->owner; /* fid is its first member */
}

/*
 * For FI_SETOPSFLAG and FI_GETOPSFLAG: sets or gets the default flags of one direction, which flags
 * names by FI_TRANSMIT or FI_RECV. -FI_EINVAL: flags name neither or both; -FI_EBADFLAGS: a flag
 * that operations of this direction do not have: fi_endpoint(3).
 */
int verve_ep_set_op_flags(struct verve_ep *ep, uint64_t flags);
int verve_ep_get_op_flags(const struct verve_ep *ep, uint64_t *flags);
/*
 * Computes tx_flags and rx_flags anew. To be called after tx_op_flags, rx_op_flags, tx_selective or
 * rx_selective have changed.
 */
void verve_ep_update_flags(struct verve_ep *ep);

/* Sets directed and tagged_directed by caps, the capabilities that the endpoint was opened with. */
void verve_ep_set_directed(struct verve_ep *ep, uint64_t caps);

/* VERVE_OP_* (xport/op.h) for FI_* operation flags of one call. */
uint32_t verve_ep_tx_flags(const struct verve_ep *ep, uint64_t flags);
uint32_t verve_ep_rx_flags(const struct verve_ep *ep, uint64_t flags);

/*
 * bytes; FI_OPT_MIN_MULTI_RECV until the application sets it. A multi-receive buffer with less room
 * than that is given back: fi_endpoint(3).
 */
enum { VERVE_EP_MIN_MULTI_RECV = 64 };

/* The table for cancelling and options: for endpoints, aliases and shared receive contexts. */
extern struct fi_ops_ep verve_ep_ops;

#endif
