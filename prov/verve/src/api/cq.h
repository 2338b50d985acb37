/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue as libfabric sees it: fi_cq(3). comp/comp_queue.h has the queue; this file has
 * the formats, progress and waiting.
 *
 * Any thread may call the functions here, except that the application serializes close.
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
	size_t entry_size;	  /* bytes of an entry in the queue's format */
	bool threshold;		  /* wait_cond was FI_CQ_COND_THRESHOLD */
	int vector;		  /* signaling_vector; -1: without FI_AFFINITY */
	volatile AO_t references; /* endpoints and poll sets that use the queue */
	/* err_data of the error that was read last; guarded by queue.lock */
	char reason[VERVE_COMP_REASON_MAX];
};

/*
 * cq_open of struct fi_ops_domain. attr->format FI_CQ_FORMAT_UNSPEC means FI_CQ_FORMAT_CONTEXT,
 * whose entries are the shortest, so that no application's buffer is overrun. attr->size 0 means
 * 1,024 entries; entries beyond the size are kept, too. Holds a reference of the domain until it is
 * closed. fi_close returns -FI_EBUSY while references are held. With FI_AFFINITY, endpoints ask
 * their device for interrupts on the processor attr->signaling_vector. -FI_EINVAL, -FI_EBADFLAGS,
 * -FI_ENOMEM; for the wait object, errors as verve_wait_init.
 */
int verve_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		  void *context);

static inline struct verve_cq *verve_cq_from_fid(struct fid *fid)
{
	return (struct verve_cq *)fid; /* fid is its first member */
}

/* Every endpoint and every poll set that uses the queue holds one reference. Any thread. */
void verve_cq_get(struct verve_cq *cq);
void verve_cq_put(struct verve_cq *cq);

/* As verve_wait_lend and verve_wait_take_back: for an endpoint that holds a reference. */
struct verve_lock *verve_cq_lend_lock(struct verve_cq *cq);
void verve_cq_take_back(struct verve_cq *cq, struct verve_lock *lock);

/*
 * From bind to unbind, reading the queue makes progress on the engine. As verve_wait_bind and
 * verve_wait_unbind.
 */
int verve_cq_bind_engine(struct verve_cq *cq, struct verve_engine *engine);
void verve_cq_unbind_engine(struct verve_cq *cq, struct verve_engine *engine);

/* For verve_fabric_trywait: as verve_wait_try. 0: the queue is empty. */
int verve_cq_trywait(struct verve_cq *cq);

#endif
