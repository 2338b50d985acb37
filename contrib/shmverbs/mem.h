/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory: protection domains, regions and keys. A key is an index into the table in its device's
 * file, and eight bits that change each time the index is used anew, so that an old key opens
 * nothing.
 *
 * Source: ibv_reg_mr(3); InfiniBand specification, volume 1, 10.6.
 */
#ifndef SHMV_MEM_H
#define SHMV_MEM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atomic.h"
#include "layout.h"

struct shmv_ctx;
struct shmv_td;

struct shmv_pd {
	struct ibv_pd ib;
	uint32_t refs; /* number of objects in it */
	/* Of a parent domain (td.h): its protection domain, and its thread domain or NULL. */
	struct ibv_pd *whole;
	struct shmv_td *td;
};

static inline void shmv_pd_ref(struct ibv_pd *ib, int by)
{
	shmv_add32(&((struct shmv_pd *)ib)->refs, by);
}

/* Operation of struct verbs_context. A parent domain is freed as a protection domain. */
struct ibv_pd *shmv_alloc_parent_domain(struct ibv_context *ib,
					struct ibv_parent_domain_init_attr *init);

static inline struct shm_mr *shmv_mr_at(struct shm *shm, uint32_t key)
{
	return &shm->mr[(key >> 8) % SHM_MR_MAX];
}

/* The address of the memory in the owner's process; NULL: the key does not open the memory. */
static inline void *shmv_mr_find(struct shm *shm, uint32_t key, uint64_t addr, uint64_t len,
				 uint32_t access, uint32_t pd)
{
	struct shm_mr *mr = shmv_mr_at(shm, key);

	if (shmv_load32(&mr->key) != key || !key || mr->pd != pd ||
	    (mr->access & access) != access || len > mr->len || addr - mr->iova > mr->len - len)
		return NULL;
	return (void *)(uintptr_t)(mr->addr + (addr - mr->iova));
}

/*
 * The same for memory of another process, through its queue pair qpn. The key does not end before
 * shmv_mr_release. For the scatter list of a receive, access has SHM_ACCESS_LKEY.
 */
void *shmv_mr_hold(struct shm *shm, uint32_t key, uint64_t addr, uint64_t len, uint32_t access,
		   uint32_t pd, uint32_t qpn);
static inline void shmv_mr_release(struct shm *shm, uint32_t key)
{
	shmv_add32(&shmv_mr_at(shm, key)->users, -1);
}

/* Ends a key, and waits for the accesses under way. False: the key was ended already. */
bool shmv_mr_end(struct shm_mr *mr, uint32_t key);

/* get: a key that opens nothing yet; 0: there is none. put: gives the key back after its end. */
uint32_t shmv_mr_key_get(struct shmv_ctx *ctx);
void shmv_mr_key_put(struct shmv_ctx *ctx, uint32_t key);

/*
 * Counts bytes that the device pins against RLIMIT_MEMLOCK, as the kernel does. ENOMEM: the limit
 * is too small; a process with CAP_IPC_LOCK has no limit.
 */
int shmv_pin(size_t bytes);
void shmv_unpin(size_t bytes);
/* The same for a ring: counts nothing unless the property pin_rings is set. */
int shmv_pin_ring(size_t bytes);
void shmv_unpin_ring(size_t bytes);

#endif
