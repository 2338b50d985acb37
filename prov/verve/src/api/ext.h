/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What rdma/fi_ext_verve.h promises. */
#ifndef VERVE_API_EXT_H
#define VERVE_API_EXT_H

#include <rdma/fabric.h>

/* fi_open_ops(3) of a domain. -FI_EINVAL: there are no operations of that name; -FI_EBADFLAGS. */
int verve_domain_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			  void *context);

#endif
