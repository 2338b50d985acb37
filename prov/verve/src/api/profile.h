/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Profile: fi_profile(3), which libfabric has from 2.0 on: the numbers of an endpoint or a domain
 * that verve_stat(1) shows of it, as variables; of an endpoint also FI_VAR_CONNECTION_CNT and
 * FI_VAR_UNEXP_MSG_CNT. There are no events. Built with an older libfabric, there are no profiles.
 */
#ifndef VERVE_API_PROFILE_H
#define VERVE_API_PROFILE_H

#include <rdma/fabric.h>

#define VERVE_PROFILE_OPS "fi_profile_ops" /* the name that fi_profile_open asks for */

/*
 * ops_open of struct fi_ops for that name: opens a profile of an endpoint, of an endpoint's alias,
 * or of a domain. While it is open, fi_close of the endpoint or the domain returns -FI_EBUSY.
 * Threads may use different profiles of one object at the same time, unless FI_THREAD_DOMAIN
 * forbids it. -FI_ENOSYS: another name, or there are no profiles; -FI_EBADFLAGS: flags is not 0;
 * -FI_ENOMEM.
 */
int verve_profile_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context);

#endif
