/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Complete: adding completions to queues, and waking a sleeper. */
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
 * Adds the completion of a receive to a queue of any process. The payload in iov is added if
 * entry->kind has SHM_CQE_HERE or SHM_CQE_BESIDE. arrival: from this time on a poll sees the
 * completion; 0: at once. May change entry->status. False: the queue is full or in error; then
 * its owner gets an event.
 */
bool shmv_complete_recv(struct shmv_seg *seg, struct shm_cq *cq, struct shm_cqe *entry,
			const struct iovec *iov, int count, uint64_t arrival);

/* Adds the completion of a send to a queue of this process. Under the queue pair's lock. */
void shmv_complete_send(struct shmv_cq *cq, const struct shmv_sent *sent);

/*
 * Wakes the sleeper on a queue of this process at the time of the queue's next completion, if the
 * queue is armed. For a queue that was armed while this completion was on the wire already.
 */
void shmv_complete_wake(struct shmv_cq *cq);

#endif
