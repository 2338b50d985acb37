/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domain: an open port of a device: fi_domain(3). What its objects share: the device, the
 * registration cache, and what the application asked for when it opened it.
 *
 * Constant after open, except for the lists of its endpoints and their engines, what is bound to it, which the application serializes, and the
 * reference count, which is atomic.
 */
#ifndef VERVE_API_DOMAIN_H
#define VERVE_API_DOMAIN_H

#include <atomic_ops.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "conn/auth.h"
#include "mr/cache.h"
#include "mr/keytab.h"

struct verve_engine;
struct verve_ep;
struct verve_mr_event;
struct verve_net_device;
struct verve_progress;

/* The engine of an enabled endpoint, in its domain's list. Embedded in the endpoint. */
struct verve_domain_engine {
	LIST_ENTRY(verve_domain_engine) link;
	struct verve_engine *engine;
};

/* RMA events. The domain holds the lists; event.h says what is in them. */
struct verve_events {
	pthread_mutex_t lock; /* guards the lists, and which counters an enabled endpoint has */
	LIST_HEAD(, verve_mr_event) regions;
	LIST_HEAD(, verve_ep) eps;
};

struct verve_domain {
	struct fid_domain fid;
	TAILQ_ENTRY(verve_domain) link; /* in the list of open ones */
	struct fid_fabric *fabric;
	struct verve_net_device *dev;
	struct verve_mr_cache mr_cache;
	struct verve_mr_keytab mr_keytab; /* what their keys open */
	struct verve_events events;
	pthread_mutex_t engine_lock; /* guards engines; taken before the lock of any of them */
	LIST_HEAD(, verve_domain_engine) engines; /* of enabled endpoints */
	volatile AO_t references; /* objects open on it */
	uint32_t api_version;	  /* the application's, FI_VERSION */
	enum fi_threading threading;
	uint32_t addr_format; /* of endpoint names and in address vectors: FI_SOCKADDR... */
	uint64_t caps;	      /* FI_* that the application asked for */
	int mr_mode;	      /* FI_MR_*, FI_MR_BASIC spelled out */
	bool takes_desc;      /* descriptors of local buffers are valid or NULL; else anything, and ignored */
	struct verve_progress *progress; /* FI_PROGRESS_AUTO; NULL: manual */
	struct fid_eq *eq;    /* NULL: none bound */
	struct verve_auth_key auth_key; /* of endpoints that have none of their own */
	bool own_key;	      /* auth_key is the application's, not a file's */
	bool device_atomics;  /* FI_VERVE_ATOMICS=device, and the application asked for FI_ATOMIC */
	bool mr_events;	      /* bound with FI_REG_MR: every registration is reported there */
};

/* What a domain does when the application calls it: the tables of struct fid_domain. */
struct verve_domain_tables {
	struct fi_ops *fid; /* close and bind are verve_domain_close and verve_domain_bind */
	struct fi_ops_domain *domain;
	struct fi_ops_mr *mr;
};

/*
 * fi_domain(3). The tables stay the caller's and are valid while the domain is open. References the fabric until it is closed.
 * -FI_EINVAL: info does not describe a domain of verve; -FI_ENODEV: it did once; or what opening the
 * device, or the key's file, said.
 */
int verve_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		      const struct verve_domain_tables *tables, struct fid_domain **domain,
		      void *context);
/* -FI_EBUSY while references are out. */
int verve_domain_close(struct fid *domain);
/* An event queue; registrations are reported there if flags say FI_REG_MR. -FI_EINVAL, -FI_EBADFLAGS. */
int verve_domain_bind(struct fid *domain, struct fid *object, uint64_t flags);

/*
 * The first that was opened and that an endpoint described by info, which names a port and an
 * address of it, can be opened on as it is described. If asked is not NULL, that one; *mr_mode, what
 * info says, is then cut down to what the domain has. NULL: there is none. Any thread; valid while the
 * application does not close it.
 */
struct fid_domain *verve_domain_find(uint32_t version, const struct fid_domain *asked,
				     const struct fi_info *info, int *mr_mode);
/* The address that an open domain was opened on. False: asked is not an open domain. */
bool verve_domain_find_addr(const struct fid_domain *asked, struct verve_addr *addr);

static inline struct verve_domain *verve_domain_from_fid(struct fid *fid)
{
	return (struct verve_domain *)fid; /* fid is its first member */
}

/* Every object opened on it holds one reference. Any thread. */
void verve_domain_get(struct verve_domain *domain);
void verve_domain_put(struct verve_domain *domain);

uint32_t verve_domain_api_version(const struct verve_domain *domain);
/*
 * FI_THREAD_DOMAIN: the application serializes everything, locks may be elided, if there is no
 * progress thread. Not FI_THREAD_COMPLETION: see ARCHITECTURE.md.
 */
bool verve_domain_elides_locks(const struct verve_domain *domain);

/* An endpoint has been enabled; member is its own until removed. */
void verve_domain_add_engine(struct verve_domain *domain, struct verve_domain_engine *member,
			     struct verve_engine *engine);
void verve_domain_remove_engine(struct verve_domain *domain, struct verve_domain_engine *member);
/* The key is out of the table: peers that asked for it hear so. Takes the lock of each engine. */
void verve_domain_revoke(struct verve_domain *domain, const struct verve_mr_key *key);

/* Reports a registration if the application asked for that. Errors as verve_eq_write_event. */
int verve_domain_mr_event(struct verve_domain *domain, struct fid_mr *mr);

#endif
