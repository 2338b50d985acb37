/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verve under the name of libfabric's ofi_rxm: a shared object of its own, in a folder from which
 * libfabric loads nothing unless FI_PROVIDER_PATH names it. For applications that ask for
 * "verbs;ofi_rxm" by name, as Mercury does. Its endpoints are verve's, and talk to verve's.
 */
#ifndef VERVE_API_AS_RXM_H
#define VERVE_API_AS_RXM_H

#include <rdma/fabric.h>
#include <stdint.h>

/*
 * struct fi_provider's getinfo. Answers hints whose provider is "verbs;ofi_rxm", in either order, or
 * "ofi_rxm", as verve_info_get does, with FI_PROTO_RXM as protocol. -FI_ENODATA: any other hints.
 */
int verve_as_rxm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			 const struct fi_info *hints, struct fi_info **info);

#endif
