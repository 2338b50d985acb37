/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics: fi_atomic(3). Any thread. */
#ifndef VERVE_API_ATOMIC_H
#define VERVE_API_ATOMIC_H

#include <rdma/fi_atomic.h>

/* Of an endpoint with FI_ATOMIC. */
extern struct fi_ops_atomic verve_atomic_ops;

/*
 * For struct fi_ops_domain. -FI_EOPNOTSUPP: no such combination, or tagged receives as targets;
 * -FI_EBADFLAGS.
 */
int verve_domain_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			      struct fi_atomic_attr *attr, uint64_t flags);

#endif
