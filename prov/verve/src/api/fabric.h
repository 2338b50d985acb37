/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabric: fi_fabric(3). Holds nothing but its name and a count of what is open on it; the open ones
 * are in a list of the process.
 */
#ifndef VERVE_API_FABRIC_H
#define VERVE_API_FABRIC_H

#include <rdma/fabric.h>
#include <stdint.h>

/*
 * fi_fabric(3). ops is what the application opens on it; the table stays the caller's. fi_close: -FI_EBUSY while
 * references are out. -FI_EINVAL: not the name of a fabric of verve; -FI_ENOMEM.
 */
int verve_fabric_open(struct fi_fabric_attr *attr, struct fi_ops_fabric *ops,
		      struct fid_fabric **fabric, void *context);

/* Every object opened on it holds one reference. Any thread. */
void verve_fabric_get(struct fid_fabric *fabric);
void verve_fabric_put(struct fid_fabric *fabric);

/*
 * The first that was opened of this name by an application of this version, or, if asked is not
 * NULL, that one. NULL: there is none. Any thread; valid while the application does not close it.
 */
struct fid_fabric *verve_fabric_find(const char *name, uint32_t version,
				     const struct fid_fabric *asked);

#endif
