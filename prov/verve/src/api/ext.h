/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The extension of rdma/fi_ext_verve.h: operations on the registration cache. */
#ifndef VERVE_API_EXT_H
#define VERVE_API_EXT_H

#include <rdma/fabric.h>

/*
 * ops_open of struct fi_ops: fi_open_ops(3) of a domain. Sets *ops to a constant table, or opens a
 * profile (api/profile.h). -FI_EINVAL: verve has no operations of that name; -FI_EBADFLAGS: flags
 * is not 0; or an error of verve_profile_open. Any thread.
 */
int verve_domain_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			  void *context);

#endif
