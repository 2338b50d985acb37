/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of operations: registration, release. */
#include "xport/memory.h"

#include <stdbool.h>

#include "mr/cache.h"
#include "mr/region.h"
#include "net/mr.h"
#include "xport/slab.h"
#include "xport/xport.h"

size_t verve_memory_fill(struct verve_memory *memory, const struct verve_request *request)
{
	size_t len = 0;

	memory->iov_count = request->iov_count;
	for (size_t i = 0; i < request->iov_count; i++) {
		memory->iov[i] = request->iov[i];
		memory->region[i] = request->desc ? request->desc[i] : NULL;
		len += request->iov[i].iov_len;
	}
	return len;
}

void verve_op_fill(struct verve_op *op, const struct verve_request *request)
{
	op->context = request->context;
	op->len = verve_memory_fill(verve_op_memory(op), request);
}

void verve_op_release_memory(struct verve_xport *xport, struct verve_op *op)
{
	verve_memory_release(xport, verve_op_memory(op));
}

void verve_memory_unregister(struct verve_xport *xport, struct verve_memory *memory)
{
	for (uint32_t i = 0; memory->owned; i++, memory->owned >>= 1) {
		if (!(memory->owned & 1))
			continue;
		verve_mr_cache_put(xport->attr.mr_cache, memory->region[i]);
		memory->region[i] = NULL;
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
 * True if the application's descriptor can be used: its region covers the piece, and grants the
 * access. Never with REMOTE_READ: the peer would learn the key, which opens all of the
 * application's region, as long as the region is open.
 */
static bool serves(const struct verve_mr_region *region, const struct iovec *iov, unsigned access)
{
	const char *start = region->addr, *from = iov->iov_base;

	return from >= start && from + iov->iov_len <= start + region->len &&
	       (region->access & access) == access && !(access & VERVE_NET_REMOTE_READ);
}

int verve_memory_register(struct verve_xport *xport, struct verve_memory *memory, unsigned access)
{
	for (uint32_t i = 0; i < memory->iov_count; i++) {
		const struct iovec *iov = &memory->iov[i];
		int ret;

		if (memory->owned & 1u << i || !iov->iov_len ||
		    (memory->region[i] && serves(memory->region[i], iov, access)))
			continue;
		ret = verve_mr_cache_get(xport->attr.mr_cache, iov->iov_base, iov->iov_len, access,
					 &memory->region[i]);
		if (ret) {
			verve_memory_unregister(xport, memory);
			return ret;
		}
		memory->owned |= 1u << i;
	}
	return 0;
}
