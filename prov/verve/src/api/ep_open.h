/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoint, from open to close: fi_endpoint(3), FI_EP_RDM. The application serializes all calls for
 * one endpoint.
 */
#ifndef VERVE_API_EP_OPEN_H
#define VERVE_API_EP_OPEN_H

#include <rdma/fi_endpoint.h>

/*
 * endpoint of struct fi_ops_domain. info is not kept. Holds a reference of the domain until it is
 * closed. fi_close returns -FI_EBUSY while the endpoint has aliases or profiles; otherwise it
 * may wait as verve_engine_stop does.
 * -FI_EINVAL: info does not describe an endpoint of verve, or its authorization key or its source
 * address is invalid; -FI_EADDRNOTAVAIL: the domain has no address of that family; -FI_ENOMEM.
 */
int verve_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		  void *context);

#endif
