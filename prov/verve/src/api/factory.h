/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Factory: says which function opens each kind of object. It stands above all objects, and no
 * object knows it: an object gets its tables when it is opened. Start here to find the function
 * behind a call of libfabric.
 */
#ifndef VERVE_API_FACTORY_H
#define VERVE_API_FACTORY_H

#include <rdma/fabric.h>

/*
 * fabric of struct fi_provider. A fabric opens domains and event queues; a domain opens all other
 * objects. As verve_fabric_open.
 */
int verve_factory_open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
			      void *context);

#endif
