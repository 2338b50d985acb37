/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Complete: adding completions to queues, taking them off, and waking a sleeper. */
#ifndef SHMV_COMPLETE_H
#define SHMV_COMPLETE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "layout.h"

struct shmv_cq;
struct shmv_sent;
struct shmv_seg;

/*
 * Adds a receive's completion to a queue of any process, with its payload if entry->kind says so. arrival:
 * when it may be seen; 0: at once. May change entry->status. False: the queue is full or in error; its owner
 * is told.
 */
bool shmv_complete_recv(struct shmv_seg *seg, struct shm_cq *cq, struct shm_cqe *entry,
			const struct iovec *iov, int count, uint64_t arrival);

/* Adds a send's completion to a queue of this process. Under the queue pair's lock. */
void shmv_complete_send(struct shmv_cq *cq, const struct shmv_sent *sent);

/* Wakes the sleeper on a queue of this process whose next completion is on its way. */
void shmv_complete_wake(struct shmv_cq *cq);

#endif
