/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vector: fi_av(3) over the address table (conn/addrvec.h). FI_AV_MAP and FI_AV_TABLE are
 * the same: an fi_addr_t is an index.
 *
 * The lock of an address vector serializes changes. It is taken before an engine's lock, never
 * under one. Any thread may call the functions here, except that the application serializes close.
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
	uint64_t flags;		  /* FI_EVENT or 0; FI_EVENT: insertions are reported to eq */
	struct fid_eq *eq;	  /* the event queue; NULL: none is bound */
	volatile AO_t references; /* endpoints that are bound to the vector */
	struct verve_lock lock;
	LIST_HEAD(, verve_av_user) users; /* engines of these endpoints; guarded by lock */
};

/*
 * av_open of struct fi_ops_domain: fi_av_open(3). Holds a reference of the domain until it is
 * closed. fi_close returns -FI_EBUSY while an endpoint is bound to the vector. Sets attr->type if
 * it is FI_AV_UNSPEC. FI_SYMMETRIC changes nothing. -FI_EINVAL: no attr, or an attribute out of its
 * range; -FI_EBADFLAGS; -FI_ENOSYS: a named or read-only vector; -FI_ENOMEM.
 */
int verve_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		  void *context);

static inline struct verve_av *verve_av_from_fid(struct fid *fid)
{
	return (struct verve_av *)fid; /* fid is its first member */
}

/* An endpoint holds one reference from bind to close, whether or not it is enabled. Any thread. */
void verve_av_get(struct verve_av *av);
void verve_av_put(struct verve_av *av);

/*
 * From bind to unbind, verve_engine_forget tells the engine every address that leaves the vector,
 * before the index of that address can be given to another. The vector's lock and the engine's must
 * not be held. -FI_ENOMEM.
 */
int verve_av_bind_engine(struct verve_av *av, struct verve_engine *engine);
void verve_av_unbind_engine(struct verve_av *av, struct verve_engine *engine);

#endif
