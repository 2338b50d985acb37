/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake net/mr.h. Local and remote keys differ, and a key comes back only after 2^31 other keys. So
 * a provider that mixes keys up, or uses a key too long, gets a protection error.
 */
#include "net/mr.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "fake_memory.h"
#include "fake_region.h"
#include "fake_world.h"

enum { PAGE = 4096, DMABUF_FD = 7777 };

static const unsigned all_access = VERVE_NET_LOCAL_WRITE | VERVE_NET_REMOTE_READ |
				   VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC |
				   VERVE_NET_ON_DEMAND | VERVE_NET_WINDOWS;

/* A region without remote access has no remote key, as with soft-RoCE. */
static const unsigned remote_access = VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE |
				      VERVE_NET_REMOTE_ATOMIC;

/* No region has key 0: a struct that was never filled in has it. */
uint32_t fake_next_key(void)
{
	uint32_t key = ++fake_world.next_key * 0x9e3779b1u;

	return key ? key : fake_next_key();
}

/* The checks that the kernel does before it looks at the memory. */
static int check(const void *addr, uint64_t len, uint64_t iova, unsigned access)
{
	const struct verve_net_limits *limits = &fake_world.config.limits;
	bool all = !addr && len == SIZE_MAX;

	if (!len || access & ~all_access || (!all && len > limits->mr_size))
		return -FI_EINVAL;
	if (access & (VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC) &&
	    !(access & VERVE_NET_LOCAL_WRITE))
		return -FI_EINVAL;
	if (access & VERVE_NET_WINDOWS && !limits->mw)
		return -FI_EINVAL;
	if (access & VERVE_NET_ON_DEMAND &&
	    (!limits->odp_rc || (access & VERVE_NET_REMOTE_ATOMIC && !limits->odp_atomic)))
		return -FI_EINVAL;
	if (all && (!limits->odp_implicit || !(access & VERVE_NET_ON_DEMAND)))
		return -FI_EINVAL;
	if (all && access & remote_access)
		fake_fatal("peers could reach all memory");
	if (!addr && !all)
		return -FI_EFAULT;
	return ((uintptr_t)addr ^ iova) % PAGE ? -FI_EINVAL : 0;
}

void fake_net_on_mr(void (*fn)(void *arg, bool opens, const void *addr), void *arg)
{
	fake_world.on_mr = fn;
	fake_world.on_mr_arg = arg;
}

static void meanwhile(bool opens, uintptr_t addr)
{
	if (!fake_world.on_mr || fake_world.in_mr)
		return;
	fake_world.in_mr = true;
	fake_world.on_mr(fake_world.on_mr_arg, opens, (const void *)addr);
	fake_world.in_mr = false;
}

static int add(struct verve_net_device *dev, const struct fake_region *from,
	       struct verve_net_mr *mr)
{
	const struct verve_net_limits *limits = &fake_world.config.limits;
	struct fake_region *region;

	if (dev->mr_count >= limits->mr ||
	    fake_world.stats.pinned + from->pinned > fake_world.memlock)
		return -FI_ENOMEM;
	region = malloc(sizeof(*region));
	if (!region)
		return -FI_ENOMEM;
	*region = *from;
	region->dev = dev;
	region->lkey = fake_next_key();
	region->rkey = region->access & remote_access ? fake_next_key() : 0;
	HASH_ADD(hh_lkey, dev->by_lkey, lkey, sizeof(region->lkey), region);
	if (region->rkey)
		HASH_ADD(hh_rkey, dev->by_rkey, rkey, sizeof(region->rkey), region);
	*mr = (struct verve_net_mr){.lkey = region->lkey, .rkey = region->rkey, .handle = region};
	dev->mr_count++;
	fake_opened(FAKE_MR);
	fake_world.stats.regs++;
	fake_world.stats.pinned += region->pinned;
	if (fake_world.open[FAKE_MR] > fake_world.stats.max_mr)
		fake_world.stats.max_mr = fake_world.open[FAKE_MR];
	return 0;
}

int verve_net_mr_reg(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
		     struct verve_net_mr *mr)
{
	return verve_net_mr_reg_iova(dev, addr, len, (uintptr_t)addr, access, mr);
}

int verve_net_mr_reg_iova(struct verve_net_device *dev, void *addr, size_t len, uint64_t iova,
			  unsigned access, struct verve_net_mr *mr)
{
	int ret = fake_gate(FAKE_NET_MR_REG);

	meanwhile(true, (uintptr_t)addr);
	if (!ret)
		ret = check(addr, len, iova, access);
	if (ret)
		return ret;
	return add(dev, &(struct fake_region){
		.addr = iova,
		.memory = (uintptr_t)addr,
		.len = len,
		.pinned = access & VERVE_NET_ON_DEMAND ? 0 : len,
		.access = access,
	}, mr);
}

