/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions of the application. Each region has one key, and for each segment a registration
 * with the device, from fi_mr_reg to fi_close. (mr/cache.h may keep a registration after that, for
 * the next region that is the same.) A region holds a reference of the domain while it is open.
 */
#include "api/mr.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/cntr.h"
#include "api/domain.h"
#include "api/mr_event.h"
#include "api/stubs.h"
#include "base/log.h"
#include "mr/cache.h"
#include "mr/region.h"
#include "net/device.h"

static const uint64_t local_access = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
static const uint64_t remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;
static const uint64_t dmabuf = 1ull << 40; /* FI_MR_DMABUF of libfabric 1.20 and later */

/*
 * struct fi_mr_dmabuf, which attr->mr_iov points to with that flag. The header in use may be older.
 * fi_mr(3).
 */
struct dmabuf_attr {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};
#ifdef FI_MR_DMABUF
_Static_assert(FI_MR_DMABUF == 1ull << 40, "it is another flag");
_Static_assert(sizeof(struct dmabuf_attr) == sizeof(struct fi_mr_dmabuf) &&
		       offsetof(struct dmabuf_attr, offset) ==
			       offsetof(struct fi_mr_dmabuf, offset) &&
		       offsetof(struct dmabuf_attr, len) == offsetof(struct fi_mr_dmabuf, len) &&
		       offsetof(struct dmabuf_attr, base_addr) ==
			       offsetof(struct fi_mr_dmabuf, base_addr) &&
		       offsetof(struct fi_mr_attr, dmabuf) == offsetof(struct fi_mr_attr, mr_iov),
	       "dmabufs are described in another way");
#endif

struct verve_mr {
	struct fid_mr fid;
	struct verve_domain *domain;
	struct verve_mr_key key;
	struct verve_mr_event event;
	/* one for each segment; the array lies behind the segments */
	struct verve_mr_region **regions;
	uint32_t region_count;		  /* regions that are open */
	/* key is in the domain's table, so that peers can use it */
	bool has_key;
	struct verve_mr_segment segments[];
};

static const char *name_of(const struct verve_domain *domain)
{
	return verve_net_device_port(domain->dev)->device;
}

/* Device memory is in no cache, because the monitor would not hear when the memory goes. */
static void close_regions(struct verve_mr *mr)
{
	while (mr->region_count) {
		struct verve_mr_region *region = mr->regions[--mr->region_count];

		if (mr->key.device)
			verve_mr_region_close(region);
		else
			verve_mr_cache_put(&mr->domain->mr_cache, region);
	}
}

static int mr_close(struct fid *fid)
{
	struct verve_mr *mr = (struct verve_mr *)fid;

	if (mr->has_key)
		verve_mr_keytab_remove(&mr->domain->mr_keytab, &mr->key);
	if (AO_load(&mr->key.told))
		verve_domain_revoke(mr->domain, &mr->key);
	verve_mr_event_unbind(mr->domain, &mr->event);
	close_regions(mr);
	verve_domain_put(mr->domain);
	free(mr);
	return 0;
}

/*
 * A region belongs to its domain: to bind it to an endpoint is allowed, and changes nothing. A
 * counter may be bound at any time, because a region is never disabled.
 */
static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct verve_mr *mr = (struct verve_mr *)fid;

	switch (bfid->fclass) {
	case FI_CLASS_EP:
		return flags ? -FI_EBADFLAGS : 0;
	case FI_CLASS_CNTR:
		return verve_mr_event_bind(mr->domain, &mr->event, verve_cntr_from_fid(bfid),
					   flags);
	default:
		return -FI_EINVAL;
	}
}

/* A raw key is the key itself, in memory order; verve_mr_map_raw turns it into a key again. */
static int get_raw(const struct verve_mr *mr, const struct fi_mr_raw_attr *attr)
{
	size_t room = *attr->key_size;

	*attr->key_size = sizeof(mr->key.key);
	if (attr->flags)
		return -FI_EBADFLAGS;
	if (room < sizeof(mr->key.key))
		return -FI_ETOOSMALL;
	memcpy(attr->raw_key, &mr->key.key, sizeof(mr->key.key));
	*attr->base_addr = mr->key.segments.virt ? mr->segments[0].addr : 0;
	return 0;
}

