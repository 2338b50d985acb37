/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Extension: verve's own operations on the registration cache of a domain. */
#include "api/ext.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_ext_verve.h>
#include <string.h>

#include "api/domain.h"
#include "api/profile.h"
#include "mr/monitor.h"

static void cache_notify(struct fid_domain *fid, const void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr;

	(void)fid; /* the memory goes for all domains, not for this one alone */
	if (len)
		verve_mr_monitor_notify(start, start + len > start ? start + len : UINTPTR_MAX);
}

static void cache_get_stats(struct fid_domain *fid, struct fi_verve_mr_cache_stats *stats,
			    size_t size)
{
	struct verve_domain *domain = verve_domain_from_fid(&fid->fid);
	struct verve_mr_cache_stats now;
	struct fi_verve_mr_cache_stats all;

	verve_mr_cache_stats_get(&domain->mr_cache, &now);
	all = (struct fi_verve_mr_cache_stats){
		.hits = now.hits,
		.misses = now.misses,
		.failures = now.failures,
		.unkept = now.unkept,
		.evictions = now.evictions,
		.invalidations = now.invalidations,
		.regions = now.regions,
		.bytes = now.bytes,
	};
	memcpy(stats, &all, size < sizeof(all) ? size : sizeof(all));
}

static struct fi_verve_ops_mr_cache mr_cache_ops = {
	.size = sizeof(struct fi_verve_ops_mr_cache),
	.notify = cache_notify,
	.stats = cache_get_stats,
};

int verve_domain_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			  void *context)
{
	if (name && !strcmp(name, VERVE_PROFILE_OPS))
		return verve_profile_open(fid, name, flags, ops, context);
	if (flags)
		return -FI_EBADFLAGS;
	if (!name || strcmp(name, FI_VERVE_MR_CACHE_OPS))
		return -FI_EINVAL;
	*ops = &mr_cache_ops;
	return 0;
}
