/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_trywait of fi_poll(3): whether an application may sleep on the descriptors of several objects.
 * Any thread.
 */
#ifndef VERVE_API_TRYWAIT_H
#define VERVE_API_TRYWAIT_H

#include <rdma/fabric.h>

/*
 * trywait of struct fi_ops_fabric, for completion queues, counters and event queues. 0: the
 * application may sleep on all descriptors. Otherwise the error of verve_wait_try for the first
 * object that refuses; -FI_EINVAL: an object of another class.
 */
int verve_fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

#endif
