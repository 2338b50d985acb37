/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive context: fi_srx_context, fi_endpoint(3): receives that the messages of several
 * endpoints of a domain take. Each completes in the queue and counter of the endpoint that its
 * message came to; one that is cancelled, or a peek, in those of any of them.
 *
 * Receiving calls from any thread, the rest is serialized by the application.
 */
#ifndef VERVE_API_SRX_H
#define VERVE_API_SRX_H

#include <atomic_ops.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "api/ep.h"

struct verve_srx {
	struct verve_ep ep; /* as receiving calls and options know it; its engine is a shared one */
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	volatile AO_t references; /* endpoints bound to it */
};

/*
 * For struct fi_ops_domain. attr NULL, or without capabilities: all but FI_DIRECTED_RECV.
 * fi_close: -FI_EBUSY while references are out; receives that are still posted then end silently.
 * -FI_EINVAL: attributes that receives cannot have; -FI_ENOMEM.
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
