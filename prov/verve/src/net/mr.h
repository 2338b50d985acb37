/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory region: ibv_reg_mr(3) and its kin. Calls may block and allocate: under no lock but the engine's. */
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
	/* Not pinned: the device asks the kernel for pages (limits.odp_rc, odp_atomic). */
	VERVE_NET_ON_DEMAND = 1 << 4,
};

struct verve_net_mr {
	uint32_t lkey;
	uint32_t rkey;
	void *handle; /* net's own */
};

/*
 * Registers len > 0 bytes at addr; access: VERVE_NET_* bits; remote addresses are virtual ones.
 * NULL and SIZE_MAX, ON_DEMAND and nothing remote: all memory that there is and will be
 * (limits.odp_implicit).
 * The caller logs. -FI_ENOMEM: over RLIMIT_MEMLOCK or the device's limit; -FI_EINVAL, -FI_EACCES,
 * -FI_EPERM, -FI_EFAULT: the range cannot be registered with that access.
 */
int verve_net_mr_reg(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
		     struct verve_net_mr *mr);
/*
 * The same; with its keys, local and remote, its first byte has the address iova. iova and addr are
 * equally far into a page: the kernel takes no other (ib_uverbs_reg_mr).
 */
int verve_net_mr_reg_iova(struct verve_net_device *dev, void *addr, size_t len, uint64_t iova,
			  unsigned access, struct verve_net_mr *mr);
/*
 * The same for len bytes from offset on of the device memory that the dmabuf descriptor fd stands for
 * (ibv_reg_dmabuf_mr(3)), which need not be mapped; iova and offset are equally far into a page. fd may
 * be closed afterwards. -FI_EOPNOTSUPP: the device, its driver or the kernel takes none.
 */
int verve_net_mr_reg_dmabuf(struct verve_net_device *dev, int fd, uint64_t offset, size_t len,
			    uint64_t iova, unsigned access, struct verve_net_mr *mr);
void verve_net_mr_dereg(struct verve_net_mr *mr);

#endif
