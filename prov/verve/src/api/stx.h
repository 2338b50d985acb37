/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared transmit context: fi_stx_context, fi_endpoint(3). Opaque to applications, which post to the
 * endpoints bound to it. Each of these keeps its own queue pairs, one per peer, and its own room
 * for operations, so that none waits for another, and none needs the context once it is bound: it may
 * be closed before its endpoints. fi_endpoint(3) does not say that it may not, and Sandia OpenSHMEM does so.
 *
 * Open, bind and close are serialized by the application.
 */
#ifndef VERVE_API_STX_H
#define VERVE_API_STX_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

struct verve_domain;

struct verve_stx {
	struct fid_stx fid;
	struct verve_domain *domain;
};

/*
 * For struct fi_ops_domain. attr may be NULL.
 * -FI_EINVAL: attributes that endpoints cannot have; -FI_ENOMEM.
 */
int verve_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		   void *context);

static inline struct verve_stx *verve_stx_from_fid(struct fid *fid)
{
	return (struct verve_stx *)fid; /* fid is its first member */
}

#endif
