/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing a transport: the device's queues, buffers, tables. Only proto/proto.h calls it. */
#ifndef VERVE_XPORT_OPEN_H
#define VERVE_XPORT_OPEN_H

#include "xport/xport.h"

struct verve_lock;

/* Most bytes of an eager payload, if so many are wanted: a packet is one request of the device. */
size_t verve_xport_eager_size(const struct verve_net_device *dev, size_t wanted);

/*
 * Opens everything but the connection manager, which needs the queues and which the engine adds. protocols outlive it.
 * No receive buffer is posted yet: verve_dispatch_open.
 */
int verve_xport_init(struct verve_xport *xport, const struct verve_xport_attr *attr,
		     const struct verve_protocols *protocols, struct verve_lock *lock);
/* No link is left. */
void verve_xport_fini(struct verve_xport *xport);

/*
 * Of a shared receive context: operations and peers' names for all transports that are opened with it as their
 * attr.shared, under one lock. It has no device, and is never polled. Of attr, mr_cache, min_multi_recv, addrvec and
 * sink count; the last two are those of any of its transports, and change with them. 0.
 */
int verve_xport_init_shared(struct verve_xport *xport, const struct verve_xport_attr *attr,
			    const struct verve_protocols *protocols, struct verve_lock *lock);
/* Its transports are closed. */
void verve_xport_fini_shared(struct verve_xport *xport);

#endif
