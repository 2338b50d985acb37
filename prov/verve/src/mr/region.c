/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Region: registers memory, and logs one line if the device or the kernel refuses. */
#include "mr/region.h"

#include <atomic_ops.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/probe.h"
#include "net/device.h"

enum { TEXT_MAX = 96 };

static const char *access_str(unsigned access, char *buf)
{
	snprintf(buf, TEXT_MAX, "local read%s%s%s%s%s",
		 access & VERVE_NET_LOCAL_WRITE ? ", local write" : "",
		 access & VERVE_NET_REMOTE_READ ? ", remote read" : "",
		 access & VERVE_NET_REMOTE_WRITE ? ", remote write" : "",
		 access & VERVE_NET_REMOTE_ATOMIC ? ", remote atomic" : "",
		 access & VERVE_NET_ON_DEMAND ? ", on demand" : "");
	return buf;
}

static const char *memlock_str(char *buf)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		snprintf(buf, TEXT_MAX, "unknown");
	else if (limit.rlim_cur == RLIM_INFINITY)
		snprintf(buf, TEXT_MAX, "unlimited");
	else
		snprintf(buf, TEXT_MAX, "%llu bytes", (unsigned long long)limit.rlim_cur);
	return buf;
}

static const char *region_remedy(int error, unsigned access)
{
	switch (error) {
	case FI_EFAULT:
	case FI_EACCES:
	case FI_EPERM:
		if (access & VERVE_NET_LOCAL_WRITE)
			return "the whole range must be mapped and writable; read-only memory can "
			       "be registered for sending, writing from and remote reads only";
		return "the whole range must be mapped and readable";
	default:
		return "the range must be ordinary memory";
	}
}

static void region_explain(struct verve_net_device *dev, const void *addr, size_t len,
			   unsigned access, int error)
{
	/* What each message may meet again: warned of once. */
	static AO_t shortages, files;
	const struct verve_net_port *port = verve_net_device_port(dev);
	bool is_file = error == FI_EOPNOTSUPP && !(access & VERVE_NET_ON_DEMAND);
	char access_text[TEXT_MAX], limit[TEXT_MAX];

	if (len > PTRDIFF_MAX && !(access & VERVE_NET_ON_DEMAND))
		VERVE_WARN(MR,
			   "%s: cannot register all memory (%zu bytes at %p): memory must be "
			   "mapped when it is registered (FI_MR_ALLOCATED is needed, granted or "
			   "not); register what is mapped (Sandia OpenSHMEM: configure it without "
			   "--enable-remote-virtual-addressing)\n",
			   port->device, len, addr);
	else if (error == FI_ENOMEM && AO_fetch_and_add1(&shortages))
		VERVE_INFO(MR, "%s: no memory to register %zu bytes at %p, again\n",
			   port->device, len, addr);
	else if (error == FI_ENOMEM)
		VERVE_WARN(MR,
			   "%s: no memory to register %zu bytes at %p: RLIMIT_MEMLOCK is %s, the "
			   "device takes %u regions of up to %llu bytes; raise the limit "
			   "(ulimit -l, LimitMEMLOCK=) or register less\n",
			   port->device, len, addr, memlock_str(limit), port->limits.mr,
			   (unsigned long long)port->limits.mr_size);
	else if (is_file && AO_fetch_and_add1(&files))
		VERVE_INFO(MR, "%s: the kernel lets no device use %zu bytes at %p, again\n",
			   port->device, len, addr);
	else if (is_file)
		VERVE_WARN(MR,
			   "%s: the kernel lets no device use %zu bytes at %p for %s, as of a file "
			   "that is mapped from a disk or DAX: transfers are copied (slowly), "
			   "and regions cannot be made; map tmpfs, hugetlbfs or anonymous memory\n",
			   port->device, len, addr, access_str(access, access_text));
	else if (len > port->limits.mr_size)
		VERVE_WARN(MR,
			   "%s: cannot register %zu bytes at %p: the device's largest region has "
			   "%llu\n",
			   port->device, len, addr, (unsigned long long)port->limits.mr_size);
	else
		VERVE_WARN(MR, "%s: cannot register %zu bytes at %p-%p for %s: %s; %s\n",
			   port->device, len, addr, (const void *)((uintptr_t)addr + len),
			   access_str(access, access_text), strerror(error),
			   region_remedy(error, access));
}

static const char *dmabuf_remedy(int error)
{
	switch (error) {
	case FI_EOPNOTSUPP:
		return "the device, its driver or this kernel (5.12 and later) takes none; copy to "
		       "host memory first";
	case FI_EBADF:
		return "it is not an open descriptor";
	default:
		return "it must be a dmabuf's, with the range in it, and base_addr page-aligned";
	}
}

