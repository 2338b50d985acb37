/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thread domain: tells the device's library that one thread at a time posts to a set of queue
 * pairs. So it takes no lock for a post, and gives the set a doorbell of its own, where others
 * share a few doorbells under locks.
 *
 * Only posts are promised. Completion queues and shared receive queues stay outside: a worker that
 * closes a queue pair makes the library change them (mlx5: mlx5_destroy_qp, __mlx5_cq_clean), while
 * another thread polls.
 *
 * Source: ibv_alloc_td(3), ibv_alloc_parent_domain(3). For the sources of net alone.
 */
#ifndef VERVE_NET_TD_H
#define VERVE_NET_TD_H

#include "net/verbs.h"

/*
 * Opens a thread domain, whose td->pd is for queue pairs. Never fails: where the device has no
 * thread domains, or none left, td->pd is the device's protection domain.
 */
void verve_td_open(struct verve_net_device *dev, struct verve_td *td);
/* Every queue pair in it must be closed. */
void verve_td_close(struct verve_td *td);

#endif
