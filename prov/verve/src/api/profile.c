/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Profile: a snapshot of the object's numbers, from which variables are read. */
#include "api/profile.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "api/stubs.h"

#if __has_include(<rdma/fi_profile.h>)
#include <stddef.h>

/* fi_profile_open of libfabric 2.1 uses it, and no header of libfabric defines it. */
#ifndef container_of
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#endif
#include <rdma/fi_profile.h>
#include <atomic_ops.h>
#include <stdbool.h>
#include <stdlib.h>

#include "api/domain.h"
#include "api/ep.h"
#include "engine/engine.h"
#include "msg/msg.h"
#include "xport/publish.h"

struct verve_profile {
	struct fid_profile fid;
	struct verve_domain *domain;
	struct verve_ep *ep; /* NULL: the profile is the domain's */
	const struct verve_stat_metric *metrics;
	size_t metric_count;
	bool is_frozen; /* between fi_profile_start_reads and fi_profile_end_reads */
	uint64_t unexpected;
	struct verve_page_entry values; /* the snapshot: not in the page of the process */
	struct verve_page_entry base;	/* of counters: what they were when they were reset */
};

/* Variables that libfabric defines; those of verve follow them. */
static const struct fi_profile_desc common[] = {
	{.id = FI_VAR_CONNECTION_CNT, .datatype_sel = fi_primitive_type,
	 .datatype.primitive = FI_UINT64, .size = sizeof(uint64_t), .name = "connection_count",
	 .desc = "Connections, those that end included"},
	{.id = FI_VAR_UNEXP_MSG_CNT, .datatype_sel = fi_primitive_type,
	 .datatype.primitive = FI_UINT64, .size = sizeof(uint64_t), .name = "unexpected_messages",
	 .desc = "Messages that wait for a receive"},
};

enum {
	COMMON = sizeof(common) / sizeof(common[0]),
	OWN = 1 << 16, /* in ids of variables that libfabric does not define */
};

static size_t common_count(const struct verve_profile *profile)
{
	return profile->ep ? COMMON : 0;
}

static struct verve_profile *profile_of(struct fid_profile *fid)
{
	return (struct verve_profile *)fid; /* fid is its first member */
}

static void snapshot(struct verve_profile *profile)
{
	struct verve_ep *ep = profile->ep;
	struct verve_xport *xport;

	if (!ep) {
		verve_publish_domain(&profile->domain->mr_cache, &profile->values);
		return;
	}
	if (!ep->engine)
		return;
	xport = verve_engine_lock(ep->engine);
	verve_publish_endpoint(xport, &profile->values);
	profile->unexpected = verve_msg_match_of(xport, false)->unexpected_count +
			      verve_msg_match_of(xport, true)->unexpected_count;
	verve_engine_unlock(ep->engine);
}

static void profile_reset(struct fid_profile *fid, uint64_t flags)
{
	struct verve_profile *profile = profile_of(fid);

	(void)flags;
	if (!profile->is_frozen)
		snapshot(profile);
	profile->base = profile->values;
}

static struct fi_profile_desc describe(const struct verve_profile *profile, size_t i)
{
	const struct verve_stat_metric *metric;

	if (i < common_count(profile))
		return common[i];
	metric = &profile->metrics[i - common_count(profile)];
	return (struct fi_profile_desc) {
		.id = OWN | metric->first,
		.datatype_sel = fi_primitive_type,
		.datatype.primitive = FI_UINT64,
		.size = sizeof(uint64_t),
		.name = metric->name,
		.desc = metric->help,
	};
}

static ssize_t query_vars(struct fid_profile *fid, struct fi_profile_desc *list, size_t *count)
{
	const struct verve_profile *profile = profile_of(fid);
	size_t all = common_count(profile) + profile->metric_count, room = list ? *count : 0, i;

	for (i = 0; i < room && i < all; i++)
		list[i] = describe(profile, i);
	*count = all;
	return (ssize_t)i;
}

static ssize_t query_events(struct fid_profile *fid, struct fi_profile_desc *list, size_t *count)
{
	(void)fid;
	(void)list;
	*count = 0;
	return 0;
}

