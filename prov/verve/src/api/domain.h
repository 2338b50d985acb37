/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domain: an open port of a device: fi_domain(3). Objects of a domain share its device, its
 * registration cache, its table of keys, and the modes that the application asked for when it
 * opened the domain.
 *
 * A domain is constant after open, except for: the lists of endpoints and engines, which have
 * locks; the event queue that is bound to it, which the application serializes; and the reference
 * count, which is atomic.
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

/* The engine of an enabled endpoint, as an entry of its domain's list. Embedded in the endpoint. */
struct verve_domain_engine {
	LIST_ENTRY(verve_domain_engine) link;
	struct verve_engine *engine;
};

/* Lists for RMA events. The domain holds the lists; api/mr_event.h says what is in them. */
struct verve_mr_events {
	pthread_mutex_t lock; /* guards the lists, and the counters of endpoints that are enabled */
	LIST_HEAD(, verve_mr_event) regions;
	LIST_HEAD(, verve_ep) eps;
};

struct verve_domain {
	struct fid_domain fid;
	TAILQ_ENTRY(verve_domain) link; /* in the list of open domains */
	struct fid_fabric *fabric;
	struct verve_net_device *dev;
	struct verve_mr_cache mr_cache;
	struct verve_mr_keytab mr_keytab; /* keys of the application's regions */
	struct verve_mr_events events;
	pthread_mutex_t engine_lock; /* guards engines; taken before an engine's lock */
	LIST_HEAD(, verve_domain_engine) engines; /* engines of enabled endpoints */
	volatile AO_t references; /* objects that are open on the domain */
	uint32_t api_version;	  /* of the application, as FI_VERSION makes it */
	enum fi_threading threading;
	uint16_t dscp; /* of endpoints that have none of their own: verve_attr_dscp */
	/* FI_SOCKADDR...: of endpoint names, and of addresses in address vectors */
	uint32_t addr_format;
	uint64_t caps;	      /* FI_* that the application asked for */
	int mr_mode;	      /* FI_MR_*; FI_MR_BASIC is replaced by the bits that it stands for */
	/*
	 * True: descriptors of local buffers are valid or NULL. False: they may be anything, and
	 * are ignored.
	 */
	bool takes_desc;
	struct verve_progress *progress; /* thread of FI_PROGRESS_AUTO; NULL: manual progress */
	struct fid_eq *eq;    /* the event queue; NULL: none is bound */
	struct verve_auth_key auth_key; /* of endpoints that have no key of their own */
	/* the application gave auth_key; false: a file gave it, or there is none */
	bool own_key;
	bool device_atomics;  /* FI_VERVE_ATOMICS=device, and the application asked for FI_ATOMIC */
	/* eq was bound with FI_REG_MR: every registration is reported there */
	bool mr_events;
};

/* The tables of struct fid_domain: the functions that the application calls a domain by. */
struct verve_domain_tables {
	struct fi_ops *fid; /* close and bind are verve_domain_close and verve_domain_bind */
	struct fi_ops_domain *domain;
	struct fi_ops_mr *mr;
};

/*
 * Opens a domain: fi_domain(3). info is not kept. The tables stay the caller's and must outlive the
 * domain. The domain holds a reference of the fabric until it is closed.
 * -FI_EINVAL: info does not describe a domain of verve; -FI_ENODEV: the device or the port is gone;
 * -FI_EOPNOTSUPP: FI_VERVE_ATOMICS=device, but the device has no atomics; -FI_ENOMEM; or an error
 * of opening the device, the key's file or the progress thread.
 */
int verve_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		      const struct verve_domain_tables *tables, struct fid_domain **domain,
		      void *context);
/* close of struct fi_ops. -FI_EBUSY while objects are open on the domain. */
int verve_domain_close(struct fid *domain);
/*
 * bind of struct fi_ops: binds an event queue. flags: 0, or FI_REG_MR, which has registrations
 * reported there. -FI_EINVAL: object is not an event queue, or the domain has one; -FI_EBADFLAGS.
 */
int verve_domain_bind(struct fid *domain, struct fid *object, uint64_t flags);

/*
 * Finds an open domain on which an endpoint as info describes it can be opened; info names a port
 * and an address of the port. version: the application's, as FI_VERSION makes it. asked NULL: the
 * domain that was opened first. asked not NULL: only that domain; *mr_mode, which is info's
 * mr_mode, is then reduced to the bits that the domain has. NULL: there is no such domain. Any
 * thread; the result is valid until the application closes it.
 */
struct fid_domain *verve_domain_find(uint32_t version, const struct fid_domain *asked,
				     const struct fi_info *info, int *mr_mode);
/*
 * Sets *addr to the address that the open domain asked was opened on. False: asked is not an open
 * domain of verve, or has no address. Any thread.
 */
bool verve_domain_find_addr(const struct fid_domain *asked, struct verve_addr *addr);

static inline struct verve_domain *verve_domain_from_fid(struct fid *fid)
{
	return (struct verve_domain *)fid; /* fid is its first member */
}

/* Every object that is opened on the domain holds one reference. Any thread. */
void verve_domain_get(struct verve_domain *domain);
void verve_domain_put(struct verve_domain *domain);

uint32_t verve_domain_api_version(const struct verve_domain *domain);
/*
 * True: the application serializes all calls (FI_THREAD_DOMAIN), and the domain has no progress
 * thread, so locks may be elided. doc/threads.md says why FI_THREAD_COMPLETION does not count.
 */
bool verve_domain_elides_locks(const struct verve_domain *domain);

/*
 * From now on verve_domain_revoke reaches engine, which no thread takes turns of yet. member
 * belongs to the domain until it is removed: after engine is stopped, and before it is closed. No
 * lock may be held.
 */
void verve_domain_add_engine(struct verve_domain *domain, struct verve_domain_engine *member,
			     struct verve_engine *engine);
void verve_domain_remove_engine(struct verve_domain *domain, struct verve_domain_engine *member);
/*
 * The key has been removed from the domain's table: tells the peers that asked for the key. Takes
 * the lock of each engine of the domain.
 */
void verve_domain_revoke(struct verve_domain *domain, const struct verve_mr_key *key);

/*
 * Reports a registration to the event queue if the application asked for that. Errors as
 * verve_eq_write_event.
 */
int verve_domain_mr_event(struct verve_domain *domain, struct fid_mr *mr);

#endif
