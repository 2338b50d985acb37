/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue as libfabric sees it: fi_cq(3). The queue itself is comp/comp_queue.h; here are
 * formats, progress and waiting.
 *
 * Any thread may call anything, except that close is serialized by the application.
 */
#ifndef VERVE_API_CQ_H
#define VERVE_API_CQ_H

#include <atomic_ops.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "api/wait.h"
#include "comp/comp_queue.h"

struct verve_domain;
struct verve_engine;

struct verve_cq {
	struct fid_cq fid;
	struct verve_domain *domain;
	struct verve_comp_queue queue;
	struct verve_wait wait;
	enum fi_cq_format format; /* CONTEXT, MSG, DATA or TAGGED */
	bool threshold;		  /* FI_CQ_COND_THRESHOLD */
	volatile AO_t references; /* endpoints and poll sets */
	/* err_data of the last error read; guarded by queue.lock */
	char reason[VERVE_COMP_REASON_MAX];
};

/*
 * For struct fi_ops_domain. FI_CQ_FORMAT_UNSPEC is FI_CQ_FORMAT_CONTEXT, the one that cannot
 * overrun an application's buffer; attr->size 0 is 1,024. Entries beyond size are kept, too.
 * fi_close: -FI_EBUSY while references are out. -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM; wait objects
 * as verve_wait_init.
 */
int verve_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		  void *context);

static inline struct verve_cq *verve_cq_from_fid(struct fid *fid)
{
	return (struct verve_cq *)fid; /* fid is its first member */
}

/* Every endpoint and poll set that uses it holds one reference. Any thread. */
void verve_cq_get(struct verve_cq *cq);
void verve_cq_put(struct verve_cq *cq);

/* Reading progresses the engines that are bound. As verve_wait_bind. */
int verve_cq_bind_engine(struct verve_cq *cq, struct verve_engine *engine);
void verve_cq_unbind_engine(struct verve_cq *cq, struct verve_engine *engine);

/* For verve_fabric_trywait. */
int verve_cq_trywait(struct verve_cq *cq);

#endif
