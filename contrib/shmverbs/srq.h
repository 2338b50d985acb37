/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queue: the object of libibverbs around a receive queue. */
#ifndef SHMV_SRQ_H
#define SHMV_SRQ_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct shmv_rq;

struct shmv_srq {
	struct ibv_srq ib;
	struct shmv_rq *rq;
	uint32_t refs, async_events;
};

#endif
