/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks. A thread takes them in this order: the process's mutex, a context's mutex, qp.lock,
 * shm_qp.lock (the peer's or its own, never both), cq.lock, shm_cq.lock, rq.lock. A lock in
 * shared memory holds the id of the process that has it, so that another process can take it over
 * from a process that was killed.
 */
#ifndef SHMV_LOCK_H
#define SHMV_LOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "atomic.h"

/* The id of this process. It is kept, because getpid(2) costs a system call. */
extern uint32_t shmv_pid;

/* A lock between threads of one process. */
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

/*
 * A lock between processes. The lock of a dead process is taken over: the data behind it is whole
 * at any time.
 */
void shmv_lock_shared_slow(uint32_t *lock);

static inline void shmv_lock_shared(uint32_t *lock)
{
	if (shmv_unlikely(!shmv_replace32(lock, 0, shmv_pid)))
		shmv_lock_shared_slow(lock);
}

/* A full barrier: a thread that arms a queue afterwards sees what was published before. */
static inline void shmv_unlock_shared(uint32_t *lock)
{
	(void)shmv_swap32(lock, 0);
}

/* Start time of a process, in ticks of the kernel; 0: it is dead, or a zombie. */
uint64_t shmv_process_start(uint32_t pid);

#endif
