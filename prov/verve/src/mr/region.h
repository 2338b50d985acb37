/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Region: one registration of memory with the device, whoever asked for it: the application (its
 * fi_mr_desc(3) is a pointer to one) or the provider's cache. Constant while it is open.
 */
#ifndef VERVE_MR_REGION_H
#define VERVE_MR_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "net/mr.h"

struct verve_mr_region {
	void *addr;
	size_t len;	 /* bytes; 0: a valid region that nothing can be moved to or from */
	unsigned access; /* VERVE_NET_*: exactly what the device grants beside local reads */
	uint32_t lkey;
	uint32_t rkey;
	uint64_t shift; /* from where memory is to the address that goes with its keys */
	struct verve_net_mr net;
	void *owner; /* the cache's entry; NULL: it is in no cache */
};

/*
 * Registers; REMOTE_WRITE and REMOTE_ATOMIC add LOCAL_WRITE (ibv_reg_mr(3)). May block, allocates.
 * Errors as verve_net_mr_reg, explained in one line of the log.
 */
int verve_mr_region_open(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
			 struct verve_mr_region **region);
/*
 * The same; peers reach it by offset (ibv_reg_mr_iova(3)). Not quite from 0: addresses begin where
 * addr does in its page, because the kernel wants it so; *base says where. The local key goes with
 * the same addresses.
 */
int verve_mr_region_open_offset(struct verve_net_device *dev, void *addr, size_t len,
				unsigned access, uint32_t *base, struct verve_mr_region **region);
/* Device memory: from offset on of what the descriptor fd stands for. */
struct verve_mr_dmabuf {
	int fd; /* may be closed when the region is open */
	uint64_t offset;
	void *addr; /* of that first byte, for peers; nobody else uses it: it need not be mapped */
};
/*
 * The same; base: NULL, or peers reach it by offset, as above. -FI_EOPNOTSUPP: the device, its driver
 * or the kernel takes no dmabuf.
 */
int verve_mr_region_open_dmabuf(struct verve_net_device *dev, const struct verve_mr_dmabuf *dmabuf,
				size_t len, unsigned access, uint32_t *base,
				struct verve_mr_region **region);
/* Nothing may use its keys any more. */
void verve_mr_region_close(struct verve_mr_region *region);

#endif
