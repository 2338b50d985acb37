/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Poll: taking completions off a queue, and arming it. */
#ifndef SHMV_POLL_H
#define SHMV_POLL_H

#include <infiniband/verbs.h>

/* Operations of struct ibv_context_ops. */
int shmv_poll_cq(struct ibv_cq *ib, int max, struct ibv_wc *wc);
int shmv_req_notify_cq(struct ibv_cq *ib, int solicited_only);

#endif
