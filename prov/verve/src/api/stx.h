/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared transmit context: fi_stx_context of fi_endpoint(3). Applications only bind endpoints to
 * it, and post to these endpoints. Each endpoint keeps its own queue pairs, one per peer, and its
 * own room for operations, so that no endpoint waits for another. After bind, an endpoint does not
 * need the context any more, and the context may be closed before its endpoints. fi_endpoint(3)
 * does not forbid that, and Sandia OpenSHMEM does it.
 *
 * The application serializes open, bind and close.
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
 * stx_ctx of struct fi_ops_domain. attr may be NULL. Holds a reference of the domain until it is
 * closed. -FI_EINVAL: attributes that endpoints cannot have; -FI_ENOMEM.
 */
int verve_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		   void *context);

static inline struct verve_stx *verve_stx_from_fid(struct fid *fid)
{
	return (struct verve_stx *)fid; /* fid is its first member */
}

#endif
