/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counter as libfabric sees it: fi_cntr(3). comp/counter.h has the values; this file has progress
 * and waiting.
 *
 * Any thread may call the functions here, except that the application serializes close.
 */
#ifndef VERVE_API_CNTR_H
#define VERVE_API_CNTR_H

#include <atomic_ops.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "api/wait.h"
#include "comp/counter.h"

struct verve_domain;
struct verve_engine;

/* The two values of a counter at some moment, to find out later whether they have changed. */
struct verve_cntr_mark {
	volatile AO_t value, errors;
};

struct verve_cntr {
	struct fid_cntr fid;
	struct verve_domain *domain;
	struct verve_comp_counter counter;
	struct verve_wait wait;
	/* values that the application has read last; for fi_trywait */
	struct verve_cntr_mark seen;
	/* error value that the application knows; for fi_cntr_wait */
	volatile AO_t told;
	/* values at the last fi_poll, and the application's own changes since */
	struct verve_cntr_mark polled;
	volatile AO_t references;      /* endpoints, regions and poll sets that use the counter */
};

/*
 * cntr_open of struct fi_ops_domain. attr NULL: the defaults, without a wait object. Holds a
 * reference of the domain until it is closed. fi_close returns -FI_EBUSY while references are held.
 * -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM; for the wait object, errors as verve_wait_init.
 *
 * fi_cntr_wait returns 0 at the threshold. It returns -FI_EAVAIL if the error value differs from
 * the one that the application knows: from an earlier -FI_EAVAIL, from fi_cntr_readerr, or from its
 * own fi_cntr_seterr. So a wait for operations that have failed before ends, but only once: errors
 * that the application knows end no wait. -FI_ETIMEDOUT. The descriptor of FI_WAIT_FD, with
 * fi_trywait, wakes for every change; it is for one thread at a time.
 */
int verve_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		    void *context);

static inline struct verve_cntr *verve_cntr_from_fid(struct fid *fid)
{
	return (struct verve_cntr *)fid; /* fid is its first member */
}

/* Every object that adds to the counter, and every poll set, holds one reference. Any thread. */
void verve_cntr_get(struct verve_cntr *cntr);
void verve_cntr_put(struct verve_cntr *cntr);

/*
 * From bind to unbind, reading the counter makes progress on the engine. As verve_wait_bind and
 * verve_wait_unbind.
 */
int verve_cntr_bind_engine(struct verve_cntr *cntr, struct verve_engine *engine);
void verve_cntr_unbind_engine(struct verve_cntr *cntr, struct verve_engine *engine);

/*
 * For fi_poll: true if the counter has changed since the last call, the application's own changes
 * not counted. Makes no progress.
 */
bool verve_cntr_poll(struct verve_cntr *cntr);

/*
 * For verve_fabric_trywait: as verve_wait_try. 0: the counter has the values that the application
 * has read last.
 */
int verve_cntr_trywait(struct verve_cntr *cntr);

#endif
