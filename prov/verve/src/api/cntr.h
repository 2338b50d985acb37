/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counter as libfabric sees it: fi_cntr(3). The values are comp/comp.h's; here are progress and
 * waiting.
 *
 * Any thread may call anything, except that close is serialized by the application.
 */
#ifndef VERVE_API_CNTR_H
#define VERVE_API_CNTR_H

#include <atomic_ops.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "api/wait.h"
#include "comp/comp.h"

struct verve_domain;
struct verve_engine;

/* The two values at some moment, for those who ask whether they changed since. */
struct verve_cntr_mark {
	volatile AO_t value, errors;
};

struct verve_cntr {
	struct fid_cntr fid;
	struct verve_domain *domain;
	struct verve_comp_counter counter;
	struct verve_wait wait;
	struct verve_cntr_mark seen;   /* when the application last read it; for fi_trywait */
	volatile AO_t told;            /* errors that the application has heard of; for fi_cntr_wait */
	struct verve_cntr_mark polled; /* at the last fi_poll, fi_cntr_set or fi_cntr_add */
	volatile AO_t references;      /* endpoints, regions and poll sets */
};

/*
 * For struct fi_ops_domain. attr NULL: the defaults. fi_close: -FI_EBUSY while references are out.
 * -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM; wait objects as verve_wait_init.
 *
 * fi_cntr_wait: 0; -FI_EAVAIL: the error value is another than the application has heard of: by an earlier
 * -FI_EAVAIL, by fi_cntr_readerr, or by its fi_cntr_seterr. So waiting for operations that have failed already
 * ends, once; old errors end no wait. -FI_ETIMEDOUT. The descriptor of FI_WAIT_FD, with
 * fi_trywait, wakes for every change; it is for one thread at a time.
 */
int verve_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		    void *context);

static inline struct verve_cntr *verve_cntr_from_fid(struct fid *fid)
{
	return (struct verve_cntr *)fid; /* fid is its first member */
}

/* Every object that counts there, and every poll set, holds one reference. Any thread. */
void verve_cntr_get(struct verve_cntr *cntr);
void verve_cntr_put(struct verve_cntr *cntr);

/* Reading progresses the engines that are bound. As verve_wait_bind. */
int verve_cntr_bind_engine(struct verve_cntr *cntr, struct verve_engine *engine);
void verve_cntr_unbind_engine(struct verve_cntr *cntr, struct verve_engine *engine);

/* For fi_poll: has it changed since polled? Marks it. No progress. */
bool verve_cntr_poll(struct verve_cntr *cntr);

/* For verve_fabric_trywait. */
int verve_cntr_trywait(struct verve_cntr *cntr);

#endif
