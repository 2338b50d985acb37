/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Retry: sends that could not be done at once wait in their queue pair, and the context lists the
 * queue pair. Each poll of a completion queue tries the sends that are due, and so does the
 * device's thread, for a program that neither posts nor polls.
 */
#ifndef SHMV_RETRY_H
#define SHMV_RETRY_H

#include <stdbool.h>

struct shmv_ctx;
struct shmv_qp;

/*
 * What follows when a send came back with code why, SHMV_RETRY_...: returns the code, and the
 * queue pair is listed; or a completion status, because the send was tried often enough. Under
 * the queue pair's lock.
 */
int shmv_retry_later(struct shmv_qp *qp, int why);

/*
 * Executes the waiting sends of a queue pair, up to the first that has to wait on. Under its
 * lock.
 */
void shmv_retry_run(struct shmv_qp *qp);

/* The same for each queue pair of a context that is due. */
void shmv_retry(struct shmv_ctx *ctx);
/* The same for all contexts of this process. True: some send waits on. */
bool shmv_retry_all(void);

/* Takes a queue pair off its context's list. Under its lock. */
void shmv_retry_remove(struct shmv_qp *qp);

#endif
