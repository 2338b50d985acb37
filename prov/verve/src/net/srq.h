/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive queues: the receive buffers of many queue pairs (net/qp.h).
 *
 * Source: ibv_create_srq(3), ibv_post_srq_recv(3). The engine's lock serializes posts to one queue
 * and to its queue pairs: the device's library takes no locks for these where it can do without
 * (net/td.h). What fails logs one line, but verve_net_srq_post, whose caller does.
 */
#ifndef VERVE_NET_SRQ_H
#define VERVE_NET_SRQ_H

#include <stdint.h>

#include "net/device.h"
#include "net/sge.h"

struct verve_net_srq;

/* depth: buffers, at most limits.srq_wr. -FI_ENOMEM, or the error of libibverbs. */
int verve_net_srq_open(struct verve_net_device *dev, uint32_t depth, struct verve_net_srq **srq);
/* Every queue pair on it must be closed. Its buffers go back to the caller without completion. */
void verve_net_srq_close(struct verve_net_srq *srq);

/*
 * Numbers of queue pairs on a shared receive queue: how many were opened, and how many closed,
 * since the shared receive queue was opened (both wrap); how many are open whose serial number is
 * smaller than serial. Any thread; another thread may open and close queue pairs at the same time.
 */
uint32_t verve_net_srq_opened(struct verve_net_srq *srq);
uint32_t verve_net_srq_closed(struct verve_net_srq *srq);
uint32_t verve_net_srq_older(struct verve_net_srq *srq, uint32_t serial);

/* One receive buffer; wr_id comes back in its completion. */
struct verve_net_recv {
	uint64_t wr_id;
	struct verve_net_sge sge;
};
/*
 * Posts count buffers, in order. *posted: the number of buffers that the queue took, from the first
 * on: count, or fewer with a negative error. The caller logs it, who knows whether it is new.
 */
int verve_net_srq_post(struct verve_net_srq *srq, const struct verve_net_recv *recv, uint32_t count,
		       uint32_t *posted);

#endif
