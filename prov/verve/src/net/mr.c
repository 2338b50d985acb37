/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory region: registers and deregisters memory with the device. */
#include "net/mr.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "net/verbs.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14: headers may lack it */
#define MADV_POPULATE_WRITE 23
#endif

/* With these bits, peers may reach the memory. */
static const unsigned remote = VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE |
			       VERVE_NET_REMOTE_ATOMIC | VERVE_NET_WINDOWS;

/*
 * Relaxed PCI ordering is safe for memory that is read only after a completion: receive buffers
 * and the targets of our own reads. Memory that peers can write stays strictly ordered: peers are
 * promised FI_ORDER_RMA_WAW, and the application may poll that memory. Drivers that do not know
 * the bit ignore it, except soft-RoCE of some kernels, which is not on PCI.
 */
static unsigned relaxed_ordering(const struct verve_net_device *dev, unsigned access)
{
	bool strict = !dev->port.on_pci || access & (remote | VERVE_NET_ON_DEMAND);

	return strict ? 0 : IBV_ACCESS_RELAXED_ORDERING;
}

static unsigned verbs_access(const struct verve_net_device *dev, unsigned access)
{
	return relaxed_ordering(dev, access) |
	       (access & VERVE_NET_LOCAL_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0) |
	       (access & VERVE_NET_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0) |
	       (access & VERVE_NET_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
	       (access & VERVE_NET_REMOTE_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0) |
	       (access & VERVE_NET_ON_DEMAND ? IBV_ACCESS_ON_DEMAND : 0) |
	       (access & VERVE_NET_WINDOWS ? IBV_ACCESS_MW_BIND : 0);
}

/* True: the two pages are there to be written; a mapping may be longer than its file. */
static bool ends_are_there(uintptr_t start, uintptr_t end, uintptr_t page)
{
	return !madvise((void *)(start & -page), page, MADV_POPULATE_WRITE) &&
	       !madvise((void *)((end - 1) & -page), page, MADV_POPULATE_WRITE);
}

/*
 * True: /proc/self/maps says that the processor may read and write the whole range. To write to
 * each page would tell, too, but give all of a file its place on the disk.
 */
static bool is_mapped(uintptr_t start, uintptr_t end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[LINE_MAX];

	while (maps && start < end && fgets(line, sizeof(line), maps)) {
		uintptr_t from, to;
		char read, write;
		int n = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %c%c", &from, &to, &read, &write);

		if (n != 4 || to <= start)
			continue;
		if (from > start || read != 'r' || write != 'w')
			break;
		start = to;
	}
	if (maps)
		fclose(maps);
	return start >= end;
}

/*
 * From Linux 6.5 on the kernel pins no page of a file for writing, if the file's system wants to
 * hear of each write (ext4, xfs and others; not tmpfs and hugetlbfs). It says EFAULT, as for memory
 * that is not mapped, which this distinguishes. Not with WINDOWS: there the caller tries something
 * else, and may not even want to write.
 */
static bool is_writable(const void *addr, size_t len, unsigned access)
{
	uintptr_t start = (uintptr_t)addr;

	return access & VERVE_NET_LOCAL_WRITE && !(access & VERVE_NET_WINDOWS) && len &&
	       len <= PTRDIFF_MAX && start + len > start &&
	       ends_are_there(start, start + len, sysconf(_SC_PAGESIZE)) &&
	       is_mapped(start, start + len);
}

static int reg_error(const void *addr, size_t len, unsigned access)
{
	int ret = verve_net_error(errno);

	return ret == -FI_EFAULT && is_writable(addr, len, access) ? -FI_EOPNOTSUPP : ret;
}

static int mr_set_keys(struct ibv_mr *handle, struct verve_net_mr *mr)
{
	if (!handle)
		return verve_net_error(errno);
	mr->lkey = handle->lkey;
	mr->rkey = handle->rkey;
	mr->handle = handle;
	return 0;
}

int verve_net_mr_reg(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
		     struct verve_net_mr *mr)
{
	unsigned flags = verbs_access(dev, access);
	struct ibv_mr *handle;

	errno = 0;
	handle = ibv_reg_mr(dev->pd, addr, len, flags);
	return handle ? mr_set_keys(handle, mr) : reg_error(addr, len, access);
}

int verve_net_mr_reg_iova(struct verve_net_device *dev, void *addr, size_t len, uint64_t iova,
			  unsigned access, struct verve_net_mr *mr)
{
	unsigned flags = verbs_access(dev, access);
	struct ibv_mr *handle;

	errno = 0;
	handle = ibv_reg_mr_iova(dev->pd, addr, len, iova, flags);
	return handle ? mr_set_keys(handle, mr) : reg_error(addr, len, access);
}

int verve_net_mr_reg_dmabuf(struct verve_net_device *dev, int fd, uint64_t offset, size_t len,
			    uint64_t iova, unsigned access, struct verve_net_mr *mr)
{
	int flags = (int)verbs_access(dev, access);
	int ret;

	errno = 0;
	ret = mr_set_keys(ibv_reg_dmabuf_mr(dev->pd, offset, len, iova, fd, flags), mr);
	/* Kernels before 5.12 do not know the call, and answer with one of these errors. */
	if (ret == -FI_ENOSYS || ret == -ENOTTY || ret == -EPROTONOSUPPORT)
		return -FI_EOPNOTSUPP;
	return ret;
}

void verve_net_mr_dereg(struct verve_net_mr *mr)
{
	int ret = ibv_dereg_mr(mr->handle);

	if (ret)
		VERVE_WARN(MR, "cannot deregister the region of key %#x: %s\n", mr->rkey,
			   strerror(ret));
	mr->handle = NULL;
}
