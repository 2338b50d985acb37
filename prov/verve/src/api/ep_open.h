/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoint, from open to close: fi_endpoint(3), FI_EP_RDM. All calls for one endpoint are serialized by the
 * application.
 */
#ifndef VERVE_API_EP_OPEN_H
#define VERVE_API_EP_OPEN_H

#include <rdma/fi_endpoint.h>

/* For struct fi_ops_domain. -FI_EINVAL: info asks for what an endpoint is not, or has no key. */
int verve_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

#endif
