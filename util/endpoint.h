/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoint: the objects of libfabric that a test of a peer needs, and their completions. */
#ifndef VERVE_UTIL_ENDPOINT_H
#define VERVE_UTIL_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

enum { VERVE_ENDPOINT_REGION = 4096, VERVE_ENDPOINT_ERROR_MAX = 256, VERVE_ENDPOINT_EARLY = 8 };

struct verve_endpoint {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr; /* registration of region, for peers */
	char region[VERVE_ENDPOINT_REGION];
	const void *early[VERVE_ENDPOINT_EARLY]; /* contexts that completed, not waited for yet */
	unsigned early_count; /* ever; the oldest are overwritten */
	char error[VERVE_ENDPOINT_ERROR_MAX]; /* of the last completion that failed */
};

/*
 * Asks fi_getinfo(3) for verve. Returns 0 or a negative error; -FI_EADDRNOTAVAIL: no port has the
 * own address from. Free the answer with verve_endpoint_close.
 */
int verve_endpoint_find(struct verve_endpoint *endpoint, const char *node, const char *service,
			uint64_t flags, const char *from);
/* Opens all of it, after it was found. */
int verve_endpoint_open(struct verve_endpoint *endpoint);
/* Closes all objects that are open. endpoint is all zero before verve_endpoint_find. */
void verve_endpoint_close(struct verve_endpoint *endpoint);

/* Completions that were kept are forgotten. */
void verve_endpoint_forget(struct verve_endpoint *endpoint);

/*
 * Waits for the completion of context, and keeps other contexts' completions until they are waited
 * for. timeout_ms negative: for ever, or until a signal (-FI_EINTR). Returns 0, -FI_ETIMEDOUT, or
 * the completion's error, negative.
 */
int verve_endpoint_wait(struct verve_endpoint *endpoint, const void *context, int timeout_ms);

#endif