static void dmabuf_explain(struct verve_net_device *dev, const struct verve_mr_dmabuf *dmabuf,
			   size_t len, unsigned access, int error)
{
	char access_text[TEXT_MAX];

	VERVE_WARN(MR, "%s: cannot register %zu bytes from %llu on of dmabuf descriptor %d for %s: "
		   "%s; %s\n", verve_net_device_port(dev)->device, len,
		   (unsigned long long)dmabuf->offset, dmabuf->fd, access_str(access, access_text),
		   strerror(error), dmabuf_remedy(error));
}

/*
 * A region of length 0 needs keys like any other, but ibv_reg_mr(3) refuses length 0. So it
 * registers a page of its own, without remote access: its remote key opens no memory. The page has
 * nothing else, because with kernels before 5.12 children do not get it (net/fork.h).
 */
static int nothing_reg(struct verve_net_device *dev, struct verve_mr_region *region)
{
	size_t size = sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (page == MAP_FAILED)
		return -FI_ENOMEM;
	ret = verve_net_mr_reg(dev, page, size, 0, &region->net);
	if (ret)
		munmap(page, size);
	else
		region->page = page;
	return ret;
}

/* dmabuf: NULL for memory of this process. */
static int region_reg(struct verve_net_device *dev, void *addr,
		      const struct verve_mr_dmabuf *dmabuf, size_t len, uint64_t iova,
		      unsigned access, struct verve_net_mr *net)
{
	if (dmabuf)
		return verve_net_mr_reg_dmabuf(dev, dmabuf->fd, dmabuf->offset, len, iova, access,
					       net);
	if (iova == (uintptr_t)addr)
		return verve_net_mr_reg(dev, addr, len, access, net);
	return verve_net_mr_reg_iova(dev, addr, len, iova, access, net);
}

static int region_open(struct verve_net_device *dev, void *addr,
		       const struct verve_mr_dmabuf *dmabuf, size_t len, uint64_t iova,
		       unsigned access, struct verve_mr_region **regionp)
{
	struct verve_mr_region *region;
	int ret;

	if (access & (VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC))
		access |= VERVE_NET_LOCAL_WRITE;
	region = malloc(sizeof(*region));
	if (!region)
		return -FI_ENOMEM;
	verve_probe_registering(addr, len, access);
	region->page = NULL;
	ret = len ? region_reg(dev, addr, dmabuf, len, iova, access, &region->net) :
		    nothing_reg(dev, region);
	verve_probe_registered(addr, len, -ret);
	if (ret) {
		if (dmabuf)
			dmabuf_explain(dev, dmabuf, len, access, -ret);
		else if (!(access & VERVE_NET_WINDOWS))
			region_explain(dev, addr, len, access, -ret);
		free(region);
		return ret;
	}
	region->addr = addr;
	region->len = len;
	region->access = len ? access : 0;
	region->lkey = region->net.lkey;
	region->rkey = region->net.rkey;
	region->shift = iova - (uintptr_t)addr;
	region->owner = NULL;
	region->held = false;
	region->base = NULL;
	region->peer_window = VERVE_MR_NO_PEER_WINDOW;
	AO_store(&region->exposed, 0);
	*regionp = region;
	return 0;
}

int verve_mr_region_open(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
			 struct verve_mr_region **region)
{
	return region_open(dev, addr, NULL, len, (uintptr_t)addr, access, region);
}

int verve_mr_region_open_offset(struct verve_net_device *dev, void *addr, size_t len,
				unsigned access, uint32_t *base, struct verve_mr_region **region)
{
	*base = (uintptr_t)addr % sysconf(_SC_PAGESIZE);
	return region_open(dev, addr, NULL, len, *base, access, region);
}

int verve_mr_region_open_dmabuf(struct verve_net_device *dev, const struct verve_mr_dmabuf *dmabuf,
				size_t len, unsigned access, uint32_t *base,
				struct verve_mr_region **region)
{
	uint64_t iova = (uintptr_t)dmabuf->addr;

	if (base)
		iova = *base = dmabuf->offset % sysconf(_SC_PAGESIZE);
	return region_open(dev, dmabuf->addr, dmabuf, len, iova, access, region);
}

void verve_mr_region_close(struct verve_mr_region *region)
{
	verve_net_mr_dereg(&region->net);
	if (region->page)
		munmap(region->page, sysconf(_SC_PAGESIZE));
	verve_probe_deregistered(region->addr, region->len);
	free(region);
}
