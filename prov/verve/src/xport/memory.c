/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of operations: registration, segments, release. */
#include "xport/memory.h"

#include "mr/cache.h"
#include "mr/region.h"
#include "net/mr.h"
#include "net/qp.h"
#include "xport/errand.h"
#include "xport/slab.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

void verve_op_release_memory(struct verve_xport *xport, struct verve_op *op)
{
	verve_memory_release(xport, verve_op_memory(op));
	verve_errand_forget(xport, op);
}

struct verve_wire_segment verve_memory_segment(const struct verve_memory *memory, uint32_t i)
{
	const struct verve_mr_region *region = memory->region[i];

	return (struct verve_wire_segment){(uintptr_t)memory->iov[i].iov_base + region->shift,
					   memory->iov[i].iov_len, region->rkey};
}

/* Takes the regions from the cache out of the memory. Returns how many. */
static uint32_t take_out(struct verve_memory *memory,
			 struct verve_mr_region *region[VERVE_IOV_LIMIT])
{
	uint32_t count = 0;

	for (uint32_t i = 0; memory->owned; i++, memory->owned >>= 1) {
		if (!(memory->owned & 1))
			continue;
		region[count++] = memory->region[i];
		memory->region[i] = NULL;
	}
	return count;
}

void verve_memory_give_back(struct verve_xport *xport, struct verve_memory *memory)
{
	struct verve_mr_region *region[VERVE_IOV_LIMIT];
	uint32_t count = take_out(memory, region);

	if (memory->in_place)
		verve_errand_put_regions(xport, region, count);
	else if (verve_errand_give_back(xport, memory, region, count))
		memory->parted = true;
}

struct verve_errand *verve_memory_part_slowly(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_mr_region *region[VERVE_IOV_LIMIT];

	struct verve_memory *memory = verve_op_memory(op);

	if (memory->in_place) {
		verve_memory_give_back(xport, memory);
		return NULL;
	}
	return verve_errand_part(xport, op, memory->parted ? memory : NULL, region,
				 take_out(memory, region));
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

static bool is_kept(enum verve_mr_how how)
{
	return how == VERVE_MR_KEPT || how == VERVE_MR_KEPT_FOR_PEER;
}

/* The pieces that ask names get the regions that it asks for, or none does. */
static int get(struct verve_xport *xport, struct verve_op *op, const struct verve_errand_ask *ask,
	       const uint32_t piece[VERVE_IOV_LIMIT])
{
	struct verve_memory *memory = verve_op_memory(op);
	struct verve_mr_region *region[VERVE_IOV_LIMIT];
	int ret = 0;

	if (ask->count && memory->refused)
		return is_kept(ask->how) ? -FI_ENOENT : -FI_ENOMEM;
	if (ask->count)
		ret = memory->in_place ? verve_errand_get_regions(xport, ask, region) :
					 verve_errand_get(xport, op, ask, region);
	for (uint32_t i = 0; !ret && i < ask->count; i++) {
		memory->region[piece[i]] = region[i];
		memory->owned |= 1u << piece[i];
	}
	memory->refused = ret == -FI_ENOMEM;
	return ret;
}

/* The first len bytes get regions. described: only the application's descriptors may serve. */
static int register_pieces(struct verve_xport *xport, struct verve_op *op, size_t len,
			   unsigned access, enum verve_mr_how how, bool described)
{
	struct verve_memory *memory = verve_op_memory(op);
	struct verve_errand_ask ask = {.how = how, .access = access};
	uint32_t piece[VERVE_IOV_LIMIT];
	int ret;

	for (uint32_t i = 0; i < memory->iov_count && len; i++) {
		void *from = memory->iov[i].iov_base;
		size_t n = memory->iov[i].iov_len < len ? memory->iov[i].iov_len : len;

		len -= n;
		if (memory->owned & 1u << i || !n ||
		    (memory->region[i] && serves(memory->region[i], from, n, access)))
			continue;
		piece[ask.count] = i;
		ask.piece[ask.count++] = (struct iovec){from, n};
	}
	ret = described && ask.count ? -FI_ENOENT : get(xport, op, &ask, piece);
	if (ret && ret != -FI_EINPROGRESS)
		verve_memory_unregister(xport, memory);
	return ret;
}

int verve_memory_register(struct verve_xport *xport, struct verve_op *op, unsigned access)
{
	return register_pieces(xport, op, SIZE_MAX, access, VERVE_MR_ANY, false);
}

int verve_memory_register_kept(struct verve_xport *xport, struct verve_op *op, unsigned access)
{
	return register_pieces(xport, op, SIZE_MAX, access, VERVE_MR_KEPT, false);
}

int verve_memory_offer(struct verve_xport *xport, struct verve_op *op, bool binds)
{
	return register_pieces(xport, op, SIZE_MAX, VERVE_NET_REMOTE_READ,
			       binds ? VERVE_MR_FOR_PEER : VERVE_MR_ANY, false);
}

int verve_memory_offer_kept(struct verve_xport *xport, struct verve_op *op, bool binds)
{
	return register_pieces(xport, op, SIZE_MAX, VERVE_NET_REMOTE_READ,
			       binds ? VERVE_MR_KEPT_FOR_PEER : VERVE_MR_KEPT, false);
}

int verve_memory_register_short(struct verve_xport *xport, struct verve_op *op, size_t len,
				unsigned access)
{
	const struct verve_mr_crossover *crossover = &xport->attr.mr_cache->crossover;

	if (len < crossover->described)
		return -FI_ENOENT;
	return register_pieces(xport, op, len, access,
			       len >= crossover->fresh ? VERVE_MR_ANY : VERVE_MR_KEPT,
			       len < crossover->kept && len < crossover->fresh);
}

int verve_memory_register_piece(struct verve_xport *xport, struct verve_op *op, uint32_t i,
				unsigned access)
{
	struct verve_errand_ask ask = {VERVE_MR_ONCE, access, 1, {verve_op_memory(op)->iov[i]}};
	const uint32_t piece[VERVE_IOV_LIMIT] = {i};

	return get(xport, op, &ask, piece);
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
