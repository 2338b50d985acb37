/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What verve offers beyond libfabric: fi_open_ops(3) on a domain. See fi_verve(7). */
#ifndef FI_EXT_VERVE_H
#define FI_EXT_VERVE_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name for fi_open_ops(&domain->fid, FI_VERVE_MR_CACHE_OPS, 0, (void **)&ops, NULL). */
#define FI_VERVE_MR_CACHE_OPS "verve_mr_cache"

/* Counts since the domain was opened, except regions and bytes, which are as of now. */
struct fi_verve_mr_cache_stats {
	uint64_t hits;		/* buffers whose registration was there */
	uint64_t misses;	/* that were registered */
	uint64_t failures;	/* that could not be */
	uint64_t unkept;	/* misses whose registration could not be kept */
	uint64_t evictions;	/* registrations dropped for others */
	uint64_t invalidations; /* dropped because their memory went */
	uint64_t regions;	/* registrations in use or kept */
	uint64_t bytes;		/* pinned by them; with on-demand paging none are */
};

struct fi_verve_ops_mr_cache {
	size_t size;
	/*
	 * The memory from addr to addr + len is about to change hands in a way that the kernel does not
	 * see, or, with FI_VERVE_MR_CACHE_MONITOR=notify, in any way: fi_verve(7) says what is promised
	 * then. No transfer may use it until it has. Never fails; len 0 does nothing.
	 */
	void (*notify)(struct fid_domain *domain, const void *addr, size_t len);
	/* Fills in the first size bytes of stats. */
	void (*stats)(struct fid_domain *domain, struct fi_verve_mr_cache_stats *stats, size_t size);
};

#ifdef __cplusplus
}
#endif

#endif
