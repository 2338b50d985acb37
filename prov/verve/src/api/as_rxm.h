/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verve under the name of libfabric's ofi_rxm. It is a shared object of its own, in a folder from
 * which libfabric loads nothing unless FI_PROVIDER_PATH names the folder. It serves applications
 * that ask for "verbs;ofi_rxm" by name, as Mercury does. Its endpoints are verve's endpoints, and
 * can talk to all endpoints of verve.
 */
#ifndef VERVE_API_AS_RXM_H
#define VERVE_API_AS_RXM_H

#include <rdma/fabric.h>
#include <stdint.h>

/*
 * Higher than the version of libfabric's own ofi_rxm, which is a hundred times libfabric's version.
 */
#define VERVE_AS_RXM_VERSION FI_VERSION(9999, 0)

/*
 * getinfo of struct fi_provider. Answers hints whose provider is "verbs;ofi_rxm", in either order,
 * or "ofi_rxm", in any case of letters. The answer is that of verve_info_get, but the protocol is
 * FI_PROTO_RXM. The caller frees *info with fi_freeinfo. -FI_ENODATA: the hints name another
 * provider, or none; otherwise errors as verve_info_get. Any thread.
 */
int verve_as_rxm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			 const struct fi_info *hints, struct fi_info **info);

#endif
