/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Poll set: fi_poll(3). It makes progress on all its completion queues and counters, and names
 * those that have news. Any thread, except that the application serializes close.
 */
#ifndef VERVE_API_POLL_H
#define VERVE_API_POLL_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

/*
 * poll_open of struct fi_ops_domain. Holds a reference of the domain until it is closed, and a
 * reference of each queue and counter in the set. fi_close returns -FI_EBUSY while the set is not
 * empty. -FI_EINVAL: attr->flags is not 0; -FI_ENOMEM.
 */
int verve_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **poll);

#endif
