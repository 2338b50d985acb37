/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Poll set: fi_poll(3). Names those of its completion queues and counters that have news, after it
 * made progress on all. Any thread, except that close is serialized by the application.
 */
#ifndef VERVE_API_POLL_H
#define VERVE_API_POLL_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

/* For struct fi_ops_domain. fi_close: -FI_EBUSY while anything is in it. -FI_EINVAL, -FI_ENOMEM. */
int verve_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **poll);

#endif
