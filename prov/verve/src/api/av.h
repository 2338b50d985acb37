/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vector: fi_av(3) over the address table (conn/addrvec.h). FI_AV_MAP and FI_AV_TABLE are
 * the same: a fi_addr_t is an index.
 *
 * Its lock serializes changes and is taken before an engine's lock, never under one.
 */
#ifndef VERVE_API_AV_H
#define VERVE_API_AV_H

#include <atomic_ops.h>
#include <rdma/fi_domain.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "conn/addrvec.h"

struct verve_av_user;
struct verve_domain;
struct verve_engine;

struct verve_av {
	struct fid_av fid;
	struct verve_domain *domain;
	struct verve_addrvec addrs;
	uint64_t flags;		  /* FI_EVENT or 0: insertions are reported to eq */
	struct fid_eq *eq;	  /* NULL: none bound */
	volatile AO_t references; /* endpoints bound to it */
	struct verve_lock lock;
	LIST_HEAD(, verve_av_user) users; /* guarded by lock */
};

/*
 * fi_av_open(3), for struct fi_ops_domain. fi_close: -FI_EBUSY while references are out.
 * -FI_EINVAL; -FI_EBADFLAGS; -FI_ENOSYS: named, read-only or symmetric.
 */
int verve_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		  void *context);

static inline struct verve_av *verve_av_from_fid(struct fid *fid)
{
	return (struct verve_av *)fid; /* fid is its first member */
}

/* An endpoint holds one reference from bind to close, whether or not it is enabled. */
void verve_av_get(struct verve_av *av);
void verve_av_put(struct verve_av *av);

/*
 * From bind to unbind the engine is told (verve_engine_forget) of every address that leaves the
 * vector, before its index can be given to another. Its lock must not be held. -FI_ENOMEM.
 */
int verve_av_bind_engine(struct verve_av *av, struct verve_engine *engine);
void verve_av_unbind_engine(struct verve_av *av, struct verve_engine *engine);

#endif
