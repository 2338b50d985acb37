/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks, taken in this order: the process's mutex, a context's mutex, qp.lock, shm_qp.lock (the peer's
 * or one's own, never both), cq.lock, shm_cq.lock, rq.lock. A lock in shared memory holds its owner's
 * process id, so that it outlives an owner that was killed.
 */
#ifndef SHMV_LOCK_H
#define SHMV_LOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "atomic.h"

/* This process's id; kept, because getpid(2) costs a system call. */
extern uint32_t shmv_pid;

/* Between threads of one process. */
static inline void shmv_lock(uint32_t *lock)
{
	for (uint32_t i = 1; shmv_unlikely(shmv_swap32(lock, 1)); i++) {
		if (i % 200)
			shmv_pause();
		else
			sched_yield();
	}
}

static inline bool shmv_lock_try(uint32_t *lock)
{
	return !shmv_swap32(lock, 1);
}

static inline void shmv_unlock(uint32_t *lock)
{
	shmv_store32(lock, 0);
}

/* Between processes. A dead owner's lock is taken over: what it guards is whole at any time. */
void shmv_lock_shared_slow(uint32_t *lock);

static inline void shmv_lock_shared(uint32_t *lock)
{
	if (shmv_unlikely(!shmv_replace32(lock, 0, shmv_pid)))
		shmv_lock_shared_slow(lock);
}

/* A full barrier: a reader that arms a queue afterwards sees what was published before. */
static inline void shmv_unlock_shared(uint32_t *lock)
{
	(void)shmv_swap32(lock, 0);
}

/* When a process started, in ticks of the kernel; 0: it is dead, maybe not yet waited for. */
uint64_t shmv_process_start(uint32_t pid);

#endif
