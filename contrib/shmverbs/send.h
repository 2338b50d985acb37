/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send: posting work requests to a queue pair. */
#ifndef SHMV_SEND_H
#define SHMV_SEND_H

#include <infiniband/verbs.h>

/* Operations of struct ibv_context_ops. */
int shmv_post_send(struct ibv_qp *ib, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Binds a window of type 1: the device makes the work request itself. */
int shmv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif
