/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_trywait of fi_poll(3): whether the descriptors of several objects may be polled. Any thread. */
#ifndef VERVE_API_TRYWAIT_H
#define VERVE_API_TRYWAIT_H

#include <rdma/fabric.h>

/*
 * For struct fi_ops_fabric. Takes completion queues, counters and event queues; objects of another class:
 * -FI_EINVAL. Else as verve_wait_try for the first object that refuses.
 */
int verve_fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

#endif
