/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive context: fi_srx_context of fi_endpoint(3): receives that messages of several
 * endpoints of a domain take. A receive completes in the queue and counter of the endpoint that its
 * message came to. A cancelled receive, and a peek, completes in those of any of the endpoints.
 *
 * Any thread may call the receiving functions. The application serializes all others.
 */
#ifndef VERVE_API_SRX_H
#define VERVE_API_SRX_H

#include <atomic_ops.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "api/ep.h"

struct verve_srx {
	struct verve_ep ep; /* for receiving calls and options; its engine is a shared one */
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	volatile AO_t references; /* endpoints that are bound to the context */
};

/*
 * srx_ctx of struct fi_ops_domain. attr NULL, or without capabilities: all capabilities but
 * FI_DIRECTED_RECV. Holds a reference of the domain until it is closed. fi_close returns -FI_EBUSY
 * while endpoints are bound; receives that are still posted end without a completion. -FI_EINVAL:
 * attributes that receives cannot have; -FI_ENOMEM.
 */
int verve_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
		   void *context);

static inline struct verve_srx *verve_srx_from_fid(struct fid *fid)
{
	return (struct verve_srx *)fid; /* ep, and in it fid, is its first member */
}

/* An endpoint holds one reference from bind to close. Any thread. */
void verve_srx_get(struct verve_srx *srx);
void verve_srx_put(struct verve_srx *srx);

#endif
