/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabric: fi_fabric(3). A fabric has a name and a count of the objects that are open on it. The
 * process has a list of open fabrics, with a lock of its own.
 */
#ifndef VERVE_API_FABRIC_H
#define VERVE_API_FABRIC_H

#include <rdma/fabric.h>
#include <stdint.h>

/*
 * Opens a fabric: fi_fabric(3). ops has the functions that open objects on the fabric; the table
 * stays the caller's and must outlive the fabric. fi_close returns -FI_EBUSY while objects are open
 * on it. -FI_EINVAL: attr->name is not a fabric of verve; -FI_ENOMEM. Any thread.
 */
int verve_fabric_open(struct fi_fabric_attr *attr, struct fi_ops_fabric *ops,
		      struct fid_fabric **fabric, void *context);

/* Every object that is opened on the fabric holds one reference. Any thread. */
void verve_fabric_get(struct fid_fabric *fabric);
void verve_fabric_put(struct fid_fabric *fabric);

/*
 * Finds an open fabric with this name and this version of the application, as FI_VERSION makes it.
 * asked NULL: the one that was opened first; not NULL: only that fabric. NULL: there is none. Any
 * thread; the result is valid until the application closes it.
 */
struct fid_fabric *verve_fabric_find(const char *name, uint32_t version,
				     const struct fid_fabric *asked);

#endif