/* -FI_EINVAL: the object has no such variable. */
static int find_value(const struct verve_profile *profile, uint32_t id, uint64_t *value)
{
	if (profile->ep && id == FI_VAR_UNEXP_MSG_CNT) {
		*value = profile->unexpected;
		return 0;
	}
	if (profile->ep && id == FI_VAR_CONNECTION_CNT)
		id = OWN | VERVE_STAT_EP_LINKS;
	for (size_t i = 0; i < profile->metric_count; i++) {
		const struct verve_stat_metric *metric = &profile->metrics[i];

		if (id != (OWN | metric->first))
			continue;
		*value = profile->values.values[metric->first] -
			 (metric->counter ? profile->base.values[metric->first] : 0);
		return 0;
	}
	return -FI_EINVAL;
}

/* Returns the bytes of the value. */
static ssize_t read_var(struct fid_profile *fid, uint32_t id, void *data, size_t *size)
{
	struct verve_profile *profile = profile_of(fid);
	size_t room = *size;
	uint64_t value;
	int ret;

	if (!profile->is_frozen)
		snapshot(profile);
	ret = find_value(profile, id, &value);
	if (ret)
		return ret;
	*size = sizeof(value);
	if (room < sizeof(value))
		return -FI_ETOOSMALL;
	memcpy(data, &value, sizeof(value));
	return sizeof(value);
}

static int reg_callback(struct fid_profile *fid, uint32_t event,
			int (*callback)(struct fid_profile *, struct fi_profile_desc *, void *,
					size_t, void *), void *context)
{
	(void)fid;
	(void)event;
	(void)callback;
	(void)context;
	return -FI_EINVAL; /* no event is in the list */
}

static void start_reads(struct fid_profile *fid, uint64_t flags)
{
	(void)flags;
	snapshot(profile_of(fid));
	profile_of(fid)->is_frozen = true;
}

static void end_reads(struct fid_profile *fid, uint64_t flags)
{
	(void)flags;
	profile_of(fid)->is_frozen = false;
}

static int profile_close(struct fid *fid)
{
	struct verve_profile *profile = (struct verve_profile *)fid;

	/* Either may close as soon as its count is down. */
	if (profile->ep)
		AO_fetch_and_sub1_release(&profile->ep->profiles);
	verve_domain_put(profile->domain);
	free(profile);
	return 0;
}

static struct fi_ops profile_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = profile_close,
	.bind = verve_stub_bind,
	.control = verve_stub_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_profile_ops profile_ops = {
	.size = sizeof(struct fi_profile_ops),
	.reset = profile_reset,
	.query_vars = query_vars,
	.query_events = query_events,
	.read_var = read_var,
	.reg_callback = reg_callback,
	.start_reads = start_reads,
	.end_reads = end_reads,
};

int verve_profile_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	struct verve_profile *profile;

	if (!name || strcmp(name, VERVE_PROFILE_OPS))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	profile = calloc(1, sizeof(*profile));
	if (!profile)
		return -FI_ENOMEM;
	if (fid->fclass == FI_CLASS_DOMAIN) {
		profile->domain = verve_domain_from_fid(fid);
		profile->metrics = verve_stat_metrics(VERVE_STAT_KIND_DOMAIN,
						      &profile->metric_count);
	} else {
		profile->ep = verve_ep_owner(fid);
		AO_fetch_and_add1(&profile->ep->profiles);
		profile->domain = profile->ep->domain;
		profile->metrics = verve_stat_metrics(VERVE_STAT_KIND_ENDPOINT,
						      &profile->metric_count);
	}
	verve_domain_get(profile->domain);
	profile->fid.fid.fclass = FI_CLASS_PROFILE;
	profile->fid.fid.context = context;
	profile->fid.fid.ops = &profile_fid_ops;
	profile->fid.ops = &profile_ops;
	*ops = &profile->fid.ops; /* fi_profile_open finds the object by the place of this member */
	return 0;
}

#else

int verve_profile_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return verve_stub_ops_open(fid, name, flags, ops, context);
}

#endif
