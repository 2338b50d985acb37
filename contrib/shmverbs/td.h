/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thread domains. The program promises that one thread at a time posts to the queue pairs of a
 * thread domain. A device's library takes no lock for them; this one does, because its own thread
 * tries sends again, but it ends a program that breaks the promise.
 *
 * Source: ibv_alloc_td(3), ibv_alloc_parent_domain(3); rdma-core, providers/mlx5/mlx5.h:
 * mlx5_spin_lock.
 */
#ifndef SHMV_TD_H
#define SHMV_TD_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#include "atomic.h"

struct shmv_td {
	struct ibv_td ib;
	uint32_t refs; /* number of parent domains with it */
	uint32_t busy; /* a thread posts */
};

/* Operations of struct verbs_context. mem.h has parent domains. */
struct ibv_td *shmv_alloc_td(struct ibv_context *ib, struct ibv_td_init_attr *init);
int shmv_dealloc_td(struct ibv_td *td);

/* The promise is broken: ends the process. */
void shmv_td_broken(void) __attribute__((noreturn));

/* A thread begins to post, and ends. td NULL: nothing was promised. */
static inline void shmv_td_enter(struct shmv_td *td)
{
	if (td && shmv_unlikely(shmv_swap32(&td->busy, 1)))
		shmv_td_broken();
}

static inline void shmv_td_leave(struct shmv_td *td)
{
	if (td)
		shmv_store32(&td->busy, 0);
}

#endif
