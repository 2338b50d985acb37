/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics: fi_atomic(3). Any thread; the functions take the engine's lock. */
#ifndef VERVE_API_ATOMIC_H
#define VERVE_API_ATOMIC_H

#include <rdma/fi_atomic.h>

/* The atomic calls of an endpoint with FI_ATOMIC. */
extern struct fi_ops_atomic verve_atomic_ops;

/*
 * query_atomic of struct fi_ops_domain. Sets attr->count, in elements, and attr->size, in bytes of
 * one element. -FI_EOPNOTSUPP: verve does not have this combination of datatype, op and flags, or
 * flags name FI_TAGGED; -FI_EBADFLAGS: unknown flags, or both FI_FETCH_ATOMIC and
 * FI_COMPARE_ATOMIC. Any thread.
 */
int verve_domain_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			      struct fi_atomic_attr *attr, uint64_t flags);

#endif
