/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive: posting receives. */
#ifndef SHMV_RECV_H
#define SHMV_RECV_H

#include <infiniband/verbs.h>

/* Operations of struct ibv_context_ops. */
int shmv_post_srq_recv(struct ibv_srq *ib, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int shmv_post_recv(struct ibv_qp *ib, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
