/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Region: one registration of memory with the device, for the application (its fi_mr_desc(3) points
 * to a region) or for the provider's cache; or a window of a region (mr/window.h,
 * mr/peer_window.h). Constant while it is open, but for held, exposed and peer_window. Any thread.
 */
#ifndef VERVE_MR_REGION_H
#define VERVE_MR_REGION_H

#include <atomic_ops.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/mr.h"

/* Of a window for a peer (mr/peer_window.h). */
enum verve_mr_peer_window_state {
	VERVE_MR_NO_PEER_WINDOW, /* the region is none */
	VERVE_MR_PEER_FRESH,	 /* no bind was posted; rkey is the key that it will have */
	VERVE_MR_PEER_BOUND,	 /* a bind was posted */
	VERVE_MR_PEER_CLOSING,	 /* the request that ends the window was posted */
	VERVE_MR_PEER_ENDED,	 /* that request has ended well: the device refuses the key */
	VERVE_MR_PEER_FREED,	 /* the window was freed, which ends it, too */
};

struct verve_mr_region {
	void *addr;
	size_t len;	 /* bytes; 0: a valid region without memory */
	/*
	 * VERVE_NET_*: exactly what the device grants beside local reads. A window: exactly what it
	 * grants to peers; the lkey, which is its region's, grants local writes in any case.
	 */
	unsigned access;
	uint32_t lkey;
	uint32_t rkey;
	uint64_t shift; /* added to a memory address, gives the address that goes with the keys */
	struct verve_net_mr net;
	void *page; /* registered in place of no memory, with len 0; NULL with any other */
	void *owner; /* the cache's entry of the region; NULL: the cache does not keep it */
	bool held;   /* its user holds the entry (mr/store.h): set by get_exact, cleared by put */
	struct verve_mr_region *base; /* a window of that region; NULL: this is no window */
	uint8_t peer_window; /* enum verve_mr_peer_window_state; mr/peer_window.c alone sets it */
	/* A window of it did not end: peers may reach bytes of it until it is closed. Only set. */
	volatile AO_t exposed;
};

/*
 * Registers len bytes at addr. access: VERVE_NET_*; REMOTE_WRITE and REMOTE_ATOMIC add LOCAL_WRITE
 * (ibv_reg_mr(3)). May block, and allocates. Errors as verve_net_mr_reg; one line of the log
 * explains them, except with WINDOWS: then the caller can do without the region.
 */
int verve_mr_region_open(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
			 struct verve_mr_region **region);
/*
 * The same, but peers reach the region by offset (ibv_reg_mr_iova(3)). Its first byte has the
 * address *base, which is addr's offset in its page, because the kernel refuses any other. The
 * local key goes with the same addresses.
 */
int verve_mr_region_open_offset(struct verve_net_device *dev, void *addr, size_t len,
				unsigned access, uint32_t *base, struct verve_mr_region **region);
/* Device memory: the bytes from offset on of the dmabuf that the descriptor fd names. */
struct verve_mr_dmabuf {
	int fd; /* the caller's; may be closed once the region is open */
	uint64_t offset; /* bytes */
	void *addr; /* the first byte's address for peers; it need not be mapped */
};
/*
 * The same for device memory. base: NULL; or peers reach the region by offset, as above.
 * -FI_EOPNOTSUPP: the device, its driver or the kernel does not register dmabufs.
 */
int verve_mr_region_open_dmabuf(struct verve_net_device *dev, const struct verve_mr_dmabuf *dmabuf,
				size_t len, unsigned access, uint32_t *base,
				struct verve_mr_region **region);
/* No request may use the region's keys any more. */
void verve_mr_region_close(struct verve_mr_region *region);

#endif