int verve_mr_map_raw(const struct fi_mr_map_raw *map)
{
	if (map->flags)
		return -FI_EBADFLAGS;
	if (map->key_size != sizeof(*map->key))
		return -FI_EINVAL;
	memcpy(map->key, map->raw_key, sizeof(*map->key));
	return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE:
		return 0;
	case FI_GET_RAW_MR:
		return get_raw((struct verve_mr *)fid, arg);
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

/*
 * The access that the device must grant. The device only reads the source of a send or a write,
 * which is always allowed; it writes the target of a receive or a read. An atomic needs a bit only
 * if the device executes it. That bit covers atomics that fetch and atomics that do not.
 */
static unsigned net_access(const struct verve_domain *domain, uint64_t access)
{
	unsigned net = 0;

	if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
		net |= VERVE_NET_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		net |= VERVE_NET_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		net |= VERVE_NET_REMOTE_WRITE;
	if (access & FI_REMOTE_WRITE && domain->device_atomics)
		net |= VERVE_NET_REMOTE_ATOMIC;
	return net;
}

/* Segment i: the address by which peers reach it, and its length. */
static struct iovec segment_of(const struct fi_mr_attr *attr, uint64_t flags, size_t i)
{
	const struct dmabuf_attr *dmabufs = (const void *)attr->mr_iov;

	if (!(flags & dmabuf))
		return attr->mr_iov[i];
	return (struct iovec){(void *)((uintptr_t)dmabufs[i].base_addr + dmabufs[i].offset),
			      dmabufs[i].len};
}

static int check_segments(const struct verve_domain *domain, const struct fi_mr_attr *attr,
			  uint64_t flags)
{
	size_t room = SIZE_MAX;

	if (attr->iov_count < 1 || attr->iov_count > VERVE_MR_SEGMENTS_MAX || !attr->mr_iov) {
		VERVE_WARN(MR, "%s: a region has 1 to %d segments (mr_iov_limit), not %zu\n",
			   name_of(domain), VERVE_MR_SEGMENTS_MAX, attr->iov_count);
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < attr->iov_count; i++) {
		size_t len = segment_of(attr, flags, i).iov_len;

		if (len > room) {
			VERVE_WARN(MR, "%s: the segments are longer than memory\n",
				   name_of(domain));
			return -FI_EINVAL;
		}
		room -= len;
	}
	return 0;
}

static int mr_check(const struct verve_domain *domain, const struct fi_mr_attr *attr,
		    uint64_t flags)
{
	if (flags & dmabuf && attr->access & local_access) {
		VERVE_WARN(MR, "%s: device memory (FI_MR_DMABUF) is for peers, FI_REMOTE_READ and "
			   "FI_REMOTE_WRITE: this side's processor would have to copy it (access "
			   "0x%" PRIx64 ")\n", name_of(domain), attr->access);
		return -FI_EOPNOTSUPP;
	}
	/* FI_RMA_EVENT announces that counters will be bound. That needs no preparation. */
	if (flags & ~(FI_RMA_EVENT | dmabuf)) {
		VERVE_WARN(MR, "%s: registration flags 0x%" PRIx64 " are not supported\n",
			   name_of(domain), flags);
		return -FI_EBADFLAGS;
	}
	if (attr->access & ~(local_access | remote_access)) {
		VERVE_WARN(MR, "%s: unknown access bits 0x%" PRIx64 "\n", name_of(domain),
			   attr->access & ~(local_access | remote_access));
		return -FI_EINVAL;
	}
	if (attr->offset) {
		VERVE_WARN(MR, "%s: offset must be 0, not %" PRIu64 "\n", name_of(domain),
			   attr->offset);
		return -FI_EINVAL;
	}
	return check_segments(domain, attr, flags);
}

static int open_region(struct verve_mr *mr, const struct fi_mr_attr *attr, uint64_t flags, size_t i,
		       uint32_t *base)
{
	const struct iovec segment = segment_of(attr, flags, i);
	unsigned access = net_access(mr->domain, attr->access);
	const struct dmabuf_attr *from;
	struct verve_mr_dmabuf memory;

	if (!(flags & dmabuf))
		return verve_mr_cache_get_exact(&mr->domain->mr_cache, segment.iov_base,
						segment.iov_len, access, base, &mr->regions[i]);
	from = (const struct dmabuf_attr *)attr->mr_iov + i;
	memory = (struct verve_mr_dmabuf){from->fd, from->offset, segment.iov_base};
	return verve_mr_region_open_dmabuf(mr->domain->dev, &memory, segment.iov_len, access, base,
					   &mr->regions[i]);
}

/* Registers all segments with the device, and sets the key that the device makes. */
static int open_regions(struct verve_mr *mr, const struct fi_mr_attr *attr, uint64_t flags)
{
	bool offset = mr->domain->mr_mode & FI_MR_PROV_KEY && !mr->key.segments.virt &&
		      attr->iov_count == 1;
	uint32_t base = 0;

	for (size_t i = 0; i < attr->iov_count; i++) {
		const struct iovec segment = segment_of(attr, flags, i);
		int ret = open_region(mr, attr, flags, i, offset ? &base : NULL);

		if (ret) {
			close_regions(mr);
			return ret;
		}
		mr->segments[i] = (struct verve_mr_segment){
			(uintptr_t)segment.iov_base, segment.iov_len, mr->regions[i]->rkey};
		mr->region_count++;
	}
	/*
	 * This is the key of a region of one segment. For several segments, the table makes the
	 * key.
	 */
	mr->key.key = mr->regions[0]->rkey | (uint64_t)base << 32;
	return 0;
}

/*
 * Memory that no peer may touch has no key in the table. Devices need not make an rkey for it: all
 * such regions may have the same one. And applications that choose keys may give all of them the
 * same one: fi_mr(3).
 */
static int add_key(struct verve_mr *mr, const struct fi_mr_attr *attr)
{
	struct verve_domain *domain = mr->domain;
	int ret;

	if (~domain->mr_mode & FI_MR_PROV_KEY) {
		mr->key.key = attr->requested_key;
		if (!(attr->access & remote_access))
			return 0;
	} else if (attr->iov_count > 1) {
		verve_mr_keytab_add_made(&domain->mr_keytab, &mr->key);
		mr->has_key = true;
		return 0;
	} else if (!(attr->access & remote_access && mr->segments[0].len)) {
		return 0;
	}
	ret = verve_mr_keytab_add(&domain->mr_keytab, &mr->key);
	if (ret)
		VERVE_WARN(MR, "%s: key %#" PRIx64 " is another region's already\n",
			   name_of(domain), mr->key.key);
	mr->has_key = !ret;
	return ret;
}

static struct verve_mr *mr_alloc(struct verve_domain *domain, const struct fi_mr_attr *attr,
				 uint64_t flags)
{
	size_t count = attr->iov_count;
	struct verve_mr *mr = calloc(1, sizeof(*mr) + count * (sizeof(mr->segments[0]) +
								sizeof(mr->regions[0])));

	if (!mr)
		return NULL;
	mr->domain = domain;
	mr->regions = (struct verve_mr_region **)&mr->segments[count];
	mr->key.segments = (struct verve_mr_segments){
		mr->segments, count, domain->mr_mode & FI_MR_VIRT_ADDR};
	mr->key.access = net_access(domain, attr->access);
	mr->key.device = flags & dmabuf;
	mr->event.key = &mr->key;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fid_ops;
	return mr;
}

/* Reads only the fields of attr that libfabric 1.0 has. */
static int mr_open(struct verve_domain *domain, const struct fi_mr_attr *attr, uint64_t flags,
		   struct fid_mr **fid)
{
	struct verve_mr *mr;
	int ret;

	ret = mr_check(domain, attr, flags);
	if (ret)
		return ret;
	mr = mr_alloc(domain, attr, flags);
	if (!mr)
		return -FI_ENOMEM;
	ret = open_regions(mr, attr, flags);
	if (ret)
		goto err_free;
	ret = add_key(mr, attr);
	if (ret)
		goto err_regions;
	mr->fid.mem_desc = mr->regions[0];
	mr->fid.key = mr->key.key;
	verve_domain_get(domain);
	*fid = &mr->fid; /* before the event names it */
	ret = verve_domain_mr_event(domain, &mr->fid);
	if (ret)
		goto err_close;
	return 0;

err_close:
	mr_close(&mr->fid.fid);
	return ret;
err_regions:
	close_regions(mr);
err_free:
	free(mr);
	return ret;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		   void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	if (flags & dmabuf) {
		VERVE_WARN(MR, "%s: a dmabuf (FI_MR_DMABUF) is described to fi_mr_regattr alone\n",
			   name_of(verve_domain_from_fid(fid)));
		return -FI_EBADFLAGS;
	}
	return mr_open(verve_domain_from_fid(fid), &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

/* The numbers never change. The header in use may have fewer names. */
static const char *hmem_name(enum fi_hmem_iface iface)
{
	static const char *const names[] = {"the host", "CUDA",	      "ROCm",
					    "Level Zero",   "AWS Neuron", "SynapseAI"};

	return (size_t)iface < sizeof(names) / sizeof(names[0]) ? names[iface] :
								   "an unknown device";
}

/*
 * The application's structure is as long as its libfabric defines it: auth_key is there since
 * version 1.5. The fields from iface on count only for applications that asked for FI_HMEM, and
 * device only if iface names a device.
 */
static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr)
{
	struct verve_domain *domain = verve_domain_from_fid(fid);

	if (FI_VERSION_GE(domain->api_version, FI_VERSION(1, 5)) && attr->auth_key_size) {
		VERVE_WARN(MR, "%s: regions take no authorization key of their own\n",
			   name_of(domain));
		return -FI_EINVAL;
	}
	if (domain->caps & FI_HMEM && attr->iface != FI_HMEM_SYSTEM && !(flags & dmabuf)) {
		VERVE_WARN(MR,
			   "%s: memory of %s (iface %d) cannot be registered by its address: give "
			   "its dmabuf (FI_MR_DMABUF), or copy it to host memory first\n",
			   name_of(domain), hmem_name(attr->iface), (int)attr->iface);
		return -FI_ENOSYS;
	}
	return mr_open(domain, attr, flags, mr);
}

struct fi_ops_mr verve_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
