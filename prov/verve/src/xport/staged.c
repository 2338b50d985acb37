/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xport/staged.h"

#include "mr/cache.h"
#include "net/mr.h"
#include "xport/memory.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * In how many stages memory of so many bytes is to be registered. 1: it is not cut. Registering for
 * on-demand paging pins no pages, so that there is nothing to gain.
 */
static uint32_t count_stages(const struct verve_xport *xport, const struct verve_memory *memory,
			     size_t len)
{
	const struct verve_mr_cache *cache = xport->attr.mr_cache;
	size_t count = len / cache->crossover.stage;

	if (memory->iov_count != 1 || memory->region[0] || cache->odp.on || count < 2)
		return 1;
	return count < VERVE_IOV_LIMIT ? (uint32_t)count : VERVE_IOV_LIMIT;
}

/*
 * Cuts between pages, as a page of two stages would be pinned twice. The lengths are as 1 to 2 to
 * 3: the wire waits for the first stage, and the longer a stage moves, the more pages can be
 * registered meanwhile.
 */
static void cut(struct verve_memory *memory, size_t len, uint32_t count, size_t page)
{
	uintptr_t from = (uintptr_t)memory->iov[0].iov_base, end = from + len;
	size_t part = len / (count * (count + 1) / 2);

	memory->iov_count = 0;
	memory->staged = true;
	for (uint32_t i = 0; from < end; i++) {
		uintptr_t to = (from + part * (i + 1) + page - 1) & -(uintptr_t)page;

		if (i + 1 == count || to > end)
			to = end;
		memory->iov[i] = (struct iovec){(void *)from, to - from};
		memory->region[i] = NULL;
		memory->iov_count++;
		from = to;
	}
}

uint32_t verve_staged_count(const struct verve_memory *memory)
{
	uint32_t count = 0;

	while (count < memory->iov_count && memory->region[count])
		count++;
	return count;
}

uint64_t verve_staged_ready(const struct verve_memory *memory)
{
	uint64_t ready = 0;

	for (uint32_t i = verve_staged_count(memory); i-- > 0;)
		ready += memory->iov[i].iov_len;
	return ready;
}

bool verve_staged_is_partial(const struct verve_memory *memory)
{
	return memory->staged && verve_staged_count(memory) < memory->iov_count;
}

int verve_staged_next(struct verve_xport *xport, struct verve_op *op, unsigned access)
{
	const struct verve_memory *memory = verve_op_memory(op);
	uint32_t i = verve_staged_count(memory);

	return i < memory->iov_count ? verve_memory_register_piece(xport, op, i, access) : 0;
}

static int begin(struct verve_xport *xport, struct verve_op *op, size_t len, uint32_t count,
		 unsigned access)
{
	cut(verve_op_memory(op), len, count, xport->attr.mr_cache->page);
	return verve_staged_next(xport, op, access);
}

int verve_staged_register(struct verve_xport *xport, struct verve_op *op, size_t len,
			  uint64_t offset, unsigned access, bool alone)
{
	const struct verve_memory *memory = verve_op_memory(op);
	uint32_t count;
	int ret;

	if (memory->staged)
		return offset < verve_staged_ready(memory) ?
			       0 : verve_staged_next(xport, op, access);
	count = alone ? count_stages(xport, memory, len) : 1;
	if (count == 1)
		return verve_memory_register(xport, op, access);
	ret = verve_memory_register_kept(xport, op, access);
	return ret == -FI_ENOENT ? begin(xport, op, len, count, access) : ret;
}

int verve_staged_offer(struct verve_xport *xport, struct verve_op *op, size_t len, bool binds,
		       bool alone)
{
	const struct verve_memory *memory = verve_op_memory(op);
	uint32_t count;
	int ret;

	if (memory->staged)
		return verve_staged_count(memory) ?
			       0 : verve_staged_next(xport, op, VERVE_NET_REMOTE_READ);
	count = alone ? count_stages(xport, memory, len) : 1;
	if (count == 1)
		return verve_memory_offer(xport, op, binds);
	ret = verve_memory_offer_kept(xport, op, binds);
	return ret == -FI_ENOENT ? begin(xport, op, len, count, VERVE_NET_REMOTE_READ) : ret;
}
