/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Retry: sends that could not be done at once wait in their queue pair, and their context lists the queue pair.
 * Each poll of a completion queue tries again what is due, and so does the thread that reads notes.
 */
#ifndef SHMV_RETRY_H
#define SHMV_RETRY_H

#include <stdbool.h>

struct shmv_ctx;
struct shmv_qp;

/*
 * A send came back with SHMV_RETRY_...: that, and the queue pair is listed; or a completion status, when it was
 * tried often enough. Under the queue pair's lock, as the next.
 */
int shmv_retry_later(struct shmv_qp *qp, int why);

/* Does what waits, as far as it can be done. */
void shmv_retry_run(struct shmv_qp *qp);

/* All that is due of a context. */
void shmv_retry(struct shmv_ctx *ctx);
/* Of all contexts of this process; whether anything waits on. */
bool shmv_retry_all(void);

/* Takes a queue pair off the list. Under its lock. */
void shmv_retry_remove(struct shmv_qp *qp);

#endif
