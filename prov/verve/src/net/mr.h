/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory region: ibv_reg_mr(3), ibv_reg_mr_iova(3), ibv_reg_dmabuf_mr(3), ibv_dereg_mr(3). The
 * calls may block and allocate: no lock may be held but the engine's, and while deregistering the
 * one of mr/monitor.c by which listeners come and go. Any thread.
 */
#ifndef VERVE_NET_MR_H
#define VERVE_NET_MR_H

#include <stddef.h>
#include <stdint.h>

struct verve_net_device;

enum {
	VERVE_NET_LOCAL_WRITE = 1 << 0,
	VERVE_NET_REMOTE_READ = 1 << 1,
	VERVE_NET_REMOTE_WRITE = 1 << 2,
	VERVE_NET_REMOTE_ATOMIC = 1 << 3,
	/*
	 * Memory is not pinned: the device asks the kernel for pages (limits.odp_rc, odp_atomic).
	 */
	VERVE_NET_ON_DEMAND = 1 << 4,
	/* Windows may be bound to the region (net/mw.h); needs writable memory (limits.mw). */
	VERVE_NET_WINDOWS = 1 << 5,
};

struct verve_net_mr {
	uint32_t lkey;
	uint32_t rkey;
	void *handle; /* struct ibv_mr *, for net alone */
};

/*
 * Registers len > 0 bytes at addr; access: VERVE_NET_* bits. Peers use virtual addresses. addr
 * NULL, len SIZE_MAX, ON_DEMAND and no remote access: the region covers all memory of the process,
 * present and future (limits.odp_implicit). The caller logs an error. -FI_ENOMEM: over
 * RLIMIT_MEMLOCK or the device's limit; -FI_EINVAL, -FI_EACCES, -FI_EPERM, -FI_EFAULT: the range
 * cannot be registered with that access. -FI_EOPNOTSUPP: the processor may use the range so, but
 * the kernel lets no device: a mapped file of a disk (to write there, from Linux 6.5 on), or DAX.
 */
int verve_net_mr_reg(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
		     struct verve_net_mr *mr);
/*
 * The same, but the region's keys, local and remote, go with addresses that begin at iova instead
 * of addr. iova and addr must have the same offset in a page: the kernel refuses any other
 * (ib_uverbs_reg_mr).
 */
int verve_net_mr_reg_iova(struct verve_net_device *dev, void *addr, size_t len, uint64_t iova,
			  unsigned access, struct verve_net_mr *mr);
/*
 * The same for device memory: len bytes from offset on of the dmabuf that the descriptor fd names
 * (ibv_reg_dmabuf_mr(3)). The memory need not be mapped. iova and offset must have the same offset
 * in a page. The caller may close fd afterwards. -FI_EOPNOTSUPP: the device, its driver or the
 * kernel does not register dmabufs.
 */
int verve_net_mr_reg_dmabuf(struct verve_net_device *dev, int fd, uint64_t offset, size_t len,
			    uint64_t iova, unsigned access, struct verve_net_mr *mr);
/* No request may use the keys any more. Logs. */
void verve_net_mr_dereg(struct verve_net_mr *mr);

#endif
