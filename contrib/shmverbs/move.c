/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "move.h"

#include <errno.h>
#include <string.h>

#include "atomic.h"
#include "log.h"
#include "mem.h"
#include "segment.h"

int shmv_move(struct shmv_seg *seg, bool write, const struct iovec *mine, int my_count,
	      const struct iovec *its, int its_count, uint64_t len)
{
	ssize_t n;

	if (!len)
		return IBV_WC_SUCCESS;
	n = write ? process_vm_writev(seg->pid, mine, my_count, its, its_count, 0) :
		    process_vm_readv(seg->pid, mine, my_count, its, its_count, 0);
	if (shmv_likely(n == (ssize_t)len))
		return IBV_WC_SUCCESS;
	if (n < 0 && errno == ESRCH) {
		shmv_store32(&seg->dead, 1);
		return SHMV_RETRY_SILENT;
	}
	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		shmv_log("process_vm_writev(2) to process %u: %s", seg->pid, strerror(errno));
	return IBV_WC_REM_ACCESS_ERR;
}

int shmv_move_to_wqe(struct shmv_seg *seg, const struct shm_rq *rq, uint32_t index,
		     const struct iovec *iov, int count, uint64_t len)
{
	const struct shm_wqe *wqe = shm_at(seg->shm, rq->wqes + (uint64_t)index * rq->stride);
	struct iovec its[SHMV_SGE_MAX] = {{0}};
	uint64_t left = len;
	int used, ret = IBV_WC_SUCCESS;

	for (used = 0; left && used < (int)wqe->sges; used++) {
		const struct ibv_sge *sge = &wqe->sge[used];
		uint64_t part = sge->length < left ? sge->length : left;

		its[used].iov_len = part;
		its[used].iov_base = shmv_mr_hold(seg->shm, sge->lkey, sge->addr, part,
						  IBV_ACCESS_LOCAL_WRITE | SHM_ACCESS_LKEY, rq->pd,
						  0);
		if (!its[used].iov_base) {
			ret = IBV_WC_LOC_PROT_ERR;
			break;
		}
		left -= part;
	}
	if (!ret)
		ret = shmv_move(seg, true, iov, count, its, used, len);
	for (int i = 0; i < used; i++)
		shmv_mr_release(seg->shm, wqe->sge[i].lkey);
	return ret == IBV_WC_REM_ACCESS_ERR ? IBV_WC_LOC_PROT_ERR : ret;
}
