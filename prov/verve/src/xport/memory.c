/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of operations: registration, segments, release. */
#include "xport/memory.h"

#include "mr/cache.h"
#include "mr/region.h"
#include "net/mr.h"
#include "net/qp.h"
#include "xport/slab.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

void verve_op_release_memory(struct verve_xport *xport, struct verve_op *op)
{
	verve_memory_release(xport, verve_op_memory(op));
}

struct verve_wire_segment verve_memory_segment(const struct verve_memory *memory, uint32_t i)
{
	const struct verve_mr_region *region = memory->region[i];

	return (struct verve_wire_segment){(uintptr_t)memory->iov[i].iov_base + region->shift,
					   memory->iov[i].iov_len, region->rkey};
}

void verve_memory_give_back(struct verve_xport *xport, struct verve_memory *memory)
{
	for (uint32_t i = 0; memory->owned; i++, memory->owned >>= 1) {
		if (!(memory->owned & 1))
			continue;
		verve_mr_cache_put(xport->attr.mr_cache, memory->region[i]);
		memory->region[i] = NULL;
	}
}

void verve_memory_free_windows(struct verve_xport *xport, const struct verve_op_queue *queue)
{
	struct verve_op *op;

	TAILQ_FOREACH(op, queue, link) {
		struct verve_memory *memory = verve_op_memory(op);

		for (uint32_t i = 0; op->cls->memory_at && memory->owned >> i; i++)
			if (memory->owned & 1u << i && memory->region[i]->peer_window)
				verve_mr_peer_window_free(&xport->attr.mr_cache->peer_windows,
							  memory->region[i]);
	}
}

void verve_memory_release(struct verve_xport *xport, struct verve_memory *memory)
{
	if (memory->slab)
		verve_slab_free(&xport->tx_slabs, memory->slab);
	memory->slab = NULL;
	verve_memory_unregister(xport, memory);
}

/*
 * True if the application's descriptor can be used: its region covers the len bytes, and grants the
 * access. Never with REMOTE_READ: the peer would learn the key, which opens all of the
 * application's region, as long as the region is open.
 */
static bool serves(const struct verve_mr_region *region, const void *from, size_t len,
		   unsigned access)
{
	const char *start = region->addr, *first = from;

	return first >= start && first + len <= start + region->len &&
	       (region->access & access) == access && !(access & VERVE_NET_REMOTE_READ);
}

bool verve_memory_is_described(const struct verve_memory *memory, unsigned access)
{
	return memory->iov_count == 1 && memory->region[0] &&
	       serves(memory->region[0], memory->iov->iov_base, memory->iov->iov_len, access);
}

/* verve_mr_cache_get, or a function of the same kind */
typedef int region_getter(struct verve_mr_cache *cache, void *addr, size_t len, unsigned access,
			  struct verve_mr_region **region);

/* The first len bytes get regions. get NULL: only the application's descriptors may serve. */
static int register_pieces(struct verve_xport *xport, struct verve_memory *memory, size_t len,
			   unsigned access, region_getter *get)
{
	for (uint32_t i = 0; i < memory->iov_count && len; i++) {
		void *from = memory->iov[i].iov_base;
		size_t n = memory->iov[i].iov_len < len ? memory->iov[i].iov_len : len;
		struct verve_mr_region *region;
		int ret = -FI_ENOENT;

		len -= n;
		if (memory->owned & 1u << i || !n ||
		    (memory->region[i] && serves(memory->region[i], from, n, access)))
			continue;
		if (get)
			ret = get(xport->attr.mr_cache, from, n, access, &region);
		if (ret) {
			verve_memory_unregister(xport, memory);
			return ret;
		}
		memory->region[i] = region;
		memory->owned |= 1u << i;
	}
	return 0;
}

int verve_memory_register(struct verve_xport *xport, struct verve_memory *memory, unsigned access)
{
	return register_pieces(xport, memory, SIZE_MAX, access, verve_mr_cache_get);
}

int verve_memory_register_kept(struct verve_xport *xport, struct verve_memory *memory,
			       unsigned access)
{
	return register_pieces(xport, memory, SIZE_MAX, access, verve_mr_cache_get_kept);
}

int verve_memory_offer(struct verve_xport *xport, struct verve_memory *memory, bool binds)
{
	return register_pieces(xport, memory, SIZE_MAX, VERVE_NET_REMOTE_READ,
			       binds ? verve_mr_cache_get_for_peer : verve_mr_cache_get);
}

int verve_memory_offer_kept(struct verve_xport *xport, struct verve_memory *memory, bool binds)
{
	return register_pieces(xport, memory, SIZE_MAX, VERVE_NET_REMOTE_READ,
			       binds ? verve_mr_cache_get_kept_for_peer : verve_mr_cache_get_kept);
}

int verve_memory_register_short(struct verve_xport *xport, struct verve_memory *memory, size_t len,
				unsigned access)
{
	const struct verve_mr_crossover *crossover = &xport->attr.mr_cache->crossover;

	if (len < crossover->described)
		return -FI_ENOENT;
	return register_pieces(xport, memory, len, access,
			       len >= crossover->fresh ? verve_mr_cache_get :
			       len >= crossover->kept ? verve_mr_cache_get_kept : NULL);
}

uint32_t verve_memory_locate(const struct verve_memory *memory, size_t offset, size_t len,
			     bool is_inline, struct verve_net_sge *sge)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < memory->iov_count && len; i++) {
		const struct iovec *iov = &memory->iov[i];
		size_t n;

		if (offset >= iov->iov_len) {
			offset -= iov->iov_len;
			continue;
		}
		n = iov->iov_len - offset < len ? iov->iov_len - offset : len;
		sge[count] = (struct verve_net_sge) {(uintptr_t)iov->iov_base + offset, n, 0};
		if (!is_inline) {
			sge[count].addr += memory->region[i]->shift;
			sge[count].lkey = memory->region[i]->lkey;
		}
		count++;
		len -= n;
		offset = 0;
	}
	return count;
}

size_t verve_memory_reach(const struct verve_memory *memory, size_t offset, uint32_t pieces)
{
	size_t reach = 0;

	for (uint32_t i = 0; i < memory->iov_count && pieces; i++) {
		size_t len = memory->iov[i].iov_len;

		if (offset < len) {
			reach += len - offset;
			pieces--;
		}
		offset -= offset < len ? offset : len;
	}
	return reach;
}
