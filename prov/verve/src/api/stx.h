/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared transmit context: fi_stx_context, fi_endpoint(3). Opaque to applications, which post to the
 * endpoints bound to it. Each of these keeps its own queue pairs, one per peer, and its own room
 * for operations, so that none waits for another; what they share is this object's life.
 *
 * Open, bind and close are serialized by the application.
 */
#ifndef VERVE_API_STX_H
#define VERVE_API_STX_H

#include <atomic_ops.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

struct verve_domain;

struct verve_stx {
	struct fid_stx fid;
	struct verve_domain *domain;
	volatile AO_t references; /* endpoints bound to it */
};

/*
 * For struct fi_ops_domain. attr may be NULL. fi_close: -FI_EBUSY while references are out.
 * -FI_EINVAL: attributes that endpoints cannot have; -FI_ENOMEM.
 */
int verve_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		   void *context);

static inline struct verve_stx *verve_stx_from_fid(struct fid *fid)
{
	return (struct verve_stx *)fid; /* fid is its first member */
}

/* An endpoint holds one reference from bind to close. Any thread. */
void verve_stx_get(struct verve_stx *stx);
void verve_stx_put(struct verve_stx *stx);

#endif
