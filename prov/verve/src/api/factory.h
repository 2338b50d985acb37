/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Factory: which function opens each kind of object. It stands above all objects, and none of them knows it: an
 * object gets its tables when it is opened. Start here to find where a call of libfabric ends up.
 */
#ifndef VERVE_API_FACTORY_H
#define VERVE_API_FACTORY_H

#include <rdma/fabric.h>

/* struct fi_provider's fabric. A fabric opens domains and event queues, a domain all the rest. As verve_fabric_open. */
int verve_factory_open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