int fake_net_dmabuf(void *memory, uint64_t size)
{
	fake_world.dmabuf = memory;
	fake_world.dmabuf_size = size;
	return DMABUF_FD;
}

/* The memory belongs to a device: no memory of the host is pinned. */
int verve_net_mr_reg_dmabuf(struct verve_net_device *dev, int fd, uint64_t offset, size_t len,
			    uint64_t iova, unsigned access, struct verve_net_mr *mr)
{
	int ret = fake_gate(FAKE_NET_MR_REG);

	if (ret)
		return ret;
	if (!fake_world.dmabuf)
		return -FI_EOPNOTSUPP;
	if (fd != DMABUF_FD)
		return -FI_EBADF;
	if (!len || access & ~all_access || offset > fake_world.dmabuf_size ||
	    len > fake_world.dmabuf_size - offset || (offset ^ iova) % PAGE)
		return -FI_EINVAL;
	return add(dev, &(struct fake_region){
		.addr = iova,
		.memory = (uintptr_t)fake_world.dmabuf + offset,
		.len = len,
		.access = access,
	}, mr);
}

void fake_net_memlock(uint64_t bytes)
{
	fake_world.memlock = bytes;
}

void verve_net_mr_dereg(struct verve_net_mr *mr)
{
	struct fake_region *region = mr->handle;

	meanwhile(false, region->memory);
	if (region->windows != region->stuck)
		fake_fatal("a region closes to which %u windows are bound", region->windows);
	fake_windows_end(region);
	HASH_DELETE(hh_lkey, region->dev->by_lkey, region);
	if (region->rkey)
		HASH_DELETE(hh_rkey, region->dev->by_rkey, region);
	region->dev->mr_count--;
	fake_world.stats.pinned -= region->pinned;
	free(region);
	fake_closed(FAKE_MR);
}

static bool covers(const struct fake_region *region, uint64_t addr, uint32_t len, unsigned access)
{
	if (region && region->base && !fake_world.config.limits.mw_bounds)
		return (region->access & access) == access &&
		       covers(region->base, addr, len, 0);
	return region && addr >= region->addr && addr - region->addr <= region->len &&
	       len <= region->len - (addr - region->addr) && (region->access & access) == access;
}

bool fake_lkey_covers(const struct verve_net_device *dev, uint32_t lkey, uint64_t addr,
		      uint32_t len, unsigned access)
{
	struct fake_region *region;

	if (!len)
		return true;
	HASH_FIND(hh_lkey, dev->by_lkey, &lkey, sizeof(lkey), region);
	return covers(region, addr, len, access);
}

bool fake_rkey_covers(const struct verve_net_device *dev, uint32_t rkey, uint64_t addr,
		      uint32_t len, unsigned access)
{
	struct fake_region *region;

	if (!len)
		return true;
	HASH_FIND(hh_rkey, dev->by_rkey, &rkey, sizeof(rkey), region);
	return covers(region, addr, len, access);
}

bool fake_rkey_is_for(const struct verve_net_device *dev, uint32_t rkey, const void *qp)
{
	struct fake_region *region;

	HASH_FIND(hh_rkey, dev->by_rkey, &rkey, sizeof(rkey), region);
	return !region || !region->only || region->only == qp || fake_world.config.mw_for_all;
}

bool fake_rkey_is_there(const struct verve_net_device *dev, uint32_t rkey)
{
	struct fake_region *region;

	HASH_FIND(hh_rkey, dev->by_rkey, &rkey, sizeof(rkey), region);
	return region;
}

static void *memory(const struct fake_region *region, uint64_t addr)
{
	return (void *)(uintptr_t)(region ? region->memory + (addr - region->addr) : addr);
}

void *fake_lkey_memory(const struct verve_net_device *dev, uint32_t lkey, uint64_t addr)
{
	struct fake_region *region;

	HASH_FIND(hh_lkey, dev->by_lkey, &lkey, sizeof(lkey), region);
	return memory(region, addr);
}

void *fake_rkey_memory(const struct verve_net_device *dev, uint32_t rkey, uint64_t addr)
{
	struct fake_region *region;

	HASH_FIND(hh_rkey, dev->by_rkey, &rkey, sizeof(rkey), region);
	return memory(region, addr);
}
