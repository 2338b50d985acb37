/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xport/staged.h"

#include "mr/cache.h"
#include "net/mr.h"
#include "xport/memory.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

enum { PAGE = 4096 };

/* Into how many pieces memory of so many bytes is to be cut. 1: it is not. */
static uint32_t count_pieces(const struct verve_xport *xport, const struct verve_memory *memory,
			     size_t len)
{
	size_t count = len / xport->attr.mr_cache->crossover.stage;

	if (memory->iov_count != 1 || memory->region[0] || count < 2)
		return 1;
	return count < VERVE_IOV_LIMIT ? (uint32_t)count : VERVE_IOV_LIMIT;
}

/*
 * Cuts between pages, as a page of two pieces would be registered twice. The lengths are as 1 to 2
 * to 3: the wire waits for the first piece, and the longer a piece moves, the more pages can be
 * registered meanwhile.
 */
static void cut(struct verve_memory *memory, size_t len, uint32_t count)
{
	uintptr_t from = (uintptr_t)memory->iov[0].iov_base, end = from + len;
	size_t part = len / (count * (count + 1) / 2);

	memory->iov_count = 0;
	memory->staged = true;
	for (uint32_t i = 0; from < end; i++) {
		uintptr_t to = (from + part * (i + 1) + PAGE - 1) & -(uintptr_t)PAGE;

		if (i + 1 == count || to > end)
			to = end;
		memory->iov[i] = (struct iovec){(void *)from, to - from};
		memory->region[i] = NULL;
		memory->iov_count++;
		from = to;
	}
}

uint64_t verve_staged_ready(const struct verve_memory *memory)
{
	uint64_t ready = 0;

	for (uint32_t i = 0; i < memory->iov_count && memory->region[i]; i++)
		ready += memory->iov[i].iov_len;
	return ready;
}

int verve_staged_next(struct verve_xport *xport, struct verve_memory *memory, unsigned access)
{
	uint32_t i = 0;
	int ret;

	while (i < memory->iov_count && memory->region[i])
		i++;
	if (i == memory->iov_count)
		return 0;
	ret = verve_mr_cache_get_once(xport->attr.mr_cache, memory->iov[i].iov_base,
				      memory->iov[i].iov_len, access, &memory->region[i]);
	if (ret)
		memory->region[i] = NULL;
	else
		memory->owned |= 1u << i;
	return ret;
}

int verve_staged_register(struct verve_xport *xport, struct verve_memory *memory, size_t len,
			  uint64_t offset, unsigned access, bool alone)
{
	uint32_t count;
	int ret;

	if (memory->staged)
		return offset < verve_staged_ready(memory) ?
			       0 : verve_staged_next(xport, memory, access);
	count = alone ? count_pieces(xport, memory, len) : 1;
	if (count == 1)
		return verve_memory_register(xport, memory, access);
	ret = verve_memory_register_kept(xport, memory, access);
	if (ret != -FI_ENOENT)
		return ret;
	cut(memory, len, count);
	return verve_staged_next(xport, memory, access);
}

int verve_staged_offer(struct verve_xport *xport, struct verve_memory *memory, size_t len,
		       bool binds, bool alone)
{
	uint32_t count;
	int ret;

	if (memory->staged)
		return memory->region[0] ? 0 :
			       verve_staged_next(xport, memory, VERVE_NET_REMOTE_READ);
	count = alone ? count_pieces(xport, memory, len) : 1;
	if (count == 1)
		return verve_memory_offer(xport, memory, binds);
	ret = verve_memory_offer_kept(xport, memory, binds);
	if (ret != -FI_ENOENT)
		return ret;
	cut(memory, len, count);
	return verve_staged_next(xport, memory, VERVE_NET_REMOTE_READ);
}
